"""PyTorch models recorded while they run, against the native loader and against NumPy."""

from __future__ import annotations

import gc
import re
import textwrap
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch_models as made

import crosslens
import crosslens.torch
from crosslens._torch_tensors import precise

pytestmark = pytest.mark.heavy
N = 40


@pytest.mark.parametrize("family", ["t5", "bart", "marian"])
@pytest.mark.parametrize("padding_side", ["right", "left"])
def test_shares_are_those_of_the_native_loader(family: str, padding_side: str, tmp_path: Path) -> None:
    if padding_side == "left" and family != "t5":
        pytest.skip("positions of this family count padding")
    model = made.seq2seq(family)
    made.save(model, tmp_path)
    sources, targets = made.sentences(N)
    native = crosslens.load(tmp_path, self_attention=True).explain(sources, targets, causal=0, progress=False)
    batches = made.batches(sources, targets, 7, padding_side)
    found = crosslens.torch.explain(model, batches, self_attention=True, tokenizer=made.tokenizer())
    assert found.n_sentences == native.n_sentences == N
    for kind in ("cross", "encoder-self", "decoder-self"):
        ours, theirs = found.shares_of(kind), native.shares_of(kind)
        assert len(ours) == len(theirs) == 2
        for layer, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            np.testing.assert_allclose(a, b, atol=1e-4, err_msg=f"{kind}, layer {layer}")
    for mine, other in zip(found.attentions, native.attentions, strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-4)
    assert found.words(0).source == native.words(0).source and found.words(0).fed == native.words(0).fed
    assert found.report["task"]["loss"] == pytest.approx(native.report["task"]["loss"], abs=1e-4)
    for site in found.report["sites"]:
        assert site["error"]["attention"] is not None and site["error"]["attention"] < 1e-4, "the model's own weights were compared"


def test_fused_attention_is_put_back(tmp_path: Path) -> None:
    model = made.seq2seq("bart")
    model.set_attn_implementation("sdpa")
    with crosslens.torch.record(model) as recorder, torch.no_grad():
        model(**made.batches(*made.sentences(4), 4)[0])
    assert model.config._attn_implementation == "sdpa" and recorder.n_sentences == 4
    assert all(not module._forward_hooks and not module._forward_pre_hooks for module in model.modules())


def test_whisper_s_frames_are_explained() -> None:
    model = made.whisper()
    torch.manual_seed(0)
    frames = torch.randn(3, 8, 24)
    tokens = torch.randint(3, 40, (3, 6))
    found = crosslens.torch.explain(model, [{"input_features": frames, "decoder_input_ids": tokens}])
    assert found.attentions[0].shape == (3, 2, 6, 12)
    with torch.no_grad():
        model.set_attn_implementation("eager")
        theirs = model(input_features=frames, decoder_input_ids=tokens, output_attentions=True).cross_attentions
    for a, b in zip(found.attentions, theirs, strict=True):
        np.testing.assert_allclose(a, b.numpy(), atol=1e-5)


def test_whisper_s_shares_are_those_of_the_native_loader(tmp_path: Path) -> None:
    (tmp_path / "whisper").mkdir()
    model, paths, heard = made.listening(tmp_path / "whisper", 4)
    said = ["w1 w2 w3 w4", "w2 w2", "w9 w1 w7", "w5 w4 w3 w2 w1"]
    (tmp_path / "sounds.tsv").write_text("".join(f"{path.name}\t{text}\n" for path, text in zip(paths, said, strict=True)))
    native = crosslens.load(tmp_path / "whisper").explain(corpus=tmp_path / "sounds.tsv", held_out=False, causal=0, progress=False)
    words = [native.words(sample) for sample in range(4)]
    assert all(len(found.fed) >= len(text.split()) for found, text in zip(words, said, strict=True))

    # Frames have no tokens: the native loader's codes stand for them on both sides.
    names = sorted({name for found in words for name in found.source})
    codes = torch.tensor([[names.index(name) for name in found.source] for found in words])
    numbers = {name: place for place, name in enumerate([*made.WORDS, "</s>", "<s>"])}
    longest = max(len(found.fed) for found in words)
    fed = torch.full((4, longest), numbers["</s>"])
    for row, found in zip(fed, words, strict=True):
        row[: len(found.fed)] = torch.tensor([numbers[name] for name in found.fed])
    lengths = torch.tensor([len(found.fed) for found in words])
    mask = torch.arange(longest)[None] < lengths[:, None]

    def read(given: Any) -> crosslens.torch.Batch:
        return crosslens.torch.Batch(codes, given["decoder_input_ids"], target_mask=mask, source_names=names)

    explained = crosslens.torch.explain(model, [{"input_features": heard, "decoder_input_ids": fed}], read=read)
    np.testing.assert_allclose(explained.shares, native.shares, atol=1e-4)
    np.testing.assert_allclose(explained.attentions, native.attentions, atol=1e-4)
    with pytest.raises(crosslens.ExplainError, match="reads sounds or pictures"):
        crosslens.load(tmp_path / "whisper").fit(corpus=tmp_path / "sounds.tsv", progress=False)


