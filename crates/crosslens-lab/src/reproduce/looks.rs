//! What a report does not keep of single sentences: where each step looks, which words are right, how far attention leaves its average.

use std::collections::BTreeMap;

use crosslens_analysis::Description;
use crosslens_analysis::explain::{Sample, Samples};
use crosslens_nets::tasks::PERIOD_WORD;
use serde::{Deserialize, Serialize};

use super::numbers::{correlation, mean, softmax};

/// Pieces of a bilinear score made of steps and tokens alone: the query's part times three plus the key's.
const TEMPORAL: [usize; 1] = [0];
const TEMPORAL_AND_INPUT: [usize; 4] = [0, 1, 3, 4];
/// Those of steps and the residual alone.
const TEMPORAL_AND_RESIDUAL: [usize; 4] = [0, 2, 6, 8];

/// Counted over all sentences of an explanation, at the first head.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Looks {
    /// Content steps by `key looked at − step`.
    pub forward: BTreeMap<i64, u64>,
    /// Content steps by `key looked at − (last content key − step)`.
    pub backward: BTreeMap<i64, u64>,
    /// By word of the target: how often it was right, how often it was due.
    pub words: BTreeMap<String, [u64; 2]>,
    /// Size of what is the same for every key in the temporal × temporal term, which softmax ignores, over the size of that term where the
    /// score is highest: `Σ |mean over keys| / Σ |term|` over content steps. Above 1 where the two have unlike signs. Null for additive
    /// scores.
    pub constant: Option<f64>,
    /// The same over its own size and that of the rest, `Σ |mean| / Σ (|mean| + |term − mean|)`: never above 1. Null for additive scores.
    pub constant_of_sizes: Option<f64>,
    /// How far attention runs ahead of the step; null where the task names no source word for a target word.
    pub displacement: Option<Displacement>,
}

/// `place in the source − step`, over steps that every sentence has before its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Displacement {
    /// Of the word the grammar makes the target word from, by step, averaged over sentences.
    pub grammar: Vec<f64>,
    /// Of the centre of attention.
    pub attention: Vec<f64>,
    /// Of the centre of attention rebuilt from steps alone.
    pub temporal: Vec<f64>,
    /// How attention follows what a sentence's grammar adds to the average.
    pub own: Follows,
    /// How it follows what every `and` before adds: one place.
    pub and: Follows,
    /// How it follows what `left` adds, which is written before its verb: a place more at its own step, one less at the verb's.
    pub left: Follows,
    /// The weight of the word the grammar makes the target word from, at the steps that `left` moves; null where it moves none.
    pub at_left: Option<AtOrigin>,
}

/// Mean weight of one place of the source, by what attention is rebuilt from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtOrigin {
    /// The true attention.
    pub attention: f64,
    /// From steps alone.
    pub temporal: f64,
    /// From steps and tokens.
    pub with_input: f64,
    /// From steps and the residual.
    pub with_residual: f64,
}

/// Correlations over single steps, both sides about their mean at the step: of what the grammar adds to the displacement with what attention
/// adds to that rebuilt from steps alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Follows {
    /// The true attention.
    pub attention: f64,
    /// What tokens add: attention rebuilt from steps and tokens, less that from steps.
    pub input: f64,
    /// What the residual adds: the true attention, less that from steps and tokens. What both could have added is the tokens' here.
    pub residual: f64,
    /// What the residual adds where it comes first: attention rebuilt from steps and the residual, less that from steps.
    pub residual_first: f64,
}

impl Looks {
    /// Looks at every sentence kept.
    pub(super) fn of(description: &Description, samples: &Samples) -> Self {
        let mut looks = Self::default();
        let mut sizes = ConstantPart::default();
        for sample in &samples.sentences {
            looks.count_words(description, sample);
            let Some(&(n_queries, n_keys)) = sample.shapes.first() else { continue };
            let (n_steps, n_places) = (content_steps(description, sample), content_places(description, sample));
            for query in 0..n_queries.min(n_steps) {
                let key = argmax(&sample.attention[0][query * n_keys..][..n_keys]) as i64;
                *looks.forward.entry(key - query as i64).or_default() += 1;
                *looks.backward.entry(key - (n_places as i64 - 1 - query as i64)).or_default() += 1;
                if let Some(of_step) = ConstantPart::of(sample, query) {
                    sizes.add(of_step);
                }
            }
        }
        looks.constant = sizes.over_term();
        looks.constant_of_sizes = sizes.over_sizes();
        looks.displacement = displacement(description, samples);
        looks
    }

