"""Encoder-decoder models that run in PyTorch, explained while they run.

    with crosslens.torch.record(model) as recorder:      # first pass: every batch goes into sums, nothing stays on the device
        for batch in batches:
            model(**batch)
    with recorder.again():                               # second pass over the same batches: shares
        for batch in batches:
            model(**batch)
    explanation = recorder.explain()

or, in one call, `crosslens.torch.explain(model, batches)`.

Attention modules are found by structure: `nn.MultiheadAttention`, and any module that says how many heads it has and holds maps of queries, keys
and values, under one of the names that are in use (`q_proj, k_proj, v_proj`; `q, k, v`; `query, key, value`; GPT-2's `c_attn` and `q_attn`; …).
Their inputs are the states, their weights the score map. In every batch the attention is computed again from these and compared with what the
module did; where it differs by more than 1e-4 the module is named and refused.
"""

from __future__ import annotations

import hashlib
import inspect
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from torch import nn

from . import _native
from ._components import Path, Sums
from ._explanation import Explanation, Kind
from ._native import ArrayError, ExplainError, FileError
from ._options import NOT_RECORDED, refuse
from ._progress import Bar, Progress

__all__ = ["Batch", "Recorder", "explain", "record"]

TOLERANCE = 1e-4
"""Attention that differs by more from what its score map gives is refused."""

_NO_SCORE_MAP = "Rotary, sparse and windowed attention, and generation step by step from a cache, fit no score map"
_UNKNOWN = 2**31 - 1
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
Tensor: TypeAlias = Any


@dataclass
class Batch:
    """What a call of the model read: token numbers `[sentence, step]`, and how many of each sentence's steps count.

    `target` is what the decoder reads. Steps that count need not come first, where a mask `[sentence, step]` says which they are.
    """

    source: Tensor
    target: Tensor
    source_mask: Tensor | None = None
    target_mask: Tensor | None = None
    labels: Tensor | None = None
    """What the decoder should write, `[sentence, step]`; −100 where nothing. A sentence with such a step among those that count has no target."""
    source_names: Sequence[str] | None = None
    """The names of the source's tokens, where these are no tokens of a tokenizer, such as codes of sounds."""


Reader: TypeAlias = Callable[[Mapping[str, Any]], Batch]


@dataclass
class _Linear:
    """`x·W + b` with `W` `[d_in, d_out]`, on the CPU."""

    weight: Any
    bias: Any | None

    @classmethod
    def of(cls, weight: Tensor, bias: Tensor | None) -> _Linear:
        return cls(_numpy(weight.t()), None if bias is None else _numpy(bias))

    def head(self, head: int, d_head: int) -> tuple[Any, Any | None]:
        columns = slice(head * d_head, (head + 1) * d_head)
        bias = None if self.bias is None else np.ascontiguousarray(self.bias[columns])
        return np.ascontiguousarray(self.weight[:, columns]), bias


@dataclass
class _Map:
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
class _Seen:
    """What a module did in the call at hand."""

    query: Tensor = None
    key: Tensor = None
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

    def looks_at_itself(self) -> bool:
        """Whether queries and keys are the same states: the same memory, since detached tensors are objects of their own."""
        return bool(self.query.data_ptr() == self.key.data_ptr() and self.query.shape == self.key.shape)


@dataclass
class _Attention:
    """One attention module."""

    name: str
    module: nn.Module
    n_heads: int
    scales: list[float]
    query: _Map | None
    key: _Map | None
    value: _Map | None
    output: nn.Module | None
    """`None` where another module has it: what this one returns is then what it summed."""
    kind: Kind | None = None
    layer: int = 0
    causal: bool = False
    scale: float = 1.0
    biased_by: nn.Module | None = None
    checked: bool = False
    seen: _Seen = field(default_factory=_Seen)

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
            raise _refused_bias(self, str(error)) from error
        if not torch.is_tensor(found) or tuple(found.shape) != (self.n_heads, n_queries, n_keys):
            raise _refused_bias(self, f"it is {list(found.shape) if torch.is_tensor(found) else type(found).__name__}")
        return found