def pairs(n: int, full: bool = False) -> list[dict[str, Any]]:
    torch.manual_seed(5)
    calls = []
    for _ in range(n):
        lengths = torch.full((4,), 8) if full else torch.randint(3, 9, (4,))
        calls.append({"source": torch.randint(0, 20, (4, 8)), "target": torch.randint(0, 20, (4, 5)), "lengths": lengths})
    return calls


def read(given: Any) -> crosslens.torch.Batch:
    mask = torch.arange(given["source"].shape[1])[None] < given["lengths"][:, None]
    return crosslens.torch.Batch(given["source"], given["target"], source_mask=mask)


def test_a_hand_written_network_is_explained() -> None:
    torch.manual_seed(6)
    model = made.HandWritten().eval()
    with torch.no_grad():
        model.attention.in_proj_weight.mul_(4)
    calls = pairs(6)
    found = crosslens.torch.explain(model, calls, read=read, keep=24)
    assert [(site.kind, site.layer, site.head) for site in found.sites] == [("cross", 0, head) for head in range(3)]
    shares = found.shares[0]
    np.testing.assert_allclose(shares.sum((1, 2)), 1.0, atol=1e-5)

    states, queries, tokens_k, tokens_q = [], [], [], []
    with torch.no_grad():
        for call in calls:
            keys, last = model.reads(model.words(call["source"].t()))
            asks, _ = model.writes(model.words(call["target"].t()), last)
            for sentence in range(4):
                length = int(call["lengths"][sentence])
                states.append(keys[:length, sentence].double().numpy())
                queries.append(asks[:, sentence].double().numpy())
                tokens_k.append(call["source"][sentence, :length].numpy())
                tokens_q.append(call["target"][sentence].numpy())
    for head in range(3):
        ours = _shares(model.attention, head, queries, tokens_q, states, tokens_k)
        np.testing.assert_allclose(shares[head], ours, atol=1e-4, err_msg=f"head {head}")


def _shares(attention: Any, head: int, queries: list[Any], tokens_q: list[Any], states: list[Any], tokens_k: list[Any]) -> Any:
    """The centred shares of one head of an `nn.MultiheadAttention`, from nothing but the definitions."""
    weights, biases = attention.in_proj_weight.detach().double().numpy(), attention.in_proj_bias.detach().double().numpy()
    d, d_head = attention.embed_dim, attention.head_dim
    (mu_q, chi_q), (mu_k, chi_k) = _means(queries, tokens_q), _means(states, tokens_k)
    covariance, variance = np.zeros((3, 3)), 0.0
    for state, query, of_k, of_q in zip(states, queries, tokens_k, tokens_q, strict=True):
        parts = []
        for h, tokens, mu, chi, first in ((query, of_q, mu_q, chi_q, 0), (state, of_k, mu_k, chi_k, d)):
            rows = slice(first + head * d_head, first + (head + 1) * d_head)
            inputs = np.stack([chi[token] for token in tokens])
            split = [mu[: len(h)], inputs, h - mu[: len(h)] - inputs]
            mapped = [part @ weights[rows].T for part in split]
            mapped[0] = mapped[0] + biases[rows]
            parts.append(mapped)
        terms = np.array([[q @ k.T / d_head**0.5 for k in parts[1]] for q in parts[0]])
        score = terms.sum((0, 1))
        deviation = score - score.mean(-1, keepdims=True)
        variance += (deviation**2).mean(-1).sum()
        covariance += (terms * deviation).mean(-1).sum(-1)
    return covariance / variance


