//! Every way a file of sound can be wrong, by name.

use crosslens_pretrained::audio::{AudioError, SoundFile};

use crate::fixtures::{Read, Wav, golden, golden_bytes, heard, on_disk, read, refusal, tone};

#[test]
fn a_missing_file_is_named() {
    let error = SoundFile::open("no/such.wav").err().expect("no file");
    assert_eq!(error.to_string(), "cannot read `no/such.wav`");
    let folder = tempfile::tempdir().expect("a folder");
    assert!(matches!(SoundFile::open(folder.path()), Err(AudioError::Read { .. })));
}

#[test]
fn a_file_of_no_bytes_is_named() {
    for name in ["a.wav", "a.flac", "a.mp3", "a.ogg"] {
        assert_eq!(refusal(name, b""), format!("`{name}` is empty: it has 0 bytes; copy or record it again"));
    }
}

#[test]
fn what_is_no_sound_is_refused_with_what_is_read() {
    let cure = "; WAV, FLAC, MP3 and Ogg Vorbis are read, and others are converted by, for instance, `ffmpeg -i FILE sound.flac`";
    let cases: [(&str, &[u8], &str); 6] = [
        ("letter.txt", b"Dear reader,\nthis is no sound at all.", "does not begin as a sound does"),
        ("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff\xfb\x90\x64\0\0\0\0", "does not begin as a sound does"),
        ("talk.m4a", b"\0\0\0\x20ftypM4A \0\0\0\0", "is an MP4 or M4A file"),
        ("long.wav", b"RF64\xff\xff\xff\xffWAVEds64", "is an RF64 file, a WAV beyond 4 GB"),
        ("song.aiff", b"FORM\0\0\0\x20AIFFCOMM", "is an AIFF file"),
        ("film.webm", b"\x1a\x45\xdf\xa3\x01\0\0\0\0\0\0\x1f", "is a WebM or Matroska file"),
    ];
    for (name, bytes, found) in cases {
        assert_eq!(refusal(name, bytes), format!("`{name}` {found}{cure}"));
    }
}

#[test]
fn a_header_without_samples_is_refused() {
    let nothing = "holds no sound: there is a header, but not one sample could be decoded; copy or record it again";
    assert_eq!(refusal("a.wav", &Wav::integer(16_000, 16).header(0)), format!("`a.wav` {nothing}"));
    assert_eq!(refusal("a.wav", &Wav::integer(16_000, 16).header(1_000)), format!("`a.wav` {nothing}"));
    // The beginning of a recorder that was switched off: no length was ever written.
    let mut unfinished = Wav::integer(16_000, 16).file(vec![0.5; 100]);
    unfinished[4..8].fill(0);
    assert!(refusal("a.wav", &unfinished).contains("is damaged: "));
}

#[test]
fn headers_cut_anywhere_are_refused() {
    let whole = Wav::integer(16_000, 16).file(vec![0.5; 100]);
    for end in 1..44 {
        let message = refusal("cut.wav", &whole[..end]);
        assert!(message.contains("WAV, FLAC, MP3 and Ogg Vorbis") || message.contains("holds no sound"), "{end} bytes: {message}");
    }
    for name in ["tone.flac", "tone.ogg"] {
        for end in [4, 5, 20, 30, 41, 60] {
            refusal(name, &golden_bytes(name)[..end]);
        }
    }
}

#[test]
fn absurd_rates_are_refused() {
    for rate in [0, 1, 999, 384_001, 1_000_000_000, u32::MAX] {
        let message = refusal("a.wav", &Wav::integer(rate, 16).file(vec![0.5; 100]));
        let expected = format!("says it has {rate} samples a second; from 1000 to 384000 are read, so its header is wrong: write it anew");
        assert_eq!(message, format!("`a.wav` {expected}"));
    }
}

#[test]
fn absurd_channels_are_refused() {
    for n_channels in [0, 27, 33, 1_000, 65_535] {
        let wav = Wav { n_channels, ..Wav::integer(16_000, 16) };
        let message = refusal("a.wav", &wav.file(vec![0.5; 1_000]));
        let expected = format!("`a.wav` says it has {n_channels} channels; from 1 to 26 are read: mix it down");
        assert!(message.starts_with(&expected), "{message}");
    }
}

#[test]
fn absurd_widths_are_refused() {
    for bits in [0, 1, 12, 48, 65_535] {
        let mut bytes = Wav::integer(16_000, 16).file(vec![0.5; 1_000]);
        bytes[34..36].copy_from_slice(&u16::to_le_bytes(bits));
        assert!(refusal("a.wav", &bytes).contains("is damaged: "), "{bits} bits");
    }
}

/// The header promises 4 GB; there are 100 samples.
#[test]
fn a_length_beyond_the_file_is_not_believed() {
    let mut bytes = Wav::integer(16_000, 16).header(u32::MAX - 100);
    bytes.extend([0, 64].repeat(100));
    let file = on_disk("a.wav", &bytes);
    let Read { samples, truncated, warning } = read(&file.path).expect("what is there");
    assert_eq!((samples, truncated), (vec![0.5; 100], true));
    let expected = format!("`{}` breaks off at 0.0 s of the 134217.7 s that its header promises", file.path.display());
    assert_eq!(warning, Some(expected));
}