def record(
    model: nn.Module,
    *,
    self_attention: bool = False,
    read: Reader | None = None,
    sides: Mapping[str, Literal["source", "target"]] | None = None,
    tokenizer: Any = None,
    keep: int = 8,
    path: Path | None = None,
    overwrite: bool = False,
    **options: Any,
) -> Recorder:
    """Records what the model's attention sees while it runs, inside a `with` block.

    `read` says which tokens a call read, from its arguments by name; transformers' encoder-decoders need none. `sides` says of self-attention
    modules, by name, whose steps they look at, where no `encoder` or `decoder` in the name does. `tokenizer` names tokens. `keep` sentences are
    shown in full. With `path` a recording is written too, for `crosslens.load`. Further options are those of `Model.explain`, but for those that
    run the model again.
    """
    refuse(options, NOT_RECORDED, "a recorder")
    return Recorder(model, self_attention, read, dict(sides or {}), tokenizer, keep, path, overwrite, options)


def explain(model: nn.Module, batches: Iterable[Mapping[str, Any]], *, progress: Progress = None, **options: Any) -> Explanation:
    """Runs the model twice over batches of arguments, which must be the same both times, and explains its attention.

    `progress` counts batches: `recording` in the first pass, `splitting` in the second.
    """
    if isinstance(batches, Iterator):
        raise ArrayError("batches are gone through twice: give a list, a DataLoader or another iterable that starts anew")
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))

    def run(what: str, total: int, tell: Callable[[str, int, int], None] | None) -> int:
        n_done = 0
        with torch.no_grad():
            for n_done, batch in enumerate(batches, 1):
                model(**{name: value.to(device) if torch.is_tensor(value) else value for name, value in batch.items()})
                if tell is not None:
                    tell(what, n_done, max(total, n_done) if total else 0)
        return n_done

    with Bar(progress) as tell:
        with record(model, **options) as recorder:
            # Not every iterable knows how many there are; after one pass that is known.
            n_batches = run("recording", operator.length_hint(batches), tell)
        with recorder.again():
            run("splitting", n_batches, tell)
    return recorder.explain()


