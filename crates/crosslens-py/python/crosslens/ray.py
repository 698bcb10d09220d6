"""A corpus spread over many machines by Ray.

The sums of parts of a corpus add up, so two passes over blocks of it give what one machine would find: sums, then share totals. Ray Data reads
the corpus and cuts it into blocks of a fixed number of rows; workers turn blocks into totals, which tasks add along a tree. The tree depends on
the number of blocks alone, and sentences are numbered by their place in the corpus: the result does not depend on the number of workers. Totals
stay in Ray's object store; the driver holds references to some and fetches the last one. Ray runs a block again whose worker died.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import ray
import ray.data

from . import _native
from ._explanation import Explanation
from ._native import ArrayError, MergeError
from ._options import NOT_SPREAD, refuse
from ._progress import Bar, Progress

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
    progress: Progress = None,
    **options: Any,
) -> Explanation:
    """Explains a PyTorch model over a dataset.

    `model` makes the model, in each worker, or names a Hugging Face folder; where `num_gpus` asks for one it is moved to the GPU. `arguments`
    makes what it is called with from columns of a few rows; with a folder these are the columns `source` and `target`, in its tokenizer's
    tokens. `rows` of the dataset make a block, whose totals are carried to the others; the result depends on it only by rounding, and not at all
    on `workers`. `progress` counts rows: `recording` in the first pass, of a number that is not known yet, `splitting` in the second. Further
    options are those of `crosslens.torch.record`, but for what needs single sentences in one place.

    What a block raises ends the pass at once: `crosslens.ArrayError` where a sentence has no token, for instance.
    """
    make, make_arguments = _from_folder(os.fspath(model)) if isinstance(model, (str, os.PathLike)) else (model, arguments)
    make_arguments = arguments or make_arguments
    if make_arguments is None:
        raise ArrayError("arguments= is missing: a function from columns to what the model is called with")
    if min(rows, batch_size, workers) < 1:
        raise ArrayError("a block has at least one row, and so has a batch; there is at least one worker")
    refuse(options, NOT_SPREAD, "crosslens.ray.explain")
    job = {
        "make": make,
        "arguments": make_arguments,
        "batch_size": batch_size,
        "options": {**options, "keep": 0, "n_threads": int(max(1, num_cpus))},
        "device": "cuda" if num_gpus > 0 else None,
    }
    # A worker that dies is started again, and what it was at is asked of it again, some times: a block that kills it each time is an error.
    actors: Any = _Worker
    worker = actors.options(num_cpus=num_cpus, num_gpus=num_gpus, max_restarts=8, max_task_retries=3)

    def started() -> list[Any]:
        return [worker.remote(job) for _ in range(workers)]

    first: list[Any] = []
    hashes: set[str] = set()

    def sums(worker: Any, block: Any, number: int) -> tuple[Any, Any]:
        model_hash, described, totals = worker.sums.remote(block, number, not first)
        if not first:
            first.append(described)
        return model_hash, totals

    with Bar(progress) as tell:

        def told(what: str, n_rows: int, total: int) -> None:
            if tell is not None:
                tell(what, n_rows, total)

        def summed_up(model_hash: str, n_rows: int) -> None:
            hashes.add(model_hash)
            _compare(*hashes)
            told("recording", n_rows, 0)

        n_rows, summed = _reduced(dataset, rows, started(), sums, lambda *pair: _merge_first.remote(first[0], *pair), summed_up)
        if summed is None:
            raise ArrayError("the dataset has no rows")
        described = first[0]
        # References within a list: each worker fetches what they stand for once, and not with every block.
        whole = [described, summed]
        _, split = _reduced(
            dataset,
            rows,
            started(),
            lambda worker, block, number: worker.shares.remote(whole, block, number),
            lambda *pair: _merge_second.remote(described, *pair),
            lambda _, n_split: told("splitting", n_split, n_rows),
        )
    found = ray.get(described)
    description, how = _rebuilt(found)
    second = _native.Second.from_json(description, how, ray.get(split))
    return Explanation(_native.conclude(_first_of(found, ray.get(summed)), second, None, "a dataset on Ray"))


def _reduced(
    dataset: ray.data.Dataset,
    rows: int,
    workers: list[Any],
    run: Callable[[Any, Any, int], tuple[Any, Any]],
    merge: Callable[..., Any],
    done: Callable[[Any, int], None],
) -> tuple[int, Any]:
    """How many rows there are and a reference to the totals of all blocks; `None` where there is no block.

    `run` gives references to a word about a block, small, and to its totals. As soon as a block is done the word is fetched, which raises what
    the block did, and `done` is told it and the rows of all blocks that are done. Totals of neighbours are added as soon as there are two of as
    many blocks each, as in a binary counter: at any time the driver has references to a few totals, not to all of them.
    """
    free = list(workers)
    busy: dict[Any, tuple[Any, int]] = {}
    tree: list[tuple[int, Any]] = []
    number = n_done = 0

    def wait() -> None:
        nonlocal n_done
        for word in ray.wait(list(busy), num_returns=1)[0]:
            worker, n_rows = busy.pop(word)
            free.append(worker)
            n_done += n_rows
            done(ray.get(word), n_done)

    for block, n_rows in _blocks(dataset, rows):
        if not free:
            wait()
        worker = free.pop()
        word, totals = run(worker, block, number)
        busy[word] = worker, n_rows
        number += n_rows
        size = 1
        while tree and tree[-1][0] == size:
            totals, size = merge(tree.pop()[1], totals), 2 * size
        tree.append((size, totals))
    while busy:
        wait()
    while len(tree) > 1:
        (_, right), (_, left) = tree.pop(), tree.pop()
        tree.append((0, merge(left, right)))
    if not tree:
        return 0, None
    # Workers live until nothing that they made can be asked for again.
    ray.wait([tree[0][1]], fetch_local=False)
    return number, tree[0][1]


def _blocks(dataset: ray.data.Dataset, rows: int) -> Iterator[tuple[Any, int]]:
    """References to blocks of so many rows, the last of fewer, in the order of the corpus, and their numbers of rows."""
    blocks = dataset.repartition(target_num_rows_per_block=rows, strict=True)
    # A dataset has taken its options from where it was made: the current ones change nothing any more.
    options = blocks.context.execution_options
    before, options.preserve_order = options.preserve_order, True
    try:
        for bundle in blocks.iter_internal_ref_bundles():
            for entry in bundle.blocks:
                if entry.metadata.num_rows:
                    yield entry.ref, entry.metadata.num_rows
    finally:
        options.preserve_order = before


@ray.remote
class _Worker:
    """Runs the model over blocks: for sums, or, where the sums of all are known, for share totals."""

    def __init__(self, job: Any) -> None:
        self._job = job
        self._model: Any = None
        self._recorder: Any = None
        self._first: _native.First | None = None

    @ray.method(num_returns=3)
    def sums(self, block: Any, number: int, is_asked: bool) -> tuple[str, Any, Any]:
        """The model's hash; what it is, if that is asked; and the sums of a block whose first sentence has this number."""
        recorder = self._ready()
        with recorder._from(number):
            self._run(block)
        described = recorder._described()
        model_hash = _hash_of(described)
        return model_hash, described if is_asked else None, (model_hash, *recorder._parts())

    @ray.method(num_returns=2)
    def shares(self, whole: list[Any], block: Any, number: int) -> tuple[None, str]:
        """The share totals of the same block, under the sums of all: `whole` refers to what the model is and to these."""
        recorder = self._ready()
        if self._first is None:
            described, summed = ray.get(whole)
            _compare(_hash_of(described), recorder._hash())
            self._first = _first_of(described, summed)
        with recorder._second_of(self._first, number):
            self._run(block)
        return None, str(recorder._second_json())

    def _ready(self) -> Any:
        """The recorder; made with the first block and not with the worker, so that what is wrong with the model is an error of its own kind."""
        if self._recorder is None:
            from .torch import record

            self._model = _placed(self._job["make"](), self._job["device"])
            self._recorder = record(self._model, **self._job["options"])
        return self._recorder

    def _run(self, block: Any) -> None:
        import torch

        from ray.data.block import BlockAccessor

        columns: Columns = BlockAccessor.for_block(block).to_batch_format("numpy")
        device = next((parameter.device for parameter in self._model.parameters()), torch.device("cpu"))
        for part in _parts(columns, self._job["batch_size"]):
            given = self._job["arguments"](part)
            with torch.no_grad():
                self._model(**{name: value.to(device) if torch.is_tensor(value) else value for name, value in given.items()})


