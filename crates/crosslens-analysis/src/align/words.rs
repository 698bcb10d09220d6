//! From subwords to words.

use super::SoftAlignment;

/// Why tokens cannot be joined into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WordError {
    /// A word beyond what so many tokens can have.
    #[error("token {token} is said to be of word {word}; {n_tokens} tokens are taken to have no more than {} words", most_words(*.n_tokens))]
    NoSuchWord {
        /// The token.
        token: usize,
        /// Its word.
        word: usize,
        /// All tokens.
        n_tokens: usize,
    },
    /// Words of other tokens than those of the alignment.
    #[error("words are given for {n_target_tokens} × {n_source_tokens} tokens, but the alignment has {n_targets} × {n_sources}")]
    OtherTokens {
        /// Target tokens that words were given for.
        n_target_tokens: usize,
        /// Source tokens that words were given for.
        n_source_tokens: usize,
        /// Rows of the alignment.
        n_targets: usize,
        /// Columns of the alignment.
        n_sources: usize,
    },
}

/// Most words of so many tokens: a token may span some words, and a tokenizer may drop some.
fn most_words(n_tokens: usize) -> usize {
    8 * n_tokens + 64
}

/// How subwords show where words begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marking {
    /// `▁` or `Ġ` begins a word: `▁un happy ▁cat` (SentencePiece, byte-level BPE).
    Begins,
    /// `@@` says that the word goes on: `un@@ happy cat` (subword-nmt).
    GoesOn,
    /// `##` continues a word: `un ##happy cat` (WordPiece).
    Continues,
    /// Every token is a word.
    Whole,
}

/// The word of each token, from 0; special tokens have none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordOf(Vec<Option<usize>>);

impl WordOf {
    /// From the word of each token.
    pub fn new(words: Vec<Option<usize>>) -> Result<Self, WordError> {
        let n_tokens = words.len();
        let wrong =
            words.iter().enumerate().find_map(|(token, &word)| word.filter(|&word| word >= most_words(n_tokens)).map(|word| (token, word)));
        match wrong {
            Some((token, word)) => Err(WordError::NoSuchWord { token, word, n_tokens }),
            None => Ok(Self(words)),
        }
    }

    /// From the marks of subwords. A special token ends a word; `is_special` is asked with the token's place and text.
    pub fn by_marks<T: AsRef<str>>(tokens: &[T], marking: Marking, is_special: impl Fn(usize, &str) -> bool) -> Self {
        let mut n_words = 0;
        let mut is_open = false;
        let words = tokens.iter().enumerate().map(|(place, token)| {
            let token = token.as_ref();
            if is_special(place, token) {
                is_open = false;
                return None;
            }
            let joins = match marking {
                Marking::Begins => !token.starts_with(['▁', 'Ġ']),
                Marking::GoesOn => true,
                Marking::Continues => token.starts_with("##"),
                Marking::Whole => false,
            };
            if !(is_open && joins) {
                n_words += 1;
            }
            is_open = marking != Marking::GoesOn || token.ends_with("@@");
            Some(n_words - 1)
        });
        Self(words.collect())
    }

    /// Tokens.
    pub fn n_tokens(&self) -> usize {
        self.0.len()
    }

    /// Words, up to the last one that has a token.
    pub fn n_words(&self) -> usize {
        self.0.iter().flatten().max().map_or(0, |last| last + 1)
    }
}

/// Which row of attention belongs to a target token. At step `t` the decoder reads the token before and predicts token `t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Row {
    /// The one whose step predicts the token: row `t`.
    #[default]
    Predicting,
    /// The one whose step reads the token as input: row `t + 1`. Transformers often look there at what they just wrote. The last token,
    /// as a rule the end, is never read and has no row.
    Reading,
}

impl Row {
    /// How far below a token's own row the one lies that belongs to it.
    fn below(self) -> usize {
        match self {
            Self::Predicting => 0,
            Self::Reading => 1,
        }
    }
}

impl SoftAlignment {
    /// The rows that belong to the tokens, each in its token's place; one that has none gets zeros.
    #[must_use]
    pub fn by(&self, row: Row) -> Self {
        let n_weights = self.n_targets() * self.n_sources();
        let weights = self.rows().skip(row.below()).flatten().copied().chain(std::iter::repeat(0.0));
        Self::of(self.n_targets(), self.n_sources(), weights.take(n_weights).collect())
    }

