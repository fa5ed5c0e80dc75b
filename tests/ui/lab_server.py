"""A real JupyterLab in a temporary home, and the Chromium of the system that drives it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from tests.conftest import ROOT

TOKEN = "lite"
LABEXTENSION = ROOT / "widgets" / "lite_widgets" / "code_drawer" / "labextension"
SETTINGS = {
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False},
}


class Server:
    """One JupyterLab, or Notebook 7, in a temporary home; `root` is the folder that it shows."""

    def __init__(self, home: Path, base_url: str, verb: str = "lab") -> None:
        self.root = home / "root"
        self.root.mkdir(parents=True)
        # Overrides of settings lie in the application's folder; ours is a linked copy of it.
        app = Path(sys.prefix) / "share" / "jupyter" / "lab"
        own = home / "lab"
        own.mkdir()
        for part in app.iterdir():
            if part.name != "settings":
                (own / part.name).symlink_to(part)
        (own / "settings").mkdir()
        extensions = home / "labextensions"
        extensions.mkdir()
        (extensions / "lite-workbench").symlink_to(LABEXTENSION)
        (own / "settings" / "overrides.json").write_text(json.dumps(SETTINGS))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        name = {"lab": "LabApp", "notebook": "JupyterNotebookApp"}[verb]
        own_settings = [f"--LabApp.app_dir={own}"] if verb == "lab" else []
        names = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")
        env = {**os.environ, "HOME": str(home), **{f"JUPYTER_{n}": str(home / n) for n in names},
               "JUPYTERLAB_SETTINGS_DIR": str(home / "s"),
               "JUPYTERLAB_WORKSPACES_DIR": str(home / "w")}  # fmt: skip
        # Compiled OpenCL kernels are not part of what is tested: they may be warm.
        env.setdefault("XDG_CACHE_HOME", str(Path.home() / ".cache"))
        self.verb = verb
        self.url = f"http://127.0.0.1:{port}{base_url}"
        self.log = home / "lab.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "jupyter", verb, "--no-browser", "--ip=127.0.0.1",
                 f"--port={port}", "--allow-root", f"--IdentityProvider.token={TOKEN}",
                 f"--ServerApp.root_dir={self.root}", "--ServerApp.port_retries=0",
                 f"--ServerApp.base_url={base_url}",
                 "--ServerApp.jpserver_extensions={'lite_widgets.netron_view.extension': True}",
                 f"--{name}.extra_labextensions_path={extensions}", *own_settings,
                 "--expose-app-in-browser", "--LabApp.news_url=None"],
                env=env, stdout=log, stderr=log, cwd=self.root,
            )  # fmt: skip

    def page_of(self, name: str) -> str:
        """The address of a notebook of the folder."""
        folder = "lab/tree" if self.verb == "lab" else "notebooks"
        return f"{self.url}{folder}/{name}?token={TOKEN}&reset"

    def wait(self) -> None:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"{self.url}api/status?token={TOKEN}", timeout=1)
                return
            except OSError:
                time.sleep(0.25)
        raise RuntimeError(self.log.read_text()[-2000:])

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(20)
