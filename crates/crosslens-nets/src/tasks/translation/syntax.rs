//! What a sentence is made of, before it has words.

use super::lexicon::{Adjective, Gender, Noun, Sort, Verb};

/// Who a verb agrees with: the rows of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Person {
    I,
    He,
    We,
    They,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Determiner {
    The,
    A,
    This,
    My,
    /// `some`, with plurals; `des`, or `de` before an adjective.
    Some,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct NounPhrase {
    pub(super) determiner: Determiner,
    pub(super) before: Option<&'static Adjective>,
    pub(super) after: Option<&'static Adjective>,
    pub(super) noun: &'static Noun,
    pub(super) is_plural: bool,
}

/// Pronouns that act. A speaker and a group of which nothing is known are masculine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Actor {
    I,
    He,
    She,
    We,
    They,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Subject {
    Pronoun(Actor),
    One(NounPhrase),
    Two(NounPhrase, NounPhrase),
}

/// Pronouns that are acted upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patient {
    Me,
    Him,
    Her,
    Us,
    Them,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Object {
    Pronoun(Patient),
    One(NounPhrase),
    Two(NounPhrase, NounPhrase),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Predicate {
    /// Sleeps.
    Acts(&'static Verb),
    /// Sees something.
    ActsOn(&'static Verb, Object),
    /// Is small.
    Is(&'static Adjective),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tense {
    Present,
    /// `passé composé`; of `be` the imperfect.
    Past,
    Future,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Polarity {
    Yes,
    Not,
    Never,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Clause {
    pub(super) subject: Subject,
    pub(super) tense: Tense,
    pub(super) polarity: Polarity,
    /// `often`, `always`; never beside `never`.
    pub(super) often: Option<[&'static str; 2]>,
    pub(super) predicate: Predicate,
    pub(super) place: Option<([&'static str; 2], NounPhrase)>,
    pub(super) last: Option<[&'static str; 2]>,
}

/// One clause, or two with `and` between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sentence {
    pub(super) first: Clause,
    pub(super) second: Option<Clause>,
}

/// Gender and number.
pub(super) type Agreement = (Gender, bool);

impl NounPhrase {
    pub(super) fn agreement(&self) -> Agreement {
        (self.noun.gender, self.is_plural)
    }

    pub(super) fn is_animate(&self) -> bool {
        self.noun.sort == Sort::Animate
    }
}

impl Subject {
    pub(super) fn person(&self) -> Person {
        match self {
            Self::Pronoun(Actor::I) => Person::I,
            Self::Pronoun(Actor::He | Actor::She) => Person::He,
            Self::Pronoun(Actor::We) => Person::We,
            Self::Pronoun(Actor::They) | Self::Two(..) => Person::They,
            Self::One(phrase) => {
                if phrase.is_plural {
                    Person::They
                } else {
                    Person::He
                }
            }
        }
    }

    /// Two are feminine if both are.
    pub(super) fn agreement(&self) -> Agreement {
        match self {
            Self::Pronoun(Actor::I | Actor::He) => (Gender::Masculine, false),
            Self::Pronoun(Actor::She) => (Gender::Feminine, false),
            Self::Pronoun(Actor::We | Actor::They) => (Gender::Masculine, true),
            Self::One(phrase) => phrase.agreement(),
            Self::Two(one, other) => {
                let gender = if one.noun.gender == other.noun.gender { one.noun.gender } else { Gender::Masculine };
                (gender, true)
            }
        }
    }
}

impl Patient {
    /// Of the participle that follows it.
    pub(super) fn agreement(self) -> Agreement {
        match self {
            Self::Me | Self::Him => (Gender::Masculine, false),
            Self::Her => (Gender::Feminine, false),
            Self::Us | Self::Them => (Gender::Masculine, true),
        }
    }
}
