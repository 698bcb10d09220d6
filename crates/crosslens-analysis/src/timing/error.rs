use super::tokens::MAX_MEDIAN_WIDTH;
use super::transcript::MAX_SECONDS;

/// Why attention gives no times, or times no words.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TimingError {
    /// There is nothing to follow.
    #[error("no alignment head is given; name some that follow the sound")]
    NoHead,
    /// A head whose rows do not fit the tokens and frames.
    #[error("head {head} has {n_weights} weights; {n_tokens} tokens × {n_frames} frames were expected")]
    HeadShape {
        /// Its place in the list.
        head: usize,
        /// Numbers given.
        n_weights: usize,
        /// Rows.
        n_tokens: usize,
        /// Columns.
        n_frames: usize,
    },
    /// Sound of no length, or longer than the attention over it.
    #[error("{n_real} real frames of {n_frames}; there is at least 1 and at most all of them")]
    RealFrames {
        /// Frames that hold sound.
        n_real: usize,
        /// Frames of a row.
        n_frames: usize,
    },
    /// A weight that is infinite or not a number.
    #[error("head {head} gives frame {frame} the weight {weight} for token {token}; weights are finite")]
    Weight {
        /// Its place in the list.
        head: usize,
        /// The row.
        token: usize,
        /// The column.
        frame: usize,
        /// What stands there.
        weight: f32,
    },
    /// A median over an even number of frames, or over too many.
    #[error("a median over {width} frames; the width is odd and at most {MAX_MEDIAN_WIDTH}")]
    MedianWidth {
        /// The width asked for.
        width: usize,
    },
    /// Frames that take no time.
    #[error("a frame of {seconds} seconds; frames take a finite time above 0")]
    FrameLength {
        /// The length asked for.
        seconds: f64,
    },
    /// Lists that should have one entry for each token.
    #[error("{n_words_of} tokens in words, {n_log_probabilities} log probabilities and {n_starts} times; each token has one of each")]
    Lengths {
        /// Tokens that say which word they belong to.
        n_words_of: usize,
        /// Log probabilities.
        n_log_probabilities: usize,
        /// Times.
        n_starts: usize,
    },
    /// A time before the last one, below 0, or none.
    #[error("token {token} begins at {start} s; times are finite, at least 0 and do not go back")]
    Time {
        /// The token; their number stands for the end.
        token: usize,
        /// Its time.
        start: f64,
    },
    /// A log probability that is not a number.
    #[error("the log probability of token {token} is not a number")]
    LogProbability {
        /// The token.
        token: usize,
    },
    /// A token of a word that is not there or came before.
    #[error("token {token} belongs to word {word}; words follow each other from 0 to {n_words}, the last left out, each with a token")]
    Word {
        /// The token; their number stands for the end.
        token: usize,
        /// The word.
        word: usize,
        /// Words there are.
        n_words: usize,
    },
}

/// Why a transcript was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Times that no format can hold.
    #[error("segment {segment} holds the times {start} to {end} s; times are finite, from 0 to {MAX_SECONDS:e} s and do not go back")]
    Time {
        /// The segment, from 0.
        segment: usize,
        /// From.
        start: f64,
        /// To.
        end: f64,
    },
    /// The transcript is not written to the end.
    #[error("cannot write the transcript")]
    Io(#[from] std::io::Error),
}
