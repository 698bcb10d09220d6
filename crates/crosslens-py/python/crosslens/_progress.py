"""Progress of long work: tqdm's bar where it is installed, in notebooks too; else a line on a terminal; else nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeAlias

Progress: TypeAlias = "bool | Callable[[str, int, int], None] | None"
"""`True`, `False`, a function told what is done, how much of it and of how much (0 where that is not known), or `None`: a bar on terminals and in
notebooks."""


class Bar:
    """Shows progress while it is open."""

    def __init__(self, wanted: Progress) -> None:
        self._wanted = wanted
        self._bar: Any = None
        self._what = ""
        self._has_line = False

    def __enter__(self) -> Callable[[str, int, int], None] | None:
        if callable(self._wanted):
            return self._wanted
        shown = _is_watched() if self._wanted is None else self._wanted
        return self._show if shown else None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()
        if self._has_line:
            sys.stderr.write("\n")

    def _show(self, what: str, done: int, total: int) -> None:
        if self._bar is None or self._what != what:
            if self._bar is not None:
                self._bar.close()
            self._what = what
            self._bar = _tqdm(what, total)
        if self._bar is not None:
            self._bar.total = total or None
            self._bar.update(done - self._bar.n)
        else:
            self._has_line = True
            sys.stderr.write(f"\r{what}: {done} of {total}   " if total else f"\r{what}: {done}   ")
            sys.stderr.flush()


def _tqdm(what: str, total: int) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(total=total or None, desc=what, leave=False)


def _is_watched() -> bool:
    if sys.stderr is not None and sys.stderr.isatty():
        return True
    return in_notebook()


def in_notebook() -> bool:
    """Whether a kernel runs this, and pages can be shown: of Jupyter, VS Code, Colab or another."""
    shell = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel")
