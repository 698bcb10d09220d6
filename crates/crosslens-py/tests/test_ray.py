"""A corpus over several workers, one of which dies."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
import ray
import torch_models as made

import crosslens
import crosslens.ray
import crosslens.torch

pytestmark = pytest.mark.heavy
N = 60


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    paths = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": paths}})
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bart")
    made.save(made.seq2seq("bart"), folder)
    return folder


def rows() -> list[dict[str, str]]:
    return [{"source": source, "target": target} for source, target in zip(*made.sentences(N), strict=True)]


def test_the_result_does_not_depend_on_workers_or_on_one_of_them_dying(folder: Path, tmp_path: Path) -> None:
    make, arguments = crosslens.ray._from_folder(str(folder))
    row = rows()[23]["source"]

    def dies_in_each_pass(columns: Any) -> Any:
        # Each pass has this row once, and once more after each death.
        if row in columns["source"]:
            n_seen = len(list(tmp_path.iterdir()))
            (tmp_path / f"seen.{n_seen}").write_text(str(os.getpid()))
            if n_seen in (0, 2):
                os.kill(os.getpid(), signal.SIGKILL)
        return arguments(columns)

    dataset = ray.data.from_items(rows())
    one = crosslens.ray.explain(folder, dataset, rows=10, workers=1)
    three = crosslens.ray.explain(make, dataset.repartition(7), arguments=dies_in_each_pass, rows=10, workers=3)
    assert len(list(tmp_path.iterdir())) == 4, "a worker was killed in each pass"
    assert one.n_sentences == three.n_sentences == N
    for a, b in zip(one.shares, three.shares, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)

    # And it is what one process finds, but for the order of sums.
    alone = crosslens.torch.explain(make(), made.batches(*made.sentences(N), 16))
    for a, b in zip(one.shares, alone.shares, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("n_rows", [N, 10])
def test_weights_that_differ_from_worker_to_worker_are_refused(folder: Path, n_rows: int) -> None:
    make, arguments = crosslens.ray._from_folder(str(folder))

    def unseeded() -> Any:
        model = make()
        model.get_encoder().layers[0].fc1.weight.data.normal_(0, 0.02)
        return model

    # Of ten rows there is one block: its second pass has another worker than the first.
    dataset = ray.data.from_items(rows()[:n_rows])
    with pytest.raises(crosslens.MergeError, match="the same weights in every worker"):
        crosslens.ray.explain(unseeded, dataset, arguments=arguments, rows=10, workers=2)


def test_halves_and_resamples_are_those_of_one_machine(folder: Path) -> None:
    options: dict[str, Any] = {"held_out": True, "bootstrap": 30, "seed": 5}
    spread = crosslens.ray.explain(folder, ray.data.from_items(rows()), rows=7, workers=2, **options)
    make, _ = crosslens.ray._from_folder(str(folder))
    alone = crosslens.torch.explain(make(), made.batches(*made.sentences(N), 16), **options)
    assert spread.n_sentences == alone.n_sentences < N
    assert spread.report["corpus"]["fitted_pairs"] == N - spread.n_sentences
    for a, b in zip(spread.report["sites"], alone.report["sites"], strict=True):
        np.testing.assert_allclose(a["shares"]["centred"], b["shares"]["centred"], atol=1e-5)
        np.testing.assert_allclose(a["intervals"]["centred"], b["intervals"]["centred"], atol=1e-4)


def test_blocks_are_of_one_size_and_in_order_however_the_dataset_is_cut() -> None:
    dataset = ray.data.range(45).repartition(4)
    blocks = list(crosslens.ray._blocks(dataset, 10))
    assert [n_rows for _, n_rows in blocks] == [10, 10, 10, 10, 5]
    read = [int(number) for block, _ in blocks for number in ray.get(block).to_pandas()["id"]]
    assert read == list(range(45))


def test_totals_are_added_along_a_tree_that_leaves_few_of_them() -> None:
    class Worker:
        def run(self, number: int) -> tuple[str, str]:
            return f"word {number}", str(number)

    def joined(left: str, right: str) -> str:
        return f"({left} {right})"

    def run(worker: Any, block: Any, number: int) -> Any:
        return worker.run.options(num_returns=2).remote(number)

    worker, merge = ray.remote(Worker), ray.remote(joined)
    workers = [worker.remote(), worker.remote()]
    words: list[str] = []
    counts: list[int] = []

    def done(word: str, n_rows: int) -> None:
        words.append(word)
        counts.append(n_rows)

    n_rows, root = crosslens.ray._reduced(ray.data.range(7), 1, workers, run, merge.remote, done)
    assert n_rows == 7 and ray.get(root) == "(((0 1) (2 3)) ((4 5) 6))"
    assert sorted(words) == [f"word {number}" for number in range(7)] and counts == list(range(1, 8))
    assert crosslens.ray._reduced(ray.data.range(0), 1, workers, run, merge.remote, done) == (0, None)


def test_a_dataset_that_is_read_otherwise_the_second_time_is_refused(folder: Path, tmp_path: Path) -> None:
    make, arguments = crosslens.ray._from_folder(str(folder))

    def shuffled_in_the_second_pass(columns: Any) -> Any:
        n_calls = len(list(tmp_path.iterdir()))
        (tmp_path / f"call.{n_calls}").touch()
        # A pass over 20 rows is two calls.
        return arguments(columns if n_calls < 2 else {name: values[::-1] for name, values in columns.items()})

    dataset = ray.data.from_items(rows()[:20])
    with pytest.raises(crosslens.ExplainError, match="other sentences than the first"):
        crosslens.ray.explain(make, dataset, arguments=shuffled_in_the_second_pass, rows=20, batch_size=10, workers=1)


def test_a_block_that_fails_ends_the_pass_at_once(folder: Path, tmp_path: Path) -> None:
    make, arguments = crosslens.ray._from_folder(str(folder))
    first = rows()[0]["source"]

    run, reached = tmp_path / "run", tmp_path / "reached"
    run.mkdir()

    def without_a_token(columns: Any) -> Any:
        (run / str(abs(hash(columns["source"][0])))).touch()
        batch = arguments(columns)
        if first in columns["source"]:
            batch["attention_mask"][0] = 0
            reached.touch()
            return batch
        # Workers start in any order: the others wait until the first block is reached, and are slow enough to be stopped.
        until = time.monotonic() + 30
        while not reached.exists() and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.3)
        return batch

    with pytest.raises(crosslens.ArrayError, match="without a token"):
        crosslens.ray.explain(make, ray.data.from_items(rows()), arguments=without_a_token, rows=1, workers=2)
    assert len(list(run.iterdir())) < N // 2, "blocks after it were not run for nothing"


def test_progress_is_told_in_rows(folder: Path) -> None:
    told: list[tuple[str, int, int]] = []
    crosslens.ray.explain(folder, ray.data.from_items(rows()), rows=20, workers=1, progress=lambda *what: told.append(what))
    assert told == [*(("recording", n, 0) for n in (20, 40, 60)), *(("splitting", n, N) for n in (20, 40, 60))]


def test_a_worker_fetches_the_sums_of_all_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, arguments = crosslens.ray._from_folder(str(folder))
    actors: Any = crosslens.ray._Worker
    worker = actors.__ray_metadata__.modified_class({"make": make, "arguments": arguments, "batch_size": 16, "options": {"keep": 0}, "device": None})
    columns = pyarrow.Table.from_pylist(rows()[:4])
    _, described, sums = worker.sums(columns, 0, True)
    fetched: list[Any] = []
    fetch = ray.get

    def counted(references: Any) -> Any:
        fetched.append(references)
        return fetch(references)

    whole = [ray.put(described), ray.put(sums)]
    monkeypatch.setattr(ray, "get", counted)
    for number in (0, 4):
        assert worker.shares(whole, columns, number)[1]
    assert fetched == [whole]


def test_a_tokenizer_is_read_once_and_a_model_is_put_where_it_is_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers

    read: list[str] = []
    load = transformers.AutoTokenizer.from_pretrained

    def counted(path: str) -> Any:
        read.append(path)
        return load(path)

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", counted)
    _, arguments = crosslens.ray._from_folder(str(folder))
    for _ in range(3):
        assert set(arguments({"source": ["w1 w2"], "target": ["w3"]})) >= {"input_ids", "labels"}
    assert read == [str(folder)]

    class Model:
        device = "cpu"

        def to(self, device: str) -> Model:
            self.device = device
            return self

    assert crosslens.ray._placed(Model(), "cuda").device == "cuda"
    assert crosslens.ray._placed(Model(), None).device == "cpu"


def test_the_end_of_a_target_stays_where_the_same_token_pads(tmp_path: Path) -> None:
    tokenizer = made.tokenizer()
    tokenizer.pad_token = tokenizer.eos_token
    tokenizer.save_pretrained(tmp_path)
    _, arguments = crosslens.ray._from_folder(str(tmp_path))
    labels = arguments({"source": ["w1", "w1"], "target": ["w1 w2 w3", "w1"]})["labels"]
    (_, _, _, end), (word, ends, *padding) = labels.tolist()
    assert ends == end == made.END and word > end and padding == [-100, -100]


def test_what_cannot_be_had_is_refused(folder: Path) -> None:
    dataset = ray.data.from_items(rows())
    with pytest.raises(crosslens.ArrayError, match="arguments="):
        crosslens.ray.explain(lambda: None, dataset)
    with pytest.raises(crosslens.ArrayError, match="at least one row"):
        crosslens.ray.explain(folder, dataset, rows=0)
    with pytest.raises(crosslens.ArrayError, match="no rows"):
        crosslens.ray.explain(folder, ray.data.from_items(rows()).filter(lambda row: False))
    for name in ("rank", "geometry", "keep", "path", "causal"):
        options: dict[str, Any] = {name: 1}
        with pytest.raises(crosslens.ConfigError, match=f"`{name}` is no option"):
            crosslens.ray.explain(folder, dataset, **options)
    with pytest.raises(crosslens.ExplainError, match="no attention"):
        crosslens.ray.explain(lambda: __import__("torch").nn.Linear(2, 2), dataset, arguments=lambda columns: {})
