//! From a sentence to its words in both languages, and which of them belong together.

use crosslens_analysis::align::{Gold, Links};

use super::lexicon::{Adjective, BE, Gender, HAVE, Verb};
use super::syntax::{
    Actor, Agreement, Clause, Determiner, NounPhrase, Object, Patient, Person, Polarity, Predicate, Sentence, Subject, Tense,
};

/// A sentence in both languages, word by word, with its true alignment.
///
/// A link is sure where a word has a counterpart of its own: nouns, verbs, adjectives, adverbs, pronouns, articles, prepositions, `and`,
/// `not` with `pas`, `never` with `jamais`. It is possible only where a word helps another: `does`, `did` and `will`, `ne`, the auxiliary of
/// the French past. Every word of either side has a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlignedPair {
    /// English words, `<eos>` apart.
    pub source: Vec<&'static str>,
    /// French words, `<eos>` apart.
    pub target: Vec<&'static str>,
    /// Their links.
    pub gold: Gold,
}

/// A French word whose form may depend on the next one.
#[derive(Clone, Copy, Debug)]
struct Form {
    before_consonant: &'static str,
    before_vowel: &'static str,
}

impl From<&'static str> for Form {
    fn from(word: &'static str) -> Self {
        Self { before_consonant: word, before_vowel: word }
    }
}

