//! Speech by path: a model and a sound in, a transcript out.

use std::ops::ControlFlow;
use std::path::Path;

use crosslens_analysis::Token;
use crosslens_analysis::timing::{Segment, Transcript};
use crosslens_pretrained::Device;
use crosslens_pretrained::audio::SoundFile;
use crosslens_pretrained::speech::{Listening, Speech, SpeechError};

/// A pretrained model of speech.
pub struct SpeechModel(Speech);

/// What was understood so far.
#[derive(Clone, Copy, Debug)]
pub struct HeardSoFar<'a> {
    /// Seconds of the sound that are done.
    pub done_secs: f64,
    /// How long it is, if its header says so.
    pub of_secs: Option<f64>,
    /// What is new since the last time.
    pub new: &'a [Segment],
}

/// A sound written down.
#[derive(Debug, Default)]
pub struct Transcription {
    /// What was said.
    pub transcript: Transcript,
    /// Whether all of it was listened to; else somebody wanted to stop, or `error` was in the way.
    pub is_whole: bool,
    /// Why the rest of it could not be listened to.
    pub error: Option<SpeechError>,
    /// What was wrong with the file, in words for its user.
    pub warning: Option<String>,
    /// What the decoder wrote for the first 30 seconds, after its start token: prompt, timestamps and end among it.
    pub first_window: Vec<Token>,
}

impl SpeechModel {
    /// Opens the folder of a Whisper. Products are made on the device.
    pub fn open(path: &Path, device: &Device) -> Result<Self, SpeechError> {
        Speech::open_on(path, device).map(Self)
    }

    /// Takes the times of words from these heads, each a layer and a head.
    pub fn align_by(&mut self, heads: &[(usize, usize)]) -> Result<(), SpeechError> {
        self.0.align_by(heads)
    }

    /// The model.
    pub fn speech(&self) -> &Speech {
        &self.0
    }

    /// Writes down a file of any length, some thirty seconds at a time; after each `told` hears of it and may stop the work.
    ///
    /// # Errors
    ///
    /// If nothing of it can be understood. What is in the way later on is told beside what was understood before.
    pub fn transcribe(
        &self,
        sound: &Path,
        how: &Listening,
        told: &mut dyn FnMut(HeardSoFar<'_>) -> ControlFlow<()>,
    ) -> Result<Transcription, SpeechError> {
        let sound = SoundFile::open(sound)?;
        let of_secs = sound.duration().map(|duration| duration.as_secs_f64());
        let mut passages = self.0.listen(sound, how)?;
        let (mut segments, mut is_whole, mut error, mut n_passages) = (Vec::new(), true, None, 0);
        while let Some(passage) = passages.next() {
            let passage = match passage {
                Ok(passage) => passage,
                Err(first) if n_passages == 0 => return Err(first),
                Err(later) => {
                    (is_whole, error) = (false, Some(later));
                    break;
                }
            };
            n_passages += 1;
            let language = passages.hears().language();
            let new = passage.segments.iter().map(|segment| self.0.segment(segment, language)).collect::<Result<Vec<_>, _>>()?;
            let wish = told(HeardSoFar { done_secs: passage.done_secs, of_secs, new: &new });
            segments.extend(new);
            if wish.is_break() {
                is_whole = false;
                break;
            }
        }
        let language = passages.hears().language().map(str::to_owned);
        if let Some(unjoined) = passages.take_unjoined() {
            segments.push(self.0.segment(&unjoined, language.as_deref())?);
        }
        let transcript = Transcript { language, duration: passages.heard_secs(), segments };
        let first_window = passages.hears().first_window().unwrap_or_default().to_vec();
        Ok(Transcription { transcript, is_whole, error, warning: passages.source().warning(), first_window })
    }
}
