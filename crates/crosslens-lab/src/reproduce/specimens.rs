//! The networks that claims are about.

use crosslens_analysis::corpus::CorpusSpec;
use crosslens_nets::network::{Cell, Feeding, Score};
use crosslens_nets::tasks::TaskConfig;
use crosslens_nets::train::{OptimizerConfig, RunConfig, Schedule};
use serde::Serialize;

use crate::recipes::{RECIPES, corpus_config, corpus_defaults};

/// How much is trained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Every network, at the lengths the floors were measured at.
    #[default]
    Full,
    /// Fewer networks, and shorter sentences where that changes no floor.
    Quick,
}

/// What a network must do before claims are judged by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    /// Write the share [`GATE`](super::GATE) of all sentences as they should be, free-running.
    Phrases,
    /// Get the share [`TEXT_WORDS`](super::TEXT_WORDS) of all words right, and [`TEXT_GATE`](super::TEXT_GATE) beyond those that uniform
    /// attention leaves right: real sentences have no one translation, but a network that learnt to translate them needs to look.
    Attention,
    /// Nothing: it is there to be compared with.
    Open,
}

/// Real sentences in place of the miniature grammar.
#[derive(Clone, Debug)]
pub struct OnCorpus {
    /// Where they are.
    pub spec: CorpusSpec,
    /// Updates a network makes on them.
    pub steps: u64,
}

impl OnCorpus {
    /// Updates where none are asked for: enough for short sentences, in about ten minutes.
    pub const STEPS: u64 = 5000;
}

/// One network: a task and a way to learn it. What is left open is the seed.
pub struct Specimen {
    /// Its name in tables and files.
    pub id: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Whether claims on it hold only if it does its task; a control is there to be compared with.
    pub is_gated: bool,
    /// Updates between records along training; 0 for none.
    pub record_every: u64,
    /// Whether a corpus that is given takes the place of its task.
    pub is_text: bool,
    recipe: &'static str,
    change: fn(&mut RunConfig, Scale),
}

impl Specimen {
    pub(super) const fn new(id: &'static str, about: &'static str, recipe: &'static str, change: fn(&mut RunConfig, Scale)) -> Self {
        Self { id, about, is_gated: true, record_every: 0, is_text: false, recipe, change }
    }

    const fn control(self) -> Self {
        Self { is_gated: false, ..self }
    }

    const fn recorded(self, every: u64) -> Self {
        Self { record_every: every, ..self }
    }

    const fn text(self) -> Self {
        Self { is_text: true, ..self }
    }

    /// The specimen of that name.
    pub fn named(id: &str) -> Option<&'static Self> {
        SPECIMENS.iter().find(|specimen| specimen.id == id)
    }

    /// What it must do before claims are judged by it, on a corpus where one is given.
    pub fn gate_on(&self, corpus: Option<&OnCorpus>) -> Gate {
        match corpus {
            _ if !self.is_gated => Gate::Open,
            Some(_) if self.is_text => Gate::Attention,
            _ => Gate::Phrases,
        }
    }

    /// Everything that decides what it learns.
    pub fn config(&self, scale: Scale, seed: u64) -> RunConfig {
        let recipe = RECIPES.iter().find(|recipe| recipe.name == self.recipe).expect("every specimen is built in the tests");
        let mut config = recipe.config();
        (self.change)(&mut config, scale);
        config.seed = seed;
        config.training.record_every = self.record_every;
        config
    }
}

impl Specimen {
    /// The same on a corpus, where one is given and it stands for real text.
    pub fn config_on(&self, corpus: Option<&OnCorpus>, scale: Scale, seed: u64) -> RunConfig {
        let own = self.config(scale, seed);
        let Some(corpus) = corpus.filter(|_| self.is_text) else { return own };
        let mut config = corpus_config(own.network.family, corpus_defaults(corpus.spec.clone()));
        steps(&mut config, corpus.steps);
        config.training.show = 0;
        config.seed = seed;
        config
    }
}

