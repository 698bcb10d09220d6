//! Packets of a file become stretches of mono sound.

use std::collections::VecDeque;
use std::fs::File;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use symphonia::core::codecs::CodecParameters;
use symphonia::core::codecs::audio::well_known::CODEC_ID_MP3;
use symphonia::core::codecs::audio::{AudioDecoder, AudioDecoderOptions};
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::well_known::FORMAT_ID_FLAC;
use symphonia::core::formats::{FormatOptions, FormatReader, Track, TrackType};
use symphonia::core::io::{MediaSourceStream, MediaSourceStreamOptions};
use symphonia::core::meta::MetadataOptions;
use symphonia::core::packet::Packet;

use super::error::AudioError;

/// Below, no speech is left.
const LEAST_RATE: u32 = 1_000;
/// Twice what the finest recorders do.
const MOST_RATE: u32 = 384_000;
/// No packet of a known format is longer; it bounds the silence that stands for a damaged one.
const MOST_PACKET_FRAMES: u64 = 65_536;
/// A hole in a file is filled with silence up to so many frames, which are 20 seconds and more; a larger one is more likely a wrong number.
const MOST_GAP_FRAMES: i64 = 1 << 20;
/// Louder than any integer a sample can be; beyond, spectra overflow.
const LOUDEST: f32 = 2_147_483_648.0;

/// Mono samples that follow each other at one pace.
pub(super) struct Stretch {
    pub(super) rate: u32,
    pub(super) samples: Vec<f32>,
}

/// Why a sound is not what its header promised.
#[derive(Default)]
pub(super) struct Losses {
    /// It ends before it should.
    pub(super) truncated: bool,
    /// Stretches that could not be decoded, replaced by silence.
    pub(super) n_damaged: u64,
}

/// The audio track of a file, decoded packet by packet.
pub(super) struct Decoder {
    path: PathBuf,
    format: Box<dyn FormatReader>,
    decoder: Box<dyn AudioDecoder>,
    track: u32,
    rate: u32,
    /// Frames that the header promises; a frame is a sample of every channel.
    promised: Option<u64>,
    /// Frames that came.
    n_frames: u64,
    /// The number of the frame that should come next, in files whose packets are numbered.
    expected: Option<i64>,
    edges: Edges,
    /// `[frame, channel]` of one packet.
    interleaved: Vec<f32>,
    losses: Losses,
    ended: bool,
}

/// What an MP3's encoder put before and after the sound, to be taken off.
///
/// The last samples are held back until it is known whether more come: files that were strung together have a header that speaks of the
/// first alone, and what follows is sound.
#[derive(Default)]
struct Edges {
    before: usize,
    after: usize,
    held: VecDeque<f32>,
}

impl Decoder {
    /// Opens a file that [`kind::check`](super::kind::check) let pass; `is_cut` if it is known to break off.
    pub(super) fn open(file: File, path: &Path, is_cut: bool) -> Result<Self, AudioError> {
        let stream = MediaSourceStream::new(Box::new(file), MediaSourceStreamOptions::default());
        let format = guarded(path, || {
            symphonia::default::get_probe().probe(&Hint::new(), stream, FormatOptions::default(), MetadataOptions::default())
        })?
        .map_err(|error| refused(path, error))?;
        let track = format.default_track(TrackType::Audio).ok_or_else(|| AudioError::NoTrack { path: path.to_owned() })?;
        let decoder = make_decoder(path, track)?;
        let is_mp3 = decoder.codec_params().codec == CODEC_ID_MP3;
        // Without its encoder's note an MP3 has no more than a guess by the size of the file.
        let promised = track.num_frames.filter(|_| !is_mp3 || track.delay.is_some());
        let [before, after] = [track.delay, track.padding].map(|frames| if is_mp3 { frames.unwrap_or(0) as usize } else { 0 });
        let rate = decoder.codec_params().sample_rate.unwrap_or(0);
        check_rate(path, rate)?;
        Ok(Self {
            path: path.to_owned(),
            track: track.id,
            rate,
            promised,
            n_frames: 0,
            expected: (format.format_info().format == FORMAT_ID_FLAC).then_some(0),
            edges: Edges { before, after, held: VecDeque::new() },
            interleaved: Vec::new(),
            losses: Losses { truncated: is_cut, n_damaged: 0 },
            ended: false,
            format,
            decoder,
        })
    }

