"""Tensors of a batch: which steps count, and how they get to NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch

from ._native import ArrayError

Tensor: TypeAlias = Any


@dataclass
class Side:
    """Which steps of one side count."""

    mask: Tensor
    lengths: Tensor
    order: Tensor | None
    """Where the steps that count come from; `None` where they come first already."""

    @classmethod
    def of(cls, tokens: Tensor, mask: Tensor | None) -> Side:
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


def without_trailing(tokens: Tensor, pad: int | None) -> Tensor:
    """All steps but the padding at the end; the first always counts, since padding may start a decoder."""
    if pad is None:
        return torch.ones_like(tokens, dtype=torch.bool)
    real = tokens != pad
    real[:, 0] = True
    return real.flip(1).int().cummax(1).values.flip(1).bool()


def precise(tensor: Tensor) -> Tensor:
    """In double precision: on the CPU where the device has none, as Apple's GPUs."""
    return (tensor.cpu() if tensor.device.type == "mps" else tensor).double()


def to_numpy(tensor: Tensor) -> Any:
    """`float32` on the CPU: the tensor's own memory where it is that already, read through DLPack."""
    ready = tensor.detach().to(device="cpu", dtype=torch.float32).contiguous()
    return np.from_dlpack(ready)


def to_tokens(tensor: Tensor) -> Any:
    tokens = tensor.detach().cpu().numpy()
    if tokens.size and (tokens.min() < 0 or tokens.max() >= 2**32):
        raise ArrayError(f"tokens from {tokens.min()} to {tokens.max()} are no numbers of words")
    return np.ascontiguousarray(tokens.astype(np.uint32))