/// As programs write that do not know how long a stream will be.
#[test]
fn a_stream_without_a_length_is_read_to_its_end() {
    let mut bytes = Wav::integer(16_000, 16).header(u32::MAX);
    bytes[4..8].fill(0xff);
    bytes.extend([0, 64].repeat(5_000));
    let sound = read(&on_disk("a.wav", &bytes).path).expect("a sound");
    assert_eq!((sound.samples.len(), sound.truncated, sound.warning), (5_000, false, None));
}

/// Samples and chunks behind the samples are not confused.
#[test]
fn what_follows_the_samples_is_not_heard() {
    let mut bytes = Wav::integer(16_000, 16).file(vec![0.5; 1_000]);
    bytes.extend(b"LIST\x08\0\0\0INFOIART");
    assert_eq!(read(&on_disk("a.wav", &bytes).path).expect("a sound").samples.len(), 1_000);
}

#[test]
fn truncated_sounds_give_what_is_there_and_say_so() {
    let wav = Wav::integer(44_100, 16).file(tone(44_100, 1_000.0, 0.25, 33_000));
    for (name, whole) in ["tone.flac", "tone.mp3"].map(|name| (name, golden_bytes(name))).into_iter().chain([("tone.wav", wav)]) {
        let file = on_disk(name, &whole[..whole.len() * 7 / 10]);
        let Read { samples, truncated, warning } = read(&file.path).expect("what is there");
        assert!(truncated, "{name}");
        let warning = warning.expect("a warning");
        assert!(warning.contains(name) && warning.contains("breaks off at 0."), "{warning}");
        assert!((5_000..11_000).contains(&samples.len()), "{name}: {} samples", samples.len());
        assert!((heard(&samples[1_600..4_800], 1_000.0).0 - 0.25).abs() < 0.005, "{name}");
    }
}

/// Ogg packs packets into pages: one that is cut is lost whole. Ten seconds have many; of the short tone hardly more than the header is left,
/// without which nothing can be decoded.
#[test]
fn truncated_oggs_give_their_whole_pages() {
    let long = golden_bytes("long.ogg");
    assert_eq!(read(&golden("long.ogg")).expect("a sound").samples.len(), 160_000);
    let file = on_disk("long.ogg", &long[..long.len() * 7 / 10]);
    let Read { samples, truncated, warning } = read(&file.path).expect("what is there");
    assert!(truncated);
    let warning = warning.expect("a warning");
    assert!(warning.contains("long.ogg") && warning.contains("breaks off at "), "{warning}");
    assert!((32_000..120_000).contains(&samples.len()), "{} samples", samples.len());
    assert!((heard(&samples[1_600..samples.len() - 1_600], 1_000.0).0 - 0.25).abs() < 0.005);

    let short = golden_bytes("tone.ogg");
    let file = on_disk("tone.ogg", &short[..short.len() * 7 / 10]);
    assert!(read(&file.path).is_err_and(|error| error.to_string().contains("tone.ogg")));
}

/// Bytes in the middle of a FLAC file changed: a packet is lost, and what follows stays at its time.
#[test]
fn damage_within_becomes_silence_and_is_told() {
    let mut bytes = golden_bytes("tone.flac");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 40].fill(0xa5);
    let file = on_disk("tone.flac", &bytes);
    let Read { samples, warning, .. } = read(&file.path).expect("a sound");
    assert_eq!(samples.len(), 11_973);
    let warning = warning.expect("a warning");
    assert!(warning.contains("has a damaged stretch, which became silence"), "{warning}");
    for (i, x) in tone(16_000, 1_000.0, 0.25, 11_000).enumerate().skip(9_600) {
        assert!((f64::from(samples[i]) - x).abs() < 0.001, "sample {i} is {} instead of {x}", samples[i]);
    }
}

#[test]
fn samples_that_are_no_numbers_are_refused() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e20] {
        let sound = tone(16_000, 100.0, 0.5, 8_000).chain([value]).chain([0.0; 100]);
        let message = refusal("a.wav", &Wav::float(16_000).file(sound));
        let end = "at 0.500 s, which is no sound; write it anew with samples between -1 and 1";
        assert!(message.starts_with("`a.wav` holds a sample of ") && message.ends_with(end), "{message}");
    }
}

/// Opus in Ogg is told by its first packet, MP3 in a WAV by the number of its format.
#[test]
fn other_codecs_in_known_containers_are_refused() {
    let mut opus = golden_bytes("tone.ogg");
    let head = opus.windows(7).position(|bytes| bytes == b"\x01vorbis").expect("a Vorbis header");
    opus[head..head + 8].copy_from_slice(b"OpusHead");
    refusal("a.opus", &opus);
    let mut coded = Wav::integer(16_000, 16).file(vec![0.5; 100]);
    coded[20] = 0x55;
    assert!(refusal("a.wav", &coded).contains("WAV, FLAC, MP3 and Ogg Vorbis are read"));
}