def _means(rows: list[Any], tokens: list[Any]) -> tuple[Any, dict[int, Any]]:
    steps = max(len(row) for row in rows)
    mu = np.stack([np.mean([row[t] for row in rows if len(row) > t], axis=0) for t in range(steps)])
    places: dict[int, list[Any]] = {}
    for row, words in zip(rows, tokens, strict=True):
        for step, (state, word) in enumerate(zip(row, words, strict=True)):
            places.setdefault(int(word), []).append(state - mu[step])
    return mu, {word: np.mean(left, axis=0) for word, left in places.items()}


def test_nn_transformer_is_explained_with_its_self_attention() -> None:
    torch.manual_seed(8)
    model = made.Transformer().eval()
    calls = pairs(5)
    found = crosslens.torch.explain(model, calls, read=read, self_attention=True)
    kinds = [site.kind for site in found.sites]
    assert kinds.count("cross") == kinds.count("encoder-self") == kinds.count("decoder-self") == 4
    for kind in ("cross", "encoder-self", "decoder-self"):
        for layer in found.shares_of(kind):
            np.testing.assert_allclose(layer.sum((1, 2)), 1.0, atol=1e-5)
    assert torch.backends.mha.get_fastpath_enabled(), "PyTorch's own settings are put back"
    own = found.decoder_attentions[0][0, 0]
    assert not np.triu(own, 1).any(), "a decoder sees no step to come"

    # What the first layer of the decoder asks and is asked, put together from the layers themselves.
    states, queries, tokens_k, tokens_q = [], [], [], []
    layer = model.transformer.decoder.layers[0]
    with torch.no_grad():
        for call in calls:
            padding = torch.arange(8)[None] >= call["lengths"][:, None]
            keys = model.transformer.encoder(model.embed(call["source"]), src_key_padding_mask=padding)
            fed = model.embed(call["target"])
            later = torch.ones(5, 5, dtype=torch.bool).triu(1)
            asks = layer.norm1(fed + layer.self_attn(fed, fed, fed, attn_mask=later, need_weights=False)[0])
            for sentence, length in enumerate(call["lengths"].tolist()):
                states.append(keys[sentence, :length].double().numpy())
                queries.append(asks[sentence].double().numpy())
                tokens_k.append(call["source"][sentence, :length].numpy())
                tokens_q.append(call["target"][sentence].numpy())
    for head in range(2):
        ours = _shares(layer.multihead_attn, head, queries, tokens_q, states, tokens_k)
        np.testing.assert_allclose(found.shares[0][head], ours, atol=1e-4, err_msg=f"head {head}")


@pytest.mark.parametrize("size", [1.0, 1e-5])
@pytest.mark.parametrize("kind", ["turning", "rotary"])
def test_attention_that_fits_no_score_map_is_named(kind: str, size: float) -> None:
    torch.manual_seed(9)
    plain, turned = made.Turning(False).eval(), (made.Turning(True) if kind == "turning" else made.Rotary()).eval()
    turned.load_state_dict(plain.state_dict())
    for model in (plain, turned):
        with torch.no_grad():
            # However small what is summed: the difference is one of attention.
            model.attention.v.weight.mul_(size)
            model.attention.v.bias.mul_(size)
    assert crosslens.torch.explain(plain, pairs(1, full=True), read=read).n_sentences == 4
    with pytest.raises(crosslens.ExplainError, match=r"module `attention` .* differs by"):
        crosslens.torch.explain(turned, pairs(1, full=True), read=read)
    assert not turned.attention.q._forward_hooks, "hooks are gone"


