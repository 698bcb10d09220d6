"""Arrays of any library as NumPy's, without a copy where that can be. NumPy is imported where it is first used: it takes most of the time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from ._native import ArrayError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Floats: TypeAlias = "npt.NDArray[np.float32]"
Doubles: TypeAlias = "npt.NDArray[np.float64]"
Tokens: TypeAlias = "npt.NDArray[np.uint32]"
Counts: TypeAlias = "npt.NDArray[np.uint64]"

ArrayLike: TypeAlias = Any
"""A NumPy array, anything that speaks DLPack (torch, JAX, CuPy's on the CPU), or nested lists."""


def view(array: ArrayLike, name: str = "array") -> npt.NDArray[Any]:
    """The array as NumPy's: the same memory for NumPy and for DLPack on the CPU, a copy of lists."""
    import numpy as np

    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "__dlpack__"):
        if getattr(array, "requires_grad", False):
            array = array.detach()
        try:
            return np.from_dlpack(array)
        except (BufferError, RuntimeError, TypeError) as error:
            raise ArrayError(f"`{name}` cannot be read through DLPack ({error}): bring it to the CPU as float32 first") from error
    try:
        return np.asarray(array)
    except ValueError as error:
        raise ArrayError(f"`{name}` is no array ({error}): lists within lists must have rows of one length, padded where they are shorter") from error


def floats(array: ArrayLike, name: str, axes: int) -> Floats:
    """`float32` without gaps; copied only where it is not that already."""
    import numpy as np

    found = view(array, name)
    if found.ndim != axes or found.dtype.kind not in "fiu":
        raise ArrayError(f"`{name}` has {found.ndim} axes of {found.dtype}, {axes} of numbers were expected")
    return np.ascontiguousarray(found, dtype=np.float32)


def tokens(array: ArrayLike, name: str, axes: int) -> Tokens:
    """Token numbers; what is no number from 0 on is refused."""
    import numpy as np

    return _whole(array, name, axes, np.dtype(np.uint32)).astype(np.uint32, copy=False)


def counts(array: ArrayLike, name: str) -> Counts:
    """Lengths."""
    import numpy as np

    return _whole(array, name, 1, np.dtype(np.uint64)).astype(np.uint64, copy=False)


def _whole(array: ArrayLike, name: str, axes: int, kind: np.dtype[Any]) -> npt.NDArray[Any]:
    import numpy as np

    found = view(array, name)
    if found.ndim != axes or (found.dtype.kind not in "iu" and found.size > 0):
        raise ArrayError(f"`{name}` has {found.ndim} axes of {found.dtype}, {axes} of whole numbers were expected")
    if found.dtype == kind:
        return np.ascontiguousarray(found)
    if found.size > 0 and (int(found.min()) < 0 or int(found.max()) > np.iinfo(kind).max):
        raise ArrayError(f"`{name}` holds {found.min()} to {found.max()}: numbers from 0 to {np.iinfo(kind).max} were expected")
    return np.ascontiguousarray(found.astype(kind))
