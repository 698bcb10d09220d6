use std::borrow::Cow;
use std::collections::HashMap;

use crosslens_analysis::{Token, Vocabulary};
use tokenizers::Tokenizer;

use super::subwords::{BLANK, Learning, learn};
use super::{TextConfig, TextError, UNKNOWN_WORD, Units, words};
use crate::tasks::preparing::Counter;
use crate::tasks::{END_WORD, Preparing, Stage};

/// Turns lines into tokens and tokens into lines, for both sides of a corpus.
#[derive(Clone, Debug)]
pub struct TextCodec {
    config: TextConfig,
    source: Vocabulary,
    target: Vocabulary,
    /// Whether the target sets signs such as `?` apart.
    spaced: bool,
    /// Where pieces of words are used.
    tokenizer: Option<Tokenizer>,
}

/// A line as tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The tokens, the end word last.
    pub tokens: Vec<Token>,
    /// The words or pieces as they stand in the line, those that the vocabulary does not know among them; the end word last.
    pub pieces: Vec<String>,
}

/// One of the two sides.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Source,
    Target,
}

impl TextCodec {
    /// Learns vocabularies, and pieces of words where those are wanted, from a corpus; `told` hears how far it is.
    pub fn learn(config: TextConfig, pairs: &[(String, String)], told: &mut dyn FnMut(Preparing)) -> Result<Self, TextError> {
        let tokenizer = match config.units {
            Units::Words => None,
            Units::Bpe | Units::Unigram => {
                told(Preparing { stage: Stage::Learning, done: 0, total: 0 });
                let learning = if config.units == Units::Bpe { Learning::Bpe } else { Learning::Unigram };
                let texts = pairs.iter().flat_map(|(source, target)| [source, target]);
                Some(learn(learning, config.vocabulary, texts.map(|text| fold(text, config.lowercase)))?)
            }
        };
        let mut codec = Self { config, source: empty(), target: empty(), spaced: false, tokenizer };
        codec.spaced = is_spaced(pairs.iter().map(|(_, target)| target.as_str()));
        let mut counter = Counter::new(Stage::Counting, 2 * pairs.len(), told);
        codec.source = codec.count(pairs.iter().map(|(source, _)| source.as_str()), &mut counter)?;
        codec.target = codec.count(pairs.iter().map(|(_, target)| target.as_str()), &mut counter)?;
        Ok(codec)
    }

    pub(super) fn from_parts(
        config: TextConfig,
        source: Vocabulary,
        target: Vocabulary,
        spaced: bool,
        tokenizer: Option<Tokenizer>,
    ) -> Self {
        Self { config, source, target, spaced, tokenizer }
    }

