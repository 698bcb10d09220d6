//! Every format that is read gives the sound that was written.

use std::time::Duration;

use crosslens_pretrained::audio::SoundFile;

use crate::fixtures::{Wav, golden, golden_bytes, heard, on_disk, read, read_whole, tone};

/// What is written at 16 kHz is read as it is, up to half a step of its integers and, for integers, the step between 2^n and 2^n − 1.
#[test]
fn wavs_of_every_width_are_read() {
    let sound: Vec<f64> = tone(16_000, 440.0, 0.9, 20_000).collect();
    let ways = [8, 16, 24, 32].map(|bits| (Wav::integer(16_000, bits), 1.5 / f64::from(bits - 1).exp2()));
    let floats = [32, 64].map(|bits| (Wav { bits, ..Wav::float(16_000) }, 0.0));
    for (wav, tolerance) in ways.into_iter().chain(floats) {
        let samples = read_whole(&wav.file(sound.iter().copied()));
        assert_eq!(samples.len(), sound.len());
        let off = samples.iter().zip(&sound).map(|(&read, &written)| (f64::from(read) - written).abs()).fold(0.0, f64::max);
        assert!(off <= tolerance + 1e-7, "{} bits, float {}: off by {off}", wav.bits, wav.float);
    }
}

/// Channel c of frame i holds (c + 1)/10 · x[i]; the mean of 1 to 7 is 4.
#[test]
fn seven_channels_become_their_mean() {
    let sound = tone(16_000, 300.0, 1.0, 5_000);
    let wav = Wav { n_channels: 7, ..Wav::float(16_000) };
    let samples = read_whole(&wav.file(sound.clone().flat_map(|x| (1..=7).map(move |c| f64::from(c) / 10.0 * x))));
    assert_eq!(samples.len(), 5_000);
    for (read, x) in samples.iter().zip(sound) {
        assert!((f64::from(*read) - 0.4 * x).abs() < 1e-6);
    }
}

#[test]
fn silence_and_clipping_are_sounds() {
    assert_eq!(read_whole(&Wav::integer(16_000, 16).file(vec![0.0; 4_000])), vec![0.0; 4_000]);
    let square = (0..4_000).map(|i| if i / 20 % 2 == 0 { 1.0 } else { -1.0 });
    let samples = read_whole(&Wav::integer(16_000, 16).file(square));
    assert!(samples.iter().all(|sample| sample.abs() > 0.999));
}

/// 33,000 samples at 44.1 kHz are round(11972.8) at 16 kHz, whatever an encoder put around them. Of the tone of 0.5 on one of two
/// channels 0.25 is left; what was lost by coding stays below a hundredth of it.
#[test]
fn compressed_tones_are_heard_at_their_length() {
    for (name, lost) in [("tone.flac", 1e-4), ("tone.mp3", 2.5e-3), ("tone.ogg", 2.5e-3)] {
        let sound = read(&golden(name)).expect("a sound");
        assert_eq!((sound.warning.as_deref(), sound.truncated), (None, false), "{name}");
        assert_eq!(sound.samples.len(), 11_973, "{name}");
        let middle = &sound.samples[1_600..9_600];
        let (amplitude, rest) = heard(middle, 1_000.0);
        assert!((amplitude - 0.25).abs() < 0.005 && rest < lost, "{name}: {amplitude} and {rest}");
        for hertz in [500.0, 950.0, 1_050.0, 2_000.0, 5_000.0] {
            assert!(heard(middle, hertz).0 < 0.0025, "{name}: {hertz} Hz is there");
        }
    }
}

/// The tone begins with a rise of its sine at 0: what an encoder adds before it is taken off to the sample.
#[test]
fn compressed_tones_are_heard_at_their_time() {
    for name in ["tone.flac", "tone.mp3", "tone.ogg"] {
        let samples = read(&golden(name)).expect("a sound").samples;
        for (i, x) in tone(16_000, 1_000.0, 0.25, 9_600).enumerate().skip(1_600) {
            assert!((f64::from(samples[i]) - x).abs() < 0.02, "{name}: sample {i} is {} instead of {x}", samples[i]);
        }
    }
}

#[test]
fn headers_tell_the_duration() {
    let told = |bytes: &[u8]| SoundFile::open(&on_disk("sound.wav", bytes).path).expect("a sound").duration();
    assert_eq!(told(&Wav::integer(8_000, 8).file(vec![0.0; 12_000])), Some(Duration::from_millis(1_500)));
    for name in ["tone.flac", "tone.mp3", "tone.ogg"] {
        let duration = SoundFile::open(golden(name)).expect("a sound").duration().expect("the header says so");
        assert!((duration.as_secs_f64() - 33_000.0 / 44_100.0).abs() < 1e-6, "{name}: {duration:?}");
    }
    let mut streamed = Wav::integer(8_000, 8).header(u32::MAX);
    streamed[4..8].fill(0xff);
    streamed.extend(vec![128; 8_000]);
    assert_eq!(told(&streamed), None);
}

/// Tags with pictures stand before most MP3s; here one of 300 kB in which a frame seems to begin.
#[test]
fn tags_before_an_mp3_are_passed_over() {
    let mut tagged = b"ID3\x03\x00\x00".to_vec();
    let size = 300_000_u32;
    tagged.extend([21, 14, 7, 0].map(|shift| (size >> shift & 0x7f) as u8));
    tagged.extend([0xff, 0xfb, 0x90, 0x64].into_iter().cycle().take(size as usize));
    tagged.extend(golden_bytes("tone.mp3"));
    let file = on_disk("tagged.bin", &tagged);
    assert_eq!(read(&file.path).expect("a sound").samples, read(&golden("tone.mp3")).expect("a sound").samples);
}

/// The first file's header speaks of the first file; the second is sound all the same.
#[test]
fn strung_mp3s_are_read_to_the_end() {
    let one = golden_bytes("tone.mp3");
    let file = on_disk("two.mp3", &[one.clone(), one].concat());
    let samples = read(&file.path).expect("a sound").samples;
    assert!((23_946..=25_500).contains(&samples.len()), "{} samples", samples.len());
    assert!((heard(&samples[14_000..22_000], 1_000.0).0 - 0.25).abs() < 0.005);
}

#[test]
fn strung_oggs_are_read_to_the_end() {
    let one = golden_bytes("tone.ogg");
    let file = on_disk("two.ogg", &[one.clone(), one].concat());
    let sound = read(&file.path).expect("a sound");
    assert_eq!(sound.samples.len(), 23_946);
    assert!((heard(&sound.samples[14_000..22_000], 1_000.0).0 - 0.25).abs() < 0.005);
}
