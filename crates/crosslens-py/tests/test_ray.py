"""A corpus over several workers, one of which dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
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
    tests = str(Path(__file__).parent)
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": tests}})
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
    died = tmp_path / "died"

    def dies_once(columns: Any) -> Any:
        if "w5" in " ".join(columns["source"]) and not died.exists():
            died.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return arguments(columns)

    dataset = ray.data.from_items(rows())
    one = crosslens.ray.explain(folder, dataset, rows=10, workers=1)
    three = crosslens.ray.explain(make, dataset.repartition(7), arguments=dies_once, rows=10, workers=3)
    assert died.exists(), "a worker was killed"
    assert one.n_sentences == three.n_sentences == N
    for a, b in zip(one.shares, three.shares, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)

    # And it is what one process finds, but for the order of sums.
    alone = crosslens.torch.explain(make(), made.batches(*made.sentences(N), 16))
    for a, b in zip(one.shares, alone.shares, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_an_empty_dataset_and_missing_arguments_are_refused(folder: Path) -> None:
    with pytest.raises(crosslens.ArrayError, match="arguments="):
        crosslens.ray.explain(lambda: None, ray.data.from_items(rows()))
    with pytest.raises(crosslens.ArrayError, match="at least one row"):
        crosslens.ray.explain(folder, ray.data.from_items(rows()), rows=0)