@pytest.mark.parametrize("kind", ["turning", "rotary", "leaning"])
def test_what_all_values_share_hides_no_other_attention(kind: str) -> None:
    torch.manual_seed(9)
    made_of: dict[str, Any] = {"turning": lambda: made.Turning(True), "rotary": made.Rotary, "leaning": lambda: made.Leaning(2.0)}
    other = made_of[kind]().eval()
    plain = (made.Leaning(0.0) if kind == "leaning" else made.Turning(False)).eval()
    plain.load_state_dict(other.state_dict())
    for model in (plain, other):
        with torch.no_grad():
            if kind == "leaning":
                model.attention.in_proj_weight.mul_(4)
                model.attention.in_proj_bias[24:] = 2e4
            else:
                model.attention.v.bias.fill_(2e4)
    assert crosslens.torch.explain(plain, pairs(1, full=True), read=read).n_sentences == 4, "rounding is no other attention"
    with pytest.raises(crosslens.ExplainError, match=r"module `attention` .* differs by"):
        crosslens.torch.explain(other, pairs(1, full=True), read=read)


@pytest.mark.parametrize("d_value", [12, 5])
def test_values_may_be_of_other_states_than_keys(d_value: int) -> None:
    torch.manual_seed(10)
    model = made.Apart(d_value).eval()
    calls = pairs(1, full=True)
    with crosslens.torch.record(model, read=read) as recorder, torch.no_grad():
        model(**calls[0])
    with recorder.again(), torch.no_grad():
        model(**calls[0])
    np.testing.assert_allclose(recorder.explain().attentions[0].mean(1), model.weights.numpy(), atol=1e-5)
    assert recorder._description is not None
    for name, arguments in recorder._description.calls:
        if name == "add_site":
            weights, bias = arguments[-1]
            assert not weights.any() and bias == [1.0], "the keys' states are not taken for what is summed"


@pytest.mark.parametrize(("attention", "kind"), [("local", "LongT5LocalAttention"), ("transient-global", "LongT5TransientGlobalAttention")])
def test_sparse_attention_is_refused_by_name(attention: str, kind: str) -> None:
    model = made.long_t5(attention)
    batches = made.batches(*made.sentences(6), 6)
    assert len(crosslens.torch.explain(model, batches).shares) == 2, "what the decoder looks at is not sparse"
    with pytest.raises(crosslens.ExplainError, match=rf"module `encoder\.block\.0\..*` \({kind}\) .*sparse and windowed attention.*no score map"):
        crosslens.torch.explain(model, batches, self_attention=True)


def test_a_bias_that_is_none_of_queries_and_keys_is_refused_by_name() -> None:
    model = made.seq2seq("t5")
    first = model.get_decoder().block[0].layer[0].SelfAttention
    compute = first.compute_bias
    first.compute_bias = lambda *lengths, **options: compute(*lengths, **options)[:, :1]
    with pytest.raises(crosslens.ExplainError, match=r"module `decoder\.block\.0\.layer\.0\.SelfAttention` .*no bias of a query and a key"):
        crosslens.torch.explain(model, made.batches(*made.sentences(4), 4), self_attention=True)


def test_a_device_without_double_precision_is_left_for_the_cpu() -> None:
    class OfApple:
        device = torch.device("mps")

        def cpu(self) -> torch.Tensor:
            return torch.ones(2)

        def double(self) -> torch.Tensor:
            raise TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64")

    assert precise(OfApple()).dtype == precise(torch.ones(2)).dtype == torch.float64


