/// Why a task configuration cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// A corpus that cannot be read or does not fit.
    #[error("{what}")]
    Corpus {
        /// What is wrong and what to do.
        what: String,
    },
    /// A number below its least value.
    #[error("`{field}` is {value}; set it to {least} or more")]
    TooSmall {
        /// The field of the configuration.
        field: &'static str,
        /// What it holds.
        value: usize,
        /// The least it may hold.
        least: usize,
    },
    /// A number above its greatest value.
    #[error("`{field}` is {value}; set it to {most} or less")]
    TooLarge {
        /// The field of the configuration.
        field: &'static str,
        /// What it holds.
        value: usize,
        /// The most it may hold.
        most: usize,
    },
    /// A lower bound above its upper bound.
    #[error("`{lower_field}` is {lower}, more than `{upper_field}`, which is {upper}; swap them or make them equal")]
    Reversed {
        /// The field of the lower bound.
        lower_field: &'static str,
        /// The lower bound.
        lower: usize,
        /// The field of the upper bound.
        upper_field: &'static str,
        /// The upper bound.
        upper: usize,
    },
    /// A word that the SCAN grammar does not have.
    #[error("`words` holds `{word}`, which is no SCAN word; choose from {known}")]
    UnknownWord {
        /// The word.
        word: String,
        /// The words there are, separated by commas.
        known: String,
    },
    /// The same word twice.
    #[error("`words` holds `{word}` twice; remove one of them")]
    RepeatedWord {
        /// The word.
        word: String,
    },
    /// A word that stands in no phrase.
    #[error("`words` holds `{word}`, which stands in no phrase that is left; remove it or add the words it needs")]
    IdleWord {
        /// The word.
        word: String,
    },
    /// No phrase at all.
    #[error("`words` is [{words}], which makes no phrase; add one of run, walk, look, jump")]
    NoPhrase {
        /// The words there were, separated by commas.
        words: String,
    },
    /// No joined target is as long as asked for.
    #[error("`min_out_len` is {min_out_len}, which no joined target reaches within `max_out_len` {max_out_len}; raise `max_out_len`")]
    OutOfReach {
        /// The least target length.
        min_out_len: usize,
        /// The greatest target length.
        max_out_len: usize,
    },
    /// Every joined source is too long.
    #[error("`max_in_len` is {max_in_len}, but the shortest joined source has {shortest} words; set it to {shortest} or more")]
    SourcesTooLong {
        /// The greatest source length.
        max_in_len: usize,
        /// The shortest source there is.
        shortest: usize,
    },
    /// Nearly every joined pair is rejected.
    #[error("`min_out_len`, `max_out_len` and `max_in_len` let only one joined pair in {one_in} pass; widen them until one in {most} does")]
    RarelyAccepted {
        /// One pair passes in so many.
        one_in: u64,
        /// The most that is worth trying.
        most: u64,
    },
    /// A list without a pair.
    #[error("there are no {split} pairs")]
    NoPairs {
        /// Training or test.
        split: &'static str,
    },
    /// A listed pair that cannot be used.
    #[error("{split} pair {number}: the {side} {what}")]
    BadPair {
        /// Training or test.
        split: &'static str,
        /// Its place in the list.
        number: usize,
        /// Source or target.
        side: &'static str,
        /// What is wrong with it.
        what: String,
    },
}

/// Refuses a number outside `least..=most`.
pub(super) fn check_range(field: &'static str, value: usize, least: usize, most: usize) -> Result<(), TaskError> {
    if value < least {
        return Err(TaskError::TooSmall { field, value, least });
    }
    if value > most {
        return Err(TaskError::TooLarge { field, value, most });
    }
    Ok(())
}

/// Refuses a lower bound above its upper bound.
pub(super) fn check_order(
    (lower_field, lower): (&'static str, usize),
    (upper_field, upper): (&'static str, usize),
) -> Result<(), TaskError> {
    if lower > upper { Err(TaskError::Reversed { lower_field, lower, upper_field, upper }) } else { Ok(()) }
}