/// Every network of every claim.
pub const SPECIMENS: &[Specimen] = &[
    Specimen::new("copy-aed", "AED, one-to-one", "one-to-one-aed", shorter_when_quick),
    Specimen::new("copy-ao", "AO, one-to-one", "one-to-one-ao", |_, _| ()),
    Specimen::new("reverse-aed", "AED, reversed, 12 words", "reverse-aed", |_, _| ()).recorded(50),
    Specimen::new("reverse-ao", "AO, reversed, 12 words", "reverse-ao", |_, _| ()),
    Specimen::new("escan-aed", "AED, eSCAN", "escan-aed", |_, _| ()).recorded(50),
    Specimen::new("escan-luong", "Luong, eSCAN", "escan-luong", |_, _| ()),
    Specimen::new("escan-bahdanau", "Bahdanau, eSCAN", "escan-bahdanau", |_, _| ()),
    Specimen::new("escan-small-ao", "AO, eSCAN of run, walk, look, left", "escan-ao", |_, _| ()),
    Specimen::new("escan-and-aed", "AED, eSCAN without twice", "escan-aed", |config, _| {
        if let TaskConfig::Escan(task) = &mut config.task {
            task.words.retain(|word| word != "twice");
        }
    }),
    Specimen::new("translation-aed", "AED, translation", "translation-aed", |_, _| ()).text(),
    Specimen::new("ved-short", "VED, one-to-one, 5 to 8 words", "one-to-one-ved", |_, _| ()),
    Specimen::new("ved-middle", "VED, one-to-one, 10 to 12 words", "one-to-one-ved", |config, _| lengths(config, 10, 12)).control(),
    Specimen::new("ved-long", "VED, one-to-one, 15 to 19 words", "one-to-one-ved", |config, _| lengths(config, 15, 19)).control(),
    Specimen::new("aed-short", "AED, one-to-one, 5 to 8 words", "one-to-one-aed", |config, _| lengths(config, 5, 8)),
    Specimen::new("previous-aed", "AED, previous-word rule, 12 words", "reverse-aed", previous_word),
    Specimen::new("previous-ao", "AO, previous-word rule, 12 words", "reverse-ao", previous_word).control(),
    Specimen::new("five-words-aed", "AED, reversed, 12 of 5 words", "reverse-aed", |config, _| {
        if let TaskConfig::OneToOne(task) = &mut config.task {
            task.n_words = 5;
        }
    }),
    Specimen::new("free-aed", "AED, one-to-one, ε 0.1, free-running after 50 updates", "one-to-one-aed", |config, _| {
        levers(config, &LARGE, Feeding::Free);
    }),
    Specimen::new("forced-aed", "AED, one-to-one, ε 0.1, teacher forcing", "one-to-one-aed", |config, _| {
        levers(config, &LARGE, Feeding::Forced);
    }),
    Specimen::new("adam-free-aed", "AED, one-to-one, ε 1e-8, free-running after 50 updates", "one-to-one-aed", |config, _| {
        levers(config, &SMALL, Feeding::Free);
    }),
    Specimen::new("adam-aed", "AED, one-to-one, ε 1e-8, teacher forcing", "one-to-one-aed", |config, _| {
        levers(config, &SMALL, Feeding::Forced);
    }),
    Specimen::new("qkv-ao", "AO with learned queries, keys and values, one-to-one", "one-to-one-ao", |config, _| {
        config.network.score = Some(Score::Qkv);
        steps(config, 400);
    }),
    Specimen::new("two-heads-ao", "AO with two learned heads, one-to-one", "one-to-one-ao", |config, _| {
        config.network.score = Some(Score::Qkv);
        config.network.heads = 2;
        steps(config, 400);
    }),
    Specimen::new("qkv-aed", "AED with learned queries, keys and values, one-to-one", "one-to-one-aed", |config, scale| {
        usual_adam(config, scale);
        config.network.score = Some(Score::Qkv);
    }),
    Specimen::new("qkv-reverse-aed", "AED with learned queries, keys and values, reversed, 12 words", "reverse-aed", |config, scale| {
        usual_adam(config, scale);
        config.network.score = Some(Score::Qkv);
    }),
    Specimen::new("vanilla-aed", "AED of vanilla cells, one-to-one", "one-to-one-aed", |config, _| config.network.cell = Cell::Vanilla),
    Specimen::new("ugrnn-aed", "AED of UGRNN cells, one-to-one", "one-to-one-aed", |config, _| config.network.cell = Cell::Ugrnn),
    Specimen::new("lstm-aed", "AED of LSTM cells, one-to-one, Adam with ε 1e-8", "one-to-one-aed", |config, scale| {
        usual_adam(config, scale);
        // After 600 four of seven missed the gate, at 52 to 95 % of phrases.
        steps(config, 1000);
        config.training.learning_rate = 1e-2;
        config.network.cell = Cell::Lstm;
    }),
];

fn lengths(config: &mut RunConfig, min_length: usize, max_length: usize) {
    if let TaskConfig::OneToOne(task) = &mut config.task {
        (task.min_length, task.max_length) = (min_length, max_length);
    }
}

fn shorter_when_quick(config: &mut RunConfig, scale: Scale) {
    if scale == Scale::Quick {
        lengths(config, 10, 12);
    }
}

fn steps(config: &mut RunConfig, steps: u64) {
    config.training.steps = steps;
    if let Schedule::Cosine { over, .. } = &mut config.training.schedule {
        *over = steps;
    }
}

/// Adam's ε with the rate it needs: dividing by √v + ε, a large ε takes the steps of a large rate.
struct Epsilon {
    epsilon: f64,
    learning_rate: f64,
    warm_up: u64,
}

const LARGE: Epsilon = Epsilon { epsilon: 0.1, learning_rate: 0.1, warm_up: 0 };
const SMALL: Epsilon = Epsilon { epsilon: 1e-8, learning_rate: 3e-3, warm_up: 20 };

