//! The grammar of SCAN (Lake and Baroni 2018): 20,910 phrases, each a command and the actions it stands for.
//!
//! ```text
//! phrase = clause | clause and clause | clause after clause            102 + 2·102² = 20,910
//! clause = move | move twice | move thrice                             34·3 = 102
//! move   = verb | (verb | turn) [opposite | around] (left | right)     4 + 5·3·2 = 34
//! verb   = run | walk | look | jump
//! ```
//! `turn` never stands without a direction. Phrases are numbered, so that a data set is a list of numbers.

/// A word of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each name is the word")]
pub enum Word {
    Run,
    Walk,
    Look,
    Jump,
    Left,
    Right,
    Twice,
    Thrice,
    Opposite,
    Around,
    Turn,
    And,
    After,
}

impl Word {
    /// All words in order; the place of a word is `word as usize`.
    pub const ALL: [Self; 13] = [
        Self::Run,
        Self::Walk,
        Self::Look,
        Self::Jump,
        Self::Left,
        Self::Right,
        Self::Twice,
        Self::Thrice,
        Self::Opposite,
        Self::Around,
        Self::Turn,
        Self::And,
        Self::After,
    ];

    /// The word as the data set writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Walk => "walk",
            Self::Look => "look",
            Self::Jump => "jump",
            Self::Left => "left",
            Self::Right => "right",
            Self::Twice => "twice",
            Self::Thrice => "thrice",
            Self::Opposite => "opposite",
            Self::Around => "around",
            Self::Turn => "turn",
            Self::And => "and",
            Self::After => "after",
        }
    }
}

/// One thing done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each name is the action")]
pub enum Action {
    Run,
    Walk,
    Look,
    Jump,
    TurnLeft,
    TurnRight,
}

impl Action {
    /// All actions in order; the place of an action is `action as usize`.
    pub const ALL: [Self; 6] = [Self::Run, Self::Walk, Self::Look, Self::Jump, Self::TurnLeft, Self::TurnRight];

    /// The action as the data set writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "I_RUN",
            Self::Walk => "I_WALK",
            Self::Look => "I_LOOK",
            Self::Jump => "I_JUMP",
            Self::TurnLeft => "I_TURN_LEFT",
            Self::TurnRight => "I_TURN_RIGHT",
        }
    }
}

/// What is done: one of the four verbs, or nothing but turning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verb {
    Run,
    Walk,
    Look,
    Jump,
    Turn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Manner {
    Plain,
    Opposite,
    Around,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Direction {
    Left,
    Right,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Joint {
    And,
    After,
}

/// A verb, how it turns, and how often: `walk around left twice`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Clause {
    verb: Verb,
    turning: Option<(Manner, Direction)>,
    /// 1, 2 or 3.
    times: usize,
}

/// One or two clauses.
///
/// ```
/// use crosslens_nets::tasks::scan_grammar::{Action, Phrase};
///
/// let longest = (0..Phrase::COUNT).filter_map(Phrase::numbered).map(|phrase| phrase.actions().len()).max();
/// assert_eq!(longest, Some(48));
/// assert_eq!(Phrase::numbered(1).map(|phrase| phrase.actions()), Some(vec![Action::Walk]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Phrase {
    first: Clause,
    second: Option<(Joint, Clause)>,
}

const VERBS: [Verb; 5] = [Verb::Run, Verb::Walk, Verb::Look, Verb::Jump, Verb::Turn];
const MANNERS: [Manner; 3] = [Manner::Plain, Manner::Opposite, Manner::Around];
const DIRECTIONS: [Direction; 2] = [Direction::Left, Direction::Right];

/// Verbs that stand alone: all but `turn`, the last.
const N_BARE: usize = VERBS.len() - 1;
const N_MOVES: usize = N_BARE + VERBS.len() * MANNERS.len() * DIRECTIONS.len();
const N_CLAUSES: usize = 3 * N_MOVES;

