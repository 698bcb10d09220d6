"""The notebooks run from top to bottom."""

from __future__ import annotations

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def test_there_are_five() -> None:
    assert len(NOTEBOOKS) == 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert shown and not any(output.output_type == "error" for output in shown)
    if path.stem.startswith("1_"):
        # As the last line of a cell, and by show().
        pages = [output.data.get("text/html", "") for output in shown if output.output_type in ("execute_result", "display_data")]
        framed = [page for page in pages if page.startswith('<iframe srcdoc="')]
        assert len(framed) == 2 and all("crosslens-report-0" in page for page in framed)
