"""The sums over states, and what is fitted from them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from . import _native
from ._arrays import ArrayLike, Counts, Doubles, Tokens, counts, floats, tokens, view
from ._native import ArrayError
from ._numbers import whole

Estimator: TypeAlias = Literal["paper", "joint"]
Shrinkage: TypeAlias = "float | Literal['auto'] | None"
Path: TypeAlias = "str | os.PathLike[str]"


@dataclass(frozen=True)
class Variance:
    """Shares of the states' variance; they add up to 1 under the joint estimator without shrinkage."""

    time: float
    """What only the step explains."""
    token: float
    """What only the token explains."""
    shared: float
    """What either explains; negative where the two hide each other."""
    rest: float
    """What neither explains."""


@dataclass(frozen=True, eq=False)
class Fit:
    """What states split into: `h = temporal[step] + input[token] + residual`."""

    temporal: Doubles
    """`[step, d]`."""
    tokens: Tokens
    """The tokens that have an input part, ascending."""
    input: Doubles
    """`[token, d]`, in the order of `tokens`."""
    mean: Doubles
    """The mean of the temporal parts over all states."""
    shrinkage: float
    condition: float | None
    """Of the joint system; `None` for the paper's estimator, which solves none."""
    variance: Variance

    def input_of(self, token: ArrayLike) -> Doubles:
        """The input part of each token, `[…, d]`; zero for one never seen."""
        import numpy as np

        asked = view(token, "token")
        if self.tokens.size == 0:
            return np.zeros((*asked.shape, self.input.shape[1]))
        places = np.clip(np.searchsorted(self.tokens, asked), 0, self.tokens.size - 1)
        known = self.tokens[places] == asked
        return np.where(known[..., None], self.input[places], 0.0)

    def residual(self, states: ArrayLike, tokens: ArrayLike) -> Doubles:
        """What neither step nor token explains of states `[…, step, d]` with tokens `[…, step]`."""
        import numpy as np

        found, of = view(states, "states"), view(tokens, "tokens")
        d = self.temporal.shape[1]
        if found.ndim < 2 or found.shape[-1] != d or found.dtype.kind not in "fiu":
            raise ArrayError(f"`states` is {list(found.shape)} of {found.dtype}: numbers in the shape […, step, {d}] were expected")
        if of.shape != found.shape[:-1] or of.dtype.kind not in "iu":
            raise ArrayError(f"`tokens` is {list(of.shape)} of {of.dtype}: whole numbers in the shape {list(found.shape[:-1])} were expected")
        steps = np.arange(found.shape[-2])
        reached = np.where(steps < len(self.temporal), steps, 0)
        temporal = np.where((steps < len(self.temporal))[:, None], self.temporal[reached], 0.0)
        return found.astype(np.float64) - temporal - self.input_of(of)


