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
    for overwrite in (False, True):
        with pytest.raises(crosslens.ConfigError, match="not empty and holds no run: another out="):
            crosslens.train("sort", tmp_path / "full", steps=1, overwrite=overwrite)
    assert [file.name for file in (tmp_path / "full").iterdir()] == ["file"]
    for _ in range(2):
        assert crosslens.train("sort", tmp_path / "run", steps=1, overwrite=True, progress=False).steps == 1
    with pytest.raises(crosslens.ConfigError, match="already holds a run: .*resume=True"):
        crosslens.train("sort", tmp_path / "run")
    with pytest.raises(crosslens.ConfigError, match="no cell `gruu`; there are"):
        crosslens.train("sort", tmp_path / "a", cell="gruu")
    with pytest.raises(crosslens.ConfigError, match="transformer networks cannot have cell gru"):
        crosslens.train("sort", tmp_path / "a", arch="transformer", cell="gru")
    with pytest.raises(crosslens.ConfigError, match="give corpus= too"):
        crosslens.train("sort", tmp_path / "a", vocabulary=100)
    with pytest.raises(crosslens.ConfigError, match="two things to learn"):
        crosslens.train("sort", tmp_path / "a", corpus="pairs.tsv")
    with pytest.raises(crosslens.ConfigError, match="a.en,b.fr"):
        crosslens.train(out=tmp_path / "a", corpus="a,b,c")
    with pytest.raises(crosslens.FileError):
        crosslens.train(out=tmp_path / "nothing", resume=True)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    nouns = ["cat", "dog", "bird", "horse", "cow"]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"The {a} sees the {b}.\tLe {b} voit le {a}.\n" for a in nouns for b in nouns))
    return path


def test_a_corpus_is_learnt_from_and_another_one_does_not_go_on(tmp_path: Path, corpus: Path) -> None:
    told: list[str] = []

    def tell(what: str, done: int, total: int) -> None:
        told.append(what)

    out = tmp_path / "run"
    trained = crosslens.train(
        out=out, corpus=corpus, held_out=3, units="words", vocabulary=20, arch="luong", cell="gru", score="concat", steps=2, progress=tell
    )
    assert trained.steps == 2 and list(dict.fromkeys(told)) == ["reading", "counting words", "cutting into tokens", "training"]
    config = (out / "run.toml").read_text()
    assert all(line in config for line in ('units = "words"', "vocabulary = 20", "held_out = 3", 'score = "additive"'))
    assert isinstance(trained.load().translate("The cat sees the dog.")[0].text, str)
    told.clear()
    assert crosslens.train(out=out, resume=True, steps=3, progress=tell).steps == 3 and told[0] == "reading"
    with pytest.raises(crosslens.ConfigError, match="the corpus cannot change a run"):
        crosslens.train(out=out, resume=True, corpus=corpus)
    words = (out / "vocab.json").read_text()
    corpus.write_text(corpus.read_text() + "The mouse sees the cat.\tLe chat voit la souris.\n")
    with pytest.raises(crosslens.ConfigError, match="not the corpus the run began with"):
        crosslens.train(out=out, resume=True, steps=5, progress=False)
    assert (out / "vocab.json").read_text() == words


def test_ctrl_c_stops_while_a_corpus_is_read(tmp_path: Path, corpus: Path) -> None:
    def interrupted(what: str, done: int, total: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        crosslens.train(out=tmp_path / "run", corpus=corpus, progress=interrupted)
    assert not (tmp_path / "run").exists()


def test_a_claim_about_translation_reads_its_corpus(tmp_path: Path) -> None:
    with pytest.raises(crosslens.ReproduceError, match="nowhere.tsv"):
        crosslens.reproduce(tmp_path / "out", claims=["joint-fit-text"], corpus=tmp_path / "nowhere.tsv", progress=False)


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
    found = crosslens.reproduce(tmp_path / "out", claims=["diagonal-ao"], quick=True, seeds=1, progress=lambda *what: told.append(what))
    assert [claim["id"] for claim in found["claims"]] == ["diagonal-ao"]
    (total,) = {total for _, _, total in told}
    done = [done for _, done, _ in told]
    assert done == sorted(done) and done[0] == 0 and done[-1] == total, "the bar has one end and comes to it"


def test_more_seeds_than_anybody_has_time_for_are_refused(tmp_path: Path) -> None:
    for seeds in (0, 256, 2**62):
        with pytest.raises(crosslens.ConfigError, match="`seeds` is .*from 1 to 255"):
            crosslens.reproduce(tmp_path / "out", seeds=seeds, quick=True, progress=False)


def test_training_that_fails_has_its_own_exception(tmp_path: Path) -> None:
    crosslens.train("sort", tmp_path / "run", steps=3, progress=False)
    with pytest.raises(crosslens.TrainError, match="3 steps are made already"):
        crosslens.train(out=tmp_path / "run", resume=True, steps=2, progress=False)
