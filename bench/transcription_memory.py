#!/usr/bin/env python3
"""Most memory that `crosslens transcribe` takes for one minute of sound and for ten: it must not grow with the length.

    pretrained_peers.py make whisper DIR                     random weights of Whisper-tiny size
    bench/transcription_memory.py DIR CROSSLENS [MINUTES…]   1 and 10 unless given; CROSSLENS is the program, a release build

Beside the weights it writes, into a folder of its own, a tokenizer of 50,257 words that mean nothing, Whisper's special tokens at their
usual places, and noise at 16 kHz. Random weights write timestamps at random, so none are asked for: windows of 30 seconds overlap by ten,
and for each as much is written as the decoder can, with the times of words. One line of JSON a length; the standard library is enough.
"""
import json, os, random, subprocess, sys, tempfile, time, wave
from pathlib import Path

END, START, ENGLISH, GERMAN, TRANSLATE, TRANSCRIBE, NO_TIMESTAMPS, N_WORDS = 50257, 50258, 50259, 50261, 50358, 50359, 50363, 51865
NAMED = {END: "endoftext", START: "startoftranscript", ENGLISH: "en", GERMAN: "de", TRANSLATE: "translate", TRANSCRIBE: "transcribe",
         NO_TIMESTAMPS - 1: "nospeech", NO_TIMESTAMPS: "notimestamps"}
IDS = {"pad_token_id": END, "bos_token_id": END, "eos_token_id": END, "decoder_start_token_id": START}


def special(token):
    name = f"{(token - NO_TIMESTAMPS - 1) * 0.02:.2f}" if token > NO_TIMESTAMPS else NAMED.get(token, f"special{token}")
    return {"id": token, "content": f"<|{name}|>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": token <= NO_TIMESTAMPS}


def tokenizer():
    level = lambda prefix: {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": True}
    words = {f"Ġword{token}": token for token in range(END)}
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "",
             "fuse_unk": False, "byte_fallback": False, "ignore_merges": True, "vocab": words, "merges": []}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [special(token) for token in range(END, N_WORDS)],
            "normalizer": None, "pre_tokenizer": level(False), "post_processor": None, "decoder": level(True), "model": model}


def make_model(weights, folder):
    folder.mkdir()
    (folder / "model.safetensors").symlink_to((weights / "model.safetensors").resolve())
    config = json.loads((weights / "config.json").read_text())
    write = lambda name, content: (folder / name).write_text(json.dumps(content))
    write("config.json", {**config, **IDS, "suppress_tokens": None, "begin_suppress_tokens": None, "forced_decoder_ids": None})
    write("generation_config.json", {**IDS, "max_length": 448, "is_multilingual": True, "lang_to_id": {"<|en|>": ENGLISH, "<|de|>": GERMAN},
          "task_to_id": {"translate": TRANSLATE, "transcribe": TRANSCRIBE}, "no_timestamps_token_id": NO_TIMESTAMPS,
          "alignment_heads": [[2, 2], [3, 0], [3, 2], [3, 3], [3, 4], [3, 5]], "begin_suppress_tokens": [END]})
    write("preprocessor_config.json", {"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": config["num_mel_bins"]})
    write("tokenizer.json", tokenizer())


def make_sound(path, minutes):
    with wave.open(str(path), "wb") as sound:
        sound.setparams((1, 2, 16_000, 0, "NONE", "not compressed"))
        noise = random.Random(minutes)
        for _ in range(minutes * 60):
            sound.writeframes(noise.randbytes(32_000))


def measure(program, model, sound, minutes):
    command = [program, "transcribe", str(model), str(sound), "--no-timestamps", "--words", "--json"]
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    line = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    segments = json.loads(line)["segments"]
    print(json.dumps({"minutes": minutes, "peak_mb": round(used.ru_maxrss / 1024, 1), "seconds": round(time.monotonic() - start, 1),
                      "words": sum(len(segment.get("words", [])) for segment in segments)}), flush=True)


def main(weights, program, *lengths):
    with tempfile.TemporaryDirectory() as folder:
        model, sound = Path(folder) / "model", Path(folder) / "sound.wav"
        make_model(Path(weights), model)
        for minutes in [int(minutes) for minutes in lengths] or [1, 10]:
            make_sound(sound, minutes)
            measure(str(Path(program).resolve()), model, sound, minutes)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
