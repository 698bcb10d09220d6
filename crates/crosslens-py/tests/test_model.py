"""Runs and recordings by path: explained, shown, saved, merged, stopped."""

from __future__ import annotations

import importlib.abc
import importlib.resources
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


TEXT = """
[task]
name = "corpus"
train = "CORPUS"
units = "bpe"
vocabulary = 60
max_words = 12
held_out = 2

[network]
family = "bahdanau"
score = "additive"
hidden = 8
inputs = { kind = "embedding", size = 8 }

[training]
batch = 8
feeding = "forced"
evaluate_every = 30
evaluate_samples = 4
"""
"""A network of subwords, far too small to learn anything."""


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
    best = model.translate(text)[0]
    written = best.text
    own = model.explain(text, causal=0, progress=False)
    assert own.n_sentences == 1 and own.words(0).source == source
    # A network that has learnt little need not come to an end: what is explained is then as long as targets of the task are.
    predicted = [word for word in own.words(0).predicted if word != "<eos>"]
    assert predicted and "<eos>" not in written and written.split()[: len(predicted)] == predicted
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
        first + model.explain(corpus=whole, components=model.fit(n_sentences=50), progress=False)
    for name, value in {"estimator": "joint", "causal": 0, "bootstrap": 5, "shrinkage": 2.0, "geometry": True}.items():
        with pytest.raises(crosslens.MergeError, match=f"another `{name}`"):
            first + model.explain(corpus=halves[1], **{**options, name: value})
    first.save(tmp_path / "first.json")
    for read in (crosslens.Explanation.load(tmp_path / "first.json"), pickle.loads(pickle.dumps(first))):
        with pytest.raises(crosslens.MergeError, match="from a file or a pickle"):
            read + second


def test_ranks_and_geometry_add_up_too(model: crosslens.Model, tmp_path: Path) -> None:
    whole, halves = _corpus(model, tmp_path)
    components = model.fit(n_sentences=200, progress=False)
    options: dict[str, Any] = {"components": components, "causal": 0, "rank": "entropy", "geometry": True, "progress": False}
    together, first, second = (model.explain(corpus=path, **options).report for path in (whole, *halves))
    merged = (model.explain(corpus=halves[0], **options) + model.explain(corpus=halves[1], **options)).report
    values = [[sentence["value"] for sentence in report["ranking"]["sentences"]] for report in (merged, together, first, second)]
    np.testing.assert_allclose(values[0], values[1], atol=1e-12)
    assert values[0] not in values[2:], "the worst of both"
    for a, b in zip(merged["geometry"]["frames"], together["geometry"]["frames"], strict=True):
        np.testing.assert_allclose(a["shares"], b["shares"], atol=1e-9)


def test_of_a_corpus_the_first_sentences_are_taken(model: crosslens.Model, tmp_path: Path) -> None:
    whole, halves = _corpus(model, tmp_path)
    first = model.explain(corpus=whole, n_sentences=15, causal=0, progress=False)
    half = model.explain(corpus=halves[0], causal=0, progress=False)
    assert first.n_sentences == half.n_sentences == 15
    np.testing.assert_array_equal(first.shares[0], half.shares[0])
    assert model.fit(corpus=whole, n_sentences=15, progress=False)["encoder"] == model.fit(corpus=halves[0], progress=False)["encoder"]
    text = " ".join(half.words(0).source)
    assert model.explain([text] * 3, n_sentences=2, causal=0, progress=False).n_sentences == 2


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


