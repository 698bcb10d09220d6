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
ADDED = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}


def tokenizer() -> dict[str, Any]:
    """Whole words w3 to w63, the end appended."""
    names = ["<pad>", "</s>", "<unk>", *(f"w{number}" for number in range(3, TOKENS))]
    end = {"SpecialToken": {"id": "</s>", "type_id": 0}}
    text = {name: {"Sequence": {"id": name, "type_id": 0}} for name in "AB"}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": place, "content": name, **ADDED} for place, name in enumerate(names[:3])],
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


def test_a_table_has_the_terms_of_scores_without_the_bias_of_positions(folder: Path, corpus: Path) -> None:
    found = crosslens.load(folder, self_attention=True).explain(corpus=corpus, causal=0, progress=False)
    biased = [site for site in found.report["sites"] if site["shares"] and "position_bias_top" in site["shares"]]
    assert {site["kind"] for site in biased} == {"encoder-self", "decoder-self"}
    table = found.table()
    measures = set(table["measure"])
    assert "centred" in measures and measures.isdisjoint({"position_bias", "position_bias_top", "query_mean", "parts"})
    n_heads = sum(site["shares"] is not None for site in found.report["sites"])
    assert len(table["share"]) == n_heads * len(measures) * 9


def test_a_corpus_is_explained_recorded_and_fitted_in_shards(folder: Path, corpus: Path, tmp_path: Path) -> None:
    model = crosslens.load(folder)
    whole = model.explain(corpus=corpus, held_out=False, causal=0, progress=False)
    assert whole.n_sentences == 30
    assert model.explain(corpus=corpus, n_sentences=9, held_out=False, causal=0, progress=False).n_sentences == 9
    recording = model.record(tmp_path / "recording", corpus=corpus, progress=False)
    np.testing.assert_allclose(recording.explain(progress=False).shares, whole.shares, atol=1e-9)
    sums = model.fit(corpus=corpus, shard=(1, 2), progress=False) + model.fit(corpus=corpus, shard=(2, 2), progress=False)
    assert sums["encoder"].n_states == model.fit(corpus=corpus, progress=False)["encoder"].n_states
    one = model.explain("w5 w6 w7", "w9 w8", components=sums, causal=0, progress=False)
    assert one.n_sentences == 1 and one.words(0).source == ["w5", "w6", "w7", "</s>"]
    heads = model.heads(corpus, causal=5, bootstrap=3, progress=False)
    assert len(heads) == len(model.sites) and all(head.label for head in heads)


def test_one_sentence_alone_is_shown_with_a_warning(folder: Path) -> None:
    found = crosslens.load(folder).explain("w5 w6 w7", causal=0, progress=False)
    assert found.n_sentences == 1 and found.words(0).source == ["w5", "w6", "w7", "</s>"] and found.attentions[0].ndim == 4
    assert any("shares and verdict say nothing" in warning and "components=" in warning for warning in found.report["corpus"]["warnings"])


def test_several_texts_are_translated_as_each_alone(folder: Path, model: crosslens.Model) -> None:
    told: list[tuple[str, int, int]] = []
    pretrained = crosslens.load(folder)
    texts = ["w5 w6 w7", "w9", "w8 w3"]
    both = pretrained.translate(texts, max_tokens=6, progress=lambda *what: told.append(what))
    assert both == [pretrained.translate(text, max_tokens=6) for text in texts] and told[-1] == ("translating", 3, 3)
    assert pretrained.translate([]) == []
    words = model.explain(n_sentences=2, causal=0, progress=False)
    sources = [" ".join(words.words(sample).source) for sample in range(2)]
    assert [found[0].text for found in model.translate(sources)] == [model.translate(source)[0].text for source in sources]


def test_attention_is_rebuilt_from_a_subset_of_the_terms(folder: Path, corpus: Path) -> None:
    found = crosslens.load(folder).explain(corpus=corpus, subset=["tt,ti", "ii"], causal=0, progress=False)
    seen = json.dumps(found.report["sites"][0])
    assert "tt,ti" in seen and "ii" in seen


