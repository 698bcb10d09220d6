//! Links as text: `0-0 1-2 3p1`, a line for each pair of sentences.

use super::{Gold, Link, Links};

/// The largest place that is read; no sentence has as many words.
pub const MAX_POSITION: usize = 1 << 20;
/// Longest piece of a file that an error repeats, in characters.
const MAX_QUOTED: usize = 40;

/// The place of a sentence's first word, in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Base {
    /// Places count from 0, as Moses, fast_align and most others write them.
    #[default]
    Zero,
    /// Places count from 1, as in gold files of the shared tasks.
    One,
}

impl Base {
    fn first(self) -> usize {
        match self {
            Self::Zero => 0,
            Self::One => 1,
        }
    }
}

/// Why a file of links cannot be read. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// Something between blanks that is no link.
    #[error("line {line}: `{text}` is no link; links look like `3-4`, possible ones like `3p4`, with blanks between them")]
    NotALink {
        /// The line.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// A place beyond any sentence.
    #[error("line {line}: link `{text}` has a place beyond {MAX_POSITION}")]
    TooFar {
        /// The line.
        line: usize,
        /// The link.
        text: String,
    },
    /// A place 0 where the first word is 1.
    #[error("line {line}: link `{text}` has a place 0, but places were said to count from 1; read the file as one that counts from 0")]
    BeforeTheFirst {
        /// The line.
        line: usize,
        /// The link.
        text: String,
    },
    /// A possible link in an alignment that is no gold.
    #[error("line {line}: `{text}` is a possible link; only gold alignments have those, others say `-` or nothing")]
    Possible {
        /// The line.
        line: usize,
        /// The link.
        text: String,
    },
    /// A link to a word that its sentences do not have.
    #[error(
        "line {line}: link `{link}` lies outside its sentences of {n_source} and {n_target} words; check whether places count from 0 or from 1, \
         and which side comes first"
    )]
    Outside {
        /// The line.
        line: usize,
        /// The link, as it stands in the file.
        link: String,
        /// Words of the source.
        n_source: usize,
        /// Words of the target.
        n_target: usize,
    },
    /// A line of sentences without ` ||| `.
    #[error("line {line}: `{text}` has no ` ||| ` between source and target")]
    NoSeparator {
        /// The line.
        line: usize,
        /// How it begins.
        text: String,
    },
    /// Gold and sentences do not belong together.
    #[error("there are {n_gold} lines of links for {n_sentences} pairs of sentences")]
    DifferentLengths {
        /// Lines of links.
        n_gold: usize,
        /// Pairs of sentences.
        n_sentences: usize,
    },
}

/// Reads alignments, a line each; an empty line is a pair without links. Links may repeat and come in any order.
pub fn read_links(text: &str, base: Base) -> Result<Vec<Links>, LinkError> {
    numbered_lines(text).map(|(line, text)| read_links_line(line, text, base)).collect()
}

/// Reads gold alignments, a line each: `i-j` is sure, `ipj` possible.
pub fn read_gold(text: &str, base: Base) -> Result<Vec<Gold>, LinkError> {
    numbered_lines(text).map(|(line, text)| read_gold_line(line, text, base)).collect()
}

/// Lines with their numbers, from 1.
pub(super) fn numbered_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(before, line)| (before + 1, line))
}

fn read_links_line(line: usize, text: &str, base: Base) -> Result<Links, LinkError> {
    let links = text.split_ascii_whitespace().map(|text| match read_link(line, text, base)? {
        (link, true) => Ok(link),
        (_, false) => Err(LinkError::Possible { line, text: shortened(text) }),
    });
    links.collect()
}

pub(super) fn read_gold_line(line: usize, text: &str, base: Base) -> Result<Gold, LinkError> {
    let (mut sure, mut possible) = (Links::default(), Links::default());
    for text in text.split_ascii_whitespace() {
        let (link, is_sure) = read_link(line, text, base)?;
        let links = if is_sure { &mut sure } else { &mut possible };
        links.insert(link);
    }
    Ok(Gold::new(sure, possible))
}