    /// The most frequent words or pieces of some texts, between the unknown word and the end.
    fn count<'a>(&self, texts: impl Iterator<Item = &'a str>, counter: &mut Counter<'_>) -> Result<Vocabulary, TextError> {
        let mut counts: HashMap<String, u64> = HashMap::new();
        for text in texts {
            for piece in self.pieces(text)? {
                *counts.entry(piece).or_default() += 1;
            }
            counter.count();
        }
        counts.retain(|word, _| word != UNKNOWN_WORD && word != END_WORD);
        let mut counted: Vec<(String, u64)> = counts.into_iter().collect();
        counted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        counted.truncate(self.config.vocabulary.saturating_sub(2).max(1));
        let words = counted.into_iter().map(|(word, _)| word);
        let all = std::iter::once(UNKNOWN_WORD.to_owned()).chain(words).chain(std::iter::once(END_WORD.to_owned()));
        Ok(Vocabulary::new(all).expect("words were counted, so each is there once"))
    }

    /// How texts become tokens.
    pub fn config(&self) -> TextConfig {
        self.config
    }

    /// Words or pieces of the source.
    pub fn source_vocabulary(&self) -> &Vocabulary {
        &self.source
    }

    /// Words or pieces of the target.
    pub fn target_vocabulary(&self) -> &Vocabulary {
        &self.target
    }

    pub(super) fn spaced(&self) -> bool {
        self.spaced
    }

    pub(super) fn tokenizer(&self) -> Option<&Tokenizer> {
        self.tokenizer.as_ref()
    }

    /// The number of the word that ends a target.
    pub fn end(&self) -> Token {
        self.target.token(END_WORD).expect("every vocabulary of a codec ends with the end word")
    }

    /// A source line as tokens.
    pub fn encode_source(&self, text: &str) -> Result<Encoded, TextError> {
        self.encode(text, Side::Source)
    }

    /// A target line as tokens.
    pub fn encode_target(&self, text: &str) -> Result<Encoded, TextError> {
        self.encode(text, Side::Target)
    }

    fn encode(&self, text: &str, side: Side) -> Result<Encoded, TextError> {
        let vocabulary = if side == Side::Source { &self.source } else { &self.target };
        let mut pieces = self.pieces(text)?;
        if pieces.is_empty() {
            return Err(TextError::Empty);
        }
        pieces.push(END_WORD.to_owned());
        let unknown = vocabulary.token(UNKNOWN_WORD).expect("every vocabulary of a codec has the unknown word");
        let tokens = pieces.iter().map(|piece| vocabulary.token(piece).unwrap_or(unknown)).collect();
        Ok(Encoded { tokens, pieces })
    }

    /// The words or pieces of a line. A word of the text that looks like the end word is not one.
    fn pieces(&self, text: &str) -> Result<Vec<String>, TextError> {
        let text = fold(text, self.config.lowercase);
        let Some(tokenizer) = &self.tokenizer else { return Ok(words::split(&text)) };
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let encoding = tokenizer.encode_fast(text, false).map_err(|error| TextError::Tokenizer { reason: error.to_string() })?;
        Ok(encoding.get_ids().iter().filter_map(|&id| tokenizer.id_to_token(id)).collect())
    }

    /// For each piece of a source line, and for its end, what it is copied as: the whole word it belongs to, as it stands in the line.
    pub fn copied(&self, text: &str) -> Result<Vec<String>, TextError> {
        let text = fold(text, self.config.lowercase);
        let mut copied = match &self.tokenizer {
            None => words::split(&text),
            Some(tokenizer) => {
                let chunks: Vec<&str> = text.split_whitespace().collect();
                let begins: Vec<usize> = std::iter::once(0)
                    .chain(chunks.iter().scan(0, |end, chunk| {
                        *end += chunk.chars().count() + 1;
                        Some(*end)
                    }))
                    .collect();
                let failed = |error: tokenizers::Error| TextError::Tokenizer { reason: error.to_string() };
                let encoding = tokenizer.encode_char_offsets(chunks.join(" "), false).map_err(failed)?;
                let places = encoding.get_word_ids().iter().zip(encoding.get_offsets());
                let word = |(chunk, &(begin, _)): (&Option<u32>, &(usize, usize))| {
                    let chunk = chunk.map_or(0, |chunk| chunk as usize).min(chunks.len().saturating_sub(1));
                    // The blank before a word is of its first piece.
                    let letter = begin.saturating_sub(begins[chunk]);
                    let word = chunks.get(chunk).and_then(|chunk| word_at(chunk, letter)).unwrap_or_else(|| UNKNOWN_WORD.to_owned());
                    format!("{BLANK}{word}")
                };
                places.map(word).collect()
            }
        };
        copied.push(END_WORD.to_owned());
        Ok(copied)
    }

    /// A line from words or pieces of the target; the end word and what follows it are left out.
    pub fn join<'a>(&self, pieces: impl IntoIterator<Item = &'a str>) -> String {
        let pieces = pieces.into_iter().take_while(|&piece| piece != END_WORD);
        if self.tokenizer.is_none() {
            return words::join(pieces, self.spaced);
        }
        let mut text = String::new();
        for piece in pieces {
            if piece == UNKNOWN_WORD {
                text.push(' ');
            }
            text.extend(piece.chars().map(|letter| if letter == BLANK { ' ' } else { letter }));
        }
        text.trim().to_owned()
    }

    /// A line from tokens of the target.
    pub fn decode(&self, tokens: &[Token]) -> String {
        self.join(tokens.iter().map(|&token| self.target.word(token).unwrap_or(UNKNOWN_WORD)))
    }

    /// For each piece, the word it belongs to, counted from 0; the end word is one of its own.
    pub fn word_of(&self, pieces: &[String]) -> Vec<usize> {
        let mut word = 0;
        pieces
            .iter()
            .enumerate()
            .map(|(number, piece)| {
                let begins = self.tokenizer.is_none() || piece.starts_with(BLANK) || piece == END_WORD;
                word += usize::from(begins && number > 0);
                word
            })
            .collect()
    }
}

/// Which of the words of a text without blanks has its letter of this number.
fn word_at(chunk: &str, letter: usize) -> Option<String> {
    let mut end = 0;
    words::split(chunk).into_iter().find(|word| {
        end += word.chars().count();
        letter < end
    })
}

fn empty() -> Vocabulary {
    Vocabulary::new([UNKNOWN_WORD, END_WORD]).expect("two words")
}

