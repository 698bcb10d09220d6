//! What a file is, by its first bytes, and whether its header can be trusted to a decoder.
//!
//! A search for the beginning of a sound would find one in many a picture; so only files that begin as sounds do are handed on.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::error::AudioError;

/// Beyond, the reader of WAVs cannot tell channels apart.
const MOST_CHANNELS: u16 = 26;
/// No WAV has as many parts before its samples.
const MOST_CHUNKS: usize = 4096;
/// How files begin that people take for readable: where, with what, and what they are.
const OTHERS: [(usize, &[u8], &str); 8] = [
    (4, b"ftyp", "is an MP4 or M4A file"),
    (0, b"RF64", "is an RF64 file, a WAV beyond 4 GB"),
    (0, b"BW64", "is a BW64 file, a WAV beyond 4 GB"),
    (0, b"FORM", "is an AIFF file"),
    (0, b"\x1a\x45\xdf\xa3", "is a WebM or Matroska file"),
    (0, b"\x30\x26\xb2\x75", "is a WMA file"),
    (0, b"caff", "is a CAF file"),
    (0, b"#!AMR", "is an AMR file"),
];

/// Refuses what is not one of the known kinds of sound, and WAVs whose channels make no sense. Leaves the file at its beginning.
pub(super) fn check(file: &mut File, path: &Path) -> Result<(), AudioError> {
    let failed = |source| AudioError::Read { path: path.to_owned(), source };
    let mut head = Vec::new();
    file.take(12).read_to_end(&mut head).map_err(failed)?;
    if head.is_empty() {
        return Err(AudioError::NoBytes { path: path.to_owned() });
    }
    let starts = |at: usize, mark: &[u8]| head.get(at..).is_some_and(|rest| rest.starts_with(mark));
    if starts(0, b"RIFF") && starts(8, b"WAVE") {
        check_channels(file, path)?;
    } else if !(starts(0, b"fLaC") || starts(0, b"OggS") || starts(0, b"ID3") || is_mpeg(&head) || is_named_mp3(path)) {
        let other = OTHERS.iter().find(|(at, mark, _)| starts(*at, mark));
        let found = other.map_or("does not begin as a sound does", |(_, _, name)| name).to_owned();
        return Err(AudioError::NotRead { path: path.to_owned(), found });
    }
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    Ok(())
}

/// Eleven bits of one, and a layer: the zero that is no layer is AAC's.
fn is_mpeg(head: &[u8]) -> bool {
    matches!(head, [0xff, second, ..] if second & 0xe0 == 0xe0 && second & 0x06 != 0)
}

/// A recording of a stream begins within a frame; its name is believed.
fn is_named_mp3(path: &Path) -> bool {
    path.extension().is_some_and(|name| name.eq_ignore_ascii_case("mp3"))
}

/// Looks at every `fmt ` chunk before the samples of a WAV. What ends too early is left to the decoder to refuse.
fn check_channels(file: &mut File, path: &Path) -> Result<(), AudioError> {
    let mut position = 12;
    for _ in 0..MOST_CHUNKS {
        let mut chunk = Vec::new();
        file.seek(SeekFrom::Start(position)).map_err(|source| AudioError::Read { path: path.to_owned(), source })?;
        file.take(12).read_to_end(&mut chunk).map_err(|source| AudioError::Read { path: path.to_owned(), source })?;
        let &[t0, t1, t2, t3, l0, l1, l2, l3, _, _, c0, c1] = chunk.as_slice() else { return Ok(()) };
        match &[t0, t1, t2, t3] {
            b"data" => return Ok(()),
            b"fmt " => {
                let found = u16::from_le_bytes([c0, c1]);
                if !(1..=MOST_CHANNELS).contains(&found) {
                    return Err(AudioError::Channels { path: path.to_owned(), found, most: MOST_CHANNELS });
                }
            }
            _ => {}
        }
        let length = u64::from(u32::from_le_bytes([l0, l1, l2, l3]));
        position += 8 + length + length % 2;
    }
    Err(AudioError::Damaged { path: path.to_owned(), reason: format!("it has more than {MOST_CHUNKS} chunks before its samples") })
}
