"""A Hugging Face folder without PyTorch: a tiny T5 of random weights with a tokenizer of numbered words."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens

GOLDEN = Path(__file__).parents[2] / "crosslens-pretrained/tests/golden"
TOKENS = 64


def tokenizer() -> dict[str, Any]:
    """Whole words w3 to w63, the end appended."""
    names = ["<pad>", "</s>", "<unk>", *(f"w{number}" for number in range(3, TOKENS))]
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    end = {"SpecialToken": {"id": "</s>", "type_id": 0}}
    text = {name: {"Sequence": {"id": name, "type_id": 0}} for name in "AB"}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": place, "content": name, **special} for place, name in enumerate(names[:3])],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [text["A"], end],
            "pair": [text["A"], end, text["B"], end],
            "special_tokens": {"</s>": {"id": "</s>", "ids": [1], "tokens": ["</s>"]}},
        },
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {name: place for place, name in enumerate(names)}, "unk_token": "<unk>"},
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("t5")
    for file in ("config.json", "generation_config.json", "model.safetensors"):
        shutil.copy(GOLDEN / "t5" / file, folder / file)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer()))
    return folder


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def words(number: int, n: int) -> str:
        return " ".join(f"w{3 + (number * 17 + place * place * 5) % (TOKENS - 3)}" for place in range(n))

    path = tmp_path_factory.mktemp("corpus") / "pairs.tsv"
    path.write_text("".join(f"{words(n, 3 + n % 5)}\t{words(n + 1, 2 + n % 6)}\n" for n in range(30)))
    return path


def test_a_folder_is_opened_and_translates(folder: Path) -> None:
    model = crosslens.load(folder)
    assert model.kind == "pretrained" and {kind for kind, _, _ in model.sites} == {"cross"}
    both = model.translate("w5 w6 w7", beams=4, n_best=2, max_tokens=6)
    assert len(both) == 2 and both[0].score >= both[1].score and all(len(found.tokens) <= 7 for found in both)
    assert crosslens.load(folder, self_attention=True).sites != model.sites
    with pytest.raises(crosslens.ConfigError, match="3 texts of 2 beams"):
        model.translate("w5", beams=2, n_best=3)


def test_a_corpus_is_explained_recorded_and_fitted_in_shards(folder: Path, corpus: Path, tmp_path: Path) -> None:
    model = crosslens.load(folder)
    whole = model.explain(corpus=corpus, causal=0, progress=False)
    assert whole.n_sentences == 30 and model.explain(corpus=corpus, n_sentences=9, causal=0, progress=False).n_sentences == 9
    recording = model.record(tmp_path / "recording", corpus=corpus, progress=False)
    np.testing.assert_allclose(recording.explain(progress=False).shares, whole.shares, atol=1e-9)
    sums = model.fit(corpus=corpus, shard=(1, 2), progress=False) + model.fit(corpus=corpus, shard=(2, 2), progress=False)
    assert sums["encoder"].n_states == model.fit(corpus=corpus, progress=False)["encoder"].n_states
    one = model.explain("w5 w6 w7", "w9 w8", components=sums, causal=0, progress=False)
    assert one.n_sentences == 1 and one.words(0).source == ["w5", "w6", "w7", "</s>"]
    heads = model.heads(corpus, causal=5, bootstrap=3, progress=False)
    assert len(heads) == len(model.sites) and all(head.label for head in heads)


def test_what_a_folder_cannot_do_says_why(folder: Path, tmp_path: Path) -> None:
    model = crosslens.load(folder)
    with pytest.raises(crosslens.SentenceError, match="components="):
        model.explain("w5 w6", progress=False)
    with pytest.raises(crosslens.SentenceError, match="no task"):
        model.explain(progress=False)
    with pytest.raises(crosslens.SentenceError, match="nothing.tsv"):
        model.fit(corpus=tmp_path / "nothing.tsv", progress=False)
    with pytest.raises(crosslens.ExplainError, match="no sentences"):
        crosslens.train("sort", tmp_path / "run", steps=1, progress=False).load().explain(n_sentences=0, progress=False)


@pytest.mark.parametrize("kind", ["run", "t5"])
def test_sums_of_the_program_and_of_python_are_the_same(
    kind: str, run: Path, folder: Path, corpus: Path, program: str, tmp_path: Path
) -> None:
    import subprocess

    path, chosen = (run, ["--samples", "40"]) if kind == "run" else (folder, ["--corpus", str(corpus)])
    wanted: dict[str, Any] = {"n_sentences": 40} if kind == "run" else {"corpus": corpus}

    def call(*arguments: str) -> str:
        return subprocess.run([program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    for number in ("1", "2"):
        call("fit", str(path), *chosen, "--shard", f"{number}/2", "-o", f"{number}.stats.safetensors")
    model = crosslens.load(path)
    theirs = [crosslens.Sums.load(tmp_path / f"{number}.stats.safetensors") for number in (1, 2)]
    ours = [model.fit(shard=(number, 2), progress=False, **wanted) for number in (1, 2)]
    for a, b in zip(theirs, ours, strict=True):
        assert list(a) == list(b) and all(a[stream] == b[stream] for stream in a)

    # And back: one shard of Python's, one of the program's.
    ours[0].save(tmp_path / "ours.stats.safetensors")
    call("merge", "ours.stats.safetensors", "2.stats.safetensors", "-o", "all.stats.safetensors")
    merged = crosslens.Sums.load(tmp_path / "all.stats.safetensors")
    assert all(merged[stream] == (ours[0] + ours[1])[stream] for stream in merged)
    report = json.loads(call("explain", str(path), *chosen, "--components", "all.stats.safetensors", "--causal", "0", "--json"))
    found = model.explain(components=merged, causal=0, progress=False, **wanted)
    np.testing.assert_allclose(
        [site["shares"]["centred"] for site in report["sites"]], [site["shares"]["centred"] for site in found.report["sites"]], atol=1e-12
    )