impl From<[&'static str; 2]> for Form {
    fn from([before_consonant, before_vowel]: [&'static str; 2]) -> Self {
        Self { before_consonant, before_vowel }
    }
}

/// Every h of the lexicon is mute.
fn begins_with_vowel(word: &str) -> bool {
    word.starts_with(['a', 'e', 'i', 'o', 'u', 'é', 'ê', 'h'])
}

/// The places of English words that another part of the sentence needs.
#[derive(Clone, Copy, Debug)]
struct VerbPlaces {
    /// `does`, `did`, `will`.
    helper: Option<usize>,
    /// `not`, `never`.
    negation: Option<usize>,
    often: Option<usize>,
    verb: usize,
}

#[derive(Debug, Default)]
struct Writer {
    english: Vec<&'static str>,
    french: Vec<Form>,
    sure: Links,
    possible: Links,
}

pub(super) fn write(sentence: &Sentence) -> AlignedPair {
    let mut writer = Writer::default();
    writer.clause(&sentence.first);
    if let Some(second) = &sentence.second {
        writer.both("and", "et");
        writer.clause(second);
    }
    writer.finish()
}

impl Writer {
    fn finish(self) -> AlignedPair {
        let begins: Vec<bool> = self.french.iter().map(|form| begins_with_vowel(form.before_consonant)).collect();
        let target = self.french.iter().enumerate().map(|(place, form)| {
            let is_elided = begins.get(place + 1) == Some(&true);
            if is_elided { form.before_vowel } else { form.before_consonant }
        });
        AlignedPair { target: target.collect(), source: self.english, gold: Gold::new(self.sure, self.possible) }
    }

    /// Writes an English word; returns its place.
    fn english(&mut self, word: &'static str) -> usize {
        self.english.push(word);
        self.english.len() - 1
    }

    /// Writes a French word that translates an English one.
    fn french(&mut self, word: impl Into<Form>, source: usize) {
        self.french.push(word.into());
        self.sure.insert(crosslens_analysis::align::Link { source, target: self.french.len() - 1 });
    }

    /// Writes a French word that helps to translate an English one.
    fn french_helper(&mut self, word: impl Into<Form>, source: usize) {
        self.french.push(word.into());
        self.helps(source);
    }

    /// The last French word is also of use for an English one.
    fn helps(&mut self, source: usize) {
        self.possible.insert(crosslens_analysis::align::Link { source, target: self.french.len() - 1 });
    }

    fn both(&mut self, english: &'static str, french: &'static str) {
        let place = self.english(english);
        self.french(french, place);
    }

    fn clause(&mut self, clause: &Clause) {
        self.subject(&clause.subject);
        let places = self.english_verb(clause);
        let person = clause.subject.person();
        match clause.predicate {
            Predicate::Is(adjective) => {
                let word = BE[clause.tense as usize][person as usize];
                self.finite(clause, places, None, word);
                self.predicate_adjective(adjective, clause.subject.agreement());
            }
            Predicate::Acts(verb) => self.verb(clause, verb, person, places, None),
            Predicate::ActsOn(verb, Object::Pronoun(patient)) => {
                let place = self.english(patient.english());
                self.verb(clause, verb, person, places, Some((patient, place)));
            }
            Predicate::ActsOn(verb, object) => {
                self.verb(clause, verb, person, places, None);
                self.object(&object);
            }
        }
        if let Some(([english, french], phrase)) = &clause.place {
            self.both(english, french);
            self.noun_phrase(phrase);
        }
        if let Some([english, french]) = clause.last {
            self.both(english, french);
        }
    }

    fn subject(&mut self, subject: &Subject) {
        match subject {
            Subject::Pronoun(actor) => {
                let (english, french): (_, Form) = match actor {
                    Actor::I => ("i", ["je", "j'"].into()),
                    Actor::He => ("he", "il".into()),
                    Actor::She => ("she", "elle".into()),
                    Actor::We => ("we", "nous".into()),
                    Actor::They => ("they", "ils".into()),
                };
                let place = self.english(english);
                self.french(french, place);
            }
            Subject::One(phrase) => self.noun_phrase(phrase),
            Subject::Two(one, other) => self.two(one, other),
        }
    }

    fn object(&mut self, object: &Object) {
        match object {
            Object::Pronoun(_) => {}
            Object::One(phrase) => self.noun_phrase(phrase),
            Object::Two(one, other) => self.two(one, other),
        }
    }

    fn two(&mut self, one: &NounPhrase, other: &NounPhrase) {
        self.noun_phrase(one);
        self.both("and", "et");
        self.noun_phrase(other);
    }

    /// The English verb with all that stands before it: `does not often see`, `will never be`.
    fn english_verb(&mut self, clause: &Clause) -> VerbPlaces {
        let person = clause.subject.person();
        let is_be = matches!(clause.predicate, Predicate::Is(_));
        let negation = match clause.polarity {
            Polarity::Yes => None,
            Polarity::Not => Some("not"),
            Polarity::Never => Some("never"),
        };
        let helper = match (clause.tense, clause.polarity) {
            (Tense::Future, _) => Some("will"),
            (Tense::Past, Polarity::Not) if !is_be => Some("did"),
            (Tense::Present, Polarity::Not) if !is_be => Some(if person == Person::He { "does" } else { "do" }),
            _ => None,
        };
        let verb = match clause.predicate {
            Predicate::Is(_) => english_be(clause.tense, person),
            Predicate::Acts(verb) | Predicate::ActsOn(verb, _) => match (helper, clause.tense) {
                (Some(_), _) => verb.english[0],
                (None, Tense::Past) => verb.english[2],
                (None, _) => verb.english[usize::from(person == Person::He)],
            },
        };
        let often = clause.often.map(|[english, _]| english);

        let helper = helper.map(|word| self.english(word));
        // `is not often`, `will not often be`, `does not often see`.
        let is_verb_first = is_be && helper.is_none();
        let first = is_verb_first.then(|| self.english(verb));
        let negation = negation.map(|word| self.english(word));
        let often = often.map(|word| self.english(word));
        let verb = first.unwrap_or_else(|| self.english(verb));
        VerbPlaces { helper, negation, often, verb }
    }

    /// The French verb with the words around it; the past has two parts.
    fn verb(&mut self, clause: &Clause, verb: &'static Verb, person: Person, places: VerbPlaces, object: Option<(Patient, usize)>) {
        let row = person as usize;
        match clause.tense {
            Tense::Present => self.finite(clause, places, object, verb.present[row]),
            Tense::Future => self.finite(clause, places, object, verb.future[row]),
            Tense::Past => {
                self.finite(clause, places, object, HAVE[row]);
                let agreement = object.map_or((Gender::Masculine, false), |(patient, _)| patient.agreement());
                self.french(inflected(&verb.participle, agreement), places.verb);
            }
        }
    }

    /// `ne le voit pas souvent`: the finite verb, what stands before it and what follows at once.
    fn finite(&mut self, clause: &Clause, places: VerbPlaces, object: Option<(Patient, usize)>, word: &'static str) {
        if let Some(negation) = places.negation {
            self.french_helper(["ne", "n'"], negation);
        }
        if let Some((patient, place)) = object {
            self.french(patient.french(), place);
        }
        let is_auxiliary = clause.tense == Tense::Past && !matches!(clause.predicate, Predicate::Is(_));
        if is_auxiliary {
            self.french_helper(word, places.helper.unwrap_or(places.verb));
        } else {
            self.french(word, places.verb);
            if let Some(helper) = places.helper {
                self.helps(helper);
            }
        }
        if let Some(negation) = places.negation {
            self.french(if clause.polarity == Polarity::Never { "jamais" } else { "pas" }, negation);
        }
        if let (Some(place), Some([_, french])) = (places.often, clause.often) {
            self.french(french, place);
        }
    }

    fn predicate_adjective(&mut self, adjective: &'static Adjective, agreement: Agreement) {
        self.both(adjective.english, inflected(&adjective.french, agreement));
    }

    fn noun_phrase(&mut self, phrase: &NounPhrase) {
        let NounPhrase { before, after, noun, is_plural, .. } = *phrase;
        let number = usize::from(is_plural);
        let english_next = before.or(after).map_or(noun.english[number], |adjective| adjective.english);
        let determiner = self.english(phrase.determiner.english(is_plural, english_next));
        let [before_place, after_place] = [before, after].map(|adjective| adjective.map(|adjective| self.english(adjective.english)));
        let noun_place = self.english(noun.english[number]);

        self.french(phrase.determiner.french(phrase.agreement(), before.is_some()), determiner);
        if let (Some(adjective), Some(place)) = (before, before_place) {
            let word = inflected(&adjective.french, phrase.agreement());
            let is_liable = phrase.agreement() == (Gender::Masculine, false);
            self.french([word, if is_liable { adjective.before_vowel } else { word }], place);
        }
        self.french(noun.french[number], noun_place);
        if let (Some(adjective), Some(place)) = (after, after_place) {
            self.french(inflected(&adjective.french, phrase.agreement()), place);
        }
    }
}

fn english_be(tense: Tense, person: Person) -> &'static str {
    match (tense, person) {
        (Tense::Future, _) => "be",
        (Tense::Present, Person::I) => "am",
        (Tense::Present, Person::He) => "is",
        (Tense::Present, _) => "are",
        (Tense::Past, Person::I | Person::He) => "was",
        (Tense::Past, _) => "were",
    }
}

