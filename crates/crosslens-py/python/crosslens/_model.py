"""Models and recordings by path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, overload

from . import _native
from ._components import Estimator, Path, Shrinkage, Sums
from ._explanation import Explanation, Head
from ._native import SentenceError
from ._numbers import whole, whole_or_none
from ._progress import Bar, Progress

Texts: TypeAlias = "str | Sequence[str] | None"
_SEED = 1_000_003
_MOST_TOKENS = 2**16 - 1


@dataclass(frozen=True)
class Translation:
    """What a model wrote."""

    text: str
    tokens: list[int]
    score: float
    """Log probability, by length; NaN for a run whose sentences are all of one length, since nothing is searched for."""


def load(
    path: Path,
    *,
    self_attention: bool = False,
    source_language: str | None = None,
    target_language: str | None = None,
    device: str | None = None,
) -> Model:
    """Opens the folder of a run, a Hugging Face folder (Marian, BART, T5 and their kin), or a recording.

    With `self_attention`, heads of an encoder and a decoder that look at themselves are explained too, of a pretrained model or a Transformer
    trained here; other networks have none, and a recording has what was recorded. A multilingual model reads `source_language` and writes
    `target_language`, as it names them (`en_XX` of mBART, `en` of M2M100, `eng_Latn` of NLLB), or what its files say. A pretrained model computes
    on the CPU, or on `device`: `cuda`, `cuda:1` or `metal`, in a wheel that was built with that feature.
    """
    return Model(_native.Model(path, self_attention, source_language, target_language, device))


class Model:
    """Something whose attention can be explained."""

    def __init__(self, native: _native.Model) -> None:
        self._native = native

    @property
    def kind(self) -> str:
        """`run`, `pretrained`, `imported` or `recording`."""
        return self._native.kind

    @property
    def description(self) -> str:
        """What it is, in words."""
        return self._native.description

    @property
    def device_trouble(self) -> str | None:
        """Why a device left products to the CPU, in its own words; `None` where it made all. What was found is right, and took longer."""
        return self._native.device_trouble

    @property
    def sites(self) -> list[tuple[str, int, int]]:
        """Kind, layer and head of every attention head that is explained."""
        return self._native.sites()

    def explain(
        self,
        src: Texts = None,
        tgt: Texts = None,
        *,
        corpus: Path | None = None,
        n_sentences: int | None = None,
        seed: int = _SEED,
        components: Sums | None = None,
        control: bool = False,
        estimator: Estimator = "paper",
        shrinkage: Shrinkage = None,
        held_out: bool | None = None,
        k: int = 1,
        bootstrap: int = 0,
        step_intervals: bool = True,
        causal: int = 1000,
        rerun: Literal["recorded", "live", "free"] = "recorded",
        samples: int = 8,
        rank: Literal["drift", "coverage", "entropy", "loss"] | None = None,
        geometry: bool = False,
        subset: str | Sequence[str] = (),
        n_threads: int = 0,
        progress: Progress = None,
    ) -> Explanation:
        """Says how the model forms its attention, over sentences.

        These are `src` (with `tgt`, or else what the model writes by itself), the lines of `corpus`, or the model's own: a run draws
        `n_sentences` fresh ones of its task, 1000 unless given, a recording has its own; of any other the first `n_sentences` are taken, all
        unless given. `components` are sums to fit from (`Model.fit`) instead of those of the sentences explained; `held_out` fits on one half of
        the sentences and explains the other, as is done with a `corpus` of models that were not trained here, from four sentences on, unless
        it is `False`. The options are those of `crosslens explain`; `bootstrap` resamples give 95 % intervals, of shares by step too unless `step_intervals` is off; `causal`
        sentences are run again with attention changed, and attention is rebuilt from each `subset` of the pieces of scores, such as
        `"tt,ti"`. One sentence alone, of a model that has no task, shows attention and scores, but not what they
        are made of: a warning in the report says so.
        """
        n_sentences, seed = whole_or_none("n_sentences", n_sentences), whole("seed", seed)
        options: dict[str, object] = {
            "estimator": estimator,
            "shrinkage": shrinkage,
            "k": k,
            "bootstrap": bootstrap,
            "step_intervals": step_intervals,
            "seed": seed,
            "causal": causal,
            "rerun": rerun,
            "samples": samples,
            "rank": rank,
            "geometry": geometry,
            "subset": [subset] if isinstance(subset, str) else list(subset),
            "n_threads": n_threads,
        }
        if held_out is not None:
            options["held_out"] = held_out
        with Bar(progress) as tell:
            sums = None if components is None else components._sums
            return Explanation(
                self._native.explain(_pairs(src, tgt), corpus, n_sentences, seed, sums, control, options, tell)
            )

    def heads(
        self,
        corpus: Path | None = None,
        *,
        src: Texts = None,
        tgt: Texts = None,
        n_sentences: int | None = None,
        bootstrap: int = 100,
        causal: int = 200,
        seed: int = _SEED,
        n_threads: int = 0,
        progress: Progress = None,
    ) -> list[Head]:
        """The atlas: every head with what drives it. Components are fitted on one half of the sentences, heads explained on the other."""
        return self.explain(
            src,
            tgt,
            corpus=corpus,
            n_sentences=n_sentences,
            held_out=True,
            bootstrap=bootstrap,
            step_intervals=False,
            causal=causal,
            seed=seed,
            n_threads=n_threads,
            progress=progress,
        ).heads

    def fit(
        self,
        src: Texts = None,
        tgt: Texts = None,
        *,
        corpus: Path | None = None,
        n_sentences: int | None = None,
        seed: int = _SEED,
        shard: tuple[int, int] = (1, 1),
        n_threads: int = 0,
        progress: Progress = None,
    ) -> Sums:
        """Sums the states of sentences, or of one shard of them, `(number, of)` counted from 1; sums of all shards add up."""
        n_sentences, seed, n_threads = whole_or_none("n_sentences", n_sentences), whole("seed", seed), whole("n_threads", n_threads)
        shard = (whole("shard", shard[0], 1), whole("shard", shard[1], 1))
        with Bar(progress) as tell:
            return Sums(self._native.fit(_pairs(src, tgt), corpus, n_sentences, seed, shard, n_threads, tell))

    def record(
        self,
        path: Path,
        src: Texts = None,
        tgt: Texts = None,
        *,
        corpus: Path | None = None,
        n_sentences: int | None = None,
        seed: int = _SEED,
        keep_attention: int = 100,
        overwrite: bool = False,
        n_threads: int = 0,
        progress: Progress = None,
    ) -> Model:
        """Records states, tokens and score maps to a folder, with the attention of the first `keep_attention` sentences; opens it."""
        n_sentences, seed, n_threads = whole_or_none("n_sentences", n_sentences), whole("seed", seed), whole("n_threads", n_threads)
        kept = whole("keep_attention", keep_attention)
        with Bar(progress) as tell:
            self._native.record(path, _pairs(src, tgt), corpus, n_sentences, seed, kept, overwrite, n_threads, tell)
        return load(path)

    @overload
    def translate(
        self,
        text: str,
        *,
        beams: int | None = None,
        n_best: int = 1,
        max_tokens: int | None = None,
        length_penalty: float | None = None,
        progress: Progress = None,
    ) -> list[Translation]: ...

    @overload
    def translate(
        self,
        text: list[str] | tuple[str, ...],
        *,
        beams: int | None = None,
        n_best: int = 1,
        max_tokens: int | None = None,
        length_penalty: float | None = None,
        progress: Progress = None,
    ) -> list[list[Translation]]: ...

    def translate(
        self,
        text: str | list[str] | tuple[str, ...],
        *,
        beams: int | None = None,
        n_best: int = 1,
        max_tokens: int | None = None,
        length_penalty: float | None = None,
        progress: Progress = None,
    ) -> list[Translation] | list[list[Translation]]:
        """What it writes for a text, the best first, or for each of several; options that are not given are those in the model's files, of a
        run those of `crosslens translate`.
        """
        beams, n_best = whole_or_none("beams", beams, 1), whole("n_best", n_best, 1)
        max_tokens = whole_or_none("max_tokens", max_tokens, 1, _MOST_TOKENS)
        texts = [text] if isinstance(text, str) else list(text)
        with Bar(False if isinstance(text, str) and progress is None else progress) as tell:
            written = self._native.translate(texts, beams, n_best, max_tokens, length_penalty, tell)
        found = [[Translation(*one) for one in of_text] for of_text in written]
        return found[0] if isinstance(text, str) else found

    def __repr__(self) -> str:
        return f"Model({self.kind}: {self.description})"


def _pairs(src: Texts, tgt: Texts) -> list[tuple[str, str | None]] | None:
    if src is None:
        if tgt is not None:
            raise SentenceError("a target needs its source")
        return None
    sources = [src] if isinstance(src, str) else list(src)
    if tgt is None:
        return [(source, None) for source in sources]
    targets = [tgt] if isinstance(tgt, str) else list(tgt)
    if len(sources) != len(targets):
        raise SentenceError(f"there are {len(sources)} sources and {len(targets)} targets")
    return list(zip(sources, targets, strict=True))
