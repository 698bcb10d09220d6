//! Licence expressions: whether the allowed licences satisfy what a crate asks for.

use std::iter::Peekable;
use std::vec::IntoIter;

use anyhow::{Result, bail};

/// Whether a set of allowed licences satisfies an SPDX expression.
///
/// ```text
/// A OR B     one of the two is allowed      (also in its old form A/B)
/// A AND B    both are allowed               (binds tighter than OR)
/// A WITH E   this very pair is allowed      (binds tightest)
/// ```
/// `allowed` is asked for each licence, with its exception if it has one. An expression that cannot be read is an error.
pub(crate) fn is_satisfied(expression: &str, allowed: impl Fn(&str) -> bool) -> Result<bool> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<String> = spaced.split_whitespace().map(str::to_owned).collect();

    let mut reader = Reader { words: words.into_iter().peekable(), allowed };
    let is_satisfied = reader.any()?;
    match reader.words.next() {
        None => Ok(is_satisfied),
        Some(word) => bail!("`{word}` is not expected there"),
    }
}

struct Reader<F> {
    words: Peekable<IntoIter<String>>,
    allowed: F,
}

impl<F: Fn(&str) -> bool> Reader<F> {
    fn any(&mut self) -> Result<bool> {
        let mut is_satisfied = self.all()?;
        while self.takes("OR") {
            is_satisfied |= self.all()?;
        }
        Ok(is_satisfied)
    }

    fn all(&mut self) -> Result<bool> {
        let mut is_satisfied = self.one()?;
        while self.takes("AND") {
            is_satisfied &= self.one()?;
        }
        Ok(is_satisfied)
    }

    fn one(&mut self) -> Result<bool> {
        if self.takes("(") {
            let is_satisfied = self.any()?;
            if !self.takes(")") {
                bail!("a closing parenthesis is missing");
            }
            return Ok(is_satisfied);
        }

        let licence = self.name()?;
        if self.takes("WITH") {
            let exception = self.name()?;
            return Ok((self.allowed)(&format!("{licence} WITH {exception}")));
        }
        Ok((self.allowed)(&licence))
    }

    fn name(&mut self) -> Result<String> {
        match self.words.next() {
            Some(word) if !["OR", "AND", "WITH", "(", ")"].contains(&word.as_str()) => Ok(word),
            Some(word) => bail!("`{word}` stands where a licence should"),
            None => bail!("it ends where a licence should stand"),
        }
    }

    fn takes(&mut self, word: &str) -> bool {
        self.words.next_if(|next| next == word).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With MIT, Zlib and Apache-2.0 WITH LLVM-exception allowed.
    fn satisfied(expression: &str) -> bool {
        let allowed = ["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"];
        is_satisfied(expression, |licence| allowed.contains(&licence)).expect("the expression is well formed")
    }

    #[test]
    fn one_alternative_is_enough() {
        assert!(satisfied("MIT OR GPL-3.0-only"));
        assert!(satisfied("GPL-3.0-only/MIT"));
        assert!(!satisfied("GPL-3.0-only OR MPL-2.0"));
    }

    #[test]
    fn every_part_of_a_conjunction_is_needed() {
        assert!(satisfied("MIT AND Zlib"));
        assert!(!satisfied("(MIT OR GPL-3.0-only) AND Unicode-3.0"));
    }

    /// MIT OR (Zlib AND Unicode-3.0) holds by its first word alone; with the parentheses moved it needs Unicode-3.0.
    #[test]
    fn and_binds_tighter_than_or() {
        assert!(satisfied("MIT OR Zlib AND Unicode-3.0"));
        assert!(!satisfied("(MIT OR Zlib) AND Unicode-3.0"));
    }

    #[test]
    fn a_licence_and_its_exception_are_one() {
        assert!(satisfied("Apache-2.0 WITH LLVM-exception"));
        assert!(!satisfied("Apache-2.0"));
        assert!(!satisfied("MIT WITH LLVM-exception"));
    }

    #[test]
    fn malformed_expressions_are_refused() {
        for expression in ["", "MIT OR", "AND MIT", "(MIT", "MIT)", "MIT Zlib"] {
            assert!(is_satisfied(expression, |_| true).is_err(), "{expression:?} was accepted");
        }
    }
}