fn inflected(forms: &[[&'static str; 2]; 2], (gender, is_plural): Agreement) -> &'static str {
    forms[gender as usize][usize::from(is_plural)]
}

impl Determiner {
    fn english(self, is_plural: bool, next: &str) -> &'static str {
        match self {
            Self::The => "the",
            Self::A if next.starts_with(['a', 'e', 'i', 'o', 'u']) => "an",
            Self::A => "a",
            Self::This => {
                if is_plural {
                    "these"
                } else {
                    "this"
                }
            }
            Self::My => "my",
            Self::Some => "some",
        }
    }

    fn french(self, (gender, is_plural): Agreement, has_adjective_before: bool) -> Form {
        let is_feminine = gender == Gender::Feminine;
        match (self, is_plural, is_feminine) {
            (Self::The, false, false) => ["le", "l'"].into(),
            (Self::The, false, true) => ["la", "l'"].into(),
            (Self::The, true, _) => "les".into(),
            (Self::A, _, false) => "un".into(),
            (Self::A, _, true) => "une".into(),
            (Self::This, false, false) => ["ce", "cet"].into(),
            (Self::This, false, true) => "cette".into(),
            (Self::This, true, _) => "ces".into(),
            (Self::My, false, false) => "mon".into(),
            (Self::My, false, true) => ["ma", "mon"].into(),
            (Self::My, true, _) => "mes".into(),
            (Self::Some, ..) => (if has_adjective_before { "de" } else { "des" }).into(),
        }
    }
}

impl Patient {
    fn english(self) -> &'static str {
        match self {
            Self::Me => "me",
            Self::Him => "him",
            Self::Her => "her",
            Self::Us => "us",
            Self::Them => "them",
        }
    }

    fn french(self) -> Form {
        match self {
            Self::Me => ["me", "m'"].into(),
            Self::Him => ["le", "l'"].into(),
            Self::Her => ["la", "l'"].into(),
            Self::Us => "nous".into(),
            Self::Them => "les".into(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::lexicon::{AFTER, BEFORE, INTRANSITIVE, LAST, NOUNS, OFTEN, PREPOSITIONS, TRANSITIVE};
    use super::*;

    fn adjective(english: &str) -> &'static Adjective {
        BEFORE.iter().chain(AFTER).find(|adjective| adjective.english == english).expect("an adjective of the lexicon")
    }

    fn verb(english: &str) -> &'static Verb {
        TRANSITIVE.iter().chain(INTRANSITIVE).find(|verb| verb.english[0] == english).expect("a verb of the lexicon")
    }

    /// `big red cat`; a plural is written as one.
    fn phrase(determiner: Determiner, words: &str) -> NounPhrase {
        let mut words: Vec<&str> = words.split(' ').collect();
        let name = words.pop().expect("a noun");
        let noun = NOUNS.iter().find(|noun| noun.english.contains(&name)).expect("a noun of the lexicon");
        let of = |list: &'static [Adjective]| list.iter().find(|adjective| words.contains(&adjective.english));
        NounPhrase { determiner, before: of(BEFORE), after: of(AFTER), noun, is_plural: noun.english[1] == name }
    }

    fn clause(subject: Subject, tense: Tense, polarity: Polarity, predicate: Predicate) -> Clause {
        Clause { subject, tense, polarity, often: None, predicate, place: None, last: None }
    }

    fn written(first: Clause, second: Option<Clause>) -> (String, String) {
        let pair = write(&Sentence { first, second });
        (pair.source.join(" "), pair.target.join(" "))
    }

    /// Checked by hand, one by one.
    #[test]
    fn the_french_is_right() {
        use Determiner::{A, My, Some as Several, The, This};
        use Polarity::{Never, Not, Yes};
        use Tense::{Future, Past, Present};
        let one = |determiner, words| Subject::One(phrase(determiner, words));
        let acts = |name| Predicate::Acts(verb(name));
        let on = |name, determiner, words| Predicate::ActsOn(verb(name), Object::One(phrase(determiner, words)));
        let on_pronoun = |name, patient| Predicate::ActsOn(verb(name), Object::Pronoun(patient));
        let is = |name| Predicate::Is(adjective(name));
        let pronoun = Subject::Pronoun;
        let often = |clause: Clause, which: usize| Clause { often: Some(OFTEN[which]), ..clause };
        let two = Subject::Two(phrase(The, "queen"), phrase(The, "girl"));
        let mixed = Subject::Two(phrase(The, "queen"), phrase(The, "man"));
        let place = |clause: Clause, which: usize, place: NounPhrase| Clause { place: Some((PREPOSITIONS[which], place)), ..clause };
        let last = |clause: Clause, which: usize| Clause { last: Some(LAST[which]), ..clause };

        for (clause, english, french) in [
            (clause(one(The, "big red cat"), Present, Yes, acts("sleep")), "the big red cat sleeps", "le grand chat rouge dort"),
            (clause(one(The, "child"), Present, Yes, acts("run")), "the child runs", "l' enfant court"),
            (clause(one(The, "old man"), Past, Yes, acts("sing")), "the old man sang", "le vieil homme a chanté"),
            (clause(one(A, "old woman"), Past, Not, acts("sing")), "an old woman did not sing", "une vieille femme n' a pas chanté"),
            (clause(pronoun(Actor::She), Present, Yes, on_pronoun("see", Patient::Him)), "she sees him", "elle le voit"),
            (clause(pronoun(Actor::She), Present, Not, on_pronoun("see", Patient::Him)), "she does not see him", "elle ne le voit pas"),
            (clause(pronoun(Actor::I), Present, Yes, on_pronoun("love", Patient::Her)), "i love her", "je l' aime"),
            (clause(pronoun(Actor::I), Present, Yes, on("love", My, "school")), "i love my school", "j' aime mon école"),
            (clause(pronoun(Actor::I), Present, Not, on("love", This, "bird")), "i do not love this bird", "je n' aime pas cet oiseau"),
            (clause(pronoun(Actor::He), Past, Yes, on_pronoun("find", Patient::Her)), "he found her", "il l' a trouvée"),
            (
                clause(pronoun(Actor::We), Past, Never, on_pronoun("hear", Patient::Them)),
                "we never heard them",
                "nous ne les avons jamais entendus",
            ),
            (
                clause(pronoun(Actor::They), Future, Not, on_pronoun("follow", Patient::Us)),
                "they will not follow us",
                "ils ne nous suivront pas",
            ),
            (clause(pronoun(Actor::He), Future, Yes, on_pronoun("hear", Patient::Me)), "he will hear me", "il m' entendra"),
            (
                clause(one(Several, "small white mice"), Present, Yes, acts("play")),
                "some small white mice play",
                "de petites souris blanches jouent",
            ),
            (clause(one(Several, "black horses"), Present, Yes, acts("run")), "some black horses run", "des chevaux noirs courent"),
            (clause(two, Present, Yes, is("happy")), "the queen and the girl are happy", "la reine et la fille sont heureuses"),
            (clause(mixed, Past, Not, is("tired")), "the queen and the man were not tired", "la reine et l' homme n' étaient pas fatigués"),
            (
                clause(one(This, "beautiful bird"), Future, Yes, is("white")),
                "this beautiful bird will be white",
                "ce bel oiseau sera blanc",
            ),
            (clause(one(The, "horse"), Present, Never, is("old")), "the horse is never old", "le cheval n' est jamais vieux"),
            (
                often(clause(pronoun(Actor::She), Present, Yes, on_pronoun("watch", Patient::Them)), 0),
                "she often watches them",
                "elle les regarde souvent",
            ),
            (
                often(clause(pronoun(Actor::He), Past, Not, on("see", The, "stars")), 1),
                "he did not always see the stars",
                "il n' a pas toujours vu les étoiles",
            ),
            (
                often(clause(one(My, "beautiful girl"), Present, Yes, is("tired")), 0),
                "my beautiful girl is often tired",
                "ma belle fille est souvent fatiguée",
            ),
            (
                place(clause(one(The, "dogs"), Present, Yes, acts("sleep")), 0, phrase(The, "green house")),
                "the dogs sleep in the green house",
                "les chiens dorment dans la maison verte",
            ),
            (
                place(clause(pronoun(Actor::We), Future, Yes, acts("run")), 1, phrase(The, "school")),
                "we will run behind the school",
                "nous courrons derrière l' école",
            ),
            (
                last(clause(pronoun(Actor::I), Past, Yes, on("find", A, "old red book")), 1),
                "i found an old red book today",
                "j' ai trouvé un vieux livre rouge aujourd'hui",
            ),
            (last(clause(one(The, "bird"), Present, Yes, is("beautiful")), 0), "the bird is beautiful here", "l' oiseau est beau ici"),
            (
                clause(
                    one(A, "white horse"),
                    Present,
                    Yes,
                    Predicate::ActsOn(verb("see"), Object::Two(phrase(The, "cat"), phrase(My, "apples"))),
                ),
                "a white horse sees the cat and my apples",
                "un cheval blanc voit le chat et mes pommes",
            ),
        ] {
            assert_eq!(written(clause, None), (english.to_owned(), french.to_owned()));
        }
        let first = clause(pronoun(Actor::He), Present, Yes, acts("sleep"));
        let second = clause(pronoun(Actor::I), Present, Not, acts("sing"));
        assert_eq!(written(first, Some(second)), ("he sleeps and i do not sing".into(), "il dort et je ne chante pas".into()));
    }

    /// ```text
    /// she does not often see him        0–5
    /// elle ne le voit pas souvent       0–5
    /// ```
    #[test]
    fn words_are_linked_to_what_they_translate() {
        let seen = Predicate::ActsOn(verb("see"), Object::Pronoun(Patient::Him));
        let first = Clause { often: Some(OFTEN[0]), ..clause(Subject::Pronoun(Actor::She), Tense::Present, Polarity::Not, seen) };
        let pair = write(&Sentence { first, second: None });
        assert_eq!(pair.source.join(" "), "she does not often see him");
        assert_eq!(pair.target.join(" "), "elle ne le voit pas souvent");
        let sure = Links::from_iter([(0, 0), (5, 2), (4, 3), (2, 4), (3, 5)]);
        assert_eq!(pair.gold, Gold::new(sure, Links::from_iter([(2, 1), (1, 3)])));

        // he saw the big red cat / il a vu le grand chat rouge
        let seen = Predicate::ActsOn(verb("see"), Object::One(phrase(Determiner::The, "big red cat")));
        let past = clause(Subject::Pronoun(Actor::He), Tense::Past, Polarity::Yes, seen);
        let pair = write(&Sentence { first: past, second: None });
        let sure = Links::from_iter([(0, 0), (1, 2), (2, 3), (3, 4), (5, 5), (4, 6)]);
        assert_eq!(pair.gold, Gold::new(sure, Links::from_iter([(1, 1)])));
    }
}
