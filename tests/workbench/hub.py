"""A stand-in of the Hugging Face hub on this machine: one repository, over HTTP."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from lite_workbench.starters import STARTERS

STARTER = STARTERS["ppocr-det"]


class Hub(BaseHTTPRequestHandler):
    """`files` of one repository at `commit`; `stated` are hashes that the hub claims, `asked` the
    files that somebody wanted to have."""

    files: dict[str, bytes] = {}
    stated: dict[str, str] = {}
    asked: list[str] = []
    commit = "1" * 40

    def do_GET(self):
        path = self.path.partition("?")[0]
        if path.startswith(f"/api/models/{STARTER.repo}"):
            self._send(json.dumps(self._info()).encode(), "application/json")
            return
        prefix = f"/{STARTER.repo}/resolve/{self.commit}/"
        data = self.files.get(path.removeprefix(prefix)) if path.startswith(prefix) else None
        if data is None:
            self.send_error(404)
        else:
            self.asked.append(path.removeprefix(prefix))
            self._send(data, "application/octet-stream")

    do_HEAD = do_GET

    def _info(self):
        siblings = [
            {"rfilename": name, "size": len(data),
             "lfs": {"sha256": self.stated.get(name, hashlib.sha256(data).hexdigest()),
                     "size": len(data), "pointerSize": 100}}
            for name, data in self.files.items()
        ]  # fmt: skip
        return {"id": STARTER.repo, "modelId": STARTER.repo, "sha": self.commit,
                "tags": ["license:apache-2.0"], "siblings": siblings}  # fmt: skip

    def _send(self, data, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
        self.send_header("X-Repo-Commit", self.commit)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, *_):
        pass


@contextmanager
def serving() -> Iterator[tuple[type[Hub], str]]:
    """The hub of the starter's files, a few bytes each, and its address."""
    handler = type("Hub", (Hub,), {"files": {f: f.encode() * 9 for f in STARTER.files}})
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    yield handler, f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()
    httpd.server_close()
    thread.join()
