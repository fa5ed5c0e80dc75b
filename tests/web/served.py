"""A folder on a plain server, open in a browser."""

from __future__ import annotations

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


class Isolating(Quiet):
    """What a page needs to have threads."""

    def end_headers(self) -> None:
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()


class Served:
    """A folder on a free port, and a page of it whose requests and errors are noted."""

    def __init__(
        self,
        browser: Any,
        folder: Path,
        ready: str = "#status:not(.loading)",
        isolated: bool = False,
    ) -> None:
        handler = partial(Isolating if isolated else Quiet, directory=str(folder))
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.origin = f"http://127.0.0.1:{self.server.server_port}/"
        self.page = browser.new_page()
        self.page.set_default_timeout(120_000)  # of a busy machine
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.page.on("console", lambda m: m.type == "error" and self.errors.append(m.text))
        self.page.goto(self.origin)
        self.page.wait_for_selector(ready)

    def close(self) -> None:
        self.page.close()
        self.server.shutdown()
        self.server.server_close()
        outside = [url for url in self.requests if not url.startswith((self.origin, "data:"))]
        assert outside == [], "a request left the page's origin"
        assert self.errors == []