    fn count_words(&mut self, description: &Description, sample: &Sample) {
        let Some(target) = &sample.sentence.target else { return };
        for (due, written) in target.iter().zip(&sample.sentence.predicted) {
            let [right, all] = self.words.entry(description.target.name(*due).to_string()).or_default();
            *all += 1;
            *right += u64::from(due == written);
        }
    }

    /// Share of content steps that look at most `reach` from the anti-diagonal.
    pub fn near_antidiagonal(&self, reach: i64) -> f64 {
        share_within(&self.backward, reach)
    }

    /// Share of content steps that look at most `reach` from the diagonal.
    pub fn near_diagonal(&self, reach: i64) -> f64 {
        share_within(&self.forward, reach)
    }

    /// Share of the places where a word was due at which it was written; `None` where it never was due.
    pub fn right(&self, word: &str) -> Option<f64> {
        self.words.get(word).map(|&[right, all]| right as f64 / all.max(1) as f64)
    }
}

fn share_within(offsets: &BTreeMap<i64, u64>, reach: i64) -> f64 {
    let near: u64 = offsets.iter().filter(|(offset, _)| offset.abs() <= reach).map(|(_, count)| count).sum();
    near as f64 / offsets.values().sum::<u64>().max(1) as f64
}

fn argmax(row: &[f32]) -> usize {
    (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]).then(b.cmp(&a))).unwrap_or_default()
}

/// Steps before the end token.
fn content_steps(description: &Description, sample: &Sample) -> usize {
    let written = sample.sentence.target.as_ref().unwrap_or(&sample.sentence.predicted);
    written.iter().position(|&token| Some(token) == description.target.end).unwrap_or(written.len())
}

/// Source words before the end token.
fn content_places(description: &Description, sample: &Sample) -> usize {
    let source = &sample.sentence.source;
    source.iter().position(|&token| Some(token) == description.source.end).unwrap_or(source.len())
}

/// The scores of one step at one site made of some pieces; `None` for additive scores, which have six pieces.
pub(super) fn scores(sample: &Sample, site: usize, query: usize, pieces: impl IntoIterator<Item = usize>) -> Option<Vec<f64>> {
    let &(n_queries, n_keys) = sample.shapes.get(site)?;
    let all = sample.pieces.get(site).filter(|all| all.len() == 9 * n_queries * n_keys)?;
    let mut sum = vec![0.0; n_keys];
    for piece in pieces {
        let row = &all[(piece * n_queries + query) * n_keys..][..n_keys];
        sum.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
    }
    Some(sum)
}

/// Sizes in the temporal × temporal term at the highest score, added up over steps.
#[derive(Clone, Copy, Debug, Default)]
struct ConstantPart {
    /// Of what is the same for every key: the term's mean along them.
    same: f64,
    /// Of what is not.
    other: f64,
    /// Of the whole term.
    term: f64,
}

impl ConstantPart {
    /// `None` for additive scores.
    fn of(sample: &Sample, query: usize) -> Option<Self> {
        let score = scores(sample, 0, query, 0..9)?;
        let temporal = scores(sample, 0, query, TEMPORAL)?;
        let top = (0..score.len()).max_by(|&a, &b| score[a].total_cmp(&score[b]))?;
        let same = mean(&temporal);
        Some(Self { same: same.abs(), other: (temporal[top] - same).abs(), term: temporal[top].abs() })
    }

    fn add(&mut self, step: Self) {
        *self = Self { same: self.same + step.same, other: self.other + step.other, term: self.term + step.term };
    }

    fn over_term(self) -> Option<f64> {
        (self.term > 0.0).then(|| self.same / self.term)
    }

    fn over_sizes(self) -> Option<f64> {
        (self.same + self.other > 0.0).then(|| self.same / (self.same + self.other))
    }
}

/// Where the words of an eSCAN target come from; `None` for words whose actions cannot be told one by one.
///
/// ```text
/// run left and walk <.>   gives   LTURN(left) RUN(run) WALK(walk) <.>
/// ```
fn origins(words: &[&str]) -> Option<Vec<usize>> {
    let mut origins = Vec::new();
    for (place, &word) in words.iter().enumerate() {
        match word {
            "run" | "walk" | "look" | "jump" if words.get(place + 1) == Some(&"left") => origins.extend([place + 1, place]),
            "run" | "walk" | "look" | "jump" | PERIOD_WORD => origins.push(place),
            "left" | "and" => {}
            _ => return None,
        }
    }
    Some(origins)
}

