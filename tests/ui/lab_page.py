"""One notebook in JupyterLab or Notebook 7, as a person uses it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

_READY = """async () => {
  const panel = window.jupyterapp.shell.currentWidget;
  await panel.context.ready; await panel.revealed; await panel.sessionContext.ready;
  const kernel = panel.sessionContext.session.kernel;
  await kernel.info;
  while (kernel.connectionStatus !== 'connected'
         || panel.sessionContext.kernelDisplayStatus !== 'idle')
    await new Promise((done) => setTimeout(done, 50));
}"""
#: JupyterLab's own noise, none of it ours.
_KNOWN = ("favicon", "service worker", "Failed to load resource: the server responded with a status"
          " of 404")  # fmt: skip
_LOCAL = ("127.0.0.1", "localhost")


class LabPage:
    """`page` is Playwright's; `errors` and `outside` (requests to elsewhere) are collected."""

    def __init__(
        self,
        browser: Any,
        server: Any,
        *,
        dark: bool,
        size: tuple[int, int] = (1400, 1500),
    ) -> None:
        self.server = server
        self.dark = dark
        self.context = browser.new_context(viewport={"width": size[0], "height": size[1]})
        self.page = self.context.new_page()
        self.page.set_default_timeout(120_000)
        self.errors: list[str] = []
        self.outside: list[str] = []
        self.page.on("request", self._requested)
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _requested(self, request: Any) -> None:
        url = urlparse(request.url)
        if url.scheme in ("http", "https", "ws", "wss") and url.hostname not in _LOCAL:
            self.outside.append(request.url)

    def _said(self, message: Any) -> None:
        if message.type == "error" and not any(k in message.text for k in _KNOWN):
            self.errors.append(message.text)

    def open(self, cells: list[str]) -> None:
        """Opens a notebook of these cells and waits for its kernel."""
        book = {
            "cells": [
                {"cell_type": "code", "id": f"c{i}", "metadata": {}, "source": text,
                 "outputs": [], "execution_count": None}
                for i, text in enumerate(cells)
            ],
            "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3",
                                        "language": "python"}},
            "nbformat": 4, "nbformat_minor": 5,
        }  # fmt: skip
        path = self.server.root / f"walk{len(list(self.server.root.glob('walk*.ipynb')))}.ipynb"
        path.write_text(json.dumps(book))
        self.goto(path.name)
        if self.server.verb == "lab":
            toggle = "application:toggle-left-area"
            self.page.evaluate(f"() => window.jupyterapp.commands.execute('{toggle}')")
        self.theme(dark=self.dark)

    def theme(self, *, dark: bool) -> None:
        """Changes JupyterLab's theme and waits for it."""
        theme, light = ("Dark", "false") if dark else ("Light", "true")
        self.page.evaluate(
            "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', {theme})",
            f"JupyterLab {theme}",
        )
        self.page.wait_for_selector(f"body[data-jp-theme-light={light}]", state="attached")

    def goto(self, name: str) -> None:
        """Opens a notebook of the server's folder and waits for its kernel."""
        self.page.goto(self.server.page_of(name))
        self._ready()

    def reload(self) -> None:
        """Saves the notebook and loads the page anew; the kernel goes on."""
        self.page.evaluate("() => window.jupyterapp.shell.currentWidget.context.save()")
        self.page.reload()
        self._ready()

    def _ready(self) -> None:
        self.page.wait_for_selector("#jupyterlab-splash", state="detached")
        self.page.wait_for_selector(".jp-Notebook")
        self.page.wait_for_function("() => window.jupyterapp?.shell.currentWidget?.context")
        self.page.evaluate(_READY)

    def run_all(self) -> bool:
        """Runs every cell; False when one failed."""
        return self.page.evaluate(
            "() => window.jupyterapp.commands.execute('notebook:run-all-cells')"
        )

    def add_cell(self, source: str) -> Any:
        """A new last cell of this source; it has the keys."""
        number = self.page.evaluate(
            """(source) => {
              const { content } = window.jupyterapp.shell.currentWidget;
              const at = content.widgets.length;
              content.model.sharedModel.insertCell(at, { cell_type: 'code', source });
              content.deselectAll();
              content.activeCellIndex = at;
              return at;
            }""",
            source,
        )
        return self.page.locator(".jp-Notebook .jp-Cell").nth(number)

    def run_cell(self, source: str) -> Any:
        """A new last cell, run."""
        cell = self.add_cell(source)
        self.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-cell')")
        return cell

    def run_code(self, code: str) -> str:
        """Runs code in the notebook's kernel and returns what it printed."""
        return self.page.evaluate(
            """async (code) => {
              const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
              const future = kernel.requestExecute({code, store_history: false});
              let text = '';
              future.onIOPub = (m) => {
                if (m.header.msg_type === 'stream') text += m.content.text;
                if (m.header.msg_type === 'error') text += m.content.traceback.join('\\n');
              };
              await future.done;
              return text.trim();
            }""",
            code,
        )

    def prints(self, code: str, wanted: str) -> None:
        """Waits until the code prints this: what a widget sends may still be on its way."""
        until = time.monotonic() + 60
        while (said := self.run_code(code)) != wanted and time.monotonic() < until:
            time.sleep(0.1)
        assert said == wanted

    def step(self, name: str) -> None:
        """Opens a step by its tab."""
        self.page.locator(f"button[data-step={name}]").click()

    def shot(self, name: str) -> None:
        """Keeps a picture where LITE_TEST_SHOTS says."""
        folder = os.environ.get("LITE_TEST_SHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=str(Path(folder) / f"{name}.png"))

    def close(self) -> None:
        self.context.close()
