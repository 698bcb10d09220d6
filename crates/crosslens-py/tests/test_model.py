"""Runs and recordings by path: explained, shown, saved, merged, stopped."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens


@pytest.fixture(scope="module")
def explained(model: crosslens.Model) -> crosslens.Explanation:
    return model.explain(n_sentences=100, causal=20, samples=4, progress=False)


def test_a_run_is_explained(model: crosslens.Model, explained: crosslens.Explanation) -> None:
    assert model.kind == "run" and model.sites == [("cross", 0, 0)]
    assert explained.n_sentences == 100 and explained.n_samples == 4
    (shares,) = explained.shares
    assert shares.shape == (1, 3, 3)
    np.testing.assert_allclose(shares.sum(), 1.0, atol=1e-6)
    assert explained.sites[0].verdict and "cross 0.0" in repr(explained)


def test_attention_is_a_distribution_and_the_softmax_of_its_terms(explained: crosslens.Explanation) -> None:
    (attention,), (terms,) = explained.attentions, explained.terms
    n_sentences, n_heads, n_queries, n_keys = attention.shape
    assert (n_sentences, n_heads) == (4, 1) and terms.shape == (4, 1, 9, n_queries, n_keys)
    for sample in range(4):
        words = explained.words(sample)
        queries, keys = len(words.fed), len(words.source)
        rows = attention[sample, 0, :queries, :keys]
        np.testing.assert_allclose(rows.sum(-1), 1.0, atol=1e-5)
        assert not attention[sample, 0, queries:].any() and not attention[sample, 0, :, keys:].any()
        scores = terms[sample, 0, :, :queries, :keys].astype(np.float64).sum(0)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        np.testing.assert_allclose(weights / weights.sum(-1, keepdims=True), rows, atol=1e-5)


def test_a_sentence_is_explained_with_and_without_a_target(model: crosslens.Model) -> None:
    source = model.explain(n_sentences=2, samples=1, causal=0, progress=False).words(0).source
    text = " ".join(source)
    written = model.translate(text)[0].text
    own = model.explain(text, causal=0, progress=False)
    assert own.n_sentences == 1 and own.words(0).source == source
    assert own.words(0).predicted == written.split()
    # A target that is given ends where sentences end, even where the model did not come to that.
    once, twice = (model.explain([text] * n, [written] * n, causal=0, progress=False) for n in (1, 2))
    assert twice.n_sentences == 2
    np.testing.assert_allclose(twice.shares[0], once.shares[0], atol=1e-9)


def test_a_recording_gives_the_same_shares(model: crosslens.Model, explained: crosslens.Explanation, tmp_path: Path) -> None:
    recording = model.record(tmp_path / "recording", n_sentences=100, progress=False)
    assert recording.kind == "recording"
    again = recording.explain(progress=False)
    np.testing.assert_allclose(again.shares[0], explained.shares[0], atol=1e-9)
    with pytest.raises(crosslens.SentenceError, match="own sentences"):
        recording.explain("a b")
    with pytest.raises(crosslens.FileError, match="recording"):
        model.record(tmp_path / "recording", n_sentences=10, progress=False)


def test_a_saved_explanation_is_the_same(explained: crosslens.Explanation, tmp_path: Path) -> None:
    explained.save(tmp_path / "report.json")
    for other in (crosslens.Explanation.load(tmp_path / "report.json"), pickle.loads(pickle.dumps(explained))):
        assert other.report["sites"] == explained.report["sites"]
        np.testing.assert_array_equal(other.attentions[0], explained.attentions[0])
        np.testing.assert_array_equal(other.terms[0], explained.terms[0])


def test_explanations_under_the_same_components_add_up(model: crosslens.Model, tmp_path: Path) -> None:
    whole, halves = _corpus(model, tmp_path)
    components = model.fit(n_sentences=200, progress=False)
    options: dict[str, Any] = {"components": components, "causal": 1000, "bootstrap": 0, "progress": False}
    together = model.explain(corpus=whole, **options)
    first, second = (model.explain(corpus=half, **options) for half in halves)
    merged = first + second
    assert merged.n_sentences == together.n_sentences == 40
    np.testing.assert_allclose(merged.shares[0], together.shares[0], atol=1e-12)
    a, b = merged.report, together.report
    assert a["task"]["word_accuracy"] == b["task"]["word_accuracy"] and a["sites"][0]["verdict"] == b["sites"][0]["verdict"]
    assert a["sites"][0]["rebuilt"]["temporal"]["accuracy"] == b["sites"][0]["rebuilt"]["temporal"]["accuracy"]
    with pytest.raises(crosslens.MergeError, match="components"):
        first + model.explain(corpus=whole, causal=0, progress=False)
    with pytest.raises(crosslens.MergeError, match="other components"):
        first + model.explain(corpus=whole, causal=0, components=model.fit(n_sentences=50), progress=False)


def _corpus(model: crosslens.Model, folder: Path) -> tuple[Path, list[Path]]:
    explained = model.explain(n_sentences=40, samples=40, causal=0, progress=False)
    lines = []
    for sample in range(40):
        words = explained.words(sample)
        lines.append(" ".join(words.source) + "\t" + " ".join(words.target or []))
    paths = [folder / "all.tsv", folder / "first.tsv", folder / "second.tsv"]
    for path, part in zip(paths, (lines, lines[:15], lines[15:]), strict=True):
        path.write_text("\n".join(part) + "\n")
    return paths[0], paths[1:]


def test_sums_of_shards_add_up(model: crosslens.Model, tmp_path: Path) -> None:
    whole = model.fit(n_sentences=60, progress=False)
    shards = [model.fit(n_sentences=60, shard=(number, 3), progress=False) for number in (1, 2, 3)]
    shards[0].save(tmp_path / "a.stats.safetensors")
    merged = crosslens.Sums.load(tmp_path / "a.stats.safetensors") + shards[1] + pickle.loads(pickle.dumps(shards[2]))
    assert list(merged) == list(whole) == ["encoder", "decoder"]
    for stream in whole:
        assert merged[stream].n_states == whole[stream].n_states
        np.testing.assert_allclose(merged[stream].fit().temporal, whole[stream].fit().temporal, atol=1e-12)


def test_heads_are_labelled(model: crosslens.Model) -> None:
    (head,) = model.heads(n_sentences=60, causal=10, bootstrap=5, progress=False)
    assert (head.kind, head.layer, head.head) == ("cross", 0, 0)
    assert head.label in ("positional", "token-matching", "sink", "residual", "mixed")
    assert head.effect is not None and "uniform" in head.effect


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_tables_come_in_the_library_that_is_there(explained: crosslens.Explanation, library: str, monkeypatch: Any) -> None:
    pytest.importorskip(library)
    order = ["pandas", "polars", "pyarrow"]
    for other in order[: order.index(library)]:
        monkeypatch.setitem(sys.modules, other, None)
    frame = explained.to_dataframe()
    assert type(frame).__module__.split(".")[0] == library
    columns = list(frame.columns if library != "pyarrow" else frame.column_names)
    assert columns == ["kind", "layer", "head", "label", "measure", "query", "key", "share"]
    table = explained.table()
    centred = [share for measure, share in zip(table["measure"], table["share"], strict=True) if measure == "centred"]
    assert len(centred) == 9 and abs(sum(centred) - 1) < 1e-6


def test_a_notebook_shows_the_page_inline_and_offline(explained: crosslens.Explanation) -> None:
    import html
    import re

    shown = explained._repr_html_()
    page = html.unescape(re.fullmatch(r'<iframe srcdoc="([^"]*)" .*></iframe>', shown, re.S).group(1))  # type: ignore[union-attr]
    assert page == explained.html()
    assert "default-src 'none'" in page and "crosslens-report-0" in page
    assert not re.search(r'(src|href)="https?:', page)


def test_the_page_is_written_where_asked(explained: crosslens.Explanation, tmp_path: Path, monkeypatch: Any) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url))
    explained.show(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert opened == [(tmp_path / "page.html").resolve().as_uri()]


def test_what_cannot_be_opened_says_why(tmp_path: Path, model: crosslens.Model) -> None:
    with pytest.raises(crosslens.OpenError, match="no `.*nowhere`"):
        crosslens.load(tmp_path / "nowhere")
    with pytest.raises(crosslens.OpenError, match="neither a run nor a recording"):
        crosslens.load(tmp_path)
    with pytest.raises(crosslens.SentenceError, match="not in the model's vocabulary"):
        model.explain("nonsense", progress=False)
    with pytest.raises(crosslens.SentenceError, match="empty"):
        model.explain("  ", progress=False)
    with pytest.raises(crosslens.SentenceError, match="1 sources and 2 targets"):
        model.explain(["a"], ["a", "b"])
    with pytest.raises(crosslens.ConfigError, match="k"):
        model.explain(k=-1, progress=False)
    with pytest.raises(crosslens.ConfigError, match="shard"):
        model.fit(shard=(0, 2), progress=False)


def test_progress_is_told(model: crosslens.Model) -> None:
    told: list[tuple[str, int, int]] = []
    model.explain(n_sentences=130, causal=0, progress=lambda *what: told.append(what))
    assert {what for what, _, _ in told} == {"fitting", "splitting"}
    assert all(0 < done <= total == 130 for _, done, total in told) and told[-1][1] == 130


def test_what_a_callback_raises_stops_the_work(model: crosslens.Model) -> None:
    def refuse(*_: object) -> None:
        raise ZeroDivisionError("enough")

    with pytest.raises(ZeroDivisionError, match="enough"):
        model.explain(n_sentences=100, progress=refuse)
    assert model.explain(n_sentences=10, causal=0, progress=False).n_sentences == 10


def test_ctrl_c_stops_an_explanation(model: crosslens.Model) -> None:
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.explain(n_sentences=10**9, causal=0, progress=False)
    timer.join()


def test_importing_is_quick_and_needs_numpy_alone() -> None:
    program = "import sys, numpy, time; t = time.perf_counter(); import crosslens; t = time.perf_counter() - t; print(t, 'torch' in sys.modules)"
    results = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split() for _ in range(5)]
    assert all(torch == "False" for _, torch in results)
    assert min(float(seconds) for seconds, _ in results) < 0.15
