"""Training and reproduction."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import pytest

import crosslens


def test_a_callback_sees_evaluations_and_may_stop(tmp_path: Path) -> None:
    seen: list[crosslens.Metrics] = []

    def callback(metrics: crosslens.Metrics) -> bool:
        seen.append(metrics)
        return False

    trained = crosslens.train("one-to-one", tmp_path / "run", arch="ao", seed=1, callback=callback, progress=False)
    assert not trained.finished and len(seen) == 1 and trained.metrics == seen[0] and trained.steps == seen[0].step
    lines = (tmp_path / "run/metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [seen[0].step]
    longer = crosslens.train(out=tmp_path / "run", resume=True, steps=trained.steps + 3, progress=False)
    assert longer.finished and longer.steps == trained.steps + 3
    assert longer.load().kind == "run"


def test_ctrl_c_saves_and_the_run_goes_on(tmp_path: Path) -> None:
    timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        crosslens.train("one-to-one", tmp_path / "run", steps=10**6, progress=False)
    timer.join()
    assert crosslens.load(tmp_path / "run").kind == "run"


def test_wrong_wishes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(crosslens.ConfigError, match="no task `one-two-one`"):
        crosslens.train("one-two-one", tmp_path / "a")
    with pytest.raises(crosslens.ConfigError, match="no architecture `rnn`"):
        crosslens.train("sort", tmp_path / "a", arch="rnn")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_text("")
    with pytest.raises(crosslens.ConfigError, match="not empty"):
        crosslens.train("sort", tmp_path / "full")
    with pytest.raises(crosslens.FileError):
        crosslens.train(out=tmp_path / "nothing", resume=True)


def test_unknown_claims_are_refused(tmp_path: Path) -> None:
    with pytest.raises(crosslens.ReproduceError, match="no claim `nonsense`"):
        crosslens.reproduce(tmp_path, claims=["nonsense"], progress=False)


def test_ctrl_c_stops_a_reproduction(tmp_path: Path) -> None:
    timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        crosslens.reproduce(tmp_path, quick=True, progress=False)
    timer.join()


def test_a_claim_is_tested(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    found = crosslens.reproduce(tmp_path / "out", claims=["diagonal-ao"], quick=True, progress=lambda *what: told.append(what))
    assert [claim["id"] for claim in found["claims"]] == ["diagonal-ao"] and told


def test_training_that_fails_has_its_own_exception(tmp_path: Path) -> None:
    crosslens.train("sort", tmp_path / "run", steps=3, progress=False)
    with pytest.raises(crosslens.TrainError, match="3 steps are made already"):
        crosslens.train(out=tmp_path / "run", resume=True, steps=2, progress=False)
