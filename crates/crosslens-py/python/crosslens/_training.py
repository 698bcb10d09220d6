"""Training, and the claims tested on trained networks."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from . import _native
from ._components import Path
from ._model import Model, load
from ._numbers import whole, whole_or_none
from ._progress import Bar, Progress


@dataclass(frozen=True)
class Metrics:
    """An evaluation on fresh sentences, as `metrics.jsonl` has it."""

    step: int
    train_loss: float
    loss: float
    phrase_accuracy: float
    word_accuracy: float
    gradient_norm: float
    learning_rate: float
    seconds: float


@dataclass(frozen=True)
class Trained:
    """What a run came to."""

    path: str
    finished: bool
    """Whether all steps were made or the accuracy asked for was reached; else it was stopped and can go on."""
    steps: int
    seconds: float
    parameters: int
    metrics: Metrics | None

    def load(self) -> Model:
        """The trained network."""
        return load(self.path)


def train(
    task: str | None = None,
    out: Path = "run",
    *,
    corpus: Path | None = None,
    dev: Path | None = None,
    held_out: int | None = None,
    max_words: int | None = None,
    max_pairs: int | None = None,
    units: Literal["words", "bpe", "unigram"] | None = None,
    vocabulary: int | None = None,
    keep_case: bool = False,
    arch: str | None = None,
    cell: str | None = None,
    score: str | None = None,
    seed: int | None = None,
    steps: int | None = None,
    record_every: int | None = None,
    overwrite: bool = False,
    resume: bool = False,
    n_threads: int = 0,
    callback: Callable[[Metrics], bool | None] | None = None,
    progress: Progress = None,
) -> Trained:
    """Trains a network on a task (`one-to-one`, where none is named, `reverse`, `escan`, `scan`, `sort`, `translation`), a `run.toml`, or the
    sentences of `corpus`, in the folder `out`.

    A corpus is a `.tsv[.gz]` or `.jsonl[.gz]` file, two files `"a.en,b.fr"`, a `.po` or `.mo` catalogue, or `"gettext:fr"` for those installed;
    what it is judged on is `dev`, or `held_out` of its sources. These and the options after them are those of `crosslens train`. `overwrite`
    replaces a run, never files of others.

    `callback` sees every evaluation and may return `False` to save and stop. Ctrl-C saves too: `resume=True` goes on from there.
    """

    def told(metrics: str) -> bool | None:
        return None if callback is None else callback(Metrics(**json.loads(metrics)))

    seed, steps, n_threads = whole_or_none("seed", seed), whole_or_none("steps", steps), whole("n_threads", n_threads)
    record_every = whole_or_none("record_every", record_every)
    of_corpus: dict[str, object] = {
        "corpus": None if corpus is None else os.fspath(corpus),
        "dev": None if dev is None else os.fspath(dev),
        "held_out": whole_or_none("held_out", held_out, 1),
        "max_words": whole_or_none("max_words", max_words, 1),
        "max_pairs": whole_or_none("max_pairs", max_pairs, 1),
        "units": units,
        "vocabulary": whole_or_none("vocabulary", vocabulary, 1),
        "keep_case": keep_case or None,
    }
    given = {name: value for name, value in of_corpus.items() if value is not None}
    with Bar(progress) as tell:
        found = json.loads(
            _native.train(task, out, given, arch, cell, score, seed, steps, record_every, overwrite, resume, n_threads, told, tell)
        )
    metrics = found.pop("metrics")
    return Trained(path=str(out), metrics=None if metrics is None else Metrics(**metrics), **found)


def reproduce(
    out: Path = "crosslens-reproduction",
    *,
    claims: Sequence[str] = (),
    seeds: int = 3,
    quick: bool = False,
    corpus: Path | None = None,
    n_threads: int = 0,
    progress: Progress = None,
) -> dict[str, Any]:
    """Tests the claims about how these networks attend, on networks trained for it and kept in `out`. Returns `reproduce.json`.

    What is claimed of translation is tested on the sentences of `corpus`, named as for `train`, or else on a miniature grammar.
    """
    n_seeds, n_threads = whole("seeds", seeds, 1, 255), whole("n_threads", n_threads)
    with Bar(progress) as tell:
        sentences = None if corpus is None else os.fspath(corpus)
        found: dict[str, Any] = json.loads(_native.reproduce(out, list(claims), n_seeds, quick, sentences, n_threads, tell))
    return found