def test_a_multilingual_model_is_told_its_languages(tmp_path: Path) -> None:
    for file in ("config.json", "generation_config.json", "model.safetensors"):
        shutil.copy(GOLDEN / "m2m_100" / file, tmp_path / file)
    names = ["<s>", "<pad>", "</s>", "<unk>", *(f"w{number}" for number in range(4, TOKENS - 3)), "__de__", "__en__", "__fr__"]
    added = [{**ADDED, "id": place, "content": name} for place, name in enumerate(names) if not name.startswith("w")]
    model = {"type": "WordLevel", "vocab": {name: place for place, name in enumerate(names)}, "unk_token": "<unk>"}
    text = {**tokenizer(), "added_tokens": added, "post_processor": None, "model": model}
    (tmp_path / "tokenizer.json").write_text(json.dumps(text))
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "M2M100Tokenizer"}')
    with pytest.raises(crosslens.OpenError, match="tells 3 languages apart"):
        crosslens.load(tmp_path)
    with pytest.raises(crosslens.OpenError, match="fra"):
        crosslens.load(tmp_path, source_language="en", target_language="fra")
    for self_attention in (False, True):
        told = crosslens.load(tmp_path, self_attention=self_attention, source_language="en", target_language="fr")
        words = told.explain("w5 w6", "w7", causal=0, progress=False).words(0)
        assert words.source[0] == "__en__" and "__fr__" in words.fed


def test_a_device_that_is_not_there_is_refused(folder: Path) -> None:
    model = crosslens.load(folder, device="cpu")
    assert model.kind == "pretrained" and model.device_trouble is None
    with pytest.raises(crosslens.OpenError, match="no device `cuda:1`: build with `--features cuda`"):
        crosslens.load(folder, device="cuda:1")
    with pytest.raises(crosslens.OpenError, match="there is no device `gpu`; known are cpu"):
        crosslens.load(folder, device="gpu")


def test_a_mapped_model_translates(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    shutil.copy(root / "crates/crosslens-nets/tests/golden/imported/tiny.safetensors", tmp_path / "w.safetensors")
    mapping = (root / "configs/import/e2k.toml").read_text()
    mapping = mapping.replace("heads = 4", "heads = 2").replace("model-c2k.safetensors", "w.safetensors")
    (tmp_path / "import.toml").write_text(mapping)
    model = crosslens.load(tmp_path)
    assert model.kind == "imported"
    (found,) = model.translate("hello")
    assert found.score < 0 and found.tokens and [found] == model.translate(["hello"])[0]
    assert len(model.translate("hello", max_tokens=1)[0].tokens) == 1
    with pytest.raises(crosslens.ConfigError, match="its likeliest word each time"):
        model.translate("hello", beams=4)
    with pytest.raises(crosslens.OpenError, match="tells no languages apart"):
        crosslens.load(tmp_path, source_language="en")
    with pytest.raises(crosslens.OpenError, match="computes on the CPU alone"):
        crosslens.load(tmp_path, device="cuda")


def test_a_corpus_is_halved_unless_told_otherwise(folder: Path, corpus: Path) -> None:
    model = crosslens.load(folder)

    def explained(**options: Any) -> tuple[int, int, bool]:
        about = model.explain(causal=0, progress=False, **options).report["corpus"]
        return about["pairs"], about["fitted_pairs"], about["held_out"]

    assert explained(corpus=corpus) == (15, 15, True)
    assert explained(corpus=corpus, held_out=False) == (30, 30, False)
    assert explained(corpus=corpus, n_sentences=3) == (3, 3, False), "too few to be halved"
    assert explained(corpus=corpus, components=model.fit(corpus=corpus, progress=False)) == (30, 30, False)
    assert explained(src=["w5 w6"] * 8) == (8, 8, False), "sentences that are given one by one are all explained"
    assert explained(src=["w5 w6"] * 8, held_out=True) == (4, 4, True)


def test_what_a_folder_cannot_do_says_why(folder: Path, tmp_path: Path) -> None:
    model = crosslens.load(folder)
    with pytest.raises(crosslens.SentenceError, match="no two halves"):
        model.explain("w5 w6", held_out=True, progress=False)
    with pytest.raises(crosslens.OpenError, match="tells no languages apart"):
        crosslens.load(folder, target_language="fr")
    with pytest.raises(crosslens.ConfigError, match="`subset` is `tx`"):
        model.explain("w5 w6", subset="tx", progress=False)
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
