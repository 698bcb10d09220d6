//! What a SentencePiece model file says, read but for the tables that are made of it.

use super::error::ModelError;
use super::wire::{Fields, Value};

/// As in SentencePiece itself.
const MAX_PIECE_BYTES: usize = 8000;

/// What a piece is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Normal,
    Unknown,
    /// Never found in text.
    Control,
    /// Always found as a whole in text.
    UserDefined,
    /// Not used, though it has a number.
    Unused,
    /// One byte of what has no piece.
    Byte,
}

/// One entry of the vocabulary; its number is its place.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) text: String,
    pub(super) score: f32,
    pub(super) kind: Kind,
}

/// How text is cut into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Unigram,
    Bpe,
}

/// How text is prepared.
#[derive(Clone, Debug)]
pub(super) struct NormalizerSpec<'a> {
    pub(super) character_map: &'a [u8],
    pub(super) add_dummy_prefix: bool,
    pub(super) remove_extra_spaces: bool,
    pub(super) escape_spaces: bool,
}

impl Default for NormalizerSpec<'_> {
    fn default() -> Self {
        Self { character_map: &[], add_dummy_prefix: true, remove_extra_spaces: true, escape_spaces: true }
    }
}

/// The file's content.
#[derive(Debug)]
pub(super) struct ModelFile<'a> {
    pub(super) entries: Vec<Entry>,
    pub(super) algorithm: Algorithm,
    pub(super) space_is_suffix: bool,
    pub(super) byte_fallback: bool,
    pub(super) unknown_surface: String,
    pub(super) normalizer: NormalizerSpec<'a>,
    pub(super) denormalizer: NormalizerSpec<'a>,
}

impl<'a> ModelFile<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, ModelError> {
        let mut file = Self {
            entries: Vec::new(),
            algorithm: Algorithm::Unigram,
            space_is_suffix: false,
            byte_fallback: false,
            unknown_surface: " \u{2047} ".to_owned(),
            normalizer: NormalizerSpec::default(),
            denormalizer: NormalizerSpec::default(),
        };
        for field in Fields::new(bytes) {
            match field? {
                (1, Value::Bytes(message)) => {
                    let entry = Entry::read(message, file.entries.len())?;
                    file.entries.push(entry);
                }
                (2, Value::Bytes(message)) => file.read_trainer_spec(message)?,
                (3, Value::Bytes(message)) => file.normalizer.read(message)?,
                (5, Value::Bytes(message)) => file.denormalizer.read(message)?,
                _ => {}
            }
        }
        if file.entries.is_empty() { Err(ModelError::NoPieces) } else { Ok(file) }
    }

    fn read_trainer_spec(&mut self, message: &[u8]) -> Result<(), ModelError> {
        for field in Fields::new(message) {
            match field? {
                (3, Value::Varint(1)) => self.algorithm = Algorithm::Unigram,
                (3, Value::Varint(2)) => self.algorithm = Algorithm::Bpe,
                (3, Value::Varint(model_type)) => return Err(ModelError::ModelType { model_type }),
                (24, Value::Varint(flag)) => self.space_is_suffix = flag != 0,
                (35, Value::Varint(flag)) => self.byte_fallback = flag != 0,
                (44, Value::Bytes(text)) => self.unknown_surface = String::from_utf8_lossy(text).into_owned(),
                _ => {}
            }
        }
        Ok(())
    }
}

impl<'a> NormalizerSpec<'a> {
    fn read(&mut self, message: &'a [u8]) -> Result<(), ModelError> {
        for field in Fields::new(message) {
            match field? {
                (2, Value::Bytes(map)) => self.character_map = map,
                (3, Value::Varint(flag)) => self.add_dummy_prefix = flag != 0,
                (4, Value::Varint(flag)) => self.remove_extra_spaces = flag != 0,
                (5, Value::Varint(flag)) => self.escape_spaces = flag != 0,
                _ => {}
            }
        }
        Ok(())
    }
}

impl Entry {
    fn read(message: &[u8], piece: usize) -> Result<Self, ModelError> {
        let (mut text, mut score, mut kind) = (&b""[..], 0.0, Kind::Normal);
        for field in Fields::new(message) {
            match field? {
                (1, Value::Bytes(bytes)) => text = bytes,
                (2, Value::Fixed32(bits)) => score = f32::from_bits(bits),
                (3, Value::Varint(number)) => kind = Kind::read(number, piece)?,
                _ => {}
            }
        }

        let wrong = |what| ModelError::Piece { piece, what };
        if !score.is_finite() {
            return Err(ModelError::Score { piece, score });
        }
        if text.len() >= MAX_PIECE_BYTES {
            return Err(wrong("is longer than 8,000 bytes"));
        }
        let text = std::str::from_utf8(text).map_err(|_| wrong("is not UTF-8"))?;
        if text.is_empty() {
            return Err(wrong("is empty"));
        }
        if text.contains('\0') {
            return Err(wrong("holds a NUL character"));
        }
        // A negative zero orders below zero in a heap but not in the arithmetic that SentencePiece compares by.
        Ok(Self { text: text.to_owned(), score: score + 0.0, kind })
    }
}

impl Kind {
    fn read(number: u64, piece: usize) -> Result<Self, ModelError> {
        Ok(match number {
            1 => Self::Normal,
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            5 => Self::Unused,
            6 => Self::Byte,
            kind => return Err(ModelError::Kind { piece, kind }),
        })
    }

    /// Whether text can be cut into pieces of this kind; the others have names that text may hold by chance.
    pub(super) fn is_found_in_text(self) -> bool {
        matches!(self, Self::Normal | Self::UserDefined | Self::Unused)
    }
}
