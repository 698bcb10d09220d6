"""What the tests share: one small trained run, and the models that need PyTorch only where it is asked for."""

from __future__ import annotations

import importlib.util
import os
import signal
from pathlib import Path

import pytest

import crosslens

HEAVY = {"test_torch.py": ("torch", "transformers"), "test_bertviz.py": ("bertviz", "torch"), "test_jax.py": ("jax",), "test_ray.py": ("ray", "torch", "transformers")}
"""Files that need more than NumPy. With CROSSLENS_HEAVY=1 their absence is a failure and not a reason to skip."""

collect_ignore = [
    file
    for file, needed in HEAVY.items()
    if os.environ.get("CROSSLENS_HEAVY") != "1" and any(importlib.util.find_spec(name) is None for name in needed)
]

# Shells start what runs in the background deaf to Ctrl-C, and Python keeps it so; the tests of Ctrl-C would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network that has learnt a little of one-to-one."""
    out = tmp_path_factory.mktemp("runs") / "one-to-one"
    trained = crosslens.train("one-to-one", out, arch="aed", seed=3, steps=40, progress=False)
    assert trained.steps == 40
    return out


@pytest.fixture(scope="session")
def model(run: Path) -> crosslens.Model:
    return crosslens.load(run)


@pytest.fixture(scope="session")
def program() -> str:
    """The command-line program, where it is built; CROSSLENS_PROGRAM names it."""
    path = os.environ.get("CROSSLENS_PROGRAM")
    if path is None or not Path(path).exists():
        pytest.skip("CROSSLENS_PROGRAM names no program: build it with `cargo build`")
    return path