class Components:
    """Sums over the states of one stream, enough to fit every estimator; memory does not grow with the number of sentences.

    Sums of parts of a corpus merge, in one process or over many machines: `a + b`, `a.merge(b)`, pickled or through files.
    """

    __slots__ = ("_sums",)

    def __init__(self, d: int) -> None:
        self._sums = _native.StateSums(whole("d", d))

    @classmethod
    def _of(cls, sums: _native.StateSums) -> Components:
        made = cls.__new__(cls)
        made._sums = sums
        return made

    def add(self, states: ArrayLike, tokens: ArrayLike, lengths: ArrayLike | None = None) -> None:
        """Adds sentences: states `[sentence, step, d]` and the token each has consumed last, `[sentence, step]`.

        Of each sentence the first `lengths` steps count, all where that is not given. `float32` without gaps is read where it lies, from
        NumPy and, through DLPack, from torch or JAX on the CPU; Python runs on meanwhile.
        """
        import numpy as np

        found = floats(states, "states", 3)
        if lengths is None:
            lengths = np.full(found.shape[0], found.shape[1], dtype=np.uint64)
        self._sums.add(found, _tokens(tokens), counts(lengths, "lengths"))

    def merge(self, other: Components) -> None:
        """Adds what another one has summed."""
        self._sums.merge(other._sums)

    def __add__(self, other: Components) -> Components:
        if not isinstance(other, Components):
            return NotImplemented
        made = Components._of(self._sums.copy())
        made.merge(other)
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Components) and self._sums.is_same(other._sums)

    __hash__ = None  # type: ignore[assignment]

    def fit(self, estimator: Estimator = "paper", shrinkage: Shrinkage = None) -> Fit:
        """Fits temporal and input parts: the paper's way (step first) or jointly by least squares.

        `shrinkage` pulls rare tokens towards nothing, by so many observations or by as many as the data suggest (`"auto"`).
        """
        found = self._sums.fit(estimator, shrinkage)
        return Fit(
            temporal=found["temporal"],
            tokens=found["tokens"],
            input=found["input"],
            mean=found["mean"],
            shrinkage=found["shrinkage"],
            condition=found["condition"],
            variance=Variance(*found["variance"]),
        )

    def save(self, path: Path) -> None:
        """Writes a `*.stats.safetensors` file, which `crosslens merge` reads too."""
        self._sums.save(path)

    @classmethod
    def load(cls, path: Path, stream: str | None = None) -> Components:
        """Reads a file of sums; of a model's sums, one stream."""
        return cls._of(_native.StateSums.load(path, stream))

    @property
    def d(self) -> int:
        """Dimensions of a state."""
        return self._sums.d

    @property
    def n_states(self) -> int:
        """States added."""
        return self._sums.n_states

    @property
    def step_counts(self) -> Counts:
        """How often each step was reached."""
        return self._sums.step_counts()

    @property
    def token_counts(self) -> tuple[Tokens, Counts]:
        """The tokens seen, ascending, and how often."""
        return self._sums.token_counts()

    def __reduce__(self) -> tuple[object, tuple[bytes]]:
        return _components_from_bytes, (self._sums.to_bytes(),)

    def __repr__(self) -> str:
        sums = self._sums
        return f"Components(d={sums.d}: {sums.n_states} states, {sums.n_steps} steps, {sums.n_tokens} tokens)"


def _tokens(given: ArrayLike) -> Tokens:
    return tokens(given, "tokens", 2)


def _components_from_bytes(data: bytes) -> Components:
    return Components._of(_native.StateSums.from_bytes(data))


class Sums(Mapping[str, Components]):
    """The sums of all streams of one model, by name; what `Model.fit` makes and `components=` takes. They add up like `Components`."""

    __slots__ = ("_sums",)

    def __init__(self, sums: _native.ModelSums) -> None:
        self._sums = sums

    @classmethod
    def load(cls, path: Path) -> Sums:
        """Reads a `*.stats.safetensors` file, of `crosslens fit` or `crosslens merge` too."""
        return cls(_native.ModelSums.load(path))

    def save(self, path: Path) -> None:
        """Writes one."""
        self._sums.save(path)

    def __getitem__(self, stream: str) -> Components:
        if stream not in self._sums.streams:
            raise KeyError(stream)
        return Components._of(self._sums.stream(stream))

    def __iter__(self) -> Iterator[str]:
        return iter(self._sums.streams)

    def __len__(self) -> int:
        return len(self._sums.streams)

    def __add__(self, other: Sums) -> Sums:
        if not isinstance(other, Sums):
            return NotImplemented
        return Sums(self._sums.merged(other._sums))

    def __reduce__(self) -> tuple[object, tuple[bytes]]:
        return _sums_from_bytes, (self._sums.to_bytes(),)

    def __repr__(self) -> str:
        return f"Sums({', '.join(self)})"


def _sums_from_bytes(data: bytes) -> Sums:
    return Sums(_native.ModelSums.from_bytes(data))
