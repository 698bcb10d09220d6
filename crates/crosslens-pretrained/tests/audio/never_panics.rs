//! Arbitrary bytes: samples or an error, never a panic, never much memory.

use proptest::prelude::*;
use proptest::sample::Index;

use crate::allocation::most_held;
use crate::fixtures::{Wav, golden_bytes, on_disk, read, tone};

/// More than any file of a few kilobytes may take: its sound at most, and the FFT of the strangest rate.
const MOST_BYTES: usize = 256 << 20;

fn try_read(name: &str, bytes: &[u8]) {
    let file = on_disk(name, bytes);
    let (result, most) = most_held(|| read(&file.path));
    assert!(most < MOST_BYTES, "{most} bytes");
    match result {
        Ok(sound) => assert!(sound.samples.iter().all(|sample| sample.is_finite())),
        Err(error) => assert!(error.to_string().contains(name), "no file is named in: {error}"),
    }
}

fn wholes() -> Vec<(&'static str, Vec<u8>)> {
    let stereo = Wav { n_channels: 2, ..Wav::integer(11_025, 16) };
    let mut wholes = vec![
        ("a.wav", Wav::integer(8_000, 8).file(tone(8_000, 440.0, 0.5, 3_000))),
        ("b.wav", stereo.file(tone(11_025, 440.0, 0.5, 3_000))),
        ("c.wav", Wav::float(16_000).file(tone(16_000, 440.0, 0.5, 3_000))),
        ("d.wav", extensible()),
    ];
    wholes.extend(["tone.flac", "tone.mp3", "tone.ogg"].map(|name| (name, golden_bytes(name))));
    wholes
}

/// A WAV with the long form of its header: 3 channels of 24 bits, and a mask that says where they stand.
fn extensible() -> Vec<u8> {
    let plain = Wav { n_channels: 3, ..Wav::integer(16_000, 24) }.file(tone(16_000, 440.0, 0.5, 3_000));
    let mut bytes = plain[..36].to_vec();
    bytes[16] = 40;
    bytes[20..22].copy_from_slice(&[0xfe, 0xff]);
    bytes.extend([22, 0, 24, 0, 7, 0, 0, 0]);
    bytes.extend([1, 0, 0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71]);
    bytes.extend(&plain[36..]);
    let size = (bytes.len() - 8) as u32;
    bytes[4..8].copy_from_slice(&size.to_le_bytes());
    bytes
}

#[test]
fn the_long_form_of_a_wav_is_read() {
    let file = on_disk("d.wav", &extensible());
    let sound = read(&file.path).expect("a sound");
    assert_eq!((sound.samples.len(), sound.warning), (1_000, None));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn random_bytes_are_refused_or_read(
        mark in prop_oneof![
            Just(&b""[..]), Just(&b"RIFF\xff\xff\xff\xffWAVEfmt "[..]), Just(&b"fLaC\0\0\0\x22"[..]), Just(&b"OggS\0\x02"[..]),
            Just(&b"ID3\x04\0\0"[..]), Just(&b"\xff\xfb\x90\x64"[..]),
        ],
        rest in proptest::collection::vec(any::<u8>(), 0..3_000),
    ) {
        try_read("random.mp3", &[mark, &rest[..]].concat());
    }
}

/// A few bytes of a whole file changed, mostly in its header, and its end cut off.
#[test]
fn damaged_sounds_are_refused_or_read() {
    let wholes = wholes();
    let place = prop_oneof![3 => (0..64_usize).prop_map(Ok), 1 => any::<Index>().prop_map(Err)];
    let value = prop_oneof![any::<u8>(), Just(0), Just(1), Just(0x7f), Just(0xff)];
    let changes = proptest::collection::vec((place, value), 1..10);
    proptest!(ProptestConfig::with_cases(600), |(which in 0..wholes.len(), changes in changes, kept in 1..12_usize)| {
        let (name, whole) = &wholes[which];
        let mut bytes = whole.clone();
        for (place, byte) in changes {
            let place = place.unwrap_or_else(|place| place.index(bytes.len()));
            bytes[place] = byte;
        }
        bytes.truncate(bytes.len() * kept.min(10) / 10);
        try_read(name, &bytes);
    });
}

/// Every field of a WAV's header at its extremes, one at a time and in pairs.
#[test]
fn extreme_headers_are_refused_or_read() {
    for (name, whole) in wholes().into_iter().filter(|(name, _)| name.ends_with(".wav")) {
        let fields = [4..8, 16..20, 20..22, 22..24, 24..28, 28..32, 32..34, 34..36, 36..40, 40..44];
        for first in fields.clone() {
            for second in fields.clone() {
                for byte in [0, 0x7f, 0x80, 0xff] {
                    let mut bytes = whole.clone();
                    bytes[first.clone()].fill(byte);
                    bytes[second.clone()].fill(byte ^ 0xff);
                    try_read(name, &bytes);
                }
            }
        }
    }
}
