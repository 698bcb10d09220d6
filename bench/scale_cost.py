#!/usr/bin/env python3
"""What a pair of sentences costs in `crosslens fit` and `crosslens explain --components`, and what `crosslens merge` costs: docs/scale.md.

    bench/scale_cost.py MODEL [CROSSLENS]      MODEL: a folder of `pretrained_peers.py make marian`; CROSSLENS: the program, else on the path

Pairs of 25 + 25 tokens, drawn evenly from the words, on one thread. Seconds of CPU, so that other work on the machine does not count, of 64 and
of 256 pairs; the difference leaves starting out. One line of JSON. The folder has no tokenizer: one is written whose words are numbers.
"""
import json
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

LENGTH, FEW, MANY = 25, 64, 256


def tokenizer(n_words):
    words = {f"w{number}": number for number in range(n_words)}
    model = {"type": "WordLevel", "vocab": words, "unk_token": "w0"}
    empty = dict.fromkeys(["truncation", "padding", "normalizer", "post_processor", "decoder"])
    return {"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "WhitespaceSplit"}, "model": model} | empty


def corpus(path, n_pairs, n_words, seed):
    draw = random.Random(seed)
    # The last word pads and the first one ends a sentence.
    sentence = lambda: " ".join(f"w{draw.randrange(1, n_words - 1)}" for _ in range(LENGTH))  # noqa: E731
    path.write_text("".join(f"{sentence()}\t{sentence()}\n" for _ in range(n_pairs)))
    return path


def cpu_seconds(*command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    given, program = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "crosslens"
    n_words = json.loads((given / "config.json").read_text())["vocab_size"]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        model = folder / "model"
        model.mkdir()
        for file in given.iterdir():
            (model / file.name).symlink_to(file.resolve())
        (model / "tokenizer.json").write_text(json.dumps(tokenizer(n_words)))
        fit, explain, files = {}, {}, {}
        for n_pairs in (FEW, MANY):
            pairs, files[n_pairs] = corpus(folder / f"{n_pairs}.tsv", n_pairs, n_words, n_pairs), folder / f"{n_pairs}.stats.safetensors"
            fit[n_pairs] = cpu_seconds(program, "fit", model, "--corpus", pairs, "--threads", 1, "-o", files[n_pairs])
            components = ["--components", files[n_pairs], "--causal", 0, "--threads", 1, "--json"]
            explain[n_pairs] = cpu_seconds(program, "explain", model, "--corpus", pairs, *components)
        megabytes = {n_pairs: file.stat().st_size / 1e6 for n_pairs, file in files.items()}
        # `merge` refuses a file that is given twice.
        for seed in range(1, 4):
            pairs = corpus(folder / f"other-{seed}.tsv", MANY, n_words, seed)
            cpu_seconds(program, "fit", model, "--corpus", pairs, "--threads", 1, "-o", folder / f"other-{seed}.stats.safetensors")
        parts = [files[MANY], *(folder / f"other-{seed}.stats.safetensors" for seed in range(1, 4))]
        merge = [cpu_seconds(program, "merge", *parts[:n], "-o", folder / f"merged-{n}.stats.safetensors") for n in (2, 4)]
    pair = lambda seconds: (seconds[MANY] - seconds[FEW]) / (MANY - FEW)  # noqa: E731
    result = {"fit_secs": pair(fit), "explain_secs": pair(explain), "merge_secs_a_mb": (merge[1] - merge[0]) / (2 * megabytes[MANY])}
    print(json.dumps(result | {"sums_mb": megabytes[MANY], "pairs": MANY}))


main()
