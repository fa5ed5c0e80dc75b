"""`lite_run --tune` and `lite tune` share one table: what the one measures the other takes."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from pathlib import Path

import lite_engine.backends.opencl as opencl
import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.backends._base import Measured
from lite_engine.backends.cpu import native
from lite_engine.backends.opencl.tuning import Tuning
from lite_engine.model_file._container import read_container, write_container
from lite_engine.runtime.inputs import random_feeds
from lite_engine.runtime.tune import tune

from tests.native.opencl.running import answer, network, run
from tests.opencl.tiny import device

pytestmark = [pytest.mark.opencl, pytest.mark.cpu]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its OpenCL programs hold variants."""
    path = tmp_path_factory.mktemp("tunable") / "m.lite"
    optimize(network(), targets=["opencl", native.target()]).save(path, tunable=True)
    return path


def file_of(cache: Path) -> Path:
    """Where the table of this machine's device lies."""
    return cache / "opencl" / device().tuning.path.name


def keep(cache: Path, content: str) -> Path:
    file_of(cache).parent.mkdir(parents=True, exist_ok=True)
    file_of(cache).write_text(content)
    return cache


def table(cache: Path) -> dict[str, str]:
    return json.loads(file_of(cache).read_text())


def in_python(model: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> Predictor:
    """On a device whose table is that file."""
    own = dataclasses.replace(device(), tuning=Tuning.load(path))
    monkeypatch.setattr(opencl, "open_device", lambda report: own)
    return Predictor(model, "opencl", threads=2)


def two_tables(measured: list[Measured]) -> dict[str, dict[str, str]]:
    """Of each layer the first variant; and the last one that adds up in other parts, whose bits
    differ, where there is one."""

    def other(ways: list[str]) -> str:
        tiles = [w for w in ways if "_p" in w] or ways  # the file holds no images
        parts = tiles[0].rpartition("_p")[2]
        return next((w for w in tiles[::-1] if w.rpartition("_p")[2] != parts), tiles[-1])

    ways = {m.size: list(m.seconds) for m in measured}
    return {
        "first": {size: some[0] for size, some in ways.items()},
        "last": {size: other(some) for size, some in ways.items()},
    }


def test_the_runner_measures_once_and_python_takes_it(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(model, "--tune", "--check", LITE_CACHE_DIR=str(tmp_path))
    assert first.returncode == 0, first.stderr
    found = table(tmp_path)
    assert f"kept in {file_of(tmp_path)}" in first.stderr
    assert {size.split("_")[0] for size in found} >= {"conv", "group"}
    again = run(model, "--tune", LITE_CACHE_DIR=str(tmp_path))
    assert "measured: 0, changed: 0" in again.stderr and table(tmp_path) == found
    done = tune(in_python(model, file_of(tmp_path), monkeypatch), "rapid")
    assert not done.measured and done.known == sum(not s.startswith("group") for s in found)


def test_the_runner_takes_what_python_measured(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums in other parts have other bits, and they are Python's."""
    measured = list(tune(in_python(model, tmp_path / "new.json", monkeypatch), "rapid").measured)
    outputs = []
    for way, words in two_tables(measured).items():
        cache = keep(tmp_path / way, json.dumps(words))
        output, choice = answer(model, tmp_path, LITE_CACHE_DIR=str(cache))
        predictor = in_python(model, file_of(cache), monkeypatch)
        (wanted,) = predictor.run(random_feeds(network())).values()
        assert choice.startswith("opencl: ") and output.tobytes() == wanted.tobytes()
        outputs.append(output)
    assert outputs[0].tobytes() != outputs[1].tobytes()
    np.testing.assert_allclose(outputs[0], outputs[1], rtol=1e-4)


def test_the_runner_takes_what_the_file_holds(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of this device; what was measured here comes first."""
    with monkeypatch.context() as patch:
        measured = list(tune(in_python(model, tmp_path / "new.json", patch), "rapid").measured)
    none, outputs = str(tmp_path / "none"), {}
    for way, words in two_tables(measured).items():
        held = {f"opencl/{device().tuning.key}": words, "opencl/0123456789abcdef": {"conv": "x"}}
        path = Predictor(model, "opencl").model.but(tuning=held).save(tmp_path / f"{way}.lite")
        cache = keep(tmp_path / way, json.dumps(words))
        wanted, _ = answer(model, tmp_path, LITE_CACHE_DIR=str(cache))
        outputs[way], _ = answer(path, tmp_path, LITE_CACHE_DIR=none)
        assert outputs[way].tobytes() == wanted.tobytes()
    assert outputs["first"].tobytes() != outputs["last"].tobytes()
    output, _ = answer(path, tmp_path, LITE_CACHE_DIR=str(tmp_path / "first"))
    assert output.tobytes() == outputs["first"].tobytes()
    parts = {tag: [data] for tag, data in read_container(path).items()}
    parts["TUNED"] = [
        bytes(*parts["TUNED"]).replace(json.dumps(next(iter(words.values()))).encode(), b"{}")
    ]
    done = run(write_container(tmp_path / "damaged.lite", parts), LITE_CACHE_DIR=none)
    assert done.returncode == 0 and "for this device in the file are damaged" in done.stderr


def test_a_table_beside_the_file(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no folder is named: the runner writes it, and both read it."""
    here = shutil.copy(model, tmp_path / "m.lite")
    done = run(here, "--tune", LITE_CACHE_DIR="")
    beside = tmp_path / file_of(tmp_path).name
    assert f"kept in {beside}" in done.stderr
    assert "measured: 0, " in run(here, "--tune", LITE_CACHE_DIR=str(tmp_path / "empty")).stderr
    predictor = in_python(here, tmp_path / "other" / beside.name, monkeypatch)
    assert not tune(predictor, "rapid").measured


@pytest.mark.parametrize(
    "content",
    ["", '{"a": 1}', '{"a": "b"} {}', '{"a": "b",}', '{"a\\u0000": "b"}',
     "{" + ",".join(['"a":"b"'] * 10001) + "}"],
)  # fmt: skip
def test_what_is_no_table_is_told_and_ignored(content: str, model: Path, tmp_path: Path) -> None:
    done = run(model, LITE_CACHE_DIR=str(keep(tmp_path, content)))
    assert done.returncode == 0 and done.stderr.count("\n") == 1
    assert f"warning: {file_of(tmp_path)}: not a table of layers' fastest variants" in done.stderr


def test_a_table_that_names_what_the_file_lacks(model: Path, tmp_path: Path) -> None:
    wanted, _ = answer(model, tmp_path, LITE_CACHE_DIR=str(tmp_path / "none"))
    run(model, "--tune", LITE_CACHE_DIR=str(tmp_path))
    keep(tmp_path, json.dumps(dict.fromkeys(table(tmp_path), "../../nothing")))
    output, choice = answer(model, tmp_path, LITE_CACHE_DIR=str(tmp_path))
    assert choice.startswith("opencl: ") and output.tobytes() == wanted.tobytes()


def test_a_pipe_in_the_tables_place_holds_nobody_up(model: Path, tmp_path: Path) -> None:
    file_of(tmp_path).parent.mkdir()
    os.mkfifo(file_of(tmp_path))
    done = run(model, LITE_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0 and "not a regular file" in done.stderr
    assert Tuning.load(file_of(tmp_path)).table == {}


def test_a_folder_that_takes_nothing(model: Path, tmp_path: Path) -> None:
    """A file in the folder's place, as root writes into folders without write permission."""
    (tmp_path / "opencl").write_text("")
    done = run(model, "--tune", "--check", LITE_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0 and "relative error" in done.stdout
    assert "warning: " in done.stderr and "cannot be kept there (" in done.stderr


def test_a_disk_that_is_full(model: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "opencl").symlink_to("/dev/full")
    done = run(model, "--tune", LITE_CACHE_DIR=str(cache))
    assert done.returncode == 0 and "cannot be kept there (" in done.stderr


@pytest.mark.parametrize("fault", ["KERNEL_FAILS", "LAUNCH_FAILS"])
def test_a_variant_that_fails(
    fault: str, failing_driver: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not the fastest; where a table names it, the file's first one runs, on the device."""
    predictor = in_python(model, tmp_path / "new.json", monkeypatch)
    sizes = [m.size for m in tune(predictor, "rapid").measured]
    wanted, _ = answer(model, tmp_path, LITE_CACHE_DIR=str(tmp_path / "none"))
    with_it = {"LITE_OPENCL_LIBRARY": failing_driver, fault: "conv_grouped"}
    run(model, "--tune", LITE_CACHE_DIR=str(tmp_path), **with_it)
    assert "simple" not in table(tmp_path).values()
    keep(tmp_path, json.dumps(dict.fromkeys(sizes, "simple")))
    asked = {"LITE_CACHE_DIR": str(tmp_path), **with_it}
    output, choice = answer(model, tmp_path, **asked)
    assert choice.startswith("opencl: ") and "on the CPU" not in choice
    assert output.tobytes() == wanted.tobytes()


def test_nothing_to_measure_is_said(model: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.lite"
    optimize(network(), targets=["opencl", native.target()]).save(plain)
    assert "convert it with --tunable" in run(plain, "--tune").stderr
    assert run(model, "--tune", "--backend", "cpu").stderr == "tuning: cpu: asked for\n"
    sections = read_container(model)
    bare = {tag: [data] for tag, data in sections.items() if not tag.startswith("OCL.")}
    done = run(write_container(tmp_path / "bare.lite", bare), "--tune")
    assert done.stderr == "tuning: cpu: the file has no OpenCL program\n"
