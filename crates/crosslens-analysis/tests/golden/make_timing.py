"""Golden values for paths and word times in crosslens-analysis, made by transformers' Whisper.

Run:     python make_timing.py   (with the versions of requirements.txt; some seconds)
Writes:  timing.json             what made it, `paths` and `times`

paths   cost [rows, columns] and the cells that `_dynamic_time_warping` gives. Some costs are small whole numbers, so that steps tie. Where
        the steps from the corner and from the row above tie below the one from the left, that function takes the left one, which is dearer:
        cases in which this makes its path dearer than the cheapest are counted in `not_cheapest` and left out.
times   attention [head][token, frame] over all frames, those that are real, the width of the median filter, and the first frame of
        each token that `WhisperGenerationMixin._extract_token_timestamps` finds.

Attention is drawn around a way through the frames, with noise, and rounded to four digits. A case is taken only if the same steps in
float64 give the same frames: no choice hangs on a rounding. There are three tokens or more: the weights of two, standardised, are 1 and -1
always, so that every step ties.
"""

import json
import platform
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
import transformers
from transformers.models.whisper.generation_whisper import (
    WhisperGenerationMixin,
    _dynamic_time_warping,
    _median_filter,
)
from transformers.utils import ModelOutput

SEED = 1500
SECONDS_A_FRAME = 0.02
# tokens, frames, real frames, heads, width of the median filter
SHAPES = [(6, 40, 40, 2, 7), (9, 60, 45, 3, 7), (20, 110, 96, 2, 7), (5, 30, 30, 1, 3), (3, 20, 20, 2, 5), (4, 12, 3, 2, 7), (7, 50, 6, 2, 7)]


def cheapest(cost):
    """The least cost of any path, by the definition."""
    best = np.full(cost.shape, np.inf)
    for i in range(cost.shape[0]):
        for j in range(cost.shape[1]):
            before = [best[i - 1, j - 1]] if i and j else []
            before += [best[i - 1, j]] if i else []
            before += [best[i, j - 1]] if j else []
            best[i, j] = cost[i, j] + min(before, default=0.0)
    return best[-1, -1]


def paths(rng):
    cases, not_cheapest = [], 0
    while len(cases) < 60:
        rows, columns = rng.integers(1, 8), rng.integers(1, 10)
        whole = len(cases) % 3 > 0
        cost = rng.integers(-3, 4, (rows, columns)) if whole else rng.integers(-9999, 10000, (rows, columns)) / 1000
        cells = [[int(i), int(j)] for i, j in zip(*_dynamic_time_warping(cost.astype(np.float64)))]
        if abs(sum(cost[i, j] for i, j in cells) - cheapest(cost)) > 1e-4:
            not_cheapest += 1
            continue
        cases.append({"cost": cost.tolist(), "cells": cells})
    return cases, not_cheapest


def draw_attention(rng, n_tokens, n_frames, n_real, n_heads):
    way = np.sort(rng.uniform(0, n_real, n_tokens))
    frames = np.arange(n_frames)
    heads = []
    for _ in range(n_heads):
        scores = -np.abs(frames[None] - way[:, None] - rng.normal(0, 1, (n_tokens, 1))) / 3 + rng.normal(0, 0.8, (n_tokens, n_frames))
        weights = np.exp(scores)
        heads.append(np.maximum((weights / weights.sum(-1, keepdims=True)).round(4), 1e-4))
    return np.stack(heads)


def extract(attention, n_real, width):
    """First frames by transformers itself: one layer whose heads are all alignment heads, after two prompt tokens."""
    n_heads, n_tokens, n_frames = attention.shape
    prompt = torch.full((1, n_heads, 2, n_frames), 1 / n_frames)
    rows = torch.tensor(attention, dtype=torch.float32)
    steps = [(prompt,)] + [(rows[None, :, token : token + 1],) for token in range(n_tokens)]
    outputs = ModelOutput(sequences=torch.zeros(1, n_tokens + 3, dtype=torch.long), cross_attentions=steps)
    model = SimpleNamespace(config=SimpleNamespace(decoder_layers=1, median_filter_width=width))
    heads = [[0, head] for head in range(n_heads)]
    seconds = WhisperGenerationMixin._extract_token_timestamps(
        model, outputs, heads, time_precision=SECONDS_A_FRAME, num_frames=2 * n_real, num_input_ids=2
    )[0]
    assert len(seconds) == 2 + n_tokens + 1 and seconds[-1] == seconds[-2]
    return [round(float(second) / SECONDS_A_FRAME) for second in seconds[2:-1]]


def in_float64(attention, n_real, width):
    weights = torch.tensor(attention[:, :, :n_real], dtype=torch.float64)
    weights = (weights - weights.mean(1, keepdim=True)) / weights.std(1, keepdim=True, unbiased=False)
    matrix = _median_filter(weights[None], width)[0].mean(0)
    tokens, frames = _dynamic_time_warping(-matrix.numpy())
    return [int(frames[list(tokens).index(token)]) for token in range(attention.shape[1])]


def times(rng):
    cases = []
    for n_tokens, n_frames, n_real, n_heads, width in SHAPES:
        while True:
            attention = draw_attention(rng, n_tokens, n_frames, n_real, n_heads)
            if (attention[:, :, :n_real].std(1) < 1e-9).any():
                continue
            frames = extract(attention, n_real, width)
            if frames == in_float64(attention, n_real, width):
                break
        cases.append({"n_real": n_real, "width": width, "frames": frames, "attention": attention.tolist()})
    return cases


def main():
    rng = np.random.default_rng(SEED)
    found, not_cheapest = paths(rng)
    assert not_cheapest > 0, "no case shows where the definitions part"
    timed = times(rng)
    # The filter and the cut must matter.
    for case in timed[:3]:
        attention = np.array(case["attention"])
        assert in_float64(attention, case["n_real"], 1) != case["frames"], "the filter changes nothing"
    assert in_float64(np.array(timed[1]["attention"]), 60, 7) != timed[1]["frames"], "the cut changes nothing"

    versions = {"python": platform.python_version(), "numpy": np.__version__, "torch": torch.__version__, "transformers": transformers.__version__}
    head = {"made_by": "make_timing.py", "seed": SEED, "versions": versions, "not_cheapest": not_cheapest}
    lists = [json.dumps(name) + ": [\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]" for name, cases in [("paths", found), ("times", timed)]]
    text = json.dumps(head)[:-1] + ", " + ", ".join(lists) + "}\n"
    assert json.loads(text)["times"] == timed
    (Path(__file__).parent / "timing.json").write_text(text)
    print(len(text), "bytes;", not_cheapest, "paths left out")


if __name__ == "__main__":
    main()
