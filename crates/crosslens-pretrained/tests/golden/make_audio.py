"""Golden values for the sounds of crosslens-pretrained, made without any of its code.

Run:     python make_audio.py   (Python 3.11, numpy 2.4.6, safetensors 0.8.0, soundfile 0.14.0, torch 2.15.0, transformers 5.22.2)
Writes:  audio/                 see below

The sounds are formulas, computed in double precision and rounded to single; the test computes them again.

  mel.safetensors        frames [frame] i64: which of the 3000 frames are kept
                         SOUND.80, SOUND.128 [frame, mel] f32: these frames of what WhisperFeatureExtractor makes of the sound
  tone.flac, tone.mp3, tone.ogg    a tone of TONE_HZ on the left and silence on the right, TONE_SAMPLES samples at TONE_RATE;
                         an Ogg file has a serial number by chance, so that this one is never the same twice
  long.ogg               the same tone on one channel, LONG_SAMPLES samples at RATE: many pages, so that it can break off between them
  versions.json          what made the files
"""

import json
import platform
from importlib.metadata import version
from pathlib import Path

import numpy as np
import soundfile
import torch
from safetensors.numpy import save_file
from transformers import WhisperFeatureExtractor

HERE = Path(__file__).parent / "audio"
RATE = 16_000
SEED = 7301
TONE_HZ, TONE_RATE, TONE_SAMPLES = 1_000.0, 44_100, 33_000
LONG_SAMPLES = 10 * RATE


def noise(n_samples):
    """Uniform in [-0.3, 0.3): a linear congruence modulo 2^64, its upper 24 bits."""
    state, samples = SEED, np.empty(n_samples)
    for i in range(n_samples):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        samples[i] = ((state >> 40) / 2**24 - 0.5) * 0.6
    return samples


def seconds(duration):
    return np.arange(int(duration * RATE)) / RATE


def sounds():
    t = seconds(12.0)
    yield "sweep", 0.6 * np.sin(2 * np.pi * (50.0 + (7500.0 - 50.0) / 24.0 * t) * t)
    # Longer than a window: what is beyond is cut off.
    yield "noise", noise(31 * RATE)
    yield "silence", np.zeros(3 * RATE)
    t = seconds(5.003)
    yield "square", np.clip(3.0 * np.sin(2 * np.pi * 220.0 * t), -1.0, 1.0)
    # Quiet but for one loud moment, which lifts the floor of everything.
    t = seconds(20.0)
    yield "moment", np.where(np.abs(t - 9.0) < 0.25, 0.9, 2e-5) * np.sin(2 * np.pi * 440.0 * t)


def write_spectra():
    frames = np.array(sorted({*range(0, 3000, 100), 1, 2, 499, 501, 877, 2999}))
    golden = {"frames": frames}
    for name, sound in sounds():
        for n_mels in [80, 128]:
            extractor = WhisperFeatureExtractor(feature_size=n_mels)
            sound32 = sound.astype(np.float32)
            features = extractor(sound32, sampling_rate=RATE, return_tensors="np").input_features[0]
            padded = np.pad(sound32[: 30 * RATE], (0, max(0, 30 * RATE - len(sound32))))
            exact = extractor._np_extract_fbank_features(padded[None].astype(np.float64), "cpu")[0]
            print(name, n_mels, "torch is off its own double precision by", np.abs(features - exact).max())
            assert features.shape == (n_mels, 3000)
            golden[f"{name}.{n_mels}"] = np.ascontiguousarray(features.T[frames], dtype=np.float32)
    save_file(golden, HERE / "mel.safetensors")


def write_tones():
    left = 0.5 * np.sin(2 * np.pi * TONE_HZ * np.arange(TONE_SAMPLES) / TONE_RATE)
    stereo = np.stack([left, np.zeros_like(left)], axis=1)
    for name, format, subtype in [("flac", "FLAC", "PCM_16"), ("mp3", "MP3", "MPEG_LAYER_III"), ("ogg", "OGG", "VORBIS")]:
        soundfile.write(HERE / f"tone.{name}", stereo, TONE_RATE, format=format, subtype=subtype)
    long = 0.25 * np.sin(2 * np.pi * TONE_HZ * np.arange(LONG_SAMPLES) / RATE)
    soundfile.write(HERE / "long.ogg", long, RATE, format="OGG", subtype="VORBIS")


def main():
    torch.set_num_threads(1)
    HERE.mkdir(exist_ok=True)
    write_spectra()
    write_tones()
    packages = ["numpy", "safetensors", "soundfile", "torch", "transformers"]
    versions = {"python": platform.python_version(), "libsndfile": soundfile.__libsndfile_version__}
    versions |= {name: version(name) for name in packages}
    (HERE / "versions.json").write_text(json.dumps(versions, indent=1) + "\n")


if __name__ == "__main__":
    main()
