"""Training, and the claims tested on trained networks."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

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
    task: str = "one-to-one",
    out: Path = "run",
    *,
    arch: str | None = None,
    seed: int | None = None,
    steps: int | None = None,
    record_every: int | None = None,
    overwrite: bool = False,
    resume: bool = False,
    n_threads: int = 0,
    callback: Callable[[Metrics], bool | None] | None = None,
    progress: Progress = None,
) -> Trained:
    """Trains a network on a task (`one-to-one`, `reverse`, `escan`, `scan`, `sort`, `translation`) or a `run.toml`, in the folder `out`.

    `callback` sees every evaluation and may return `False` to save and stop. Ctrl-C saves too: `resume=True` goes on from there.
    """

    def told(metrics: str) -> bool | None:
        return None if callback is None else callback(Metrics(**json.loads(metrics)))

    seed, steps, n_threads = whole_or_none("seed", seed), whole_or_none("steps", steps), whole("n_threads", n_threads)
    record_every = whole_or_none("record_every", record_every)
    with Bar(progress) as tell:
        found = json.loads(
            _native.train(task, out, arch, seed, steps, record_every, overwrite, resume, n_threads, told, tell)
        )
    metrics = found.pop("metrics")
    return Trained(path=str(out), metrics=None if metrics is None else Metrics(**metrics), **found)


def reproduce(
    out: Path = "crosslens-reproduction",
    *,
    claims: Sequence[str] = (),
    seeds: int | None = None,
    quick: bool = False,
    n_threads: int = 0,
    progress: Progress = None,
) -> dict[str, Any]:
    """Tests the claims about how these networks attend, on networks trained for it and kept in `out`. Returns `reproduce.json`."""
    n_seeds, n_threads = whole("seeds", seeds if seeds is not None else (1 if quick else 3)), whole("n_threads", n_threads)
    with Bar(progress) as tell:
        found: dict[str, Any] = json.loads(_native.reproduce(out, list(claims), n_seeds, quick, n_threads, tell))
    return found