@pytest.mark.parametrize("is_given", [True, False])
def test_nothing_of_a_batch_is_kept(is_given: bool) -> None:
    model = made.seq2seq("bart")

    def run() -> list[weakref.ref[torch.Tensor]]:
        batch = made.batches(*made.sentences(4), 4)[0]
        if is_given:
            batch["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(batch["labels"])
        model(**batch)
        return [weakref.ref(tensor) for tensor in batch.values()]

    with crosslens.torch.record(model) as recorder, torch.no_grad():
        held = run()
        gc.collect()
        assert not any(tensor() is not None for tensor in held)
        assert all(attention.seen.query is None and attention.seen.weights is None for attention in recorder._attentions)
    with recorder.again(), torch.no_grad():
        held = run()
    gc.collect()
    assert recorder.explain().n_sentences == 4 and not any(tensor() is not None for tensor in held)


def test_batches_that_are_shuffled_between_the_passes_are_refused() -> None:
    from torch.utils.data import DataLoader

    model = made.seq2seq("bart")
    pairs: Any = list(zip(*made.sentences(12), strict=True))
    loader: Any = DataLoader(
        pairs,
        batch_size=4,
        shuffle=True,
        generator=torch.Generator().manual_seed(1),
        collate_fn=lambda rows: made.batches([source for source, _ in rows], [target for _, target in rows], 4)[0],
    )
    with pytest.raises(crosslens.ExplainError, match="other sentences .* in another order .there were 12, then 12.: .* unshuffled"):
        crosslens.torch.explain(model, loader)


def test_progress_is_told_in_batches() -> None:
    model = made.seq2seq("bart")
    batches = made.batches(*made.sentences(6), 2)

    class Unsized:
        def __iter__(self) -> Iterator[dict[str, Any]]:
            return iter(batches)

    for given, total in ((batches, 3), (Unsized(), 0)):
        told: list[tuple[str, int, int]] = []
        crosslens.torch.explain(model, given, progress=lambda *what: told.append(what))
        assert told == [*(("recording", n, total) for n in (1, 2, 3)), *(("splitting", n, 3) for n in (1, 2, 3))]


def test_a_recording_that_fails_leaves_no_folder(tmp_path: Path) -> None:
    model = made.seq2seq("marian")
    batches = made.batches(*made.sentences(8), 4)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), crosslens.torch.record(model, path=tmp_path / "recording"), torch.no_grad():
            model(**batches[0])
            assert (tmp_path / "recording").exists()
            raise ZeroDivisionError
        assert not (tmp_path / "recording").exists()
    with pytest.raises(ZeroDivisionError) as stopped, crosslens.torch.record(model, path=tmp_path / "recording"), torch.no_grad():
        model(**batches[0])
        (tmp_path / "recording/thesis.tex").write_text("ten years of work")
        raise ZeroDivisionError
    assert "thesis.tex" in stopped.value.__notes__[0] and (tmp_path / "recording/thesis.tex").exists()


def test_the_manual_s_example_runs() -> None:
    manual = (Path(__file__).parents[3] / "docs/python.md").read_text()
    example = re.search(r"\n\n((?:    .*\n)*    with crosslens\.torch\.record\(model\).*\n(?:    .*\n)*)", manual)
    assert example is not None
    given: dict[str, Any] = {"crosslens": crosslens, "model": made.seq2seq("bart"), "batches": made.batches(*made.sentences(8), 4)}
    with torch.no_grad():
        exec(textwrap.dedent(example.group(1)), given)
    assert given["explanation"].n_sentences == 8


def test_a_module_that_several_layers_share_is_named() -> None:
    model = made.Turning(False, n_calls=2).eval()
    with pytest.raises(crosslens.ExplainError, match=r"module `attention` ran 2 times"):
        crosslens.torch.explain(model, pairs(1, full=True), read=read)


@pytest.mark.parametrize("decoder", ["bert", "gpt2"])
def test_models_that_the_native_loader_does_not_open_are_found_by_structure(decoder: str) -> None:
    model = made.joined(decoder)
    batch = made.batches(*made.sentences(12), 12)[0]
    found = crosslens.torch.explain(model, [batch], keep=12, tokenizer=made.tokenizer(), self_attention=True)
    assert [len(found.shares_of(kind)) for kind in ("cross", "encoder-self", "decoder-self")] == [2, 2, 2]
    with torch.no_grad():
        configs = [part.config for part in model.modules() if hasattr(part, "config")]
        assert {config._attn_implementation for config in configs} == {"sdpa"}, "each part's own kernels are put back"
        for config in configs:
            config._attn_implementation = "eager"
        theirs = model(**batch, output_attentions=True).cross_attentions
    for layer, (ours, other) in enumerate(zip(found.attentions, theirs, strict=True)):
        for sample in range(12):
            words = found.words(sample)
            rows = slice(None), slice(len(words.fed)), slice(len(words.source))
            np.testing.assert_allclose(ours[sample][rows], other[sample][rows].numpy(), atol=1e-5, err_msg=f"layer {layer}")
    for site in found.report["sites"]:
        assert site["error"]["attention"] < 1e-4, "the model's own weights were compared"