    /// Samples a second, of the last packet.
    pub(super) fn rate(&self) -> u32 {
        self.rate
    }

    /// Seconds by the header, whatever it is worth.
    pub(super) fn promised_secs(&self) -> Option<f64> {
        self.promised.map(|frames| frames as f64 / f64::from(self.rate))
    }

    pub(super) fn losses(&self) -> &Losses {
        &self.losses
    }

    /// The sound of the next packet, maybe none; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Stretch>, AudioError> {
        if self.ended {
            return Ok(None);
        }
        let Self { path, format, .. } = self;
        match guarded(path, || format.next_packet())? {
            Ok(Some(packet)) if packet.track_id == self.track => self.decode(&packet).map(Some),
            Ok(Some(_)) => Ok(Some(Stretch { rate: self.rate, samples: Vec::new() })),
            Ok(None) => Ok(Some(self.end())),
            // Another Ogg stream follows in the same file.
            Err(Error::ResetRequired) => self.begin_again().map(Some),
            Err(Error::IoError(source)) if source.kind() == ErrorKind::UnexpectedEof => {
                // A WAV that was written into a pipe has no other end.
                self.losses.truncated |= self.promised.is_some();
                Ok(Some(self.end()))
            }
            Err(Error::IoError(source)) => Err(AudioError::Read { path: self.path.clone(), source }),
            Err(_) => {
                self.losses.truncated = true;
                Ok(Some(self.end()))
            }
        }
    }

    fn decode(&mut self, packet: &Packet) -> Result<Stretch, AudioError> {
        // Tags are not of interest, and those of a long stream would pile up.
        while !self.format.metadata().is_latest() {
            self.format.metadata().pop();
        }
        let Self { path, decoder, interleaved, .. } = self;
        let decoded = guarded(path, || {
            decoder.decode(packet).map(|buffer| {
                buffer.copy_to_vec_interleaved(interleaved);
                (buffer.spec().rate(), buffer.spec().channels().count())
            })
        })?;
        let mut samples = match decoded {
            Ok((rate, n_channels)) => {
                check_rate(&self.path, rate)?;
                self.rate = rate;
                match n_channels {
                    0 | 1 => self.interleaved.clone(),
                    n => self.interleaved.chunks_exact(n).map(|frame| frame.iter().sum::<f32>() / n as f32).collect(),
                }
            }
            Err(Error::DecodeError(_) | Error::IoError(_)) => {
                self.losses.n_damaged += 1;
                vec![0.0; packet.dur.get().min(MOST_PACKET_FRAMES) as usize]
            }
            Err(error) => return Err(refused(&self.path, error)),
        };
        if let Some(at) = samples.iter().position(|sample| sample.is_nan() || sample.abs() > LOUDEST) {
            let at_secs = (self.n_frames + at as u64) as f64 / f64::from(self.rate);
            return Err(AudioError::NotASample { path: self.path.clone(), value: samples[at], at_secs });
        }
        let n_missing = self.missing_before(packet);
        samples.splice(0..0, std::iter::repeat_n(0.0, n_missing));
        self.edges.cut(&mut samples);
        self.n_frames += samples.len() as u64;
        Ok(Stretch { rate: self.rate, samples })
    }

    /// Frames between the last packet and this one: a damaged packet of FLAC is not even given out.
    fn missing_before(&mut self, packet: &Packet) -> usize {
        let Some(expected) = &mut self.expected else { return 0 };
        let begins = packet.pts.get();
        let n_missing = begins.saturating_sub(*expected);
        *expected = begins.saturating_add_unsigned(packet.dur.get());
        if !(1..=MOST_GAP_FRAMES).contains(&n_missing) {
            return 0;
        }
        self.losses.n_damaged += 1;
        n_missing as usize
    }

    /// What was held back, as far as it is sound.
    fn end(&mut self) -> Stretch {
        self.ended = true;
        let Edges { after, held, .. } = &mut self.edges;
        let n_frames = self.n_frames + held.len() as u64;
        let n_padding = n_frames.saturating_sub(self.promised.unwrap_or(u64::MAX)).min(*after as u64) as usize;
        held.truncate(held.len().saturating_sub(n_padding));
        let samples = Vec::from(std::mem::take(held));
        self.n_frames += samples.len() as u64;
        self.losses.truncated |= self.promised.is_some_and(|promised| self.n_frames < promised);
        Stretch { rate: self.rate, samples }
    }

    /// Turns to the track of the stream that follows; nothing is known of its length.
    fn begin_again(&mut self) -> Result<Stretch, AudioError> {
        let Some(track) = self.format.default_track(TrackType::Audio) else { return Ok(self.end()) };
        self.track = track.id;
        self.decoder = make_decoder(&self.path, track)?;
        self.promised = self.promised.zip(track.num_frames).map(|(promised, more)| promised.saturating_add(more));
        Ok(Stretch { rate: self.rate, samples: Vec::new() })
    }
}

