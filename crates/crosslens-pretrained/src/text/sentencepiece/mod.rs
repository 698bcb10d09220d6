//! SentencePiece models: text to pieces and back, piece for piece as the C++ library does it.
//!
//! Text is prepared (`normalizer`: characters replaced, spaces marked by `▁`), cut (`unigram` or `bpe`), and the cut is put into
//! words: neighbouring unknown characters become one piece, or each becomes its bytes where the model falls back to bytes.

mod bpe;
mod character_map;
mod error;
mod model_file;
mod normalizer;
mod trie;
mod unigram;
mod wire;

use std::collections::HashMap;

pub(crate) use character_map::CharacterMap;
pub use error::ModelError;
use model_file::{Algorithm, Entry, Kind, ModelFile};
use normalizer::Normalizer;
pub(crate) use trie::Trie;
use unigram::Unigram;

/// Stands for a space in pieces: U+2581.
pub(crate) const SPACE_MARK: &str = "\u{2581}";

/// A SentencePiece model, of the types unigram or BPE.
#[derive(Clone, Debug)]
pub struct SentencePiece {
    entries: Vec<Entry>,
    /// What text can be cut into.
    pieces: Trie,
    user_defined: Trie,
    /// The ids of pieces that are never found in text.
    reserved: HashMap<String, u32>,
    unknown: u32,
    /// The id of each byte, where the model falls back to bytes.
    bytes: Option<Box<[u32; 256]>>,
    cutter: Cutter,
    normalizer: Normalizer,
    denormalizer: Option<Normalizer>,
    space_is_suffix: bool,
    unknown_surface: String,
}

#[derive(Clone, Copy, Debug)]
enum Cutter {
    Unigram(Unigram),
    Bpe,
}

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its id in the model.
    pub id: u32,
    /// What it is: the model's piece or, where that is the unknown one, the prepared text it stands for.
    pub text: String,
    /// The byte of the text where it begins; with the space before it, if it has one.
    pub begin: usize,
}

impl SentencePiece {
    /// Reads a model from the bytes of its file. Nothing in them is believed before it is checked.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ModelError> {
        let file = ModelFile::read(bytes)?;
        let unknown = unknown(&file.entries)?;
        let numbered = || file.entries.iter().zip(0_u32..);
        let of_kind = |wanted: fn(Kind) -> bool| {
            numbered().filter(move |(entry, _)| wanted(entry.kind)).map(|(entry, id)| (entry.text.as_str(), id)).collect()
        };
        let pieces = Trie::new(of_kind(Kind::is_found_in_text))?;
        let user_defined = Trie::new(of_kind(|kind| kind == Kind::UserDefined))?;
        let mut reserved = HashMap::new();
        for (entry, id) in numbered().filter(|(entry, _)| !entry.kind.is_found_in_text()) {
            if reserved.insert(entry.text.clone(), id).is_some() {
                return Err(ModelError::Twice { text: entry.text.clone() });
            }
        }

