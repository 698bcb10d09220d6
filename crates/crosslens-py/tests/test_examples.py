"""The examples in the package's documentation and in docs/python.md do what they say."""

from __future__ import annotations

import doctest
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import crosslens

DOCS = Path(__file__).parents[3] / "docs"


def test_the_package_s_own_example() -> None:
    found = doctest.testmod(crosslens)
    assert found.attempted > 0 and found.failed == 0


def test_the_examples_of_the_manual_and_the_notebooks_have_the_types_they_use(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    notebooks = sorted((root / "crates/crosslens-py/notebooks").glob("*.ipynb"))
    assert len(notebooks) == 5
    programs = {"manual": "".join(example.source for example in doctest.DocTestParser().get_examples((DOCS / "python.md").read_text()))}
    for path in notebooks:
        cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
        programs["notebook_" + path.stem] = "\n".join("".join(cell["source"]) for cell in cells) + "\n"
    files = [tmp_path / f"{name}.py" for name in programs]
    for file, program in zip(files, programs.values(), strict=True):
        file.write_text(program)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), *map(str, files)]
    found = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_examples_of_the_manual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: Any) -> None:
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(str(DOCS / "python.md"), module_relative=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert found.attempted > 10 and found.failed == 0
