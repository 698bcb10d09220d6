use serde::{Deserialize, Serialize};

use super::{CorpusConfig, EscanConfig, OneToOneConfig, Preparing, ScanConfig, SortConfig, Task, TaskError, TranslationConfig};
use crate::text::TextFiles;

/// The name of every task that needs nothing but its name, as written in a configuration; `corpus` also needs to know which.
pub const NAMES: &[&str] = &["one-to-one", "sort", "scan", "escan", "translation"];

/// Which task to run and how; in a configuration file a table whose `name` is one of [`NAMES`].
///
/// Fields that are left out take their defaults; fields that the task does not have are refused.
///
/// ```
/// use crosslens_nets::tasks::{Split, TaskConfig};
///
/// let config: TaskConfig = toml::from_str("name = 'one-to-one'\nreverse = true")?;
/// let task = config.build()?;
/// let pair = task.pair(Split::Train, 0, 12);
/// assert_eq!(pair.source.len(), pair.target.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case")]
pub enum TaskConfig {
    /// Each word has one translation, in its own place or reversed.
    OneToOne(OneToOneConfig),
    /// The words in ascending order.
    Sort(SortConfig),
    /// Commands and the actions they stand for.
    Scan(ScanConfig),
    /// Several short commands joined into one sentence.
    Escan(EscanConfig),
    /// English sentences of a small grammar, in French.
    Translation(TranslationConfig),
    /// Sentences of a parallel corpus.
    Corpus(CorpusConfig),
}

impl TaskConfig {
    /// The default configuration of the task of that name; none if there is no such task.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "one-to-one" => Some(Self::OneToOne(OneToOneConfig::default())),
            "sort" => Some(Self::Sort(SortConfig::default())),
            "scan" => Some(Self::Scan(ScanConfig::default())),
            "escan" => Some(Self::Escan(EscanConfig::default())),
            "translation" => Some(Self::Translation(TranslationConfig::default())),
            _ => None,
        }
    }

    /// The name of the task, one of [`NAMES`].
    pub fn name(&self) -> &'static str {
        match self {
            Self::OneToOne(_) => "one-to-one",
            Self::Sort(_) => "sort",
            Self::Scan(_) => "scan",
            Self::Escan(_) => "escan",
            Self::Translation(_) => "translation",
            Self::Corpus(_) => "corpus",
        }
    }

    /// Checks every field and makes the task.
    pub fn build(&self) -> Result<Box<dyn Task>, TaskError> {
        Ok(match self {
            Self::OneToOne(config) => Box::new(config.build()?),
            Self::Sort(config) => Box::new(config.build()?),
            Self::Scan(config) => Box::new(config.build()),
            Self::Escan(config) => Box::new(config.build()?),
            Self::Translation(config) => Box::new(config.build()?),
            Self::Corpus(config) => Box::new(config.build(None)?),
        })
    }

    /// The same for a corpus that may take a while, of which `told` hears; with `known`, the task of a run that has begun, with the
    /// vocabularies kept in its folder.
    pub fn build_watched(&self, known: Option<TextFiles>, told: &mut dyn FnMut(Preparing)) -> Result<Box<dyn Task>, TaskError> {
        match self {
            Self::Corpus(config) => Ok(Box::new(config.build_watched(known, told)?)),
            other => other.build(),
        }
    }

    /// The task of a run that is only looked at: of a corpus, the sentences that the run's folder keeps.
    pub fn open(&self, known: Option<TextFiles>) -> Result<Box<dyn Task>, TaskError> {
        match (self, known) {
            (Self::Corpus(config), Some(known)) => Ok(Box::new(config.open(known)?)),
            _ => self.build(),
        }
    }
}

