"""What was found, as a value."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from pathlib import Path as FilePath
from typing import Any, Literal, NamedTuple, TypeAlias

from . import _native
from ._arrays import Doubles, Floats
from ._components import Path
from ._native import CrosslensError, ExplainError, FileError
from ._numbers import whole
from ._progress import in_notebook

Kind: TypeAlias = Literal["cross", "encoder-self", "decoder-self"]
Table: TypeAlias = "dict[str, list[Any]]"


class Part(IntEnum):
    """Parts of a state, in the order of every table."""

    TEMPORAL = 0
    INPUT = 1
    RESIDUAL = 2


class Words(NamedTuple):
    """The tokens of one sentence, as text."""

    source: list[str]
    fed: list[str]
    """What the decoder read."""
    predicted: list[str]
    """What it found likeliest at each step."""
    target: list[str] | None


@dataclass(frozen=True)
class Site:
    """One attention head and what drives it."""

    kind: Kind
    layer: int
    head: int
    map: str
    """How scores are formed: `dot`, `scaled-dot`, `general`, `projected` or `additive`."""
    verdict: str
    text: str


@dataclass(frozen=True)
class Head:
    """One head of the atlas, labelled by the rules of `docs/heads.md`."""

    kind: Kind
    layer: int
    head: int
    label: str
    """`positional`, `token-matching`, `sink`, `residual`, `mixed` or `unknown`."""
    positional: float
    token: float
    sink: float
    residual: float
    entropy: float
    agreement: float
    diagonal: float | None
    effect: dict[str, float] | None
    """What the model loses, nats a token; `None` where it was not run again."""
    verdict: str


class Explanation:
    """How a model's attention is made, over a corpus and in single sentences. A value: nothing changes it."""

    def __init__(self, native: _native.Explanation) -> None:
        self._native = native

    @classmethod
    def load(cls, path: Path) -> Explanation:
        """Reads a report that `save` or `crosslens explain --save` wrote, with the sentences beside it."""
        return cls(_native.Explanation.load(path))

    def save(self, path: Path) -> None:
        """Writes `report.json` and, beside it, `report.samples.safetensors`."""
        self._native.save(path)

    @cached_property
    def report(self) -> dict[str, Any]:
        """Everything that was found, as `docs/report.schema.json` describes it."""
        found: dict[str, Any] = json.loads(self._native.report_json())
        return found

    @cached_property
    def sites(self) -> list[Site]:
        """Every head."""
        return [
            Site(site["kind"], site["layer"], site["head"], site["map"], site["verdict"]["label"], site["verdict"]["text"])
            for site in self.report["sites"]
        ]

    @cached_property
    def heads(self) -> list[Head]:
        """Every head with its label."""
        found = json.loads(self._native.heads_json())
        return [
            Head(
                kind=head["kind"],
                layer=head["layer"],
                head=head["head"],
                label=head["label"],
                **{name: head["shares"][name] for name in ("positional", "token", "sink", "residual")},
                entropy=head["entropy"],
                agreement=head["agreement"],
                diagonal=head["diagonal"],
                effect=head["effect"],
                verdict=head["verdict"],
            )
            for head in found
        ]

    @property
    def n_sentences(self) -> int:
        """Sentence pairs explained."""
        return int(self.report["corpus"]["pairs"])

    # Shares of the corpus.

    @property
    def shares(self) -> tuple[Doubles, ...]:
        """Centred shares of cross-attention, `[layer][head, query part, key part]`; see `shares_of`."""
        return self.shares_of("cross")

    def shares_of(self, kind: Kind = "cross", measure: str = "centred") -> tuple[Doubles, ...]:
        """By layer, `[head, query part, key part]`; NaN where the pieces of a head do not add up.

        An additive score has six parts and no pairs: `[head, side, part]`, the query's side first.
        """
        import numpy as np

        layers: list[Doubles] = []
        for sites in self._layers(kind):
            layers.append(np.stack([self._share(self.report["sites"][site], measure) for site in sites]))
        return tuple(layers)

    def _share(self, site: dict[str, Any], measure: str) -> Doubles:
        import numpy as np

        shares = site["shares"]
        additive = site["map"] == "additive"
        if shares is None:
            return np.full((2, 3) if additive else (3, 3), np.nan)
        tables = shares["parts"] if additive else shares
        if measure not in tables:
            raise ExplainError(f"there is no measure `{measure}`: there are {', '.join(name for name in tables if name[:3] in ('top', 'cen'))}")
        table = tables[measure]
        return np.array([table["query"], table["key"]] if additive else table, dtype=np.float64)

    # Single sentences.

    @property
    def n_samples(self) -> int:
        """Sentences kept in full."""
        return self._native.n_samples

    def words(self, sample: int) -> Words:
        """The tokens of one of them."""
        return Words(*self._native.words(whole("sample", sample)))

    @property
    def attentions(self) -> tuple[Floats, ...]:
        """Cross-attention of the sentences kept, `[layer][batch, head, target, source]` as in Hugging Face's `cross_attentions`.

        Shorter sentences are padded with zeros.
        """
        return self._attention("cross")

    @property
    def cross_attentions(self) -> tuple[Floats, ...]:
        """The same."""
        return self._attention("cross")

    @property
    def encoder_attentions(self) -> tuple[Floats, ...]:
        """`[layer][batch, head, source, source]`; empty unless the model was opened with `self_attention=True`."""
        return self._attention("encoder-self")

    @property
    def decoder_attentions(self) -> tuple[Floats, ...]:
        """`[layer][batch, head, target, target]`."""
        return self._attention("decoder-self")

    @property
    def terms(self) -> tuple[Floats, ...]:
        """The pieces of every cross-attention score, `[layer][batch, head, term, target, source]`; see `terms_of`."""
        return self.terms_of("cross")

    def terms_of(self, kind: Kind = "cross") -> tuple[Floats, ...]:
        """Nine terms, `3·query part + key part`, or the six parts of an additive score. With `bias_of` they add up to the score."""
        return tuple(self._padded(sites, 1) for sites in self._layers(kind))

    def bias_of(self, kind: Kind = "cross") -> tuple[Floats, ...]:
        """The bias of positions, `[layer][batch, head, query, key]`; zero where a head has none."""
        return tuple(self._padded(sites, 2) for sites in self._layers(kind))

    def _attention(self, kind: Kind) -> tuple[Floats, ...]:
        return tuple(self._padded(sites, 0) for sites in self._layers(kind))

    def _layers(self, kind: str) -> list[list[int]]:
        """The places of a kind's sites by layer, heads ascending."""
        layers: dict[int, list[int]] = {}
        for place, site in enumerate(self.report["sites"]):
            if site["kind"] == kind:
                layers.setdefault(site["layer"], []).append(place)
        by_head = lambda place: self.report["sites"][place]["head"]  # noqa: E731
        return [sorted(layers[layer], key=by_head) for layer in sorted(layers)]

    def _padded(self, sites: list[int], what: int) -> Floats:
        import numpy as np

        matrices = [[self._native.matrices(sample, site) for site in sites] for sample in range(self.n_samples)]
        shapes = [heads[0][0].shape for heads in matrices]
        n_queries, n_keys = (max((shape[axis] for shape in shapes), default=0) for axis in (0, 1))
        is_additive = self.report["sites"][sites[0]]["map"] == "additive"
        pieces = (6 if is_additive else 9,) if what == 1 else ()
        padded = np.zeros((len(matrices), len(sites), *pieces, n_queries, n_keys), dtype=np.float32)
        for sample, heads in enumerate(matrices):
            for head, found in enumerate(heads):
                matrix = found[what]
                if matrix is not None:
                    padded[sample, head, ..., : matrix.shape[-2], : matrix.shape[-1]] = matrix
        return padded

    # Tables.

    def table(self) -> Table:
        """One row for each head, measure and piece: `kind, layer, head, label, measure, query, key, share`, as columns."""
        columns: Table = {name: [] for name in ("kind", "layer", "head", "label", "measure", "query", "key", "share")}
        for site, head in zip(self.report["sites"], self.heads, strict=True):
            if site["shares"] is None:
                continue
            additive = site["map"] == "additive"
            tables = site["shares"]["parts"] if additive else site["shares"]
            for measure, found in tables.items():
                if measure in ("position_bias", "position_bias_top", "query_mean", "parts"):
                    continue
                for query, key, share in _pieces(found, additive):
                    row = (site["kind"], site["layer"], site["head"], head.label, measure, query, key, share)
                    for column, value in zip(columns.values(), row, strict=True):
                        column.append(value)
        return columns

    def to_dataframe(self) -> Any:
        """`table` as a frame of pandas or, where that is not installed, of polars; else as an Arrow table."""
        for library, make in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "table")):
            try:
                module = __import__(library)
            except ImportError:
                continue
            return getattr(module, make)(self.table())
        raise CrosslensError("a frame needs pandas, polars or pyarrow, none of which is installed: pip install pandas; table() needs none of them")

    # Looking at it.

    def html(self, name: str = "Crosslens") -> str:
        """The page that shows it: one file that needs no network."""
        return self._native.html(name)

    def _repr_html_(self) -> str:
        page = html.escape(self.html(), quote=True)
        style = "width: 100%; height: 720px; border: 1px solid #ccc"
        return f'<iframe srcdoc="{page}" sandbox="allow-scripts allow-downloads" style="{style}" title="Crosslens"></iframe>'

    def show(self, path: Path | None = None) -> None:
        """Shows it in the notebook cell, or in a browser; the page is written to `path`, or else to a temporary file."""
        import tempfile
        import webbrowser

        if path is None and in_notebook():
            from IPython.display import display

            display(self)  # type: ignore[no-untyped-call, unused-ignore]
            return
        page = self.html()
        try:
            if path is None:
                with tempfile.NamedTemporaryFile("w", suffix=".html", prefix="crosslens-", encoding="utf-8", delete=False) as file:
                    file.write(page)
                    path = file.name
            else:
                FilePath(path).write_text(page, encoding="utf-8")
        except OSError as error:
            raise FileError(f"the page cannot be written to `{path or tempfile.gettempdir()}`: {error.strerror or error}") from error
        webbrowser.open(FilePath(path).resolve().as_uri())

    # As a value.

    def __add__(self, other: Explanation) -> Explanation:
        """The explanation of the sentences of both, where both were made with the same `components=` and options.

        Exactly so, but for what compares with average attention (`average_attention`, `rebuilt["average"]`): each was compared with the average
        of its own sentences. What untrained weights give (`control=`) is left out. From files and pickles nothing can be added.
        """
        if not isinstance(other, Explanation):
            return NotImplemented
        return Explanation(self._native.merged(other._native))

    def __reduce__(self) -> tuple[object, tuple[bytes, bytes]]:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = FilePath(folder) / "report.json"
            self.save(path)
            return _from_bytes, (path.read_bytes(), path.with_name("report.samples.safetensors").read_bytes())

    def __repr__(self) -> str:
        lines = [f"Explanation of {self.report['model']['description']} on {self.n_sentences} sentences"]
        for site in self.sites[:12]:
            lines.append(f"  {site.kind} {site.layer}.{site.head}: {site.text}")
        if len(self.sites) > 12:
            lines.append(f"  and {len(self.sites) - 12} more heads")
        return "\n".join(lines)


def _pieces(found: Any, additive: bool) -> list[tuple[str | None, str | None, float]]:
    names = [part.name.lower() for part in Part]
    if additive:
        query = [(name, None, share) for name, share in zip(names, found["query"], strict=True)]
        return query + [(None, name, share) for name, share in zip(names, found["key"], strict=True)]
    return [(names[row], names[column], found[row][column]) for row in range(3) for column in range(3)]


def _from_bytes(report: bytes, samples: bytes) -> Explanation:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = FilePath(folder) / "report.json"
        path.write_bytes(report)
        path.with_name("report.samples.safetensors").write_bytes(samples)
        return Explanation.load(path)
