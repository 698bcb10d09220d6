//! What can be wrong with a SentencePiece model.

/// Why bytes are not a SentencePiece model that can be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A field is longer than what is left of its message: the file is cut short or damaged.
    #[error("a field at byte {at} of its message claims {claimed} bytes where {left} are left; the file is cut short or damaged")]
    Length {
        /// Where, in bytes from the start of the message.
        at: usize,
        /// How many bytes it claims.
        claimed: u64,
        /// How many there are.
        left: usize,
    },
    /// A number does not end, or a field has no number.
    #[error("byte {at} of a message begins no valid number; the file is damaged or no SentencePiece model")]
    Number {
        /// Where, in bytes from the start of the message.
        at: usize,
    },
    /// A field of a kind that SentencePiece does not use.
    #[error("byte {at} of a message begins a field of wire type {wire_type}; the file is damaged or no SentencePiece model")]
    WireType {
        /// Where, in bytes from the start of the message.
        at: usize,
        /// The wire type.
        wire_type: u64,
    },
    /// There are no pieces at all.
    #[error("it has no pieces")]
    NoPieces,
    /// No piece stands for what is unknown.
    #[error("no piece stands for unknown text (`<unk>`)")]
    NoUnknown,
    /// Several pieces stand for what is unknown.
    #[error("pieces {first} and {second} both stand for unknown text")]
    TwoUnknowns {
        /// The first.
        first: usize,
        /// The second.
        second: usize,
    },
    /// A piece is empty, too long, not UTF-8 or holds a NUL.
    #[error("piece {piece} {what}")]
    Piece {
        /// Its number.
        piece: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A score is infinite or no number.
    #[error("piece {piece} has the score {score}, which is no finite number")]
    Score {
        /// Its number.
        piece: usize,
        /// Its score.
        score: f32,
    },
    /// A piece is of a kind that is not known.
    #[error("piece {piece} is of the unknown kind {kind}")]
    Kind {
        /// Its number.
        piece: usize,
        /// Its kind.
        kind: u64,
    },
    /// A piece is there twice.
    #[error("the piece `{text}` is there twice")]
    Twice {
        /// The piece.
        text: String,
    },
    /// Byte fallback needs a piece for each byte.
    #[error("it falls back to bytes but has no piece for the byte {byte}")]
    NoByte {
        /// The byte.
        byte: usize,
    },
    /// Word and character models.
    #[error("it is of the model type {model_type}; only unigram (1) and BPE (2) can be read")]
    ModelType {
        /// As in the file.
        model_type: u64,
    },
    /// The map of characters does not hold together.
    #[error("its map of characters {what}")]
    CharacterMap {
        /// What is wrong with it.
        what: &'static str,
    },
}