def _placed(model: Any, device: str | None) -> Any:
    return model if device is None else model.to(device)


def _parts(columns: Columns, size: int) -> Iterator[Columns]:
    n_rows = len(next(iter(columns.values())))
    for first in range(0, n_rows, size):
        yield {name: values[first : first + size] for name, values in columns.items()}


def _rebuilt(described: Any) -> tuple[_native.Description, dict[str, Any]]:
    """A description from the calls that made it, and the options it is explained under."""
    calls, options = described
    description = _native.Description(*calls[0][1])
    for name, arguments in calls[1:]:
        getattr(description, name)(*arguments)
    return description, options


def _hash_of(described: Any) -> str:
    """The hash of a model that was described."""
    calls, _ = described
    return str(calls[0][1][1])


def _compare(*hashes: str) -> None:
    """Refuses blocks of two models."""
    found = sorted(set(hashes))
    if len(found) > 1:
        raise MergeError(
            f"workers ran two models, {found[0]} and {found[1]}: what makes the model must give it the same weights in every worker, from a file or "
            "after torch.manual_seed"
        )


def _first_of(described: Any, totals: Any) -> _native.First:
    """Totals of the first pass, which must be of the model that was described."""
    model_hash, *parts = totals
    _compare(_hash_of(described), model_hash)
    return _native.First.from_parts(*_rebuilt(described), *parts)


@ray.remote
def _merge_first(described: Any, left: Any, right: Any) -> tuple[str, bytes, bytes | None, str]:
    merged = _first_of(described, left)
    merged.merge(_first_of(described, right))
    return _hash_of(described), *merged.parts()


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

    return make, _Reading(folder)


class _Reading:
    """What the model of a folder is called with; its tokenizer is read once in each worker."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._tokenizer: Any = None

    def __call__(self, columns: Columns) -> Mapping[str, Any]:
        if self._tokenizer is None:
            import transformers

            self._tokenizer = transformers.AutoTokenizer.from_pretrained(self._folder)
        tokenizer = self._tokenizer
        sources, targets = ([str(text) for text in columns[name]] for name in ("source", "target"))
        batch = dict(tokenizer(sources, return_tensors="pt", padding=True, return_token_type_ids=False))
        wanted = tokenizer(text_target=targets, return_tensors="pt", padding=True, return_attention_mask=True)
        # Not by the token that pads, which may be the one that ends.
        batch["labels"] = wanted["input_ids"].masked_fill(wanted["attention_mask"] == 0, -100)
        return batch