class Without(importlib.abc.MetaPathFinder):
    """Packages as if they were not installed."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.split(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize("missing", [("pandas", "polars"), ("pandas", "polars", "pyarrow")], ids=["arrow", "nothing"])
def test_tables_without_the_libraries_of_frames(explained: crosslens.Explanation, missing: tuple[str, ...], monkeypatch: Any) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] in missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Without(*missing), *sys.meta_path])
    assert len(explained.table()["share"]) > 0
    if "pyarrow" in missing:
        with pytest.raises(crosslens.CrosslensError, match=r"pip install pandas; table\(\) needs none"):
            explained.to_dataframe()
        return
    pytest.importorskip("pyarrow")
    table = explained.to_dataframe()
    assert type(table).__module__.startswith("pyarrow") and table.to_pydict() == explained.table()
    assert hasattr(table, "__arrow_c_stream__"), "whatever reads Arrow reads it"


def test_the_installed_package_says_that_it_has_types() -> None:
    installed = importlib.resources.files("crosslens")
    for name in ("py.typed", "_native.pyi"):
        assert installed.joinpath(name).is_file(), name
    assert "class StateSums" in installed.joinpath("_native.pyi").read_text()


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
    with pytest.raises(crosslens.FileError, match="no/such/x.html"):
        explained.show("/no/such/x.html")
    assert not opened
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
    with pytest.raises(crosslens.ConfigError, match="shard 3 of 2"):
        model.fit(shard=(3, 2), progress=False)


def test_numbers_out_of_range_are_refused_by_name(tmp_path: Path, model: crosslens.Model, explained: crosslens.Explanation) -> None:
    calls: dict[str, Any] = {
        "n_sentences": lambda: model.explain(n_sentences=-1, progress=False),
        "seed": lambda: model.fit(seed=2**64, progress=False),
        "n_threads": lambda: model.fit(n_threads=-1, progress=False),
        "keep_attention": lambda: model.record(tmp_path / "x", keep_attention=-1, progress=False),
        "beams": lambda: model.translate("a0", beams=0),
        "n_best": lambda: model.translate("a0", n_best=-1),
        "max_tokens": lambda: model.translate("a0", max_tokens=2**16),
        "steps": lambda: crosslens.train("sort", tmp_path / "y", steps=-1),
        "seeds": lambda: crosslens.reproduce(tmp_path / "z", seeds=2**70),
        "sample": lambda: explained.words(-1),
        "d": lambda: crosslens.Components(-1),
    }
    for name, call in calls.items():
        with pytest.raises(crosslens.ConfigError, match=f"`{name}` is"):
            call()


def test_sentences_are_given_in_one_way(tmp_path: Path, model: crosslens.Model) -> None:
    calls: dict[str, Any] = {
        "explain": lambda: model.explain("a0", corpus=tmp_path / "a.tsv", progress=False),
        "heads": lambda: model.heads(tmp_path / "a.tsv", src="a0", progress=False),
        "fit": lambda: model.fit("a0", corpus=tmp_path / "a.tsv", progress=False),
        "record": lambda: model.record(tmp_path / "x", "a0", corpus=tmp_path / "a.tsv", progress=False),
    }
    for name, call in calls.items():
        with pytest.raises(crosslens.SentenceError, match=r"a\.tsv` are two sets of sentences: give one"):
            call()
        assert not (tmp_path / "x").exists(), name


def test_terms_keep_their_axis_without_sentences(model: crosslens.Model) -> None:
    bare = model.explain(n_sentences=5, samples=0, causal=0, progress=False)
    assert bare.terms[0].shape == (0, 1, 9, 0, 0) and bare.attentions[0].shape == (0, 1, 0, 0)


def test_a_transformer_trained_here_is_opened_with_its_self_attention(tmp_path: Path) -> None:
    path = crosslens.train("reverse", tmp_path / "run", arch="transformer", steps=2, progress=False).path
    across, all_of_it = crosslens.load(path), crosslens.load(path, self_attention=True)
    assert {kind for kind, _, _ in across.sites} == {"cross"}
    assert {kind for kind, _, _ in all_of_it.sites} == {"cross", "encoder-self", "decoder-self"}
    found = all_of_it.explain(n_sentences=20, causal=0, progress=False)
    assert len(found.encoder_attentions) > 0 and len(found.decoder_attentions) > 0
    recording = all_of_it.record(tmp_path / "recording", n_sentences=3, progress=False)
    assert recording.sites == all_of_it.sites
    with pytest.raises(crosslens.OpenError, match="is a recording"):
        crosslens.load(tmp_path / "recording", self_attention=True)


def test_a_run_on_text_reads_and_writes_text(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.tsv"
    nouns = ["cat", "dog", "bird", "horse"]
    lines = [f"The {a} sees the {b}.\tLe {b} voit le {a}." for a in nouns for b in nouns] * 4
    corpus.write_text("\n".join(lines) + "\n")
    config = tmp_path / "text.toml"
    config.write_text(TEXT.replace("CORPUS", str(corpus)))
    model = crosslens.train(str(config), tmp_path / "run", steps=30, progress=False).load()
    source = "The cat sees the dog."
    (first, second) = model.translate(source, beams=3, n_best=2)
    assert first.score >= second.score and np.isfinite(first.score)
    assert "<eos>" not in first.text and "@@" not in first.text and "▁" not in first.text
    assert len(model.translate(source, max_tokens=2)[0].tokens) <= 2
    found = model.explain(source, "Le chien voit le chat.", causal=0, progress=False)
    # Punctuation is a token of its own, and the end is there.
    assert len(found.words(0).source) > len(source.split()) and found.words(0).source[-1] == "<eos>"
    assert model.explain(corpus=corpus, n_sentences=5, causal=0, progress=False).n_sentences == 5


def test_progress_is_told(model: crosslens.Model) -> None:
    told: list[tuple[str, int, int]] = []
    model.explain(n_sentences=130, causal=0, progress=lambda *what: told.append(what))
    assert {what for what, _, _ in told} == {"fitting", "splitting"}
    assert all(0 < done <= total == 130 for _, done, total in told) and told[-1][1] == 130


def test_what_a_run_writes_for_texts_is_told(model: crosslens.Model, tmp_path: Path) -> None:
    text = " ".join(model.explain(n_sentences=2, samples=1, causal=0, progress=False).words(0).source)
    calls: dict[str, Any] = {
        "explain": lambda tell: model.explain([text] * 3, causal=0, progress=tell),
        "fit": lambda tell: model.fit([text] * 3, progress=tell),
        "record": lambda tell: model.record(tmp_path / "recording", [text] * 3, progress=tell),
    }
    for name, call in calls.items():
        told: list[tuple[str, int, int]] = []
        call(lambda *what: told.append(what))
        assert told[0] == ("writing", 1, 3) and ("writing", 3, 3) in told, name


@pytest.mark.parametrize("longest", [8, 5])
def test_a_run_without_attention_writes_and_has_its_own_words_explained(longest: int, tmp_path: Path) -> None:
    config = tmp_path / "ved.toml"
    # Sentences that are all of one length have no end.
    config.write_text((Path(__file__).parents[3] / "configs/one-to-one-ved.toml").read_text().replace("max_length = 8", f"max_length = {longest}"))
    model = crosslens.train(str(config), tmp_path / "run", arch="ved", steps=5, progress=False).load()
    text = "I0 I1 I2 I1 I0"
    written = model.translate(text)[0].text
    assert all(word.startswith("O") for word in written.split())
    found = model.explain([text, text], causal=0, progress=False)
    assert found.n_sentences == 2 and not found.sites
    assert model.fit([text], progress=False)["encoder"].n_states == 5 + (longest > 5)
    assert model.record(tmp_path / "recording", text, progress=False).kind == "recording"


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


@pytest.mark.parametrize("what", ["translate", "fit", "record", "explain texts", "fit texts"])
def test_ctrl_c_stops_all_other_work_too(what: str, run: Path, tmp_path: Path) -> None:
    # In a program of its own, which waits for nothing else.
    calls = {
        "translate": "model.translate([text] * 20_000, progress=False)",
        "fit": "model.fit(n_sentences=10**9, progress=False)",
        "record": "model.record('recording', n_sentences=10**9, progress=False)",
        "explain texts": "model.explain([text] * 500_000, causal=0, progress=False)",
        "fit texts": "model.fit([text] * 500_000, progress=False)",
    }
    program = (
        "import os, signal, sys, threading, crosslens\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"model = crosslens.load({str(run)!r})\n"
        "text = ' '.join(model.explain(n_sentences=2, samples=1, causal=0, progress=False).words(0).source)\n"
        "threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        f"try:\n    {calls[what]}\nexcept KeyboardInterrupt:\n    print('stopped')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "stopped\n"
    if what == "record":
        # What was begun is taken away.
        assert not (tmp_path / "recording").exists()
        recording = crosslens.load(run).record(tmp_path / "recording", n_sentences=3, progress=False)
        assert recording.kind == "recording"


def test_a_run_that_writes_many_texts_can_be_stopped_between_them(model: crosslens.Model) -> None:
    text = " ".join(model.explain(n_sentences=2, samples=1, causal=0, progress=False).words(0).source)
    told: list[tuple[int, int]] = []

    def stop(what: str, done: int, total: int) -> None:
        told.append((done, total))
        raise ZeroDivisionError("enough")

    # Each core writes 64 at a time.
    most = 64 * (os.cpu_count() or 1)
    with pytest.raises(ZeroDivisionError):
        model.translate([text] * (2 * most + 1), max_tokens=2, progress=stop)
    ((done, total),) = told
    assert 0 < done <= most and total == 2 * most + 1


def test_importing_takes_nothing_else_along() -> None:
    # How long it takes stands in docs/performance.md; what makes it quick is what it leaves alone, NumPy too.
    program = (
        "import sys; before = set(sys.modules); import crosslens; "
        "new = {name.split('.')[0] for name in set(sys.modules) - before}; "
        "print(*sorted(name for name in new - set(sys.stdlib_module_names) if not name.startswith('_')))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert found == ["crosslens"]
