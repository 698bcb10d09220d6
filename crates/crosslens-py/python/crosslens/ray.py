"""A corpus spread over many machines by Ray Data.

The sums of parts of a corpus add up, so two passes over blocks of it give what one machine would find: sums, then share totals. Blocks have a
fixed number of rows and are added in the order of the corpus, whichever worker made them: the result does not depend on the number of workers.
Ray runs a block again whose worker died.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import ray
import ray.data

from . import _native
from ._explanation import Explanation
from ._native import ArrayError

__all__ = ["explain"]

Columns: TypeAlias = Mapping[str, Any]
MakeModel: TypeAlias = Callable[[], Any]
MakeArguments: TypeAlias = Callable[[Columns], Mapping[str, Any]]


def explain(
    model: MakeModel | str | os.PathLike[str],
    dataset: ray.data.Dataset,
    *,
    arguments: MakeArguments | None = None,
    rows: int = 512,
    batch_size: int = 16,
    workers: int = 2,
    num_cpus: float = 1,
    num_gpus: float = 0,
    **options: Any,
) -> Explanation:
    """Explains a PyTorch model over a dataset.

    `model` makes the model, in each worker, or names a Hugging Face folder; `arguments` makes what it is called with from columns of a few
    rows; with a folder these are the columns `source` and `target`, in its tokenizer's tokens. `rows` of the dataset make a block, whose totals
    are carried to the others; the result depends on it only by rounding, and not at all on `workers`. Further options are those of
    `crosslens.torch.record`.
    """
    make, make_arguments = _from_folder(os.fspath(model)) if isinstance(model, (str, os.PathLike)) else (model, arguments)
    make_arguments = arguments or make_arguments
    if make_arguments is None:
        raise ArrayError("arguments= is missing: a function from columns to what the model is called with")
    if rows < 1 or batch_size < 1:
        raise ArrayError("a block has at least one row, and so has a batch")
    job = ray.put({"make": make, "arguments": make_arguments, "batch_size": batch_size, "options": options, "n_threads": int(max(1, num_cpus))})
    blocks = dataset.repartition(target_num_rows_per_block=rows, strict=True)
    context = ray.data.DataContext.get_current()
    before = context.execution_options.preserve_order
    context.execution_options.preserve_order = True
    try:

        def run(totals: Any) -> list[dict[str, Any]]:
            mapped = blocks.map_batches(
                _Worker,
                fn_constructor_args=(job, totals),
                batch_size=None,
                batch_format="numpy",
                compute=ray.data.ActorPoolStrategy(size=workers),
                num_cpus=num_cpus,
                num_gpus=num_gpus,
            )
            return [dict(row) for row in mapped.iter_rows()]

        first = run(None)
        if not first:
            raise ArrayError("the dataset has no rows")
        described = ray.put(first[0]["described"])
        summed = _reduced(_merge_first, described, [ray.put((row["sums"], row["averages"])) for row in first])
        second = run((described, summed))
        split = _reduced(_merge_second, described, [ray.put(row["shares"]) for row in second])
        description, how = _rebuilt(ray.get(described))
        sums, averages = ray.get(summed)
        return Explanation(
            _native.conclude(
                _native.First.from_parts(description, how, sums, averages),
                _native.Second.from_json(description, how, ray.get(split)),
                None,
                "a dataset on Ray",
            )
        )
    finally:
        context.execution_options.preserve_order = before


class _Worker:
    """Runs the model over blocks: for sums, or, where the sums of all are known, for share totals."""

    def __init__(self, job: Any, totals: Any) -> None:
        found = ray.get(job)
        self._job = found
        self._model = found["make"]()
        self._totals = None if totals is None else (ray.get(totals[0]), ray.get(totals[1]))

    def __call__(self, columns: Columns) -> dict[str, Any]:
        from .torch import Recorder, record

        options = {**self._job["options"], "keep": 0, "n_threads": self._job["n_threads"]}
        recorder: Recorder = record(self._model, **options)
        if self._totals is None:
            with recorder:
                self._run(columns)
            sums, averages = recorder._parts()
            return {"described": _objects([recorder._described()]), "sums": _objects([sums]), "averages": _objects([averages])}
        described, (sums, averages) = self._totals
        with recorder._second_of(_native.First.from_parts(*_rebuilt(described), sums, averages)):
            self._run(columns)
        return {"shares": _objects([recorder._second_json()])}

    def _run(self, columns: Columns) -> None:
        import torch

        device = next((parameter.device for parameter in self._model.parameters()), torch.device("cpu"))
        for part in _parts(columns, self._job["batch_size"]):
            given = self._job["arguments"](part)
            with torch.no_grad():
                self._model(**{name: value.to(device) if torch.is_tensor(value) else value for name, value in given.items()})


def _parts(columns: Columns, size: int) -> Iterator[Columns]:
    n_rows = len(next(iter(columns.values())))
    for first in range(0, n_rows, size):
        yield {name: values[first : first + size] for name, values in columns.items()}


def _objects(values: list[Any]) -> Any:
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def _rebuilt(described: Any) -> tuple[_native.Description, dict[str, Any]]:
    """A description from the calls that made it, and the options it is explained under."""
    calls, options = described
    description = _native.Description(*calls[0][1])
    for name, arguments in calls[1:]:
        getattr(description, name)(*arguments)
    return description, options


def _reduced(merge: Any, described: Any, totals: list[Any]) -> Any:
    """A tree over neighbours: its shape depends on their number alone."""
    while len(totals) > 1:
        pairs = [totals[place : place + 2] for place in range(0, len(totals), 2)]
        totals = [merge.remote(described, *pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return totals[0]


@ray.remote
def _merge_first(described: Any, left: Any, right: Any) -> tuple[bytes, str]:
    description, options = _rebuilt(described)
    merged = _native.First.from_parts(description, options, *left)
    merged.merge(_native.First.from_parts(description, options, *right))
    return merged.parts()


@ray.remote
def _merge_second(described: Any, left: str, right: str) -> str:
    description, options = _rebuilt(described)
    merged = _native.Second.from_json(description, options, left)
    merged.merge(_native.Second.from_json(description, options, right))
    return merged.to_json()


def _from_folder(folder: str) -> tuple[MakeModel, MakeArguments]:
    """A Hugging Face folder: how its model is made and what it is called with."""

    def make() -> Any:
        import transformers

        return transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()

    def arguments(columns: Columns) -> Mapping[str, Any]:
        import transformers

        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        sources, targets = ([str(text) for text in columns[name]] for name in ("source", "target"))
        batch = dict(tokenizer(sources, return_tensors="pt", padding=True, return_token_type_ids=False))
        labels = tokenizer(text_target=targets, return_tensors="pt", padding=True)["input_ids"]
        batch["labels"] = labels.masked_fill(labels == tokenizer.pad_token_id, -100)
        return batch

    return make, arguments
