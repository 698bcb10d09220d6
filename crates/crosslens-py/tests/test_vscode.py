"""The page in VS Code itself: its workbench as code-server serves it, in a real browser, with a notebook whose output is saved."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import pytest

import crosslens

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("playwright")

from playwright.sync_api import Browser  # noqa: E402
from test_viewers import browser as browser  # noqa: E402  A fixture.
from test_viewers import look, wait_for  # noqa: E402
from test_viewers import pytestmark as with_a_browser  # noqa: E402

PROGRAM = os.environ.get("CROSSLENS_CODE_SERVER")
pytestmark = [with_a_browser, pytest.mark.skipif(PROGRAM is None, reason="CROSSLENS_CODE_SERVER names no code-server: nothing is opened in VS Code")]

SETTINGS = {
    # Without this the notebook may be opened as text: before the extension that reads it is there.
    "workbench.editorAssociations": {"*.ipynb": "jupyter-notebook"},
    "workbench.startupEditor": "none",
    "chat.disableAIFeatures": True,
    "extensions.autoCheckUpdates": False,
    "extensions.ignoreRecommendations": True,
}


class Editor(NamedTuple):
    """A running VS Code, and the folder under which it is to find notebooks."""

    address: str
    folder: Path


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    assert PROGRAM and Path(PROGRAM).exists(), f"CROSSLENS_CODE_SERVER names {PROGRAM}, which does not exist"
    folder = tmp_path_factory.mktemp("vscode")
    user = folder / "data" / "User"
    user.mkdir(parents=True)
    (user / "settings.json").write_text(json.dumps(SETTINGS))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    places = [f"--user-data-dir={folder / 'data'}", f"--extensions-dir={folder / 'extensions'}", f"--config={folder / 'config.yaml'}"]
    quiet = ["--disable-telemetry", "--disable-update-check", "--disable-workspace-trust", "--disable-getting-started-override"]
    # Started from a terminal of VS Code it would open its files there. npm puts the Node that it needs beside it; its shop is out of reach.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VSCODE_")}
    own = {"PATH": f"{Path(PROGRAM).parent}{os.pathsep}{os.environ['PATH']}", "XDG_DATA_HOME": str(folder / "share"), "EXTENSIONS_GALLERY": "{}"}
    with (folder / "server.log").open("w") as log:
        command = [PROGRAM, "--auth=none", f"--bind-addr=127.0.0.1:{port}", *places, *quiet]
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env={**kept, **own})
        try:
            wait_for(server, f"{address}/healthz", folder / "server.log")
            yield Editor(address, folder)
        finally:
            server.terminate()
            server.wait()


@pytest.mark.parametrize("policy", [False, True], ids=["as-it-comes", "with-its-policy"])
def test_vs_code_shows_the_page(browser: Browser, editor: Editor, model: crosslens.Model, policy: bool) -> None:  # noqa: F811
    explained = model.explain(n_sentences=20)
    folder = editor.folder / ("with-its-policy" if policy else "as-it-comes")
    (folder / ".vscode").mkdir(parents=True)
    (folder / ".vscode" / "settings.json").write_text(json.dumps({"notebook.experimental.enableCsp": policy}))
    shown = nbformat.v4.new_output("execute_result", {"text/html": explained._repr_html_(), "text/plain": repr(explained)}, execution_count=1)
    cell = nbformat.v4.new_code_cell("model.explain(n_sentences=20)", execution_count=1, outputs=[shown])
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), folder / "explain.ipynb")

    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.route(lambda url: not url.startswith((editor.address, "data:", "blob:")), lambda route: route.abort())
    file = f"vscode-remote://{editor.address.removeprefix('http://')}{folder / 'explain.ipynb'}"
    page.goto(f"{editor.address}/?{urlencode({'folder': folder, 'payload': json.dumps([['openFile', file]])})}")
    # What a notebook puts out stands in a page of its own, within another: of the webview.
    outputs = page.frame_locator("iframe.webview").frame_locator("iframe#active-frame")
    look(outputs)
    assert outputs.locator("meta[http-equiv='Content-Security-Policy']").count() == int(policy)
    page.close()
