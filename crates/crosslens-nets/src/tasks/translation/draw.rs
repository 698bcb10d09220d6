//! Sentences by chance.

use rand::{Rng, RngExt};

use super::lexicon::{AFTER, BEFORE, INTRANSITIVE, LAST, N_VERBS_OF_THINGS, NOUNS, Noun, OFTEN, PREPOSITIONS, Sort, TRANSITIVE};
use super::syntax::{Actor, Clause, Determiner, NounPhrase, Object, Patient, Person, Polarity, Predicate, Sentence, Subject, Tense};

/// One sentence; one in ten has two clauses.
pub(super) fn sentence(random: &mut impl Rng) -> Sentence {
    let first = clause(random);
    let second = random.random_ratio(1, 10).then(|| clause(random));
    Sentence { first, second }
}

fn clause(random: &mut impl Rng) -> Clause {
    let subject = subject(random);
    let tense = pick(random, &[Tense::Present, Tense::Present, Tense::Past, Tense::Future]);
    let polarity = pick(random, &[Polarity::Yes, Polarity::Yes, Polarity::Yes, Polarity::Not, Polarity::Not, Polarity::Never]);
    let often = (polarity != Polarity::Never && random.random_ratio(1, 5)).then(|| pick(random, OFTEN));
    let predicate = predicate(random, &subject, polarity);
    let place = random.random_ratio(1, 5).then(|| (pick(random, PREPOSITIONS), noun_phrase(random, |noun| noun.sort == Sort::Place, true)));
    let last = random.random_ratio(1, 8).then(|| pick(random, LAST));
    Clause { subject, tense, polarity, often, predicate, place, last }
}

fn subject(random: &mut impl Rng) -> Subject {
    let animate = |random: &mut _| noun_phrase(random, |noun| noun.sort == Sort::Animate, false);
    match random.random_range(0..10) {
        0..4 => Subject::Pronoun(pick(random, &[Actor::I, Actor::He, Actor::She, Actor::We, Actor::They])),
        4 => Subject::Two(animate(random), animate(random)),
        _ => Subject::One(animate(random)),
    }
}

fn predicate(random: &mut impl Rng, subject: &Subject, polarity: Polarity) -> Predicate {
    match random.random_range(0..10) {
        0..2 => Predicate::Is(if random.random() { pick_static(random, BEFORE) } else { pick_static(random, AFTER) }),
        2..4 => Predicate::Acts(pick_static(random, INTRANSITIVE)),
        4..7 => Predicate::ActsOn(pick_static(random, TRANSITIVE), Object::Pronoun(patient(random, subject))),
        number => {
            // A French negation would turn `un chat` and `des chats` into `de chat`.
            let is_definite = polarity != Polarity::Yes;
            let phrase = |random: &mut _| noun_phrase(random, |_| true, is_definite);
            let object = if number == 9 { Object::Two(phrase(random), phrase(random)) } else { Object::One(phrase(random)) };
            let is_animate = match object {
                Object::One(phrase) => phrase.is_animate(),
                Object::Two(one, other) => one.is_animate() && other.is_animate(),
                Object::Pronoun(_) => true,
            };
            let verbs = if is_animate { TRANSITIVE } else { &TRANSITIVE[..N_VERBS_OF_THINGS] };
            Predicate::ActsOn(pick_static(random, verbs), object)
        }
    }
}

/// Who is acted upon: not the one who acts, which would need a reflexive verb.
fn patient(random: &mut impl Rng, subject: &Subject) -> Patient {
    let others = [Patient::Him, Patient::Her, Patient::Them, Patient::Me, Patient::Us];
    let n_allowed = if matches!(subject.person(), Person::I | Person::We) { 3 } else { others.len() };
    pick(random, &others[..n_allowed])
}

fn noun_phrase(random: &mut impl Rng, is_wanted: impl Fn(&Noun) -> bool, is_definite: bool) -> NounPhrase {
    let noun = loop {
        let noun = pick_static(random, NOUNS);
        if is_wanted(noun) {
            break noun;
        }
    };
    let is_plural = random.random_ratio(1, 3);
    let indefinite = if is_plural { Determiner::Some } else { Determiner::A };
    let determiners = [Determiner::The, Determiner::The, Determiner::This, Determiner::My, indefinite];
    let determiner = pick(random, &determiners[..if is_definite { 4 } else { 5 }]);
    let before = random.random_ratio(1, 4).then(|| pick_static(random, BEFORE));
    let colours = if noun.sort == Sort::Animate { AFTER } else { &AFTER[..N_COLOURS] };
    let after = random.random_ratio(1, 4).then(|| pick_static(random, colours));
    NounPhrase { determiner, before, after, noun, is_plural }
}

/// Books are neither happy nor tired: the first so many adjectives that follow their noun.
const N_COLOURS: usize = 4;

fn pick<T: Copy>(random: &mut impl Rng, list: &[T]) -> T {
    list[random.random_range(0..list.len())]
}

fn pick_static<T>(random: &mut impl Rng, list: &'static [T]) -> &'static T {
    &list[random.random_range(0..list.len())]
}
