"""BertViz draws what the package gives it."""

from __future__ import annotations

import bertviz
import pytest
import torch
import torch_models as made

import crosslens.torch

pytestmark = pytest.mark.heavy


@pytest.mark.parametrize("view", ["head_view", "model_view"])
def test_bertviz_draws_all_three_kinds_of_attention(view: str) -> None:
    model = made.seq2seq("bart")
    found = crosslens.torch.explain(
        model, made.batches(*made.sentences(3), 3), keep=3, self_attention=True, tokenizer=made.tokenizer(), progress=False
    )
    for sample in range(3):
        words = found.words(sample)
        queries, keys = slice(len(words.fed)), slice(len(words.source))
        drawn = getattr(bertviz, view)(
            encoder_attention=[torch.from_numpy(layer[sample : sample + 1, :, keys, keys]) for layer in found.encoder_attentions],
            decoder_attention=[torch.from_numpy(layer[sample : sample + 1, :, queries, queries]) for layer in found.decoder_attentions],
            cross_attention=[torch.from_numpy(layer[sample : sample + 1, :, queries, keys]) for layer in found.attentions],
            encoder_tokens=list(words.source),
            decoder_tokens=list(words.fed),
            html_action="return",
        )
        assert all(word in drawn.data for word in (words.source[0], words.fed[-1])), "the words stand in the page"
        if view == "head_view":
            # Weights are written as numbers into its script.
            weight = float(found.attentions[0][sample, 0, 0, 0])
            assert str(weight)[:6] in drawn.data