/// One of two by two: ε, and what the decoder reads while it learns. The rest is the recipe's (β2 .99, the rate along a cosine over 1,000
/// updates), and the updates are equally many.
fn levers(config: &mut RunConfig, of: &Epsilon, feeding: Feeding) {
    config.optimizer.epsilon = of.epsilon;
    config.training.learning_rate = of.learning_rate;
    config.training.warm_up = of.warm_up;
    config.training.feeding = feeding;
    // Free from the first update, some seeds never learn the first word.
    config.training.forced_steps = if feeding == Feeding::Free { 50 } else { 0 };
    config.training.steps = 700;
}

/// The optimiser as it usually is (β2 .999, ε 1e-8), forcing throughout, 600 updates.
fn usual_adam(config: &mut RunConfig, _: Scale) {
    config.optimizer = OptimizerConfig { l2: config.optimizer.l2, clip: config.optimizer.clip, ..OptimizerConfig::default() };
    config.training.feeding = Feeding::Forced;
    config.training.forced_steps = 0;
    config.training.learning_rate = 3e-3;
    config.training.warm_up = 20;
    config.training.schedule = Schedule::Cosine { end: 0.05, over: 600 };
    config.training.steps = 600;
}

fn previous_word(config: &mut RunConfig, _: Scale) {
    if let TaskConfig::OneToOne(task) = &mut config.task {
        task.reverse = false;
        task.previous_word_rule = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_specimen_can_be_built_and_has_a_name_of_its_own() {
        for (place, specimen) in SPECIMENS.iter().enumerate() {
            assert!(SPECIMENS[..place].iter().all(|other| other.id != specimen.id), "{} stands there twice", specimen.id);
            for scale in [Scale::Full, Scale::Quick] {
                let config = specimen.config(scale, 7);
                config.check().unwrap_or_else(|error| panic!("{}: {error}", specimen.id));
                config.task.build().unwrap_or_else(|error| panic!("{}: {error}", specimen.id));
                assert_eq!(config.seed, 7);
            }
        }
    }

    /// Networks that are compared differ in what the comparison is about, and in nothing else.
    #[test]
    fn compared_networks_differ_in_one_thing() {
        let config = |id: &str| Specimen::named(id).unwrap_or_else(|| panic!("{id}")).config(Scale::Full, 7);
        for length in ["ved-middle", "ved-long"] {
            let (other, short) = (config(length), config("ved-short"));
            assert_eq!((&other.network, other.training, other.optimizer), (&short.network, short.training, short.optimizer), "{length}");
        }
        let forced = |id: &str| (config(id).training.feeding, config(id).training.forced_steps);
        let rate = |id: &str| (config(id).optimizer, config(id).training.learning_rate, config(id).training.warm_up);
        for (one, other) in [("free-aed", "forced-aed"), ("adam-free-aed", "adam-aed")] {
            assert_eq!(rate(one), rate(other));
            assert_ne!(forced(one), forced(other));
        }
        for (one, other) in [("free-aed", "adam-free-aed"), ("forced-aed", "adam-aed")] {
            assert_eq!(forced(one), forced(other));
            assert_ne!(rate(one), rate(other));
        }
        for id in ["forced-aed", "adam-free-aed", "adam-aed"] {
            let (one, other) = (config("free-aed"), config(id));
            assert_eq!((&one.task, &one.network), (&other.task, &other.network), "{id}");
            assert_eq!((one.training.steps, one.training.schedule), (other.training.steps, other.training.schedule), "{id}");
        }
    }

    #[test]
    fn a_corpus_changes_the_gate_of_text_alone() {
        let corpus = on_corpus();
        let gate = |id: &str, corpus| Specimen::named(id).unwrap_or_else(|| panic!("{id}")).gate_on(corpus);
        assert_eq!((gate("translation-aed", None), gate("translation-aed", Some(&corpus))), (Gate::Phrases, Gate::Attention));
        assert_eq!((gate("copy-aed", Some(&corpus)), gate("ved-long", Some(&corpus))), (Gate::Phrases, Gate::Open));
    }

    fn on_corpus() -> OnCorpus {
        OnCorpus { spec: "pairs.tsv".parse().expect("a corpus"), steps: 40 }
    }

    #[test]
    fn a_corpus_takes_the_place_of_the_grammar_and_of_nothing_else() {
        let corpus = on_corpus();
        for specimen in SPECIMENS {
            let (own, on_corpus) = (specimen.config(Scale::Full, 7), specimen.config_on(Some(&corpus), Scale::Full, 7));
            if specimen.is_text {
                on_corpus.check().unwrap_or_else(|error| panic!("{}: {error}", specimen.id));
                assert!(matches!(&on_corpus.task, TaskConfig::Corpus(task) if task.train == corpus.spec), "{}", specimen.id);
                assert_eq!(on_corpus.training.steps, 40, "{}", specimen.id);
                assert_eq!((on_corpus.network.family, on_corpus.seed), (own.network.family, 7), "{}", specimen.id);
            } else {
                assert_eq!(on_corpus, own, "{}", specimen.id);
            }
            assert_eq!(specimen.config_on(None, Scale::Full, 7), own, "{}", specimen.id);
        }
        assert!(SPECIMENS.iter().any(|specimen| specimen.is_text));
    }
}
