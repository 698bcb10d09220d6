"""Arrays of JAX on the CPU, read through DLPack."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import crosslens
from crosslens._arrays import floats

pytestmark = pytest.mark.heavy


def test_jax_s_memory_is_read_where_it_lies_and_sums_are_numpy_s() -> None:
    states = np.random.default_rng(0).normal(size=(6, 5, 4)).astype(np.float32)
    tokens = np.arange(30).reshape(6, 5) % 7
    theirs = jax.device_put(states, jax.devices("cpu")[0])
    assert floats(theirs, "states", 3).ctypes.data == theirs.unsafe_buffer_pointer()
    ours, other = crosslens.Components(4), crosslens.Components(4)
    ours.add(states, tokens)
    other.add(theirs, jax.numpy.asarray(tokens))
    assert ours == other
