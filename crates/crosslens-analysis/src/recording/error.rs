//! What can be wrong with a recording.

use std::path::PathBuf;

use crate::Side;

/// Why a recording cannot be read or written. Every variant names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The system says no.
    #[error("cannot {action} `{path}`")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Something is there already.
    #[error("`{path}` exists already")]
    Exists {
        /// Where the recording should go.
        path: PathBuf,
    },
    /// A folder that would be replaced holds what no recording holds.
    #[error("`{path}` is not replaced: it holds `{name}`, which is no part of a recording")]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// What is in it.
        name: String,
    },
    /// Neither a recording nor a file that can be imported.
    #[error("`{path}` is not a recording: {what}")]
    NotARecording {
        /// What was to be opened.
        path: PathBuf,
        /// What it is instead.
        what: &'static str,
    },
    /// Another version of the format.
    #[error("`{path}` has the schema `{found}`, this version reads `{known}`")]
    Schema {
        /// The manifest.
        path: PathBuf,
        /// What it says.
        found: String,
        /// What is read.
        known: &'static str,
    },
    /// A file that does not follow its format.
    #[error("`{path}` is damaged: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A file that ends too early.
    #[error("`{path}` is cut short: {expected} bytes are announced, {found} are there")]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Bytes announced.
        expected: u64,
        /// Bytes there.
        found: u64,
    },
    /// Larger than what is read.
    #[error("`{path}` is refused: its {what} takes {bytes} bytes, at most {most} are read")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Which part of it.
        what: String,
        /// Its size.
        bytes: u64,
        /// The limit.
        most: u64,
    },
    /// More numbers are asked for at once than there is memory for: a smaller range may do.
    #[error("`{path}`: there is no memory for {numbers} numbers of `{name}`")]
    NoMemory {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// How many were asked for.
        numbers: u64,
    },
    /// There is no sentence.
    #[error("`{path}` holds no sentence")]
    Empty {
        /// The recording.
        path: PathBuf,
    },
    /// A shard's file name that could lead out of the folder.
    #[error("`{path}` names the shard `{name}`, which is no plain file name")]
    ShardName {
        /// The manifest.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// Two things of one name.
    #[error("`{path}` has `{name}` twice")]
    Duplicate {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// An array that must be there.
    #[error("`{path}` has no array `{name}`")]
    MissingArray {
        /// The file.
        path: PathBuf,
        /// Its name.
        name: String,
    },
    /// An array nobody asked for: a wrong name, most likely.
    #[error("`{path}` has an unknown array `{name}`")]
    UnknownArray {
        /// The file.
        path: PathBuf,
        /// Its name.
        name: String,
    },
    /// Numbers of the wrong type.
    #[error("`{path}`: `{name}` is of type {found}, {expected} was expected")]
    Dtype {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// Its type.
        found: String,
        /// The types that are read.
        expected: String,
    },
    /// An array of the wrong shape.
    #[error("`{path}`: `{name}` has the shape {found:?}, {expected} was expected")]
    Shape {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// Its shape.
        found: Vec<u64>,
        /// The shape that fits.
        expected: String,
    },
    /// Lengths that do not add up to the rows there are.
    #[error("`{path}`: the lengths of the sentences add up to {lengths} rows, but `{name}` has {rows}")]
    Lengths {
        /// The shard.
        path: PathBuf,
        /// The array.
        name: String,
        /// Sum of the lengths.
        lengths: u64,
        /// Rows there are.
        rows: u64,
    },
    /// A description that contradicts itself.
    #[error("`{path}`: the description does not fit together: {what}")]
    Description {
        /// The recording.
        path: PathBuf,
        /// What does not fit.
        what: String,
    },
    /// A site that reads a stream there is not.
    #[error("`{path}`: site {site} reads stream {stream}, but there are {streams}")]
    UnknownStream {
        /// The recording.
        path: PathBuf,
        /// The site's place.
        site: usize,
        /// The stream it names.
        stream: usize,
        /// How many there are.
        streams: usize,
    },
    /// A map whose shape does not fit the streams it reads.
    #[error("`{path}`: {map} does not fit: {what}")]
    Map {
        /// The recording.
        path: PathBuf,
        /// The map.
        map: String,
        /// What does not fit.
        what: String,
    },
    /// A sentence whose parts are not as long as they should be.
    #[error("`{path}`: sentence {sentence}: {what} has {found} numbers, {expected} were expected")]
    Length {
        /// The recording.
        path: PathBuf,
        /// The sentence's place in the recording, from 0.
        sentence: u64,
        /// Which part.
        what: String,
        /// How many it has.
        found: u64,
        /// How many fit.
        expected: u64,
    },
    /// A sentence that is said to be longer than the rows it has.
    #[error("`{path}`: `{name}` gives sentence {sentence} {length} steps, but there are {most}")]
    TooLong {
        /// The dump.
        path: PathBuf,
        /// The array of lengths.
        name: String,
        /// The sentence's place, from 0.
        sentence: u64,
        /// Its length.
        length: u64,
        /// Steps there are, padding included.
        most: u64,
    },
    /// A sentence without a token on one side.
    #[error("`{path}`: sentence {sentence} has no token on its {} side", name_of(*.side))]
    EmptySentence {
        /// The recording.
        path: PathBuf,
        /// The sentence's place in the recording, from 0.
        sentence: u64,
        /// The side.
        side: Side,
    },
    /// A token beyond the vocabulary.
    #[error("`{path}`: sentence {sentence}: token {token} of its {} side is beyond the {count} words there are", name_of(*.side))]
    UnknownToken {
        /// The recording.
        path: PathBuf,
        /// The sentence's place in the recording, from 0.
        sentence: u64,
        /// The side.
        side: Side,
        /// The token.
        token: u32,
        /// How many words there are.
        count: u32,
    },
    /// A number that is not finite.
    #[error("`{path}`: sentence {sentence}: `{name}` holds a number that is not finite")]
    NotFinite {
        /// The recording.
        path: PathBuf,
        /// The sentence's place in the recording, from 0.
        sentence: u64,
        /// The array, such as `states.encoder`.
        name: String,
    },
    /// Sentences asked for that are not there.
    #[error("`{path}` has {len} sentences: {start}..{end} are not all among them")]
    Range {
        /// The recording.
        path: PathBuf,
        /// First sentence asked for.
        start: u64,
        /// The one after the last.
        end: u64,
        /// How many there are.
        len: u64,
    },
}

/// A side's name in files and messages.
pub(super) fn name_of(side: Side) -> &'static str {
    match side {
        Side::Source => "source",
        Side::Target => "target",
    }
}