/// A link and whether it is sure.
fn read_link(line: usize, text: &str, base: Base) -> Result<(Link, bool), LinkError> {
    let refused = || LinkError::NotALink { line, text: shortened(text) };
    let at = text.find(['-', 'p']).ok_or_else(refused)?;
    let place = |digits: &str| {
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(refused());
        }
        let written = digits.parse().ok().filter(|&place: &usize| place <= MAX_POSITION);
        let written = written.ok_or_else(|| LinkError::TooFar { line, text: shortened(text) })?;
        written.checked_sub(base.first()).ok_or_else(|| LinkError::BeforeTheFirst { line, text: shortened(text) })
    };
    let link = Link { source: place(&text[..at])?, target: place(&text[at + 1..])? };
    Ok((link, text.as_bytes()[at] == b'-'))
}

/// The beginning of what a file says, for an error.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl Links {
    /// One line, without its end: `0-0 1-2`.
    pub fn pharaoh(&self, base: Base) -> String {
        joined(self.iter().map(|link| written(link, '-', base)))
    }
}

impl Gold {
    /// One line, without its end, possible links with `p`: `0-0 1p2`.
    pub fn pharaoh(&self, base: Base) -> String {
        joined(self.possible().iter().map(|link| written(link, if self.sure().contains(link) { '-' } else { 'p' }, base)))
    }
}

fn written(link: Link, kind: char, base: Base) -> String {
    format!("{}{kind}{}", link.source + base.first(), link.target + base.first())
}

fn joined(links: impl Iterator<Item = String>) -> String {
    links.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::link::tests::links;
    use super::*;

    #[test]
    fn lines_are_sentences_and_empty_ones_have_no_link() {
        let read = read_links("1-0 0-0\n\n 2-1\t2-1 \r\n", Base::Zero).expect("all are links");
        assert_eq!(read, [Links::from_iter([(0, 0), (1, 0)]), Links::default(), Links::from_iter([(2, 1)])]);
    }

    #[test]
    fn possible_links_are_told_from_sure_ones() {
        let gold = read_gold("1-1 2p3 2-2 2p2", Base::One).expect("all are links");
        assert_eq!(gold[0].sure(), &Links::from_iter([(0, 0), (1, 1)]));
        assert_eq!(gold[0].possible(), &Links::from_iter([(0, 0), (1, 1), (1, 2)]));
        assert_eq!(gold[0].pharaoh(Base::One), "1-1 2-2 2p3");
    }

    /// Every way a link can be wrong, with the line it stands on.
    #[test]
    fn what_is_no_link_is_refused_with_its_line() {
        for text in ["3", "-", "3-", "-3", "p", "3-4-5", "3p4p5", "3–4", "a-b", "+3-4", "3.0-4", "3-4,5-6", "３-４", "3 - 4", "--", "0x1-1"]
        {
            let error = read_gold(&format!("0-0\n{text}\n"), Base::Zero).expect_err(text);
            assert!(matches!(error, LinkError::NotALink { line: 2, .. }), "{text}: {error}");
        }
        let far = format!("{}-0", MAX_POSITION + 1);
        for text in [far.as_str(), "0-99999999999999999999999999"] {
            assert!(matches!(read_links(text, Base::Zero), Err(LinkError::TooFar { line: 1, .. })), "{text}");
        }
        assert!(matches!(read_links("1-1 1-0", Base::One), Err(LinkError::BeforeTheFirst { line: 1, text }) if text == "1-0"));
        assert!(matches!(read_links("1-1 1p0", Base::Zero), Err(LinkError::Possible { line: 1, text }) if text == "1p0"));
        assert!(read_links(&format!("{MAX_POSITION}-0"), Base::Zero).is_ok());
    }

    #[test]
    fn errors_repeat_no_more_than_the_beginning() {
        let error = read_links(&"é".repeat(100_000), Base::Zero).expect_err("no link");
        assert_eq!(error.to_string().matches('é').count(), MAX_QUOTED);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(sure in links(), possible in links(), one in any::<bool>()) {
            let base = if one { Base::One } else { Base::Zero };
            prop_assert_eq!(read_links(&sure.pharaoh(base), base).expect("links").pop().unwrap_or_default(), sure.clone());
            let gold = Gold::new(sure, possible);
            prop_assert_eq!(read_gold(&gold.pharaoh(base), base).expect("links").pop().unwrap_or_default(), gold);
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[0-9p \\-\n|é]{0,60}") {
            let _ = read_links(&text, Base::One);
            let _ = read_gold(&text, Base::Zero);
            let _ = super::super::read_gold_pairs(&text, &text, Base::Zero);
        }
    }
}