def test_a_decoder_with_more_streams_than_tokens_is_refused_by_name() -> None:
    model = made.prophet()
    tokens = torch.randint(4, 40, (2, 6))
    with pytest.raises(crosslens.CrosslensError, match=r"module `prophetnet.decoder.layers.0.cross_attn`"):
        crosslens.torch.explain(model, [{"input_ids": tokens, "decoder_input_ids": tokens}])


def test_halves_are_those_of_the_native_loader(tmp_path: Path) -> None:
    model = made.seq2seq("bart")
    made.save(model, tmp_path)
    sources, targets = made.sentences(N)
    options: dict[str, Any] = {"held_out": True, "bootstrap": 20, "seed": 7}
    native = crosslens.load(tmp_path).explain(sources, targets, causal=0, progress=False, **options)
    found = crosslens.torch.explain(model, made.batches(sources, targets, 7), **options)
    assert found.n_sentences == native.n_sentences < N
    for ours, theirs in zip(found.shares, native.shares, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)
    for a, b in zip(found.report["sites"], native.report["sites"], strict=True):
        np.testing.assert_allclose(a["intervals"]["centred"], b["intervals"]["centred"], atol=1e-3)


def test_steps_without_a_label_leave_their_sentence_without_a_target() -> None:
    model = made.seq2seq("bart")
    batch = made.batches(*made.sentences(4), 4)[0]
    with torch.no_grad():
        batch["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(batch["labels"])
    batch["decoder_attention_mask"] = (batch["labels"] != -100).long()
    told = crosslens.torch.explain(model, [batch])
    batch["labels"] = batch["labels"].clone()
    batch["labels"][1, 1] = -100
    found = crosslens.torch.explain(model, [batch])
    assert [found.words(sample).target is None for sample in range(4)] == [False, True, False, False]
    assert all(told.words(sample).target == found.words(sample).target for sample in (0, 2, 3))
    assert found.report["task"]["loss"] != told.report["task"]["loss"]


def test_a_step_without_a_label_is_a_step_that_the_decoder_read() -> None:
    model = made.seq2seq("bart")
    batch = made.batches(*made.sentences(4), 4)[0]
    with torch.no_grad():
        batch["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(batch["labels"])
    told = crosslens.torch.explain(model, [batch])
    batch["labels"] = batch["labels"].clone()
    batch["labels"][1, 1] = -100
    found = crosslens.torch.explain(model, [batch])
    assert all(found.words(sample).fed == told.words(sample).fed for sample in range(4))
    assert [found.words(sample).target is None for sample in range(4)] == [False, True, False, False]
    for a, b in zip(found.shares, told.shares, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_the_geometry_of_states_is_had_and_what_is_not_is_refused(tmp_path: Path) -> None:
    model = made.seq2seq("marian")
    batches = made.batches(*made.sentences(N), 9)
    with crosslens.torch.record(model, path=tmp_path / "recording", geometry=True) as recorder, torch.no_grad():
        for batch in batches:
            model(**batch)
    with recorder.again(), torch.no_grad():
        for batch in batches:
            model(**batch)
    ours = recorder.explain().report["geometry"]
    theirs = crosslens.load(tmp_path / "recording").explain(geometry=True, progress=False).report["geometry"]
    assert ours is not None and len(ours["frames"]) == len(theirs["frames"]) > 0
    for a, b in zip(ours["frames"], theirs["frames"], strict=True):
        np.testing.assert_allclose(a["shares"], b["shares"], atol=1e-6)
    for name in ("causal", "rerun", "samples"):
        options: dict[str, Any] = {name: 1}
        with pytest.raises(crosslens.ConfigError, match=f"`{name}` is no option"):
            crosslens.torch.explain(model, batches, **options)


def test_what_bertviz_draws_has_the_shape_it_asks_for() -> None:
    model = made.seq2seq("bart")
    found = crosslens.torch.explain(model, made.batches(*made.sentences(5), 5), keep=5)
    for sample in range(5):
        words = found.words(sample)
        one = slice(sample, sample + 1)
        layers = [torch.from_numpy(layer[one, :, : len(words.fed), : len(words.source)]) for layer in found.attentions]
        # bertviz.util.format_attention: four axes each, one sentence, stacked; head_view: as many rows and columns as there are words.
        assert all(layer.ndim == 4 and layer.shape[0] == 1 for layer in layers)
        drawn = torch.stack([layer.squeeze(0) for layer in layers])
        assert drawn.shape == (2, 2, len(words.fed), len(words.source))
        torch.testing.assert_close(drawn.sum(-1), torch.ones(drawn.shape[:-1]), atol=1e-5, rtol=0)


def test_sums_of_a_model_and_of_its_fine_tune_are_not_added() -> None:
    batch = made.batches(*made.sentences(4), 4)[0]

    def sums(model: torch.nn.Module) -> crosslens.Sums:
        with crosslens.torch.record(model) as recorder, torch.no_grad():
            model(**batch)
        return recorder.sums

    model = made.seq2seq("bart")
    before = sums(model)
    assert (before + sums(model))["encoder"].n_states == 2 * before["encoder"].n_states
    with torch.no_grad():
        # What a fine-tune with frozen attention may change.
        model.get_encoder().layers[0].fc1.weight[0, 0] += 0.5
    with pytest.raises(crosslens.MergeError, match="two models"):
        before + sums(model)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_named_and_not_taken_for_another_attention(dtype: torch.dtype) -> None:
    model = made.seq2seq("bart")
    with torch.no_grad():
        # Scores of some size, as of trained models: rounding then shows.
        for parameter in model.parameters():
            parameter.mul_(4)
    batches = made.batches(*made.sentences(4), 4)
    with pytest.raises(crosslens.ExplainError, match=f"computes in {str(dtype)[6:]}.*model.float"):
        crosslens.torch.explain(model.to(dtype), batches)
    assert crosslens.torch.explain(model.float(), batches).n_sentences == 4


def test_models_that_cannot_be_recorded_say_why() -> None:
    model = made.seq2seq("bart")
    batch = made.batches(*made.sentences(2), 2)[0]
    with pytest.raises(crosslens.ExplainError, match="no attention"):
        crosslens.torch.record(torch.nn.Linear(2, 2))
    with pytest.raises(crosslens.ExplainError, match="training mode"), crosslens.torch.record(model.train()):
        pass
    model.eval()
    with pytest.raises(crosslens.CrosslensError), crosslens.torch.record(model), torch.no_grad():
        model.generate(batch["input_ids"], max_new_tokens=4, num_beams=1)
    with pytest.raises(crosslens.ArrayError, match="twice"):
        crosslens.torch.explain(model, iter([batch]))
    with crosslens.torch.record(model) as recorder, torch.no_grad():
        model(**batch)
    with pytest.raises(crosslens.ExplainError, match="both passes"):
        recorder.explain()


def test_a_recording_is_written_beside(tmp_path: Path) -> None:
    model = made.seq2seq("marian")
    batches = made.batches(*made.sentences(N), 9)
    with crosslens.torch.record(model, path=tmp_path / "recording") as recorder, torch.no_grad():
        for batch in batches:
            model(**batch)
    with recorder.again(), torch.no_grad():
        for batch in batches:
            model(**batch)
    found, recorded = recorder.explain(), crosslens.load(tmp_path / "recording").explain(progress=False)
    for a, b in zip(found.shares, recorded.shares, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)
    assert list(recorder.sums) == ["cross.0", "encoder", "cross.1"]


def test_torch_s_memory_is_read_where_it_lies() -> None:
    from crosslens._arrays import floats

    tensor = torch.randn(3, 4, 5, requires_grad=True)
    assert floats(tensor, "states", 3).ctypes.data == tensor.data_ptr()