/// A text as it is trained on.
pub(crate) fn fold(text: &str, lowercase: bool) -> Cow<'_, str> {
    if lowercase { Cow::Owned(text.to_lowercase()) } else { Cow::Borrowed(text) }
}

/// Whether most signs such as `?` have a blank before them.
fn is_spaced<'a>(texts: impl Iterator<Item = &'a str>) -> bool {
    let (mut apart, mut close) = (0u64, 0u64);
    for text in texts {
        let mut before = None;
        for letter in text.chars() {
            if words::SPACED.contains(letter) {
                match before {
                    Some(before) if char::is_whitespace(before) => apart += 1,
                    Some(_) => close += 1,
                    None => {}
                }
            }
            before = Some(letter);
        }
    }
    apart > close
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs() -> Vec<(String, String)> {
        [
            ("The cat sat.", "Le chat s'est assis."),
            ("The cat eats.", "Le chat mange."),
            ("Is the cat here?", "Le chat est-il ici ?"),
            ("The dog eats here.", "Le chien mange ici."),
        ]
        .map(|(source, target)| (source.to_owned(), target.to_owned()))
        .to_vec()
    }

    #[test]
    fn every_unit_gives_its_training_texts_back() {
        for units in Units::ALL {
            let codec = TextCodec::learn(TextConfig { units, vocabulary: 60, lowercase: false }, &pairs(), &mut |_| ()).expect("it learns");
            assert!(codec.source_vocabulary().len() <= 60 && codec.target_vocabulary().len() <= 60);
            for (source, target) in pairs() {
                let encoded = codec.encode_target(&target).expect("it has words");
                assert_eq!(encoded.tokens.last(), Some(&codec.end()));
                assert_eq!(codec.decode(&encoded.tokens), target, "{units:?}");
                let encoded = codec.encode_source(&source).expect("it has words");
                assert!(!encoded.tokens.contains(&0), "{units:?} knows its own words: {encoded:?}");
                let n_words = codec.word_of(&encoded.pieces).last().map(|&word| word + 1);
                let expected = if units == Units::Words { words::split(&source).len() } else { source.split_whitespace().count() };
                assert_eq!(n_words, Some(expected + 1), "{units:?}: {encoded:?}");
            }
        }
    }

    #[test]
    fn a_piece_is_copied_as_its_whole_word() {
        for units in Units::ALL {
            let codec = TextCodec::learn(TextConfig { units, vocabulary: 60, lowercase: false }, &pairs(), &mut |_| ()).expect("it learns");
            for (text, words) in [
                ("The cat  eats.", &["The", "cat", "eats", "."][..]),
                ("Žižek's cat (Ω) sat", &["Žižek'", "s", "cat", "(", "Ω", ")", "sat"]),
            ] {
                let (copied, pieces) = (codec.copied(text).expect("it has words"), codec.encode_source(text).expect("it has words").pieces);
                assert_eq!(copied.len(), pieces.len(), "{units:?}: {copied:?} for {pieces:?}");
                let mut seen: Vec<&str> = copied.iter().map(|word| word.trim_start_matches(BLANK)).collect();
                seen.dedup();
                assert_eq!(seen.pop(), Some(END_WORD));
                // A piece may hold a word and the full stop after it.
                let places: Vec<Option<usize>> = seen.iter().map(|word| words.iter().position(|other| other == word)).collect();
                assert!(places.is_sorted() && places.iter().all(Option::is_some), "{units:?}: {seen:?} of {pieces:?}");
                assert!(units != Units::Words || seen == words, "{seen:?}");
                assert!(["cat", words[0]].iter().all(|word| seen.contains(word)), "{units:?}: {seen:?} of {pieces:?}");
            }
        }
    }

    #[test]
    fn unknown_words_small_letters_and_little_room() {
        let config = TextConfig { units: Units::Words, vocabulary: 5, lowercase: true };
        let codec = TextCodec::learn(config, &pairs(), &mut |_| ()).expect("it learns");
        assert_eq!(codec.source_vocabulary().words(), ["<unk>", "the", ".", "cat", "<eos>"].map(str::to_owned));
        let encoded = codec.encode_source("The COW <eos>.").expect("it has words");
        assert_eq!(encoded.pieces, ["the", "cow", "<", "eos", ">", ".", "<eos>"]);
        assert_eq!(encoded.tokens, [1, 0, 0, 0, 0, 2, 4]);
        assert!(matches!(codec.encode_source(" \t"), Err(TextError::Empty)));
    }
}
