"""Attention modules of PyTorch, found by structure: their maps, and what they did in a call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from ._explanation import Kind
from ._native import ExplainError
from ._torch_tensors import Tensor, to_numpy

NO_SCORE_MAP = "Rotary, sparse and windowed attention, and generation step by step from a cache, fit no score map"
_MAP_NAMES = (
    ("q_proj", "k_proj", "v_proj"),
    ("q", "k", "v"),
    ("query", "key", "value"),
    ("query_proj", "key_proj", "value_proj"),
    ("q_lin", "k_lin", "v_lin"),
    ("to_q", "to_k", "to_v"),
)
_OUTPUT_NAMES = ("out_proj", "o_proj", "o", "out", "dense", "output", "out_lin", "to_out", "c_proj")
_HEADS_NAMES = ("num_heads", "n_heads", "num_attention_heads", "num_attn_heads", "n_head")


@dataclass
class Linear:
    """`x·W + b` with `W` `[d_in, d_out]`, on the CPU."""

    weight: Any
    bias: Any | None

    @classmethod
    def of(cls, weight: Tensor, bias: Tensor | None) -> Linear:
        return cls(to_numpy(weight.t()), None if bias is None else to_numpy(bias))

    def head(self, head: int, d_head: int) -> tuple[Any, Any | None]:
        columns = slice(head * d_head, (head + 1) * d_head)
        bias = None if self.bias is None else np.ascontiguousarray(self.bias[columns])
        return np.ascontiguousarray(self.weight[:, columns]), bias


@dataclass
class Map:
    """A module's map of queries, keys or values: a linear layer, or one of several equal parts of what it makes."""

    module: Any
    part: int = 0
    of: int = 1

    @staticmethod
    def fits(module: object) -> bool:
        # GPT-2's Conv1D is a linear layer with its weights the other way round.
        return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"

    def weights(self) -> tuple[Tensor, Tensor | None]:
        """`[d_out, d_in]` and `[d_out]`."""
        weight, bias = self.module.weight, self.module.bias
        weight = weight if isinstance(self.module, nn.Linear) else weight.t()
        return weight.chunk(self.of)[self.part], None if bias is None else bias.chunk(self.of)[self.part]


@dataclass
class Seen:
    """What a module did in the call at hand."""

    query: Tensor = None
    key: Tensor = None
    value: Tensor = None
    context: Tensor = None
    """What it summed: before its output map, `[sentence, step, head·d]`, or after it where that is `nn.MultiheadAttention`'s."""
    weights: Tensor = None
    """Its own attention, where it returns it."""
    n_queries: int = 0
    n_keys: int = 0
    """How often it mapped queries and keys."""

    def sees_query(self, states: Tensor) -> None:
        # What comes first is what the module was given; keys that come after are its own, such as summaries of blocks.
        self.query, self.n_queries = states.detach() if self.query is None else self.query, self.n_queries + 1

    def sees_key(self, states: Tensor) -> None:
        self.key, self.n_keys = states.detach() if self.key is None else self.key, self.n_keys + 1

    def sees_value(self, states: Tensor) -> None:
        self.value = states.detach() if self.value is None else self.value

    def looks_at_itself(self) -> bool:
        """Whether queries and keys are the same states."""
        return _are_same(self.query, self.key)

    def sums_its_keys(self) -> bool:
        """Whether values are of the same states as keys, and not, say, of states without the positions that keys have."""
        return self.value is not None and _are_same(self.value, self.key)


def _are_same(left: Tensor, right: Tensor) -> bool:
    """The same memory, since detached tensors are objects of their own."""
    return bool(left.data_ptr() == right.data_ptr() and left.shape == right.shape)