impl Edges {
    /// Takes off what comes before the sound and holds the last samples back.
    fn cut(&mut self, samples: &mut Vec<f32>) {
        let n_before = self.before.min(samples.len());
        self.before -= n_before;
        samples.drain(..n_before);
        if self.after > 0 {
            self.held.extend(samples.drain(..));
            let n_settled = self.held.len().saturating_sub(self.after);
            samples.extend(self.held.drain(..n_settled));
        }
    }
}

fn make_decoder(path: &Path, track: &Track) -> Result<Box<dyn AudioDecoder>, AudioError> {
    let Some(CodecParameters::Audio(parameters)) = &track.codec_params else {
        return Err(AudioError::NoTrack { path: path.to_owned() });
    };
    // Of an MP3 without its encoder's note it would cut off whatever goes beyond a guess at its length.
    let options = AudioDecoderOptions::default().gapless(parameters.codec != CODEC_ID_MP3);
    guarded(path, || symphonia::default::get_codecs().make_audio_decoder(parameters, &options))?.map_err(|error| refused(path, error))
}

fn check_rate(path: &Path, found: u32) -> Result<(), AudioError> {
    if (LEAST_RATE..=MOST_RATE).contains(&found) {
        return Ok(());
    }
    Err(AudioError::Rate { path: path.to_owned(), found, least: LEAST_RATE, most: MOST_RATE })
}

fn refused(path: &Path, error: Error) -> AudioError {
    let path = path.to_owned();
    match error {
        Error::IoError(source) if source.kind() != ErrorKind::UnexpectedEof => AudioError::Read { path, source },
        Error::IoError(_) => AudioError::Damaged { path, reason: "it ends within its header".into() },
        Error::Unsupported(what) => AudioError::NotRead { path, found: format!("is coded in a way that is not read ({what})") },
        error => AudioError::Damaged { path, reason: error.to_string() },
    }
}

/// Runs a decoder of others: where it panics at a damaged file, that is the file's fault and not the end of the program.
fn guarded<T>(path: &Path, act: impl FnOnce() -> T) -> Result<T, AudioError> {
    // Nothing that a panic left half done is used again: the error ends the reading.
    catch_unwind(AssertUnwindSafe(act)).map_err(|_| AudioError::Damaged { path: path.to_owned(), reason: "its decoder broke off".into() })
}
