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
from dataclasses import dataclass
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
from ._torch_attention import Attention, Linear, Seen, by_distance, find_attention
from ._torch_check import check_attention, fit_score_map, is_distribution
from ._torch_tensors import Side, Tensor, to_numpy, to_tokens, without_trailing

__all__ = ["Batch", "Recorder", "explain", "record"]

_UNKNOWN = 2**31 - 1


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
    """Runs the model twice over batches of arguments, which must be the same in the same order both times, and explains its attention.

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
        self._attentions = find_attention(model)
        if not self._attentions:
            raise ExplainError(f"no attention was found in {type(model).__name__}: neither nn.MultiheadAttention nor query, key and value maps")
        self._handles: list[Any] = []
        self._arguments: dict[str, Any] = {}
        self._decoder_ids: Tensor = None
        self._before: list[tuple[Any, str]] = []
        self._fast = True
        self._description: _Describing | None = None
        self._used: list[Attention] = []
        self._streams: list[tuple[Attention, str]] = []
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

    def _watch(self, attention: Attention) -> None:
        def see_query(module: nn.Module, given: Any, made: Any) -> None:
            attention.seen.sees_query(given[0])

        def see_key(module: nn.Module, given: Any, made: Any) -> None:
            attention.seen.sees_key(given[0])

        def see_value(module: nn.Module, given: Any, made: Any) -> None:
            attention.seen.sees_value(given[0])

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
            fitting = [x for x in others if torch.is_tensor(x) and tuple(x.shape) == wanted and is_distribution(x)]
            attention.seen.weights = fitting[0].detach() if fitting else None

        def see_inputs(module: nn.Module, args: Any, kwargs: Any) -> None:
            bound = inspect.signature(module.forward).bind(*args, **kwargs).arguments
            first = getattr(module, "batch_first", False)
            query, key, value = (bound[name] if first else bound[name].transpose(0, 1) for name in ("query", "key", "value"))
            attention.seen.sees_query(query)
            attention.seen.sees_key(key)
            attention.seen.sees_value(value)

        def see_output(module: nn.Module, args: Any, made: Any) -> None:
            first = getattr(module, "batch_first", False)
            attention.seen.context = (made[0] if first else made[0].transpose(0, 1)).detach()

        if attention.query is None or attention.key is None or attention.value is None:
            self._handles.append(attention.module.register_forward_pre_hook(see_inputs, with_kwargs=True))
            self._handles.append(attention.module.register_forward_hook(see_output))
            return
        self._handles.append(attention.query.module.register_forward_hook(see_query))
        self._handles.append(attention.key.module.register_forward_hook(see_key))
        self._handles.append(attention.value.module.register_forward_hook(see_value))
        if attention.output is not None:
            self._handles.append(attention.output.register_forward_pre_hook(see_context))
        self._handles.append(attention.module.register_forward_hook(see_weights))

    def _forget(self) -> None:
        """Lets go of every tensor of the call at hand."""
        for attention in self._attentions:
            attention.seen = Seen()
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
        sides = {"source": Side.of(batch.source, batch.source_mask), "target": Side.of(batch.target, batch.target_mask)}
        for attention in self._used:
            check_attention(attention, sides)
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
            # Within a target −100 says what is not to be learnt, of a step that the decoder reads like any other.
            target_mask = without_trailing(labels, -100)
        if target_mask is None:
            target_mask = without_trailing(target, pad)
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
        sides = {"source": Side.of(batch.source, batch.source_mask), "target": Side.of(batch.target, batch.target_mask)}
        for attention in self._used:
            fit_score_map(attention, sides)
            self._add(description, attention, shared)
        self._description = description
        if self._first is None:
            self._first = _native.First(description.native, self._options)
        if self._path is not None:
            self._writer = _native.Writer(self._path, description.native, self._overwrite)

    def _kind(self, attention: Attention) -> Kind | None:
        seen = attention.seen
        if not seen.looks_at_itself():
            return "cross"
        side = self._sides.get(attention.name)
        if side is None:
            parts = attention.name.split(".")
            side = "target" if "decoder" in parts else "source" if "encoder" in parts else None
        return None if side is None else "encoder-self" if side == "source" else "decoder-self"

    def _add(self, description: _Describing, attention: Attention, shared: dict[tuple[int, tuple[int, ...]], int]) -> None:
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
        maps = [Linear.of(weight, bias) for weight, bias in attention.maps()]
        d_head, d_value = maps[0].weight.shape[1] // attention.n_heads, maps[2].weight.shape[1] // attention.n_heads
        # Values of other states than the keys' are not recorded: each counts as one, and attention by values is attention itself.
        by_itself = np.zeros((seen.key.shape[-1], 1), np.float32), np.ones(1, np.float32)
        for head in range(attention.n_heads):
            bias = by_distance(attention, head)
            query_map, key_map = maps[0].head(head, d_head), maps[1].head(head, d_head)
            value_map = maps[2].head(head, d_value) if seen.sums_its_keys() else by_itself
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

    def _gathered(self, batch: Batch, sides: Mapping[str, Side], made: Any) -> dict[str, Any]:
        source, target = sides["source"], sides["target"]
        of = {"query": lambda a: a.seen.query, "key": lambda a: a.seen.key}
        states = []
        for attention, which in self._streams:
            side = source if which == "key" or attention.kind == "encoder-self" else target
            states.append(to_numpy(side.gather(of[which](attention))))
        attention_weights: list[Any] = []
        if all(attention.seen.weights is not None for attention in self._used):
            for attention in self._used:
                queries = source if attention.kind == "encoder-self" else target
                keys = target if attention.kind == "decoder-self" else source
                weights = keys.gather_last(queries.gather(attention.seen.weights.transpose(1, 2)).transpose(1, 2))
                attention_weights.extend(to_numpy(weights[:, head]) for head in range(attention.n_heads))
        predicted = labels = told = loss = None
        logits: Any = getattr(made, "logits", None)
        if torch.is_tensor(logits) and logits.ndim == 3 and logits.shape[:2] == batch.target.shape[:2]:
            predicted = to_tokens(target.gather(logits.argmax(-1)))
            if batch.labels is not None:
                wanted = target.gather(batch.labels.to(logits.device))
                steps = torch.arange(wanted.shape[1], device=wanted.device)[None] < target.lengths.to(wanted.device)[:, None]
                told = (~((wanted < 0) & steps).any(1)).cpu().numpy()
                wanted = wanted.clamp(min=0)
                labels = to_tokens(wanted)
                losses = -target.gather(logits).float().log_softmax(-1).gather(-1, wanted.unsqueeze(-1)).squeeze(-1)
                loss = ((losses * steps).sum(1) / steps.sum(1)).cpu().double().numpy()
        return {
            "first": self._n_again if self._pass is not None else self._n_first,
            "source": to_tokens(source.gather(batch.source)),
            "source_lengths": source.lengths.cpu().numpy().astype(np.uint64),
            "fed": to_tokens(target.gather(batch.target)),
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