/// One sentence: by step, how far the grammar displaces it and how much of that is due to every `and` before.
struct Displaced<'a> {
    sample: &'a Sample,
    grammar: Vec<f64>,
    and: Vec<f64>,
}

impl<'a> Displaced<'a> {
    /// `None` where the grammar names no source word for a target word.
    fn of(description: &Description, sample: &'a Sample) -> Option<Self> {
        let places = &sample.sentence.source[..content_places(description, sample)];
        let names: Vec<String> = places.iter().map(|&token| description.source.name(token).to_string()).collect();
        let words: Vec<&str> = names.iter().map(String::as_str).collect();
        let origins = origins(&words)?;
        if origins.len() != content_steps(description, sample) || sample.shapes.is_empty() {
            return None;
        }
        let and = origins.iter().map(|&place| words[..place].iter().filter(|word| **word == "and").count() as f64).collect();
        let grammar = origins.iter().enumerate().map(|(step, &place)| place as f64 - step as f64).collect();
        Some(Self { sample, grammar, and })
    }

    /// Attention made of some pieces.
    fn weights(&self, step: usize, pieces: impl IntoIterator<Item = usize>) -> Option<Vec<f64>> {
        Some(softmax(&scores(self.sample, 0, step, pieces)?))
    }

    /// How far its centre is displaced.
    fn centre(&self, step: usize, pieces: impl IntoIterator<Item = usize>) -> Option<f64> {
        let weights = self.weights(step, pieces)?;
        Some(weights.iter().enumerate().map(|(place, weight)| place as f64 * weight).sum::<f64>() - step as f64)
    }

    /// Its weight at the place the target word is made from.
    fn at_origin(&self, step: usize, pieces: impl IntoIterator<Item = usize>) -> Option<f64> {
        let place = (step as f64 + self.grammar[step]) as usize;
        self.weights(step, pieces)?.get(place).copied()
    }

    /// Steps before `n_steps` whose word `left` puts elsewhere.
    fn moved_by_left(&self, n_steps: usize) -> impl Iterator<Item = usize> {
        (0..n_steps).filter(|&step| self.grammar[step] != self.and[step])
    }
}

