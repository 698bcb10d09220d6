"""The page in the programs that notebooks are read in: JupyterLab and Notebook, each in a real browser."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import crosslens

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("jupyterlab")
pytest.importorskip("playwright")

from playwright.sync_api import Browser, FrameLocator, Page, sync_playwright  # noqa: E402

CHROMIUM = os.environ.get("CROSSLENS_CHROMIUM") or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None or "CROSSLENS_NO_BROWSER" in os.environ, reason="there is no browser")

TOKEN = "of-this-test"
FRAME = 'iframe[title="Crosslens"]'
VS_CODE = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src https: http: data:; font-src https:; "
    "connect-src https:; child-src https: data:;"
)
"""The policy that VS Code lays on the outputs of a notebook when `notebook.experimental.enableCsp` is set; otherwise there is none."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory: pytest.TempPathFactory, run: Path) -> Iterator[str]:
    """The address of a server whose folder holds a notebook that explains a run."""
    folder = tmp_path_factory.mktemp("notebooks")
    code = f"import crosslens\ncrosslens.load({str(run)!r}).explain(n_sentences=20)"
    # Without the name of a kernel the reader would be asked for it.
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)], metadata=kernel), folder / "explain.ipynb")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    settings = [f"--ServerApp.port={port}", f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={folder}", "--LabApp.news_url=None"]
    home = {name: str(folder / name.lower()) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")}
    with (folder / "server.log").open("w") as log:
        command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", *settings]
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env={**os.environ, **home})
        try:
            wait_for(server, f"{address}/api/status?token={TOKEN}", folder / "server.log")
            yield address
        finally:
            server.terminate()
            server.wait()


def wait_for(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Until a server answers; a minute at the most."""
    until = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:
            assert server.poll() is None and time.monotonic() < until, log.read_text()
            time.sleep(0.2)


def test_jupyterlab_shows_the_page(browser: Browser, jupyter: str) -> None:
    run_and_look(browser, jupyter, "lab/tree")


def test_notebook_shows_the_page(browser: Browser, jupyter: str) -> None:
    pytest.importorskip("notebook")
    run_and_look(browser, jupyter, "notebooks")


def test_the_policy_of_vs_code_lets_the_page_be(browser: Browser, model: crosslens.Model) -> None:
    page = browser.new_page()
    shown = model.explain(n_sentences=20)._repr_html_()
    page.set_content(f'<meta http-equiv="Content-Security-Policy" content="{VS_CODE}"><body>{shown}</body>')
    look(page)
    page.close()


def run_and_look(browser: Browser, address: str, where: str) -> None:
    """Runs the notebook's only cell as a reader does, with everything but the server out of reach."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.route(lambda url: not url.startswith((address, "data:", "blob:")), lambda route: route.abort())
    page.goto(f"{address}/{where}/explain.ipynb?token={TOKEN}")
    cell = page.locator(".jp-Notebook .jp-CodeCell").first
    cell.locator(".cm-content").wait_for(timeout=60_000)
    # A cell that is run before its kernel is there may be dropped, or answered by a question: which kernel?
    wait_until(page, lambda: kernel_is_idle(address), "the kernel is idle")
    cell.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    wait_until(page, lambda: cell.locator(".jp-InputPrompt").inner_text() != "[ ]:", "the cell runs")
    look(page)
    page.close()


def kernel_is_idle(address: str) -> bool:
    """Whether the server has the notebook's session, with a kernel that waits for work."""
    with urllib.request.urlopen(f"{address}/api/sessions?token={TOKEN}", timeout=5) as answer:
        return any(session["kernel"]["execution_state"] == "idle" for session in json.load(answer))


def wait_until(page: Page, holds: Callable[[], bool], what: str) -> None:
    """A minute at the most. It is the page that waits: while Python sleeps, no request is let through."""
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until, f"not after a minute: {what}"
        page.wait_for_timeout(200)


def look(page: Page | FrameLocator) -> None:
    """The nine terms are there, the weights are drawn, and a click on a button changes which terms are counted in."""
    frame = page.frame_locator(FRAME)
    frame.locator(".term").first.wait_for(timeout=120_000)
    assert frame.locator(".term").count() == 9
    assert frame.locator("h1").text_content() == "Cross-attention · layer 0 · head 0"
    taken = frame.locator("[data-piece][aria-pressed=true]")
    assert taken.count() == 9
    frame.locator("[data-preset='position']").click()
    assert taken.count() == 1
    drawn = frame.locator(".matrix canvas").first
    assert drawn.evaluate("(it) => it.getContext('2d').getImageData(0, 0, it.width, it.height).data.some((x, i) => i % 4 < 3 && x !== 255)")