impl Default for TaskConfig {
    fn default() -> Self {
        Self::OneToOne(OneToOneConfig::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A configuration file as a run reads it: the task is one of its tables.
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct RunFile {
        task: TaskConfig,
    }

    fn read(text: &str) -> Result<TaskConfig, String> {
        toml::from_str::<RunFile>(text).map(|file| file.task).map_err(|error| error.to_string())
    }

    fn refusal(text: &str) -> String {
        let config = read(text).expect("the file is well formed");
        let Err(error) = config.build() else { panic!("{text} must be refused") };
        error.to_string()
    }

    #[test]
    fn every_name_has_a_default_that_builds_and_carries_that_name() {
        for name in NAMES {
            let config = TaskConfig::named(name).expect("a listed name has a task");
            assert_eq!(config.name(), *name);
            assert_eq!(read(&format!("[task]\nname = '{name}'")), Ok(config.clone()));
            config.build().expect("the default builds");
        }
        assert_eq!(TaskConfig::named("copy"), None);
    }

    #[test]
    fn a_misspelt_field_and_an_unknown_task_are_refused() {
        for name in NAMES {
            let error = read(&format!("[task]\nname = '{name}'\nlenght = 3")).expect_err("`lenght` is no field");
            assert!(error.contains("lenght"), "{error}");
        }
        let error = read("[task]\nname = 'copy'").expect_err("there is no copy task");
        assert!(error.contains("copy") && error.contains("one-to-one"), "{error}");
    }

    #[test]
    fn sizes_out_of_range_are_refused_with_their_cure() {
        let one_to_one = |fields: &str| refusal(&format!("task = {{ name = 'one-to-one', {fields} }}"));
        assert_eq!(one_to_one("n_words = 1"), "`n_words` is 1; set it to 2 or more");
        assert_eq!(one_to_one("n_words = 100000"), "`n_words` is 100000; set it to 10000 or less");
        assert_eq!(one_to_one("min_length = 0"), "`min_length` is 0; set it to 1 or more");
        assert_eq!(one_to_one("max_length = 5000"), "`max_length` is 5000; set it to 1000 or less");
        assert_eq!(one_to_one("min_length = 20"), "`min_length` is 20, more than `max_length`, which is 19; swap them or make them equal");
        assert_eq!(refusal("task = { name = 'sort', n_words = 0 }"), "`n_words` is 0; set it to 2 or more");
    }

    #[test]
    fn an_escan_that_cannot_be_drawn_is_refused_with_its_cure() {
        let escan = |fields: &str| refusal(&format!("task = {{ name = 'escan', {fields} }}"));
        assert_eq!(
            escan("words = ['run', 'sing']"),
            "`words` holds `sing`, which is no SCAN word; choose from \
             run, walk, look, jump, left, right, twice, thrice, opposite, around, turn, and, after"
        );
        assert_eq!(escan("words = ['run', 'run']"), "`words` holds `run` twice; remove one of them");
        assert_eq!(
            escan("words = ['run', 'around']"),
            "`words` holds `around`, which stands in no phrase that is left; remove it or add the words it needs"
        );
        assert_eq!(escan("words = ['left', 'twice']"), "`words` is [left, twice], which makes no phrase; add one of run, walk, look, jump");
        assert_eq!(escan("words = []"), "`words` is [], which makes no phrase; add one of run, walk, look, jump");
        assert_eq!(escan("min_out_len = 0"), "`min_out_len` is 0; set it to 1 or more");
        assert_eq!(escan("max_out_len = 1001"), "`max_out_len` is 1001; set it to 1000 or less");
        assert_eq!(escan("min_out_len = 19"), "`min_out_len` is 19, more than `max_out_len`, which is 18; swap them or make them equal");
        assert_eq!(
            escan("min_out_len = 1, max_out_len = 1"),
            "`min_out_len` is 1, which no joined target reaches within `max_out_len` 1; raise `max_out_len`"
        );
        assert_eq!(escan("max_in_len = 0"), "`max_in_len` is 0; set it to 1 or more");
        assert_eq!(
            escan("words = ['run', 'left'], max_in_len = 9"),
            "`max_in_len` is 9, but the shortest joined source has 10 words; set it to 10 or more"
        );
        // `turn left` would make the source longer than the target: only sentences without it are short enough.
        assert_eq!(
            escan("words = ['run', 'turn', 'left'], min_out_len = 60, max_out_len = 70, max_in_len = 60"),
            "`min_out_len`, `max_out_len` and `max_in_len` let only one joined pair in 39569 pass; widen them until one in 1000 does"
        );
    }
}
