//! The configurations shipped with the program, in `configs/`; each says in its first line what to expect.

use std::path::Path;

use crosslens_analysis::corpus::CorpusSpec;
use crosslens_nets::network::{Family, Inputs, NetworkConfig, Score};
use crosslens_nets::tasks::{CorpusConfig, TaskConfig};
use crosslens_nets::train::{RunConfig, parse_config};

/// One shipped configuration.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// Its file's name without the ending.
    pub name: &'static str,
    /// What the user calls the task.
    pub task: &'static str,
    /// Its family of networks.
    pub family: Family,
    /// The file.
    pub text: &'static str,
}

macro_rules! recipe {
    ($task:literal, $family:ident, $name:literal) => {
        Recipe { name: $name, task: $task, family: Family::$family, text: include_str!(concat!("../../../configs/", $name, ".toml")) }
    };
}

/// Every shipped configuration.
pub const RECIPES: &[Recipe] = &[
    recipe!("one-to-one", Aed, "one-to-one-aed"),
    recipe!("one-to-one", Ao, "one-to-one-ao"),
    recipe!("one-to-one", Bahdanau, "one-to-one-bahdanau"),
    recipe!("one-to-one", Luong, "one-to-one-luong"),
    recipe!("one-to-one", Transformer, "one-to-one-transformer"),
    recipe!("one-to-one", Ved, "one-to-one-ved"),
    recipe!("reverse", Aed, "reverse-aed"),
    recipe!("reverse", Ao, "reverse-ao"),
    recipe!("reverse", Transformer, "reverse-transformer"),
    recipe!("escan", Aed, "escan-aed"),
    recipe!("escan", Ao, "escan-ao"),
    recipe!("escan", Bahdanau, "escan-bahdanau"),
    recipe!("escan", Luong, "escan-luong"),
    recipe!("translation", Aed, "translation-aed"),
    recipe!("translation", Ao, "translation-ao"),
    recipe!("translation", Bahdanau, "translation-bahdanau"),
    recipe!("translation", Luong, "translation-luong"),
    recipe!("translation", Transformer, "translation-transformer"),
    recipe!("translation", Ved, "translation-ved"),
];

impl Recipe {
    /// The configuration it holds.
    pub fn config(&self) -> RunConfig {
        parse_config(Path::new(self.name), self.text).expect("shipped configurations are read in the tests")
    }

    /// Its first line, without the comment sign: what to expect of it.
    pub fn promise(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches(['#', ' '])
    }
}

fn corpus_recipe() -> RunConfig {
    const TEXT: &str = include_str!("../../../configs/corpus.toml");
    parse_config(Path::new("corpus"), TEXT).expect("shipped configurations are read in the tests")
}

/// What a network of this family learns a corpus with.
pub fn corpus_config(family: Family, corpus: CorpusConfig) -> RunConfig {
    let mut config = corpus_recipe();
    config.task = TaskConfig::Corpus(corpus);
    with_family(&mut config, family);
    if family == Family::Luong {
        // Both directions, since a French article needs the noun after it, and Luong's `concat` score: with `general` and input feeding it
        // was measured to learn far more slowly (docs/translation.md).
        (config.network.score, config.network.bidirectional) = (Some(Score::Additive), true);
    }
    if family == Family::Transformer {
        // Several layers, as the shipped recipes for Transformers have, and since these are wider than those a lower rate, reached more
        // slowly. Not measured on a corpus.
        (config.network.layers, config.network.heads) = (3, 4);
        (config.training.learning_rate, config.training.warm_up) = (1e-3, 800);
    }
    config
}

/// How a corpus is read where nothing else is asked for.
pub fn corpus_defaults(train: CorpusSpec) -> CorpusConfig {
    match corpus_recipe().task {
        TaskConfig::Corpus(defaults) => CorpusConfig { train, ..defaults },
        _ => CorpusConfig::of(train),
    }
}

/// The names a user may give for a task, in the order of the help text.
pub const TASKS: &[&str] = &["one-to-one", "reverse", "escan", "scan", "sort", "translation"];

/// Whether there is a shipped configuration for this task and family.
pub fn is_shipped(task: &str, family: Family) -> bool {
    RECIPES.iter().any(|recipe| recipe.task == task && recipe.family == family)
}

