//! What is done with a corpus before it can be trained on.

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Its files are read; counted in their bytes, packed or not.
    Reading,
    /// Pieces of words are learnt; nobody knows how long that takes.
    Learning,
    /// Words or pieces are counted; in texts.
    Counting,
    /// Texts become tokens; in pairs.
    Encoding,
}

impl Stage {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Learning => "learning pieces of words",
            Self::Counting => "counting words",
            Self::Encoding => "cutting into tokens",
        }
    }
}

/// How far that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preparing {
    /// What is being done.
    pub stage: Stage,
    /// How much is done.
    pub done: u64,
    /// Of how much; 0 where that is not known.
    pub total: u64,
}

/// Items after which it is said how far it is.
const TOLD_EVERY: u64 = 256;

/// Counts items of a stage and says from time to time how far it is.
pub(crate) struct Counter<'a> {
    told: &'a mut dyn FnMut(Preparing),
    now: Preparing,
}

impl<'a> Counter<'a> {
    pub(crate) fn new(stage: Stage, total: usize, told: &'a mut dyn FnMut(Preparing)) -> Self {
        let now = Preparing { stage, done: 0, total: total as u64 };
        told(now);
        Self { told, now }
    }

    /// One more is done.
    pub(crate) fn count(&mut self) {
        self.now.done += 1;
        if self.now.done.is_multiple_of(TOLD_EVERY) || self.now.done == self.now.total {
            (self.told)(self.now);
        }
    }
}
