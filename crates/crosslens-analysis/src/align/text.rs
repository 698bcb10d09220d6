//! Soft alignments as text, for tools that show them, such as SoftAlignments (Rikters, Fishel & Bojar 2017).

use std::fmt::Write;

use super::{SoftAlignment, SoftAlignmentError};

/// Tokens of a pair of sentences with the weights between them. The tokens come without the end tokens, the weights with them: one more row
/// and one more column than tokens.
#[derive(Clone, Copy, Debug)]
pub struct SoftText<'a, T> {
    /// Source tokens, without the end.
    pub source: &'a [T],
    /// Target tokens, without the end.
    pub target: &'a [T],
    /// The weights.
    pub alignment: &'a SoftAlignment,
}

/// One sentence as Nematus writes it and others read it:
///
/// ```text
/// INDEX ||| TARGET ||| SCORE ||| SOURCE ||| COLUMNS ROWS
/// weights of the first target token, one for each source token and the end
/// …
/// weights of the end
/// (an empty line)
/// ```
/// Tokens are made safe: blanks in them become `▁`, `|` becomes `&#124;`, an empty token `▁`.
pub fn nematus_block<T: AsRef<str>>(index: usize, score: f64, text: &SoftText<'_, T>) -> Result<String, SoftAlignmentError> {
    text.check()?;
    let (source, target) = (sentence(text.source), sentence(text.target));
    let (n_rows, n_columns) = (text.alignment.n_targets(), text.alignment.n_sources());
    let mut block = format!("{index} ||| {target} ||| {score} ||| {source} ||| {n_columns} {n_rows}\n");
    for row in text.alignment.rows() {
        push_row(&mut block, row, " ");
        block.push('\n');
    }
    block.push('\n');
    Ok(block)
}

/// One sentence as Marian writes it with `--alignment soft`, without the end of the line: the target, then a group of weights for each of
/// its tokens and the end.
///
/// ```text
/// TARGET ||| w,w,w w,w,w …
/// ```
/// Tokens are made safe as in [`nematus_block`]. The source is not written; tools take it from a file of its own.
pub fn marian_line<T: AsRef<str>>(text: &SoftText<'_, T>) -> Result<String, SoftAlignmentError> {
    text.check()?;
    let mut line = format!("{} |||", sentence(text.target));
    for row in text.alignment.rows() {
        line.push(' ');
        push_row(&mut line, row, ",");
    }
    Ok(line)
}

impl<T> SoftText<'_, T> {
    fn check(&self) -> Result<(), SoftAlignmentError> {
        let (n_targets, n_sources) = (self.alignment.n_targets(), self.alignment.n_sources());
        if (self.target.len() + 1, self.source.len() + 1) == (n_targets, n_sources) {
            return Ok(());
        }
        let (n_target_words, n_source_words) = (self.target.len(), self.source.len());
        Err(SoftAlignmentError::Words { n_target_words, n_source_words, n_targets, n_sources })
    }
}

fn push_row(text: &mut String, row: &[f64], separator: &str) {
    for (place, weight) in row.iter().enumerate() {
        let before = if place == 0 { "" } else { separator };
        write!(text, "{before}{weight:.6}").expect("writing to a string does not fail");
    }
}

fn sentence<T: AsRef<str>>(tokens: &[T]) -> String {
    tokens.iter().map(|token| safe(token.as_ref())).collect::<Vec<_>>().join(" ")
}

/// A token that neither blanks nor bars can break.
fn safe(token: &str) -> String {
    if token.is_empty() {
        return "▁".to_owned();
    }
    token.chars().map(|c| if c.is_whitespace() || c.is_control() { '▁' } else { c }).collect::<String>().replace('|', "&#124;")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn alignment() -> SoftAlignment {
        SoftAlignment::new(2, 3, [0.75, 0.125, 0.125, 0.0, 0.25, 0.75]).expect("six weights")
    }

    #[test]
    fn a_block_has_a_head_rows_and_an_empty_line() {
        let text = SoftText { source: &["die", "Katze"], target: &["cat"], alignment: &alignment() };
        let block = nematus_block(7, -1.5, &text).expect("words and ends fit");
        assert_eq!(block, "7 ||| cat ||| -1.5 ||| die Katze ||| 3 2\n0.750000 0.125000 0.125000\n0.000000 0.250000 0.750000\n\n");
        let line = marian_line(&text).expect("words and ends fit");
        assert_eq!(line, "cat ||| 0.750000,0.125000,0.125000 0.000000,0.250000,0.750000");
    }

    /// A token `|||` would end its part of the head, one with a blank would be two, an empty one none.
    #[test]
    fn tokens_are_made_safe() {
        let text = SoftText { source: &["|||", ""], target: &["a b\n"], alignment: &alignment() };
        let block = nematus_block(0, 0.0, &text).expect("words and ends fit");
        assert!(block.starts_with("0 ||| a▁b▁ ||| 0 ||| &#124;&#124;&#124; ▁ ||| 3 2\n"), "{block}");
    }

    #[test]
    fn ends_must_be_among_the_weights() {
        let alignment = alignment();
        let text = SoftText { source: &["die", "Katze", "</s>"], target: &["cat", "</s>"], alignment: &alignment };
        let expected = SoftAlignmentError::Words { n_target_words: 2, n_source_words: 3, n_targets: 2, n_sources: 3 };
        assert_eq!(nematus_block(0, 0.0, &text), Err(expected.clone()));
        assert_eq!(marian_line(&text), Err(expected));
    }

    proptest! {
        /// Read as the tool reads it: parts of the head between ` ||| `, tokens between blanks, rows up to an empty line.
        #[test]
        fn no_token_breaks_the_lines(target in "[| \n\u{2028}\té]{0,5}", first in "[a| \r]{0,5}", second in ".{0,4}") {
            let alignment = alignment();
            let text = SoftText { source: &[first, second], target: &[target], alignment: &alignment };
            let block = nematus_block(0, 0.0, &text).expect("words and ends fit");
            let mut lines = block.split('\n');
            let head: Vec<&str> = lines.next().expect("a head").split(" ||| ").collect();
            prop_assert_eq!(head.len(), 5);
            prop_assert_eq!(head[1].split_whitespace().count(), 1);
            prop_assert_eq!(head[3].split_whitespace().count(), 2);
            let rows: Vec<Vec<f64>> = lines.by_ref().take_while(|line| !line.is_empty())
                .map(|line| line.split(' ').map(|weight| weight.parse().expect("a number")).collect()).collect();
            prop_assert_eq!(rows.concat(), alignment.rows().flatten().copied().collect::<Vec<_>>());

            let line = marian_line(&text).expect("words and ends fit");
            let (words, weights) = line.split_once(" ||| ").expect("two parts");
            prop_assert_eq!(words.split_whitespace().count(), 1);
            prop_assert_eq!(weights.split(' ').map(|group| group.split(',').count()).collect::<Vec<_>>(), [3, 3]);
        }
    }
}
