"""How far long work is: told to a function, drawn by tqdm, or written on a line."""

from __future__ import annotations

import io
import sys
import types
from typing import Any

import pytest

import crosslens
from crosslens._progress import Bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def at_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    return made


def test_without_tqdm_a_terminal_has_a_line(monkeypatch: pytest.MonkeyPatch, model: crosslens.Model) -> None:
    terminal = at_terminal(monkeypatch)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    model.explain(n_sentences=70, causal=0)
    assert "\rfitting: 70 of 70" in terminal.getvalue() and terminal.getvalue().endswith("splitting: 70 of 70   \n")


def test_tqdm_draws_one_bar_for_each_part_of_the_work(monkeypatch: pytest.MonkeyPatch, model: crosslens.Model) -> None:
    terminal = at_terminal(monkeypatch)
    bars: list[Any] = []

    class Tqdm:
        def __init__(self, total: int, desc: str, leave: bool) -> None:
            self.total, self.desc, self.leave, self.n, self.is_closed = total, desc, leave, 0, False
            bars.append(self)

        def update(self, by: int) -> None:
            self.n += by

        def close(self) -> None:
            self.is_closed = True

    auto = types.ModuleType("tqdm.auto")
    auto.tqdm = Tqdm  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", auto)
    model.explain(n_sentences=70, causal=0)
    assert [(bar.desc, bar.n, bar.total, bar.is_closed) for bar in bars] == [("fitting", 70, 70, True), ("splitting", 70, 70, True)]
    assert terminal.getvalue() == ""


def test_nobody_is_told_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = io.StringIO()
    monkeypatch.setattr(sys, "stderr", quiet)
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    for wanted in (None, False):
        with Bar(wanted) as tell:
            assert tell is None
    with Bar(True) as tell:
        assert tell is not None, "asked for, it is shown anywhere"


@pytest.mark.parametrize("has_kernel", [True, False])
def test_a_notebook_is_told_whatever_its_shell_is_called(monkeypatch: pytest.MonkeyPatch, has_kernel: bool) -> None:
    # Colab's shell is a class of its own, and what runs in a terminal has no kernel.
    shell = type("Shell", (), {"kernel": object()} if has_kernel else {})
    notebook = types.ModuleType("IPython")
    notebook.get_ipython = shell  # type: ignore[attr-defined]
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    with Bar(None) as tell:
        assert (tell is not None) == has_kernel