/// What a network of this family learns this task with; `None` for a task nobody knows.
///
/// A shipped configuration where there is one; else the family's recipe for the task most alike.
pub fn default_config(task: &str, family: Family) -> Option<RunConfig> {
    let find = |task: &str| RECIPES.iter().find(|recipe| recipe.task == task && recipe.family == family).map(Recipe::config);
    if let Some(config) = find(task) {
        return Some(config);
    }
    let task_config = match task {
        "reverse" => find_task("reverse"),
        other => TaskConfig::named(other),
    }?;
    let alike = if task == "scan" { "escan" } else { "one-to-one" };
    let mut config = find(alike).or_else(|| find("one-to-one"))?;
    config.task = task_config;
    config.network.inputs = match config.network.inputs {
        Inputs::OneHot { .. } => Inputs::OneHot { size: 0 },
        learned => learned,
    };
    Some(config)
}

fn find_task(task: &str) -> Option<TaskConfig> {
    RECIPES.iter().find(|recipe| recipe.task == task).map(|recipe| recipe.config().task)
}

/// Changes the family of a configuration: attention and positions become the new family's usual ones, the rest stays as far as the new
/// family has it.
pub fn with_family(config: &mut RunConfig, family: Family) {
    let usual = NetworkConfig::of(family);
    let old = config.network.clone();
    config.network = match family {
        Family::Transformer => {
            let NetworkConfig { layers, hidden, readout_bias, dropout, .. } = old;
            NetworkConfig { layers, hidden, readout_bias, dropout, ..usual }
        }
        _ => {
            let NetworkConfig { cell, layers, hidden, readout_bias, dropout, inputs, .. } = old;
            NetworkConfig { cell, layers, hidden, readout_bias, dropout, inputs, ..usual }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_is_what_its_name_says_and_can_be_built() {
        for recipe in RECIPES {
            let config = recipe.config();
            config.check().unwrap_or_else(|error| panic!("{}: {error}", recipe.name));
            config.task.build().unwrap_or_else(|error| panic!("{}: {error}", recipe.name));
            assert_eq!(config.network.family, recipe.family, "{}", recipe.name);
            assert!(recipe.task == "reverse" || recipe.task == config.task.name(), "{} is of {}", recipe.name, config.task.name());
            assert_eq!(format!("{}-{}", recipe.task, recipe.family.name()), recipe.name);
            let promise = recipe.promise();
            let is_number = promise.split('%').next().is_some_and(|number| number.trim().parse::<f64>().is_ok());
            let says = is_number && promise.contains("% of phrases") && promise.contains(" s on ");
            assert!(says, "{} does not say what accuracy to expect and how long it took: {promise}", recipe.name);
        }
    }

    #[test]
    fn every_family_can_learn_a_corpus() {
        for family in Family::ALL {
            let corpus = corpus_defaults("pairs.tsv".parse().expect("a corpus"));
            assert_eq!((corpus.vocabulary, corpus.max_words), (4000, 12), "as configs/corpus.toml says");
            let config = corpus_config(family, corpus);
            config.check().unwrap_or_else(|error| panic!("{}: {error}", family.name()));
            assert_eq!((config.network.family, config.network.hidden), (family, 256));
            let is_deep = config.network.layers > 1 && config.training.learning_rate < 2e-3;
            assert_eq!(is_deep, family == Family::Transformer, "{}", family.name());
        }
    }

    #[test]
    fn a_configuration_can_change_from_any_family_to_any_other() {
        for recipe in RECIPES {
            for family in Family::ALL {
                let mut config = recipe.config();
                with_family(&mut config, family);
                assert_eq!((config.check().err(), config.network.family), (None, family), "{} to {}", recipe.name, family.name());
            }
        }
    }

    #[test]
    fn every_task_has_a_default_for_every_family() {
        for task in TASKS {
            for family in Family::ALL {
                let config = default_config(task, family).unwrap_or_else(|| panic!("{task} for {}", family.name()));
                config.check().unwrap_or_else(|error| panic!("{task} for {}: {error}", family.name()));
                assert_eq!(config.network.family, family);
            }
        }
        assert!(default_config("one-two-one", Family::Aed).is_none());
    }
}