@dataclass
class Attention:
    """One attention module."""

    name: str
    module: nn.Module
    n_heads: int
    scales: list[float]
    query: Map | None
    key: Map | None
    value: Map | None
    output: nn.Module | None
    """`None` where another module has it: what this one returns is then what it summed."""
    kind: Kind | None = None
    layer: int = 0
    causal: bool = False
    scale: float = 1.0
    biased_by: nn.Module | None = None
    checked: bool = False
    seen: Seen = field(default_factory=Seen)

    def maps(self) -> tuple[tuple[Tensor, Tensor | None], ...]:
        """Weights `[d_out, d_in]` and biases of query, key and value."""
        if self.query is not None and self.key is not None and self.value is not None:
            return tuple(found.weights() for found in (self.query, self.key, self.value))
        module: Any = self.module
        if module.in_proj_weight is not None:
            weights = module.in_proj_weight.chunk(3)
        else:
            weights = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
        biases = (None, None, None) if module.in_proj_bias is None else module.in_proj_bias.chunk(3)
        return tuple(zip(weights, biases, strict=True))

    def bias(self, n_queries: int, n_keys: int) -> Tensor | None:
        """The bias of distances, `[head, query, key]`."""
        if self.biased_by is None:
            return None
        biased: Any = self.biased_by
        try:
            found = biased.compute_bias(n_queries, n_keys)[0]
        except Exception as error:
            # Biases of blocks and windows are asked for otherwise.
            raise refused_bias(self, str(error)) from error
        if not torch.is_tensor(found) or tuple(found.shape) != (self.n_heads, n_queries, n_keys):
            raise refused_bias(self, f"it is {list(found.shape) if torch.is_tensor(found) else type(found).__name__}")
        return found


def find_attention(model: nn.Module) -> list[Attention]:
    """Attention modules by structure, in the order in which they stand in the model."""
    found: list[Attention] = []
    for name, module in model.named_modules():
        if isinstance(module, nn.MultiheadAttention):
            if module.bias_k is not None or module.add_zero_attn:
                raise ExplainError(f"module `{name}` adds keys of its own (add_bias_kv, add_zero_attn), which no score map has")
            found.append(Attention(name, module, module.num_heads, [module.head_dim**-0.5], None, None, None, None))
            continue
        children = dict(module.named_children())
        maps = _maps(children)
        n_heads = next((getattr(module, a) for a in _HEADS_NAMES if isinstance(getattr(module, a, None), int)), None)
        if maps is None or not n_heads:
            continue
        output = next((children[child] for child in _OUTPUT_NAMES if Map.fits(children.get(child))), None)
        known = [getattr(module, a) for a in ("scaling", "scale") if isinstance(getattr(module, a, None), float)]
        scales = list(dict.fromkeys([*known, (maps[0].weights()[0].shape[0] // n_heads) ** -0.5, 1.0]))
        found.append(Attention(name, module, n_heads, scales, *maps, output))
    return found


def _maps(children: Mapping[str, nn.Module]) -> tuple[Map, Map, Map] | None:
    """The maps of queries, keys and values among a module's parts."""
    for names in _MAP_NAMES:
        if all(Map.fits(children.get(name)) for name in names):
            query, key, value = (Map(children[name]) for name in names)
            return query, key, value
    joint, alone = children.get("c_attn"), children.get("q_attn")
    if not Map.fits(joint):
        return None
    if Map.fits(alone):
        return Map(alone), Map(joint, 0, 2), Map(joint, 1, 2)
    return Map(joint, 0, 3), Map(joint, 1, 3), Map(joint, 2, 3)


def by_distance(attention: Attention, head: int) -> tuple[int, list[float]] | None:
    """The bias of key minus query, out to where it no longer changes."""
    if attention.biased_by is None:
        return None
    farthest = int(getattr(attention.biased_by, "relative_attention_max_distance", 128))
    bias = attention.bias(farthest + 1, farthest + 1)
    assert bias is not None
    matrix = to_numpy(bias[head])
    return -farthest, [*matrix[1:, 0][::-1].tolist(), *matrix[0].tolist()]


def refused_bias(attention: Attention, why: str) -> ExplainError:
    return ExplainError(
        f"module `{attention.name}` ({type(attention.module).__name__}) adds to its scores what is no bias of a query and a key ({why}). {NO_SCORE_MAP}"
    )