/// Mean weights over the steps that `left` moves.
fn at_left(n_steps: usize, sentences: &[Displaced<'_>]) -> Option<AtOrigin> {
    let mean_of = |pieces: &[usize]| -> Option<f64> {
        let steps = sentences.iter().flat_map(|sentence| sentence.moved_by_left(n_steps).map(move |step| (sentence, step)));
        let weights: Vec<f64> = steps.map(|(sentence, step)| sentence.at_origin(step, pieces.iter().copied())).collect::<Option<_>>()?;
        (!weights.is_empty()).then(|| mean(&weights))
    };
    Some(AtOrigin {
        attention: mean_of(&[0, 1, 2, 3, 4, 5, 6, 7, 8])?,
        temporal: mean_of(&TEMPORAL)?,
        with_input: mean_of(&TEMPORAL_AND_INPUT)?,
        with_residual: mean_of(&TEMPORAL_AND_RESIDUAL)?,
    })
}

/// By step, then sentence.
type Table = Vec<Vec<f64>>;

fn table(n_steps: usize, sentences: &[Displaced<'_>], of: impl Fn(&Displaced<'_>, usize) -> Option<f64>) -> Option<Table> {
    (0..n_steps).map(|step| sentences.iter().map(|sentence| of(sentence, step)).collect()).collect()
}

fn means(of: &[Vec<f64>]) -> Vec<f64> {
    of.iter().map(|step| mean(step)).collect()
}

fn less(one: &[Vec<f64>], other: &[Vec<f64>]) -> Table {
    one.iter().zip(other).map(|(one, other)| one.iter().zip(other).map(|(a, b)| a - b).collect()).collect()
}

/// All entries about the mean of their step.
fn about_mean(of: &[Vec<f64>]) -> Vec<f64> {
    of.iter().flat_map(|step| step.iter().map(|x| x - mean(step))).collect()
}

fn displacement(description: &Description, samples: &Samples) -> Option<Displacement> {
    let sentences: Vec<Displaced<'_>> = samples.sentences.iter().map(|sample| Displaced::of(description, sample)).collect::<Option<_>>()?;
    let n_steps = sentences.iter().map(|sentence| sentence.grammar.len()).min().filter(|&n| n > 1)?;
    let grammar = table(n_steps, &sentences, |sentence, step| Some(sentence.grammar[step]))?;
    let and = table(n_steps, &sentences, |sentence, step| Some(sentence.and[step]))?;
    let temporal = table(n_steps, &sentences, |sentence, step| sentence.centre(step, TEMPORAL))?;
    let with_input = table(n_steps, &sentences, |sentence, step| sentence.centre(step, TEMPORAL_AND_INPUT))?;
    let attention = table(n_steps, &sentences, |sentence, step| sentence.centre(step, 0..9))?;
    let with_residual = table(n_steps, &sentences, |sentence, step| sentence.centre(step, TEMPORAL_AND_RESIDUAL))?;
    let added = [less(&attention, &temporal), less(&with_input, &temporal), less(&attention, &with_input), less(&with_residual, &temporal)]
        .map(|of| about_mean(&of));
    let follows = |word: &[Vec<f64>]| {
        let word = about_mean(word);
        let [attention, input, residual, residual_first] = added.each_ref().map(|added| correlation(&word, added));
        Follows { attention, input, residual, residual_first }
    };
    Some(Displacement {
        own: follows(&grammar),
        and: follows(&and),
        left: follows(&less(&grammar, &and)),
        at_left: at_left(n_steps, &sentences),
        attention: means(&attention),
        temporal: means(&temporal),
        grammar: means(&grammar),
    })
}

#[cfg(test)]
mod tests {
    use crosslens_analysis::{Recorded, Token, Words};

    use super::*;

    /// `run left` is written LTURN RUN, `and` writes nothing.
    #[test]
    fn the_grammar_says_where_a_word_comes_from() {
        assert_eq!(origins(&["run", "left", "and", "walk", PERIOD_WORD]), Some(vec![1, 0, 3, 4]));
        assert_eq!(origins(&["run", "twice"]), None);
    }

    const NAMES: [&str; 5] = ["run", "walk", "left", "and", PERIOD_WORD];

    fn description() -> Description {
        let words = || Words { count: 5, names: NAMES.map(String::from).to_vec(), start: None, end: None };
        Description {
            model: String::new(),
            model_hash: String::new(),
            source: words(),
            target: words(),
            streams: Vec::new(),
            sites: Vec::new(),
            readout: None,
        }
    }

    /// A sentence whose attention is where the grammar would have it, because of one piece of its scores.
    fn planted(words: &[&str], piece: usize) -> Sample {
        let source: Vec<Token> = words.iter().map(|word| NAMES.iter().position(|name| name == word).expect("a word") as Token).collect();
        let origins = origins(words).expect("plain words");
        let (n_queries, n_keys) = (origins.len(), words.len());
        let mut pieces = vec![0.0; 9 * n_queries * n_keys];
        for (query, &place) in origins.iter().enumerate() {
            pieces[(piece * n_queries + query) * n_keys + place] = 100.0;
        }
        Sample {
            sentence: Recorded { source, target: Some(vec![0; n_queries]), ..Recorded::default() },
            shapes: vec![(n_queries, n_keys)],
            attention: vec![vec![0.0; n_queries * n_keys]],
            pieces: vec![pieces],
            bias: Vec::new(),
            value_weighted: Vec::new(),
            scene: None,
        }
    }

    /// Three steps that both sentences have, four places each, so that attention from steps alone is centred at 1.5 in both.
    ///
    /// ```text
    /// run and walk <.>    from 0 2 3      `and` adds 0 1 1, `left` nothing
    /// run left walk <.>   from 1 0 2 3    `and` adds nothing, `left` 1 −1 0
    /// ```
    /// About the mean of the step `and` adds 0, ±½, ±½ and `left` ±½, ±½, 0; attention moves by their sum. Squares: `and` 1, `left` 1, their
    /// product ½·½·2 = ½ (at the second step alone), so the sum has 1 + 1 + 2·½ = 3 and either correlates by (1 + ½)/√3.
    #[test]
    fn attention_follows_each_word_by_the_part_that_makes_it() {
        let follow = |piece| {
            let samples = Samples {
                sentences: [["run", "and", "walk", PERIOD_WORD], ["run", "left", "walk", PERIOD_WORD]]
                    .map(|words| planted(&words, piece))
                    .to_vec(),
                ..Samples::default()
            };
            displacement(&description(), &samples).expect("plain words")
        };
        let either = 1.5 / 3.0_f64.sqrt();
        let is_near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        let by_input = follow(1);
        assert!(is_near(by_input.own.input, 1.0) && is_near(by_input.own.residual, 0.0), "{by_input:?}");
        assert!(is_near(by_input.and.input, either) && is_near(by_input.left.input, either), "{by_input:?}");
        assert!(is_near(by_input.own.residual_first, 0.0), "{by_input:?}");
        let at_left = by_input.at_left.expect("two steps of the second sentence");
        assert!(is_near(at_left.attention, 1.0) && is_near(at_left.with_input, 1.0), "{at_left:?}");
        assert!(is_near(at_left.temporal, 0.25) && is_near(at_left.with_residual, 0.25), "one of four places: {at_left:?}");
        let by_residual = follow(8);
        assert!(is_near(by_residual.own.input, 0.0) && is_near(by_residual.own.residual, 1.0), "{by_residual:?}");
        assert!(is_near(by_residual.and.residual, either) && is_near(by_residual.left.attention, either), "{by_residual:?}");
        assert!(is_near(by_residual.own.residual_first, 1.0), "{by_residual:?}");
        assert!(by_residual.at_left.is_some_and(|at| is_near(at.with_residual, 1.0) && is_near(at.with_input, 0.25)), "{by_residual:?}");
        let by_time = follow(0);
        assert_eq!(by_time.own, Follows::default(), "what steps make is not beyond them");
    }

    /// What both could have moved is input's where it comes first, and the residual's where that does. Scores are so far apart that no
    /// other place has any weight.
    #[test]
    fn what_two_parts_share_is_credited_to_the_first() {
        let by_both = |words: [&str; 4]| {
            let (mut sample, residual) = (planted(&words, 1), planted(&words, 8));
            sample.pieces[0].iter_mut().zip(&residual.pieces[0]).for_each(|(piece, other)| *piece = 10.0 * (*piece + other));
            sample
        };
        let sentences = [["run", "and", "walk", PERIOD_WORD], ["run", "left", "walk", PERIOD_WORD]].map(by_both).to_vec();
        let own = displacement(&description(), &Samples { sentences, ..Samples::default() }).expect("plain words").own;
        assert!((own.input - 1.0).abs() < 1e-9 && (own.residual_first - 1.0).abs() < 1e-9, "{own:?}");
        assert_eq!(own.residual, 0.0, "nothing is left to add");
    }

    /// The term is 3 where the score is highest, its mean along four keys 1, what is not the same there 2: a third of either. Turned round
    /// by a constant of −2 it is 1, its mean −1, the rest still 2: all of the term, a third of the sizes.
    #[test]
    fn what_softmax_ignores_is_measured_against_the_term_and_against_both_parts() {
        let sizes = |term: [f32; 4]| {
            let mut sample = planted(&["run", "walk", "run", PERIOD_WORD], 1);
            let (n_queries, n_keys) = sample.shapes[0];
            assert_eq!((n_queries, n_keys), (4, 4));
            sample.pieces[0][..4].copy_from_slice(&term);
            ConstantPart::of(&sample, 0).expect("nine pieces")
        };
        let both = |of: ConstantPart| [of.over_term(), of.over_sizes()].map(|share| share.expect("a term"));
        let [over_term, over_sizes] = both(sizes([3.0, 1.0, 0.0, 0.0]));
        assert!((over_term - 1.0 / 3.0).abs() < 1e-9 && (over_sizes - 1.0 / 3.0).abs() < 1e-9);
        let [over_term, over_sizes] = both(sizes([1.0, -1.0, -2.0, -2.0]));
        assert!((over_term - 1.0).abs() < 1e-9 && (over_sizes - 1.0 / 3.0).abs() < 1e-9);
        let mut sum = sizes([3.0, 1.0, 0.0, 0.0]);
        sum.add(sizes([1.0, -1.0, -2.0, -2.0]));
        assert!(both(sum).iter().zip([2.0 / 4.0, 2.0 / 6.0]).all(|(found, expected)| (found - expected).abs() < 1e-9));
        assert_eq!(ConstantPart::default().over_term(), None, "additive scores have none");
    }

    #[test]
    fn looks_are_counted_within_reach() {
        let looks = Looks { backward: BTreeMap::from([(0, 6), (1, 2), (-3, 2)]), ..Looks::default() };
        assert_eq!((looks.near_antidiagonal(0), looks.near_antidiagonal(1), looks.near_diagonal(5)), (0.6, 0.8, 0.0));
    }
}
