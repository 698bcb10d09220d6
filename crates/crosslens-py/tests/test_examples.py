"""The examples in the package's documentation and in docs/python.md do what they say."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import pytest

import crosslens

DOCS = Path(__file__).parents[3] / "docs"


def test_the_package_s_own_example() -> None:
    found = doctest.testmod(crosslens)
    assert found.attempted > 0 and found.failed == 0


def test_the_examples_of_the_manual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: Any) -> None:
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(str(DOCS / "python.md"), module_relative=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert found.attempted > 10 and found.failed == 0
