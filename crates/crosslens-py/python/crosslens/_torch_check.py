"""Whether a module attends as its score map says: its attention computed again, and compared with what it did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from ._native import ArrayError, ExplainError
from ._torch_attention import NO_SCORE_MAP, Attention
from ._torch_tensors import Side, Tensor, precise

TOLERANCE = 1e-4
"""Attention that differs by more from what its score map gives is refused."""

_ROUNDING = 16 * torch.finfo(torch.float32).eps
"""What sums of numbers may be off by for single precision, over the largest they could come to."""


def fit_score_map(attention: Attention, sides: Mapping[str, Side]) -> None:
    """Finds the scale, the bias and the mask under which the map gives what the module did."""
    biases = [attention.biased_by] if attention.biased_by is not None else [None]
    # A decoder that looks at itself sees no step to come; other attention may be found causal, and must then say so itself.
    masks = [True, False] if attention.kind == "decoder-self" else [False]
    nearest = float("inf")
    for scale in attention.scales:
        for biased_by in biases:
            for causal in masks:
                attention.scale, attention.biased_by, attention.causal = scale, biased_by, causal
                difference = _difference(attention, sides)
                if difference <= TOLERANCE:
                    return
                nearest = min(nearest, difference)
    raise _refused(attention, nearest)


def check_attention(attention: Attention, sides: Mapping[str, Side]) -> None:
    if attention.seen.query is None or attention.seen.key is None:
        raise ExplainError(f"module `{attention.name}` ran in the first call and not in this one")
    difference = _difference(attention, sides)
    if not difference <= TOLERANCE:
        raise _refused(attention, difference)


def _refused(attention: Attention, difference: float) -> ExplainError:
    seen = attention.seen
    halves = [x.dtype for x in (seen.weights, seen.context, seen.query, seen.key) if x is not None and x.element_size() == 2]
    if halves:
        return ExplainError(
            f"module `{attention.name}` ({type(attention.module).__name__}) computes in {str(halves[0]).removeprefix('torch.')}, which rounds its "
            f"attention: computed again it differs by {difference:.2g}, more than {TOLERANCE:g}. model.float() first, outside of autocast"
        )
    return ExplainError(
        f"module `{attention.name}` ({type(attention.module).__name__}) attends otherwise than by a softmax of products of its query and key maps: "
        f"computed again from these its attention differs by {difference:.2g}, more than {TOLERANCE:g}. {NO_SCORE_MAP}"
    )


def _difference(attention: Attention, sides: Mapping[str, Side]) -> float:
    """The largest difference of the attention computed again: of weights where the module returned them, else of what it summed, over how far
    values lie from their mean. Rows of attention sum to 1, so what the values of a sentence have in common is summed whatever is looked at."""
    seen = attention.seen
    if seen.n_queries != seen.n_keys:
        raise ExplainError(
            f"module `{attention.name}` ({type(attention.module).__name__}) maps queries {seen.n_queries} times and keys {seen.n_keys} times in one "
            f"call of the model, so that there is no one key for each token. {NO_SCORE_MAP}"
        )
    if seen.n_queries > 1:
        raise ExplainError(
            f"module `{attention.name}` ran {seen.n_queries} times in one call of the model: layers that share one attention "
            "are not told apart yet"
        )
    query_side = sides["source" if attention.kind == "encoder-self" else "target"]
    key_side = sides["target" if attention.kind == "decoder-self" else "source"]
    fits = seen.query.shape[1] == query_side.mask.shape[1] and seen.key.shape[1] == key_side.mask.shape[1]
    if not fits or seen.query.shape[0] != query_side.mask.shape[0]:
        raise ArrayError(
            f"module `{attention.name}` saw {tuple(seen.query.shape[:2])} queries and {tuple(seen.key.shape[:2])} keys, but there are "
            f"{tuple(query_side.mask.shape)} and {tuple(key_side.mask.shape)} tokens: run the model on whole sentences, not step by step"
        )
    # Whatever the model computes in, the comparison is not what should round.
    of_query, of_key, of_value = attention.maps()
    projected = [_mapped(seen.query, of_query), _mapped(seen.key, of_key)]
    if projected[0].shape[-1] != projected[1].shape[-1]:
        raise ExplainError(f"module `{attention.name}` has fewer maps of keys than of queries: heads that share keys are not explained yet")
    device = projected[0].device
    query, key = (_by_head(x, attention.n_heads) for x in projected)
    scores = query @ key.transpose(-1, -2) * attention.scale
    bias = attention.bias(scores.shape[-2], scores.shape[-1])
    if bias is not None:
        scores = scores + precise(bias)
    visible = key_side.mask.to(device)[:, None, None, :]
    if attention.causal:
        visible = visible & torch.ones(scores.shape[-2:], dtype=torch.bool, device=device).tril()
    # A query that sees nothing is not compared.
    weights = scores.masked_fill(~visible, -1e30).softmax(-1)
    asks = query_side.mask.to(device)
    if seen.weights is not None:
        gap = (weights - precise(seen.weights)).abs().amax((1, 3))
        return float(gap[asks].max())
    if seen.value is None or seen.context is None:
        raise _hidden(attention)
    value = _by_head(_mapped(seen.value, of_value), attention.n_heads)
    counts = key_side.mask.to(device)[:, None, :, None]
    mean = (value * counts).sum(2, keepdim=True) / counts.sum(2, keepdim=True)
    # Alike `[sentence, step, head·d]`: what was summed, how far values lie from their mean, and how large they are.
    context, spread, size = (x.transpose(1, 2).flatten(2) for x in (weights @ value, (value - mean) * counts, value.abs() * counts))
    if attention.query is None:
        module: Any = attention.module
        weight, bias = precise(module.out_proj.weight), module.out_proj.bias
        context, spread, size = (nn.functional.linear(x, w) for x, w in ((context, weight), (spread, weight), (size, weight.abs())))
        if bias is not None:
            context, size = context + precise(bias), size + precise(bias).abs()
    if seen.context.shape != context.shape:
        raise _hidden(attention)
    gap = (context - precise(seen.context)).abs().amax(2)[asks].max()
    # Large values with little between them leave a difference that is rounding alone.
    gap = (gap - _ROUNDING * size.max()).clamp(min=0)
    farthest = spread.abs().max()
    return float(gap / farthest) if farthest > 0 else float(gap)


def _mapped(states: Tensor, linear: tuple[Tensor, Tensor | None]) -> Tensor:
    weight, bias = linear
    return nn.functional.linear(precise(states), precise(weight), None if bias is None else precise(bias))


def _by_head(states: Tensor, n_heads: int) -> Tensor:
    """`[sentence, step, head·d]` as `[sentence, head, step, d]`."""
    return states.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def _hidden(attention: Attention) -> ExplainError:
    return ExplainError(f"module `{attention.name}` shows neither its attention nor what it summed: nothing can be held against it")


def is_distribution(weights: Tensor) -> bool:
    sums = precise(weights.detach()).sum(-1)
    return bool((sums - 1.0).abs().max() < 1e-2) and bool(weights.min() >= 0)