impl Verb {
    fn word(self) -> Word {
        match self {
            Self::Run => Word::Run,
            Self::Walk => Word::Walk,
            Self::Look => Word::Look,
            Self::Jump => Word::Jump,
            Self::Turn => Word::Turn,
        }
    }

    fn action(self) -> Option<Action> {
        match self {
            Self::Run => Some(Action::Run),
            Self::Walk => Some(Action::Walk),
            Self::Look => Some(Action::Look),
            Self::Jump => Some(Action::Jump),
            Self::Turn => None,
        }
    }
}

impl Clause {
    /// Clause number `number` of [`N_CLAUSES`].
    fn numbered(number: usize) -> Self {
        let (times, number) = (1 + number / N_MOVES, number % N_MOVES);
        if number < N_BARE {
            return Self { verb: VERBS[number], turning: None, times };
        }
        let number = number - N_BARE;
        let manner = MANNERS[number % MANNERS.len()];
        let direction = DIRECTIONS[number / MANNERS.len() % DIRECTIONS.len()];
        let verb = VERBS[number / (MANNERS.len() * DIRECTIONS.len())];
        Self { verb, turning: Some((manner, direction)), times }
    }

    fn words(self) -> impl Iterator<Item = Word> {
        let manner = match self.turning {
            None | Some((Manner::Plain, _)) => None,
            Some((Manner::Opposite, _)) => Some(Word::Opposite),
            Some((Manner::Around, _)) => Some(Word::Around),
        };
        let direction = self.turning.map(|(_, direction)| match direction {
            Direction::Left => Word::Left,
            Direction::Right => Word::Right,
        });
        let times = match self.times {
            2 => Some(Word::Twice),
            3 => Some(Word::Thrice),
            _ => None,
        };
        [Some(self.verb.word()), manner, direction, times].into_iter().flatten()
    }

    /// ```text
    /// u left → L u      u opposite left → L L u      u around left → L u L u L u L u      and without u for turn
    /// ```
    fn actions(self) -> Vec<Action> {
        let (n_turns, n_rounds) = match self.turning {
            None => (0, 1),
            Some((Manner::Plain, _)) => (1, 1),
            Some((Manner::Opposite, _)) => (2, 1),
            Some((Manner::Around, _)) => (1, 4),
        };
        let turn = match self.turning {
            Some((_, Direction::Right)) => Action::TurnRight,
            _ => Action::TurnLeft,
        };
        let mut round = vec![turn; n_turns];
        round.extend(self.verb.action());
        round.repeat(n_rounds * self.times)
    }

    /// The same clause with `run` in place of any verb but `turn`.
    fn kind(self) -> Self {
        Self { verb: if self.verb == Verb::Turn { Verb::Turn } else { Verb::Run }, ..self }
    }

    fn is_turn_left(self) -> bool {
        self.verb == Verb::Turn && self.turning == Some((Manner::Plain, Direction::Left))
    }
}

impl Phrase {
    /// How many phrases there are.
    pub const COUNT: usize = N_CLAUSES + 2 * N_CLAUSES * N_CLAUSES;

    /// Phrase number `number`; none from [`Phrase::COUNT`] on.
    ///
    /// Single clauses come first, then `and`, then `after`; numbers 0 to 3 are the four bare verbs.
    pub fn numbered(number: usize) -> Option<Self> {
        let Some(joined) = number.checked_sub(N_CLAUSES) else {
            return Some(Self { first: Clause::numbered(number), second: None });
        };
        let joint = match joined / (N_CLAUSES * N_CLAUSES) {
            0 => Joint::And,
            1 => Joint::After,
            _ => return None,
        };
        let first = Clause::numbered(joined / N_CLAUSES % N_CLAUSES);
        Some(Self { first, second: Some((joint, Clause::numbered(joined % N_CLAUSES))) })
    }