        let has_map = !file.denormalizer.character_map.is_empty();
        Ok(Self {
            bytes: file.byte_fallback.then(|| byte_ids(&file.entries)).transpose()?,
            cutter: match file.algorithm {
                Algorithm::Unigram => Cutter::Unigram(Unigram::new(&file.entries)),
                Algorithm::Bpe => Cutter::Bpe,
            },
            normalizer: Normalizer::new(&file.normalizer, file.space_is_suffix)?,
            denormalizer: has_map.then(|| Normalizer::new(&file.denormalizer, false)).transpose()?,
            space_is_suffix: file.space_is_suffix,
            unknown_surface: file.unknown_surface,
            entries: file.entries,
            pieces,
            user_defined,
            reserved,
            unknown,
        })
    }

    /// How many pieces there are; ids are below.
    #[must_use]
    pub fn n_pieces(&self) -> usize {
        self.entries.len()
    }

    /// The id of what is unknown.
    #[must_use]
    pub fn unknown_id(&self) -> u32 {
        self.unknown
    }

    /// The piece with this id.
    #[must_use]
    pub fn piece(&self, id: u32) -> Option<&str> {
        self.entries.get(id as usize).map(|entry| entry.text.as_str())
    }

    /// The id of a piece; that of the unknown one if there is none.
    #[must_use]
    pub fn id_of(&self, piece: &str) -> u32 {
        self.reserved.get(piece).copied().or_else(|| self.pieces.get(piece)).unwrap_or(self.unknown)
    }

    /// Whether `▁` ends a word instead of beginning it.
    #[must_use]
    pub fn space_is_suffix(&self) -> bool {
        self.space_is_suffix
    }

    /// Cuts `text` into pieces, in time linear in its length (times its logarithm for BPE).
    #[must_use]
    pub fn encode(&self, text: &str) -> Vec<Piece> {
        let normalized = self.normalizer.normalize(text, &self.user_defined);
        let cut = match &self.cutter {
            Cutter::Unigram(unigram) => unigram.cut(&normalized.text, &self.pieces, &self.entries, self.unknown),
            Cutter::Bpe => bpe::cut(&normalized.text, &self.pieces, &self.user_defined, &self.entries, |piece| self.id_of(piece)),
        };

        let mut pieces: Vec<Piece> = Vec::with_capacity(cut.len());
        let mut unknown_before = false;
        for (range, id) in cut {
            let text = &normalized.text[range.clone()];
            let begin = normalized.origin[range.start];
            let is_unknown = id == self.unknown;
            match (&self.bytes, pieces.last_mut()) {
                (Some(ids), _) if is_unknown => pieces.extend(text.bytes().map(|byte| {
                    let id = ids[usize::from(byte)];
                    Piece { id, text: self.entries[id as usize].text.clone(), begin }
                })),
                (None, Some(last)) if is_unknown && unknown_before => last.text.push_str(text),
                _ => pieces.push(Piece { id, text: text.to_owned(), begin }),
            }
            unknown_before = is_unknown;
        }
        pieces
    }

    /// The text of pieces with these ids; ids without a piece are left out.
    #[must_use]
    pub fn decode_ids(&self, ids: &[u32]) -> String {
        self.decode(ids.iter().filter_map(|&id| self.piece(id)))
    }

    /// The text of pieces. Control pieces have none; a piece that the model does not know is its own text; bytes that make no
    /// character become U+FFFD.
    #[must_use]
    pub fn decode<'a>(&self, pieces: impl IntoIterator<Item = &'a str>) -> String {
        let mut text = String::new();
        let mut bytes = Vec::new();
        let (mut at_start, mut took_space) = (true, false);
        for piece in pieces {
            let id = self.id_of(piece);
            let kind = self.entries[id as usize].kind;
            if kind == Kind::Byte {
                bytes.extend(byte_of(piece));
                continue;
            }

            push_bytes(&mut text, &mut bytes);
            at_start &= !took_space && text.is_empty();
            took_space = false;
            match kind {
                Kind::Control => {}
                Kind::Unknown if self.piece(id) == Some(piece) => text.push_str(&self.unknown_surface),
                Kind::Unknown => text.push_str(piece),
                _ => {
                    let stripped = piece.strip_prefix(SPACE_MARK).filter(|_| at_start && self.normalizer.strips_first_space());
                    took_space = stripped.is_some() && !self.normalizer.strips_all_first_spaces();
                    text.push_str(&stripped.unwrap_or(piece).replace(SPACE_MARK, " "));
                }
            }
        }
        push_bytes(&mut text, &mut bytes);

        match &self.denormalizer {
            Some(denormalizer) => denormalizer.normalize(&text, &Trie::default()).text,
            None => text,
        }
    }
}

fn unknown(entries: &[Entry]) -> Result<u32, ModelError> {
    let mut unknown = entries.iter().enumerate().filter(|(_, entry)| entry.kind == Kind::Unknown).map(|(place, _)| place);
    match (unknown.next(), unknown.next()) {
        (None, _) => Err(ModelError::NoUnknown),
        (Some(first), None) => Ok(first as u32),
        (Some(first), Some(second)) => Err(ModelError::TwoUnknowns { first, second }),
    }
}

/// The byte of a piece such as `<0x0A>`.
fn byte_of(piece: &str) -> Option<u8> {
    let digits = piece.strip_prefix("<0x")?.strip_suffix('>')?;
    let is_plain = digits.len() == 2 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'A'..=b'F'));
    is_plain.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

fn byte_ids(entries: &[Entry]) -> Result<Box<[u32; 256]>, ModelError> {
    let mut found = [None; 256];
    for (entry, id) in entries.iter().zip(0_u32..).filter(|(entry, _)| entry.kind == Kind::Byte) {
        let wrong = ModelError::Piece { piece: id as usize, what: "is marked as a byte but does not look like `<0x0A>`" };
        found[usize::from(byte_of(&entry.text).ok_or(wrong)?)] = Some(id);
    }
    match found.iter().position(Option::is_none) {
        Some(byte) => Err(ModelError::NoByte { byte }),
        None => Ok(Box::new(found.map(Option::unwrap_or_default))),
    }
}

/// Moves `bytes` to the end of `text`, each that belongs to no character as U+FFFD.
fn push_bytes(text: &mut String, bytes: &mut Vec<u8>) {
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let valid = std::str::from_utf8(rest).map_or_else(|error| error.valid_up_to(), str::len);
        text.push_str(&String::from_utf8_lossy(&rest[..valid]));
        rest = &rest[valid..];
        if let Some((_, after)) = rest.split_first() {
            text.push(char::REPLACEMENT_CHARACTER);
            rest = after;
        }
    }
    bytes.clear();
}