    /// Joins subwords into words: `[target word, source word]`.
    ///
    /// ```text
    /// w'[T, S] = mean over t of word T of  Σ over s of word S of  w[row(t), s]
    /// ```
    /// What special tokens were given or took is dropped, and rows are not scaled up for it, so that a threshold means the same everywhere.
    /// A word of which no token has a row gets zeros.
    pub fn joined(&self, target: &WordOf, source: &WordOf, row: Row) -> Result<Self, WordError> {
        if (target.n_tokens(), source.n_tokens()) != (self.n_targets(), self.n_sources()) {
            return Err(WordError::OtherTokens {
                n_target_tokens: target.n_tokens(),
                n_source_tokens: source.n_tokens(),
                n_targets: self.n_targets(),
                n_sources: self.n_sources(),
            });
        }
        let (n_targets, n_sources) = (target.n_words(), source.n_words());
        let mut weights = vec![0.0; n_targets * n_sources];
        let mut n_rows = vec![0_usize; n_targets];
        for (weights_of_row, word) in self.rows().skip(row.below()).zip(&target.0) {
            let &Some(word) = word else { continue };
            n_rows[word] += 1;
            for (weight, source_word) in weights_of_row.iter().zip(&source.0) {
                if let &Some(source_word) = source_word {
                    weights[word * n_sources + source_word] += weight;
                }
            }
        }
        for (word, &n_rows) in n_rows.iter().enumerate().filter(|&(_, &n_rows)| n_rows > 1) {
            weights[word * n_sources..][..n_sources].iter_mut().for_each(|weight| *weight /= n_rows as f64);
        }
        Ok(Self::of(n_targets, n_sources, weights))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Links;
    use super::super::soft::tests::alignments;
    use super::*;

    fn words(words: &[Option<usize>]) -> WordOf {
        WordOf::new(words.to_vec()).expect("few words")
    }

    /// Source `a b b </s>`, target `x x y </s>`: the word x is the mean of rows 0 and 1, its weight on b the sum of columns 1 and 2.
    ///
    /// ```text
    /// row 0   .5 .1 .2 | .2      x: a (.5 + .1)/2 = .3    b (.3 + .7)/2 = .5
    /// row 1   .1 .3 .4 | .2
    /// row 2   .6 .1 .1 | .2      y: a .6                  b .2
    /// row 3   .0 .0 .1 | .9
    /// ```
    #[test]
    fn columns_are_summed_rows_averaged_and_special_tokens_dropped() {
        let weights = [[0.5, 0.1, 0.2, 0.2], [0.1, 0.3, 0.4, 0.2], [0.6, 0.1, 0.1, 0.2], [0.0, 0.0, 0.1, 0.9]];
        let soft = SoftAlignment::new(4, 4, weights.concat()).expect("sixteen weights");
        let source = words(&[Some(0), Some(1), Some(1), None]);
        let target = words(&[Some(0), Some(0), Some(1), None]);

        let joined = soft.joined(&target, &source, Row::Predicting).expect("the same tokens");
        let expected = [0.3, 0.5, 0.6, 0.2];
        assert!(joined.rows().flatten().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-12), "{joined:?}");
        assert_eq!(joined.argmax_links(), Links::from_iter([(1, 0), (0, 1)]));

        // One row further: x has rows 1 and 2, y row 3.
        let reading = soft.joined(&target, &source, Row::Reading).expect("the same tokens");
        let expected = [0.35, 0.45, 0.0, 0.1];
        assert!(reading.rows().flatten().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-12), "{reading:?}");
    }

    #[test]
    fn a_last_word_that_is_never_read_has_no_link() {
        let soft = SoftAlignment::new(2, 2, [0.9, 0.1, 0.2, 0.8]).expect("four weights");
        let whole = words(&[Some(0), Some(1)]);
        let reading = soft.joined(&whole, &whole, Row::Reading).expect("the same tokens");
        assert_eq!(reading.argmax_links(), Links::from_iter([(1, 0)]));
    }

    #[test]
    fn marks_show_where_words_begin() {
        let by = |text: &str, marking| {
            let tokens: Vec<&str> = text.split(' ').collect();
            WordOf::by_marks(&tokens, marking, |_, token| token.starts_with('<')).0
        };
        let expected = [None, Some(0), Some(0), Some(1), None, Some(2), None];
        assert_eq!(by("<s> ▁un happy ▁cat <x> s </s>", Marking::Begins), expected);
        assert_eq!(by("<s> Ġun happy Ġcat <x> s </s>", Marking::Begins), expected);
        assert_eq!(by("<s> un@@ happy cat <x> s </s>", Marking::GoesOn), expected);
        assert_eq!(by("<s> un ##happy cat <x> ##s </s>", Marking::Continues), expected);
        assert_eq!(by("a @@ b@@ <x> c", Marking::GoesOn), [Some(0), Some(1), Some(1), None, Some(2)]);
        assert_eq!(by("▁a b", Marking::Whole), [Some(0), Some(1)]);
    }

    #[test]
    fn words_and_tokens_must_fit() {
        let error = WordOf::new(vec![Some(0), Some(usize::MAX)]).expect_err("no word has so many before it");
        assert_eq!(error, WordError::NoSuchWord { token: 1, word: usize::MAX, n_tokens: 2 });
        let soft = SoftAlignment::new(1, 2, [0.5, 0.5]).expect("two weights");
        let error = soft.joined(&words(&[Some(0)]), &words(&[Some(0)]), Row::Predicting).expect_err("one source token of two");
        assert!(matches!(error, WordError::OtherTokens { n_source_tokens: 1, n_sources: 2, .. }));
        let special = soft.joined(&words(&[None]), &words(&[None, None]), Row::Predicting).expect("the same tokens");
        assert!(special.argmax_links().is_empty());
    }

    proptest! {
        #[test]
        fn words_of_one_token_change_nothing(soft in alignments()) {
            let whole = |n: usize| WordOf::new((0..n).map(Some).collect()).expect("as many words as tokens");
            let joined = soft.joined(&whole(soft.n_targets()), &whole(soft.n_sources()), Row::Predicting);
            prop_assert_eq!(joined, Ok(soft));
        }

        #[test]
        fn rows_of_words_still_add_up_to_one(soft in alignments(), marks in prop::collection::vec(any::<bool>(), 10)) {
            let group = |n: usize, marks: &[bool]| {
                let tokens: Vec<&str> = marks[..n].iter().map(|&begins| if begins { "▁a" } else { "b" }).collect();
                WordOf::by_marks(&tokens, Marking::Begins, |_, _| false)
            };
            let (target, source) = (group(soft.n_targets(), &marks), group(soft.n_sources(), &marks[5..]));
            let joined = soft.joined(&target, &source, Row::Predicting).expect("the same tokens");
            prop_assert!(joined.rows().all(|row| (row.iter().sum::<f64>() - 1.0).abs() < 1e-9));
        }
    }
}