    /// All phrases in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..).map_while(Self::numbered)
    }

    /// The command.
    pub fn words(self) -> Vec<Word> {
        let mut words: Vec<Word> = self.first.words().collect();
        if let Some((joint, second)) = self.second {
            words.push(match joint {
                Joint::And => Word::And,
                Joint::After => Word::After,
            });
            words.extend(second.words());
        }
        words
    }

    /// What the command stands for: `a and b` is a then b, `a after b` is b then a.
    pub fn actions(self) -> Vec<Action> {
        match self.second {
            None => self.first.actions(),
            Some((Joint::And, second)) => [self.first.actions(), second.actions()].concat(),
            Some((Joint::After, second)) => [second.actions(), self.first.actions()].concat(),
        }
    }

    /// The phrase with `run` in place of every verb but `turn`: phrases of one kind differ in nothing else, so they have commands
    /// of one length and action sequences of one length.
    pub fn kind(self) -> Self {
        Self { first: self.first.kind(), second: self.second.map(|(joint, second)| (joint, second.kind())) }
    }

    /// Whether a clause says `jump`.
    pub(super) fn has_jump(self) -> bool {
        self.clauses().any(|clause| clause.verb == Verb::Jump)
    }

    /// Whether a clause says `turn left`, once or more often, but not `turn around left` nor `turn opposite left`.
    pub(super) fn has_turn_left(self) -> bool {
        self.clauses().any(Clause::is_turn_left)
    }

    fn clauses(self) -> impl Iterator<Item = Clause> {
        [Some(self.first), self.second.map(|(_, second)| second)].into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::path::Path;

    use flate2::read::GzDecoder;
    use sha2::{Digest, Sha256};

    use super::*;

    /// The phrases as the published file writes them, in the order of the letters.
    fn sorted_lines() -> Vec<String> {
        let mut lines: Vec<String> = Phrase::all()
            .map(|phrase| {
                let words: Vec<&str> = phrase.words().into_iter().map(Word::name).collect();
                let actions: Vec<&str> = phrase.actions().into_iter().map(Action::name).collect();
                format!("IN: {} OUT: {}", words.join(" "), actions.join(" "))
            })
            .collect();
        lines.sort_unstable();
        lines
    }

    #[test]
    fn places_follow_the_order_of_the_lists() {
        assert!(Word::ALL.iter().enumerate().all(|(place, &word)| word as usize == place));
        assert!(Action::ALL.iter().enumerate().all(|(place, &action)| action as usize == place));
    }

    #[test]
    fn there_are_as_many_phrases_as_published() {
        assert_eq!(Phrase::COUNT, 20_910);
        assert_eq!(Phrase::all().count(), 20_910);
        assert_eq!(Phrase::numbered(20_910), None);
    }

    /// The constant is `zcat tasks.txt.gz | LC_ALL=C sort | sha256sum` of the published file.
    #[test]
    fn the_phrases_have_the_hash_of_the_published_file() {
        let mut text = sorted_lines().join("\n");
        text.push('\n');
        let hash: String = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, "6be4b39bc8bf3a20be810b6991250d0493e608560609db6765dd679e1ed1c98e");
    }

    #[test]
    fn the_phrases_are_the_lines_of_the_published_file() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/scan/tasks.txt.gz");
        let Ok(file) = std::fs::File::open(&path) else {
            // Not `eprintln!`, which a passing test keeps to itself.
            writeln!(std::io::stderr(), "SKIPPED: the published SCAN file is not at {}", path.display()).expect("stderr is open");
            return;
        };
        let mut text = String::new();
        GzDecoder::new(file).read_to_string(&mut text).expect("the published file is gzipped text");
        let mut published: Vec<&str> = text.lines().collect();
        published.sort_unstable();

        let ours = sorted_lines();
        assert_eq!(ours.len(), published.len());
        for (ours, published) in ours.iter().zip(published) {
            assert_eq!(ours, published);
        }
    }

    #[test]
    fn phrases_of_one_kind_have_one_shape() {
        for phrase in Phrase::all() {
            assert_eq!(phrase.words().len(), phrase.kind().words().len());
            assert_eq!(phrase.actions().len(), phrase.kind().actions().len());
        }
    }
}
