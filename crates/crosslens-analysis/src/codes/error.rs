/// Largest value of a row: squares of so many such values as a row may have stay finite.
pub(super) const MAX_VALUE: f32 = 1e15;

/// Why rows get no codes.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CodesError {
    /// Rows without values, or so wide that no sample of them can be held.
    #[error("rows of {d} values; they have at least 1 and at most {most}")]
    Width {
        /// The width asked for.
        d: usize,
        /// The widest there are.
        most: usize,
    },
    /// No codes, or more than rows that are looked at.
    #[error("{k} codes; ask for at least 1 and at most {most}")]
    Codes {
        /// The number asked for.
        k: usize,
        /// The most there are for rows of this width.
        most: usize,
    },
    /// Values that are no whole rows.
    #[error("{n_values} values are no whole rows of {d}")]
    Shape {
        /// Numbers given.
        n_values: usize,
        /// Values of a row.
        d: usize,
    },
    /// A value that is infinite, not a number, or too large to be squared.
    #[error("value {place} of row {row} is {value}; values are finite and at most {MAX_VALUE:e} in size")]
    Value {
        /// The row, from 0 in what was given.
        row: usize,
        /// Its place in the row.
        place: usize,
        /// What stands there.
        value: f32,
    },
    /// There is nothing to put into groups.
    #[error("no row was given; codes are found in rows")]
    NoRow,
}

/// Refuses values that are no whole rows of numbers.
pub(super) fn check(rows: &[f32], d: usize) -> Result<(), CodesError> {
    if !rows.len().is_multiple_of(d) {
        return Err(CodesError::Shape { n_values: rows.len(), d });
    }
    match rows.iter().position(|value| !(value.is_finite() && value.abs() <= MAX_VALUE)) {
        Some(at) => Err(CodesError::Value { row: at / d, place: at % d, value: rows[at] }),
        None => Ok(()),
    }
}
