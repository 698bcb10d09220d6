"""Whole numbers, checked by name before they are handed on."""

from __future__ import annotations

import operator
from typing import SupportsIndex

from ._native import ConfigError

LARGEST = 2**64 - 1


def whole(name: str, value: SupportsIndex, least: int = 0, most: int = LARGEST) -> int:
    """A whole number of this range; NumPy's are too."""
    found = operator.index(value)
    if not least <= found <= most:
        raise ConfigError(f"`{name}` is {found}: it is a whole number from {least} to {most if most < LARGEST else '2^64 − 1'}")
    return found


def whole_or_none(name: str, value: SupportsIndex | None, least: int = 0, most: int = LARGEST) -> int | None:
    """The same, or nothing."""
    return None if value is None else whole(name, value, least, most)
