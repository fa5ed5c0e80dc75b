"""A Jupyter server extension that serves netron from its own pip package, on Jupyter's origin.

Netron's own server has no authentication and shows the folder of the model; its page asks a
third party where the reader is, wants consent for analytics, and refuses to work 180 days after
its build. Here the installed netron's files are served unchanged at ``{base_url}lite/netron/``,
behind Jupyter's login, and `bridge.js` is loaded after netron's own start script: it takes out
those calls and lets NetronView hand over bytes, select and colour. Models never get a URL.

The bridge leans on private names of netron, so its version is pinned and a browser test watches.
"""

from __future__ import annotations

import importlib.resources
import mimetypes
from pathlib import Path
from typing import Any

import tornado.web
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import url_path_join
from lite_messages import tr

_BRIDGE = Path(__file__).with_name("bridge.js")
_START = '<script type="text/javascript" src="index.js"></script>'
_SUFFIXES = {".js", ".json", ".css", ".png", ".ico"}
_NO_CONNECTIONS = (
    "connect-src 'self' blob: data:; img-src 'self' blob: data:; form-action 'none'; "
    "object-src 'none'"
)


class _Handler(JupyterHandler):
    """Answers with one text or file; only for those who are logged in."""

    def initialize(self, folder: Path) -> None:
        self.folder = folder

    @property
    def content_security_policy(self) -> str:
        # Whatever netron's page tries, the browser lets nothing leave this origin.
        return f"{super().content_security_policy}; {_NO_CONNECTIONS}"

    def send(self, content: bytes, kind: str) -> None:
        self.set_header("Content-Type", kind)
        self.set_header("Cache-Control", "private, max-age=3600")
        self.finish(content)


class EmbedHandler(_Handler):
    """Netron's page with the bridge in it."""

    @tornado.web.authenticated
    def get(self) -> None:
        page = (self.folder / "index.html").read_text("utf-8")
        if _START not in page:
            raise tornado.web.HTTPError(
                500,
                tr("this version of netron has a different index.html; install the pinned version"),
            )
        bridge = '<script type="text/javascript" src="lite-bridge.js"></script>'
        self.send(page.replace(_START, f"{_START}\n{bridge}").encode(), "text/html; charset=utf-8")


class BridgeHandler(_Handler):
    """Our script inside netron's page."""

    @tornado.web.authenticated
    def get(self) -> None:
        self.send(_BRIDGE.read_bytes(), "text/javascript; charset=utf-8")


class AssetHandler(_Handler):
    """One file of the netron package: scripts, styles, pictures; no folders."""

    def _names(self) -> set[str]:
        """Asking the file system for a name that a request made up could raise."""
        return {path.name for path in self.folder.iterdir() if path.is_file()}

    @tornado.web.authenticated
    def get(self, name: str) -> None:
        path = self.folder / name
        if name not in self._names() or path.suffix not in _SUFFIXES:
            raise tornado.web.HTTPError(404)
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        self.send(
            path.read_bytes(), "text/javascript; charset=utf-8" if name[-3:] == ".js" else kind
        )


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "lite_widgets.netron_view.extension"}]


def _load_jupyter_server_extension(server: Any) -> None:
    folder = {"folder": Path(str(importlib.resources.files("netron")))}
    base = url_path_join(server.web_app.settings["base_url"], "lite/netron/")
    server.web_app.add_handlers(
        ".*$",
        [
            (f"{base}embed.html", EmbedHandler, folder),
            (f"{base}lite-bridge.js", BridgeHandler, folder),
            (f"{base}([^/]+)", AssetHandler, folder),
        ],
    )