class Recorder:
    """Records a model. Made by `record`."""

    def __init__(
        self,
        model: nn.Module,
        self_attention: bool,
        read: Reader | None,
        sides: dict[str, Literal["source", "target"]],
        tokenizer: Any,
        keep: int,
        path: Path | None,
        overwrite: bool,
        options: dict[str, Any],
    ) -> None:
        self._model = model
        self._self_attention = self_attention
        self._read = read
        self._sides = sides
        self._tokenizer = tokenizer
        self._options = {**options, "samples": keep, "causal": 0}
        self._path, self._overwrite = path, overwrite
        self._attentions = _find(model)
        if not self._attentions:
            raise ExplainError(f"no attention was found in {type(model).__name__}: neither nn.MultiheadAttention nor query, key and value maps")
        self._handles: list[Any] = []
        self._arguments: dict[str, Any] = {}
        self._decoder_ids: Tensor = None
        self._before: list[tuple[Any, str]] = []
        self._fast = True
        self._description: _Describing | None = None
        self._used: list[_Attention] = []
        self._streams: list[tuple[_Attention, str]] = []
        self._first: _native.First | None = None
        self._pass: _native.SecondPass | None = None
        self._second: _native.Second | None = None
        self._writer: _native.Writer | None = None
        self._n_first = self._n_again = self._second_from = 0

    # The two passes.

    def __enter__(self) -> Recorder:
        if self._model.training:
            raise ExplainError("the model is in training mode, where dropout changes attention: model.eval() first")
        self._install()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._remove()
        writer, self._writer = self._writer, None
        if writer is None:
            return
        if error is None:
            writer.finish()
            return
        try:
            writer.discard()
        except FileError as left:
            error.add_note(f"the recording that was begun is still there: {left}")

    @contextmanager
    def again(self, components: Sums | None = None) -> Iterator[Recorder]:
        """The second pass, over the same sentences; scores are split by the sums of the first, or by `components`."""
        if self._first is None:
            raise ExplainError("there is no first pass yet: run the model inside `with record(model)` first")
        self._components = None if components is None else components._sums
        self._pass = _native.SecondPass(self._first, self._components)
        self._n_again = self._second_from
        self._install()
        try:
            yield self
        except BaseException:
            self._remove()
            self._pass = None
            raise
        self._remove()
        self._second, self._pass = self._pass.finish(), None

    @property
    def sums(self) -> Sums:
        """The sums of the first pass, which merge with those of other machines."""
        if self._first is None:
            raise ExplainError("nothing was recorded yet")
        return Sums(self._first.sums())

    @property
    def n_sentences(self) -> int:
        """Sentences recorded in the first pass, those held out among them."""
        return self._n_first

    def explain(self) -> Explanation:
        """What both passes come to."""
        if self._first is None or self._second is None:
            raise ExplainError("an explanation needs both passes: run the model again inside `with recorder.again()`")
        return Explanation(_native.conclude(self._first, self._second, self._components, "PyTorch"))

    # For passes that others begin or end.

    def _described(self) -> tuple[list[tuple[str, tuple[Any, ...]]], dict[str, Any]]:
        if self._description is None:
            raise ExplainError("nothing was recorded yet")
        return self._description.calls, self._options

    def _parts(self) -> tuple[bytes, bytes | None, str]:
        if self._first is None:
            raise ExplainError("nothing was recorded yet")
        return self._first.parts()

    def _from(self, number: int) -> Recorder:
        """A first pass of its own, whose sentences are counted from a number."""
        self._n_first = number
        if self._description is not None:
            self._first = _native.First(self._description.native, self._options)
        return self

    def _second_of(self, first: _native.First, number: int) -> Any:
        """The second pass under sums made elsewhere, its sentences counted from a number."""
        self._first, self._second_from = first, number
        return self.again()

    def _second_json(self) -> str:
        if self._second is None:
            raise ExplainError("there was no second pass")
        return self._second.to_json()

    # Hooks.

    def _install(self) -> None:
        # Fused kernels return no weights: the model's own are worth more than a second computation of them. Modules ask the configuration they
        # were made with, which in models made of others need not be that of the whole.
        configs = {id(config): config for part in self._model.modules() if (config := getattr(part, "config", None)) is not None}
        self._before = [(config, kernel) for config in configs.values() if (kernel := getattr(config, "_attn_implementation", None)) is not None]
        for config, _ in self._before:
            config._attn_implementation = "eager"
        # PyTorch's fused encoder layers call no attention module, and pack sentences so that states lose their shape.
        self._fast = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        for attention in self._attentions:
            self._watch(attention)
        self._handles.append(self._model.register_forward_pre_hook(self._begin, with_kwargs=True))
        self._handles.append(self._model.register_forward_hook(self._end))
        decoder = self._decoder()
        if decoder is not None:
            self._handles.append(decoder.register_forward_pre_hook(self._see_decoder, with_kwargs=True))

    def _remove(self) -> None:
        torch.backends.mha.set_fastpath_enabled(self._fast)
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._forget()
        for config, kernel in self._before:
            config._attn_implementation = kernel
        self._before.clear()

    def _decoder(self) -> nn.Module | None:
        get = getattr(self._model, "get_decoder", None)
        found = get() if get is not None and self._read is None else None
        return found if isinstance(found, nn.Module) and found is not self._model else None

    def _watch(self, attention: _Attention) -> None:
        def see_query(module: nn.Module, given: Any, made: Any) -> None:
            attention.seen.sees_query(given[0])

        def see_key(module: nn.Module, given: Any, made: Any) -> None:
            attention.seen.sees_key(given[0])

        def see_context(module: nn.Module, given: Any) -> None:
            attention.seen.context = given[0].detach()

        def see_weights(module: nn.Module, given: Any, made: Any) -> None:
            query, key = attention.seen.query, attention.seen.key
            if query is None or key is None:
                return
            wanted = (query.shape[0], attention.n_heads, query.shape[1], key.shape[1])
            first, others = (made[0], made[1:]) if isinstance(made, (tuple, list)) else (made, ())
            if attention.output is None and torch.is_tensor(first):
                attention.seen.context = first.detach()
            # T5 returns its bias of positions beside its weights, in the same shape: weights are a distribution.
            fitting = [x for x in others if torch.is_tensor(x) and tuple(x.shape) == wanted and _is_distribution(x)]
            attention.seen.weights = fitting[0].detach() if fitting else None

        def see_inputs(module: nn.Module, args: Any, kwargs: Any) -> None:
            bound = inspect.signature(module.forward).bind(*args, **kwargs).arguments
            query, key = bound["query"].detach(), bound["key"].detach()
            first = getattr(module, "batch_first", False)
            attention.seen.sees_query(query if first else query.transpose(0, 1))
            attention.seen.sees_key(key if first else key.transpose(0, 1))

        def see_output(module: nn.Module, args: Any, made: Any) -> None:
            first = getattr(module, "batch_first", False)
            attention.seen.context = (made[0] if first else made[0].transpose(0, 1)).detach()

        if attention.query is None or attention.key is None:
            self._handles.append(attention.module.register_forward_pre_hook(see_inputs, with_kwargs=True))
            self._handles.append(attention.module.register_forward_hook(see_output))
            return
        self._handles.append(attention.query.module.register_forward_hook(see_query))
        self._handles.append(attention.key.module.register_forward_hook(see_key))
        if attention.output is not None:
            self._handles.append(attention.output.register_forward_pre_hook(see_context))
        self._handles.append(attention.module.register_forward_hook(see_weights))

    def _forget(self) -> None:
        """Lets go of every tensor of the call at hand."""
        for attention in self._attentions:
            attention.seen = _Seen()
        self._arguments, self._decoder_ids = {}, None

    def _begin(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        self._forget()
        self._arguments = dict(inspect.signature(module.forward).bind(*args, **kwargs).arguments)
        self._arguments.update(self._arguments.pop("kwargs", {}))

    def _see_decoder(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        self._decoder_ids = kwargs.get("input_ids", args[0] if args else None)

    def _end(self, module: nn.Module, args: Any, made: Any) -> None:
        with torch.no_grad():
            self._take(made)
        self._forget()

    # One call of the model.

    def _take(self, made: Any) -> None:
        batch = self._read(self._arguments) if self._read is not None else self._read_transformers()
        if self._description is None:
            self._describe(batch)
        sides = {"source": _Side.of(batch.source, batch.source_mask), "target": _Side.of(batch.target, batch.target_mask)}
        for attention in self._used:
            _check(attention, sides)
        self._send(self._gathered(batch, sides, made))

    def _read_transformers(self) -> Batch:
        given = self._arguments
        target = self._decoder_ids if self._decoder_ids is not None else given.get("decoder_input_ids")
        if target is None:
            raise ArrayError("the decoder's tokens are not among the model's arguments: give record(…, read=) a function that finds them")
        labels, target_mask = given.get("labels"), given.get("decoder_attention_mask")
        config = getattr(self._model, "config", None)
        pad = getattr(config, "pad_token_id", None)
        if target_mask is None and labels is not None:
            target_mask = labels != -100
        if target_mask is None:
            target_mask = _without_trailing(target, pad)
        source, source_mask = given.get("input_ids"), given.get("attention_mask")
        if source is None:
            ran = (a.seen for a in self._attentions if a.seen.query is not None and a.seen.key is not None)
            keys = next((seen.key for seen in ran if not seen.looks_at_itself()), None)
            if keys is None:
                raise ArrayError("the encoder's tokens are not among the model's arguments: give record(…, read=) a function that finds them")
            # Sound and images have no tokens: every state of the encoder has consumed the same one.
            source, source_mask = torch.zeros(keys.shape[:2], dtype=torch.long), None
        return Batch(source, target, source_mask, target_mask, labels)

    def _describe(self, batch: Batch) -> None:
        """From what the first call did: kinds, streams and score maps."""
        shared: dict[tuple[int, tuple[int, ...]], int] = {}
        layers: dict[str, int] = {}
        config = getattr(self._model, "config", None)
        names: list[str] = []
        if self._tokenizer is not None:
            names = [str(name) for name in self._tokenizer.convert_ids_to_tokens(list(range(len(self._tokenizer))))]
        of_encoder, of_decoder = (getattr(getattr(config, side, None), "vocab_size", None) for side in ("encoder", "decoder"))
        count = getattr(config, "vocab_size", None) or of_encoder or (_UNKNOWN if not names else len(names))
        n_target = getattr(config, "decoder_vocab_size", None) or of_decoder or count
        start = getattr(config, "decoder_start_token_id", None)
        ends = getattr(getattr(self._model, "generation_config", None), "eos_token_id", None)
        end: int | None = next(iter(ends), None) if isinstance(ends, (list, tuple)) else ends
        if batch.source_names is not None:
            source: tuple[int, list[str], int | None, int | None] = (len(batch.source_names), list(batch.source_names), None, None)
        elif self._arguments.get("input_ids") is None and self._read is None:
            source = (1, ["<frame>"], None, None)
        else:
            source = (count, names[:count], None, end)
        description = _Describing(type(self._model).__name__, self._hash(), source, (n_target, names[:n_target], start, end))
        biases: dict[str, nn.Module] = {}
        for attention in self._attentions:
            seen = attention.seen
            if seen.query is None or seen.key is None:
                continue
            kind = self._kind(attention)
            if kind is None or (kind != "cross" and not self._self_attention):
                continue
            attention.kind = kind
            attention.layer = layers.get(kind, 0)
            layers[kind] = attention.layer + 1
            if hasattr(attention.module, "compute_bias") and getattr(attention.module, "has_relative_attention_bias", True):
                biases[kind] = attention.module
            attention.biased_by = biases.get(kind)
            self._used.append(attention)
        if not self._used:
            raise ExplainError("no attention from the decoder to the encoder ran: its modules were not called, or query and key are the same")
        sides = {"source": _Side.of(batch.source, batch.source_mask), "target": _Side.of(batch.target, batch.target_mask)}
        for attention in self._used:
            _fit_map(attention, sides)
            self._add(description, attention, shared)
        self._description = description
        if self._first is None:
            self._first = _native.First(description.native, self._options)
        if self._path is not None:
            self._writer = _native.Writer(self._path, description.native, self._overwrite)

    def _kind(self, attention: _Attention) -> Kind | None:
        seen = attention.seen
        if not seen.looks_at_itself():
            return "cross"
        side = self._sides.get(attention.name)
        if side is None:
            parts = attention.name.split(".")
            side = "target" if "decoder" in parts else "source" if "encoder" in parts else None
        return None if side is None else "encoder-self" if side == "source" else "decoder-self"

    def _add(self, description: _Describing, attention: _Attention, shared: dict[tuple[int, tuple[int, ...]], int]) -> None:
        kind, seen = attention.kind, attention.seen
        assert kind is not None
        word = {"cross": "cross", "encoder-self": "encoder", "decoder-self": "decoder"}[kind]
        query_side = "source" if kind == "encoder-self" else "target"
        query = description.add_stream(f"{word}.{attention.layer}", query_side, seen.query.shape[-1])
        self._streams.append((attention, "query"))
        key = query
        if kind == "cross":
            place = (seen.key.data_ptr(), tuple(seen.key.shape))
            if place not in shared:
                name = "encoder" if not shared else f"encoder for cross.{attention.layer}"
                shared[place] = description.add_stream(name, "source", seen.key.shape[-1])
                self._streams.append((attention, "key"))
            key = shared[place]
        maps = [_Linear.of(weight, bias) for weight, bias in attention.maps()]
        d_head, d_value = maps[0].weight.shape[1] // attention.n_heads, maps[2].weight.shape[1] // attention.n_heads
        for head in range(attention.n_heads):
            bias = _by_distance(attention, head)
            query_map, key_map, value_map = maps[0].head(head, d_head), maps[1].head(head, d_head), maps[2].head(head, d_value)
            description.add_site(
                kind, attention.layer, head, query, key, attention.causal, query_map, key_map, attention.scale, bias, value_map
            )

    def _hash(self) -> str:
        """Of all weights, one at a time: states are made by all of them, not by those of attention alone."""
        digest = hashlib.sha256()
        for name, tensor in (*self._model.named_parameters(), *self._model.named_buffers()):
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
        return digest.hexdigest()[:16]

    def _gathered(self, batch: Batch, sides: Mapping[str, _Side], made: Any) -> dict[str, Any]:
        source, target = sides["source"], sides["target"]
        of = {"query": lambda a: a.seen.query, "key": lambda a: a.seen.key}
        states = []
        for attention, which in self._streams:
            side = source if which == "key" or attention.kind == "encoder-self" else target
            states.append(_numpy(side.gather(of[which](attention))))
        attention_weights: list[Any] = []
        if all(attention.seen.weights is not None for attention in self._used):
            for attention in self._used:
                queries = source if attention.kind == "encoder-self" else target
                keys = target if attention.kind == "decoder-self" else source
                weights = keys.gather_last(queries.gather(attention.seen.weights.transpose(1, 2)).transpose(1, 2))
                attention_weights.extend(_numpy(weights[:, head]) for head in range(attention.n_heads))
        predicted = labels = told = loss = None
        logits: Any = getattr(made, "logits", None)
        if torch.is_tensor(logits) and logits.ndim == 3 and logits.shape[:2] == batch.target.shape[:2]:
            predicted = _tokens(target.gather(logits.argmax(-1)))
            if batch.labels is not None:
                wanted = target.gather(batch.labels.to(logits.device))
                steps = torch.arange(wanted.shape[1], device=wanted.device)[None] < target.lengths.to(wanted.device)[:, None]
                told = (~((wanted < 0) & steps).any(1)).cpu().numpy()
                wanted = wanted.clamp(min=0)
                labels = _tokens(wanted)
                losses = -target.gather(logits).float().log_softmax(-1).gather(-1, wanted.unsqueeze(-1)).squeeze(-1)
                loss = ((losses * steps).sum(1) / steps.sum(1)).cpu().double().numpy()
        return {
            "first": self._n_again if self._pass is not None else self._n_first,
            "source": _tokens(source.gather(batch.source)),
            "source_lengths": source.lengths.cpu().numpy().astype(np.uint64),
            "fed": _tokens(target.gather(batch.target)),
            "fed_lengths": target.lengths.cpu().numpy().astype(np.uint64),
            "states": states,
            "attention": attention_weights,
            "predicted": predicted,
            "target": labels,
            "told": told,
            "loss": loss,
        }

    def _send(self, batch: dict[str, Any]) -> None:
        if self._pass is not None:
            self._n_again += len(batch["source_lengths"])
            self._pass.add(batch)
            return
        assert self._first is not None
        self._first.add(batch)
        self._n_first += len(batch["source_lengths"])
        if self._writer is not None:
            self._writer.add(batch)

    _components: _native.ModelSums | None = None


class _Describing:
    """A description, and the calls that made it, so that others can make it too."""

    def __init__(self, *arguments: Any) -> None:
        self.native = _native.Description(*arguments)
        self.calls: list[tuple[str, tuple[Any, ...]]] = [("Description", arguments)]

    def add_stream(self, *arguments: Any) -> int:
        self.calls.append(("add_stream", arguments))
        return self.native.add_stream(*arguments)

    def add_site(self, *arguments: Any) -> None:
        self.calls.append(("add_site", arguments))
        self.native.add_site(*arguments)


@dataclass
class _Side:
    """Which steps of one side count."""

    mask: Tensor
    lengths: Tensor
    order: Tensor | None
    """Where the steps that count come from; `None` where they come first already."""

    @classmethod
    def of(cls, tokens: Tensor, mask: Tensor | None) -> _Side:
        valid = torch.ones(tokens.shape[:2], dtype=torch.bool, device=tokens.device) if mask is None else mask.bool()
        if tuple(valid.shape) != tuple(tokens.shape[:2]):
            raise ArrayError(f"tokens are {tuple(tokens.shape)}, their mask is {tuple(valid.shape)}")
        lengths = valid.sum(1)
        if int(lengths.min()) == 0:
            raise ArrayError("a sentence without a token cannot be explained")
        first = torch.arange(valid.shape[1], device=valid.device)[None] < lengths[:, None]
        order = None if bool((first == valid).all()) else torch.argsort((~valid).int(), dim=1, stable=True)
        return cls(valid, lengths, order)

    def gather(self, values: Tensor) -> Tensor:
        """The steps that count first, along the second axis."""
        if self.order is None:
            return values
        order = self.order.to(values.device)
        return torch.stack([row[index] for row, index in zip(values, order, strict=True)])

    def gather_last(self, values: Tensor) -> Tensor:
        """The same along the last axis."""
        if self.order is None:
            return values
        order = self.order.to(values.device)
        return torch.stack([row[..., index] for row, index in zip(values, order, strict=True)])


def _find(model: nn.Module) -> list[_Attention]:
    """Attention modules by structure, in the order in which they stand in the model."""
    found: list[_Attention] = []
    for name, module in model.named_modules():
        if isinstance(module, nn.MultiheadAttention):
            if module.bias_k is not None or module.add_zero_attn:
                raise ExplainError(f"module `{name}` adds keys of its own (add_bias_kv, add_zero_attn), which no score map has")
            found.append(_Attention(name, module, module.num_heads, [module.head_dim**-0.5], None, None, None, None))
            continue
        children = dict(module.named_children())
        maps = _maps(children)
        n_heads = next((getattr(module, a) for a in _HEADS_NAMES if isinstance(getattr(module, a, None), int)), None)
        if maps is None or not n_heads:
            continue
        output = next((children[child] for child in _OUTPUT_NAMES if _Map.fits(children.get(child))), None)
        known = [getattr(module, a) for a in ("scaling", "scale") if isinstance(getattr(module, a, None), float)]
        scales = list(dict.fromkeys([*known, (maps[0].weights()[0].shape[0] // n_heads) ** -0.5, 1.0]))
        found.append(_Attention(name, module, n_heads, scales, *maps, output))
    return found


def _maps(children: Mapping[str, nn.Module]) -> tuple[_Map, _Map, _Map] | None:
    """The maps of queries, keys and values among a module's parts."""
    for names in _MAP_NAMES:
        if all(_Map.fits(children.get(name)) for name in names):
            query, key, value = (_Map(children[name]) for name in names)
            return query, key, value
    joint, alone = children.get("c_attn"), children.get("q_attn")
    if not _Map.fits(joint):
        return None
    if _Map.fits(alone):
        return _Map(alone), _Map(joint, 0, 2), _Map(joint, 1, 2)
    return _Map(joint, 0, 3), _Map(joint, 1, 3), _Map(joint, 2, 3)


def _fit_map(attention: _Attention, sides: Mapping[str, _Side]) -> None:
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


def _check(attention: _Attention, sides: Mapping[str, _Side]) -> None:
    if attention.seen.query is None or attention.seen.key is None:
        raise ExplainError(f"module `{attention.name}` ran in the first call and not in this one")
    difference = _difference(attention, sides)
    if not difference <= TOLERANCE:
        raise _refused(attention, difference)


def _refused(attention: _Attention, difference: float) -> ExplainError:
    seen = attention.seen
    halves = [x.dtype for x in (seen.weights, seen.context, seen.query, seen.key) if x is not None and x.element_size() == 2]
    if halves:
        return ExplainError(
            f"module `{attention.name}` ({type(attention.module).__name__}) computes in {str(halves[0]).removeprefix('torch.')}, which rounds its "
            f"attention: computed again it differs by {difference:.2g}, more than {TOLERANCE:g}. model.float() first, outside of autocast"
        )
    return ExplainError(
        f"module `{attention.name}` ({type(attention.module).__name__}) attends otherwise than by a softmax of products of its query and key maps: "
        f"computed again from these its attention differs by {difference:.2g}, more than {TOLERANCE:g}. {_NO_SCORE_MAP}"
    )


def _refused_bias(attention: _Attention, why: str) -> ExplainError:
    return ExplainError(
        f"module `{attention.name}` ({type(attention.module).__name__}) adds to its scores what is no bias of a query and a key ({why}). {_NO_SCORE_MAP}"
    )


def _difference(attention: _Attention, sides: Mapping[str, _Side]) -> float:
    """The largest difference of the attention computed again: of weights where the module returned them, else of what it summed, over the
    largest of what it could sum."""
    seen = attention.seen
    if seen.n_queries != seen.n_keys:
        raise ExplainError(
            f"module `{attention.name}` ({type(attention.module).__name__}) maps queries {seen.n_queries} times and keys {seen.n_keys} times in one "
            f"call of the model, so that there is no one key for each token. {_NO_SCORE_MAP}"
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
    projected: list[Tensor] = [
        nn.functional.linear(_precise(states), _precise(weight), None if bias is None else _precise(bias))
        for states, (weight, bias) in zip((seen.query, seen.key, seen.key), attention.maps(), strict=True)
    ]
    if projected[0].shape[-1] != projected[1].shape[-1]:
        raise ExplainError(f"module `{attention.name}` has fewer maps of keys than of queries: heads that share keys are not explained yet")
    device = projected[0].device
    query, key, value = (x.unflatten(-1, (attention.n_heads, -1)).transpose(1, 2) for x in projected)
    scores = query @ key.transpose(-1, -2) * attention.scale
    bias = attention.bias(scores.shape[-2], scores.shape[-1])
    if bias is not None:
        scores = scores + _precise(bias)
    visible = key_side.mask.to(device)[:, None, None, :]
    if attention.causal:
        visible = visible & torch.ones(scores.shape[-2:], dtype=torch.bool, device=device).tril()
    # A query that sees nothing is not compared.
    weights = scores.masked_fill(~visible, -1e30).softmax(-1)
    asks = query_side.mask.to(device)
    if seen.weights is not None:
        gap = (weights - _precise(seen.weights)).abs().amax((1, 3))
        return float(gap[asks].max())
    context = (weights @ value).transpose(1, 2).flatten(2)
    largest = value.transpose(1, 2)[key_side.mask.to(device)].abs().max()
    if attention.query is None:
        module: Any = attention.module
        context = nn.functional.linear(context, _precise(module.out_proj.weight))
        largest = context[asks].abs().max()
        context = context if module.out_proj.bias is None else context + _precise(module.out_proj.bias)
    if seen.context is None or seen.context.shape != context.shape:
        raise ExplainError(f"module `{attention.name}` shows neither its attention nor what it summed: nothing can be held against it")
    gap = (context - _precise(seen.context)).abs().amax(2)[asks].max()
    return float(gap / largest) if largest > 0 else float(gap)


def _precise(tensor: Tensor) -> Tensor:
    """In double precision: on the CPU where the device has none, as Apple's GPUs."""
    return (tensor.cpu() if tensor.device.type == "mps" else tensor).double()


def _by_distance(attention: _Attention, head: int) -> tuple[int, list[float]] | None:
    """The bias of key minus query, out to where it no longer changes."""
    if attention.biased_by is None:
        return None
    farthest = int(getattr(attention.biased_by, "relative_attention_max_distance", 128))
    bias = attention.bias(farthest + 1, farthest + 1)
    assert bias is not None
    matrix = _numpy(bias[head])
    return -farthest, [*matrix[1:, 0][::-1].tolist(), *matrix[0].tolist()]


def _is_distribution(weights: Tensor) -> bool:
    sums = _precise(weights.detach()).sum(-1)
    return bool((sums - 1.0).abs().max() < 1e-2) and bool(weights.min() >= 0)


def _without_trailing(tokens: Tensor, pad: int | None) -> Tensor:
    """All steps but the padding at the end; the first always counts, since padding may start a decoder."""
    if pad is None:
        return torch.ones_like(tokens, dtype=torch.bool)
    real = tokens != pad
    real[:, 0] = True
    return real.flip(1).int().cummax(1).values.flip(1).bool()


def _numpy(tensor: Tensor) -> Any:
    """`float32` on the CPU: the tensor's own memory where it is that already, read through DLPack."""
    ready = tensor.detach().to(device="cpu", dtype=torch.float32).contiguous()
    return np.from_dlpack(ready)


def _tokens(tensor: Tensor) -> Any:
    tokens = tensor.detach().cpu().numpy()
    if tokens.size and (tokens.min() < 0 or tokens.max() >= 2**32):
        raise ArrayError(f"tokens from {tokens.min()} to {tokens.max()} are no numbers of words")
    return np.ascontiguousarray(tokens.astype(np.uint32))
