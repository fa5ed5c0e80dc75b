"""`lite get` against a stand-in of the hub on this machine."""

from __future__ import annotations

import errno
import hashlib

import pytest
from lite_workbench.cli import main
from lite_workbench.starters import STARTERS

from .hub import STARTER, serving

hub = pytest.importorskip("huggingface_hub", reason="pip install huggingface_hub")


@pytest.fixture
def server(tmp_path, monkeypatch):
    with serving() as (handler, address):
        monkeypatch.setenv("HF_ENDPOINT", address)
        monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path / "cache"))
        monkeypatch.chdir(tmp_path)
        yield handler


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


def test_what_is_refused_replaces_nothing(server, tmp_path):
    assert main(["get", STARTER.name]) == 0
    first = {name: (tmp_path / STARTER.name / name).read_bytes() for name in STARTER.files}
    server.files = {f: data + b"!" for f, data in server.files.items()}
    server.stated = {STARTER.files[1]: "0" * 64}
    assert main(["get", STARTER.name, "--update"]) == 1
    there = {p.name: p.read_bytes() for p in (tmp_path / STARTER.name).rglob("*") if p.is_file()}
    assert there == first


def test_files_that_are_there_are_not_fetched_again(server, tmp_path):
    assert main(["get", STARTER.name]) == 0
    (tmp_path / STARTER.name / STARTER.files[1]).unlink()
    server.asked = []
    assert main(["get", STARTER.name]) == 0
    assert set(server.asked) == {STARTER.files[1]}


def test_files_of_the_hub_stay_in_the_folder(server, tmp_path, capsys):
    assert main(["get", f"{STARTER.repo}:../above.json"]) == 1
    assert "lies outside" in capsys.readouterr().err
    assert not (tmp_path / "above.json").exists()


def test_a_full_disk_is_not_taken_for_the_network(server, monkeypatch, capsys):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(hub, "hf_hub_download", full)
    assert main(["get", STARTER.name]) == 1
    said = capsys.readouterr().err
    assert "cannot be written (No space left on device)" in said and "reach" not in said


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
