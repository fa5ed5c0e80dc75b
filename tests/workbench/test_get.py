"""`lite get` against a stand-in of the hub on this machine."""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from lite_workbench.cli import main
from lite_workbench.starters import STARTERS

hub = pytest.importorskip("huggingface_hub", reason="pip install huggingface_hub")
STARTER = STARTERS["ppocr-det"]


class _Hub(BaseHTTPRequestHandler):
    """`files` of one repository at `commit`; `stated` are hashes that the hub claims."""

    files: dict[str, bytes] = {}
    stated: dict[str, str] = {}
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


@pytest.fixture
def server(tmp_path, monkeypatch):
    handler = type("Hub", (_Hub,), {"files": {f: f.encode() * 9 for f in STARTER.files}})
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{httpd.server_port}")
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    yield handler
    httpd.shutdown()
    httpd.server_close()
    thread.join()


def test_the_list_needs_no_network(capsys, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert main(["get"]) == 0
    said = capsys.readouterr().out
    assert all(s.name in said and s.repo in said and s.license in said for s in STARTERS.values())


def test_a_model_is_fetched_with_its_hash_and_licence(server, tmp_path, capsys):
    assert main(["get", STARTER.name]) == 0
    said = capsys.readouterr().out
    for name, data in server.files.items():
        assert (tmp_path / STARTER.name / name).read_bytes() == data
        assert hashlib.sha256(data).hexdigest()[:16] in said
        assert f"{name}  {len(data)} B  sha256" in said
    assert "license: apache-2.0" in said and "1" * 12 in said


def test_any_repository_can_be_named(server, tmp_path):
    assert main(["get", f"{STARTER.repo}:{STARTER.files[0]}", "-o", "mine"]) == 0
    assert [p.name for p in (tmp_path / "mine").iterdir() if p.is_file()] == [STARTER.files[0]]


def test_another_file_under_the_same_name_is_refused_until_it_is_accepted(server, capsys):
    assert main(["get", STARTER.name]) == 0
    server.files = {f: data + b"!" for f, data in server.files.items()}
    assert main(["get", STARTER.name, "-o", "again"]) == 1
    said = capsys.readouterr().err
    assert "expected" in said and "--update" in said and len(said.splitlines()) <= 2
    assert main(["get", STARTER.name, "-o", "again", "--update"]) == 0
    assert main(["get", STARTER.name, "-o", "third"]) == 0


def test_a_file_that_is_not_what_the_hub_states_is_refused(server, capsys):
    server.stated = {STARTER.files[1]: "0" * 64}
    assert main(["get", STARTER.name]) == 1
    assert "expected 0000000000000000" in capsys.readouterr().err


def test_without_a_network_there_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nothing listens there
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert main(["get", STARTER.name]) == 1
    said = capsys.readouterr().err
    assert "cannot reach http://127.0.0.1:9" in said and "HF_ENDPOINT" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("name", "reason"),
    [("nothing", "there is no model 'nothing'"), ("a/b:missing.onnx", "has no public a/b")],
)
def test_what_is_not_there_is_named(server, capsys, name, reason):
    assert main(["get", name]) == 2
    assert reason in capsys.readouterr().err


def test_without_the_package_the_extra_is_named(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    assert main(["get", STARTER.name]) == 1
    assert "pip install 'lite-workbench[hub]'" in capsys.readouterr().err
