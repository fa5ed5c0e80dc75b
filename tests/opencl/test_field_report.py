"""A field report: what it says, what it must not say, and what of a stranger's is refused."""

from __future__ import annotations

import copy
import dataclasses
import getpass
import json
import platform
import socket
from pathlib import Path
from typing import Any

import lite_workbench as lw
import pytest
from lite_engine.backends.opencl import device as devices
from lite_engine.backends.opencl.check import check_device, roofs_of
from lite_engine.backends.opencl.device import Device
from lite_engine.backends.opencl.faults import Fault, planted
from lite_engine.backends.opencl.tuning import Tuning
from lite_engine.backends.opencl.verdicts import Verdicts
from lite_engine.doctor import condition, field_report, privacy
from lite_engine.errors import LiteError, ModelFormatError, TargetMismatchError, VersionError
from lite_workbench import schemas
from lite_workbench.cli import main

from tests.opencl.tiny import device

pytestmark = pytest.mark.opencl

#: Names as they may stand anywhere: of a person, a machine, a serial number, a file.
USER, HOST, SERIAL, FILE = "annabel", "frodo-laptop", "R58M123ABC", "holiday_plan"


@pytest.fixture
def own(monkeypatch, tmp_path: Path) -> Device:
    """This machine's device with a cache of its own; a check of it looks at Softmax alone."""
    made = fresh(tmp_path)
    monkeypatch.setattr(field_report, "open_device", lambda report: made)
    return made


def check_schema(verb: str, document: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="pip install jsonschema")
    jsonschema.Draft202012Validator(schemas.schema(verb)).validate(document)


def fresh(folder: Path) -> Device:
    report, key = device().report, device().tuning.key
    return dataclasses.replace(
        device(), tuning=Tuning.load(folder / f"tuning-{key}.json"),
        verdicts=Verdicts.load(folder / "verdicts.json", report.name, report.driver),
    )  # fmt: skip


def softmax_alone(own: Device, *, note):
    """In this process, where faults can be planted."""
    rates = roofs_of(own)
    return rates, check_device(own, rates, kernels=["softmax"], note=note)


@pytest.fixture(autouse=True)
def quick(monkeypatch) -> None:
    monkeypatch.setattr(field_report, "check_apart", softmax_alone)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> dict[str, Any]:
    """The report of a device whose Softmax is wrong, and that has measured one size."""
    own = fresh(tmp_path_factory.mktemp("made"))
    own.tuning.table = {"conv_f32_1": "direct"}
    with pytest.MonkeyPatch.context() as patch, planted(Fault("numbers", "softmax")):
        patch.setattr(field_report, "open_device", lambda report: own)
        patch.setattr(field_report, "check_apart", softmax_alone)
        return field_report.examine_opencl().to_dict()


@pytest.fixture
def document(made: dict[str, Any]) -> dict[str, Any]:
    return copy.deepcopy(made)


def written(folder: Path, document: object) -> Path:
    path = folder / "report.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def test_what_it_says(own: Device, document: dict[str, Any], tmp_path: Path) -> None:
    report = field_report.read(written(tmp_path, document))
    assert report.to_dict() == document and not report.sound
    facts = document["device"]
    assert facts["driver"] == own.report.driver and facts["key"] == own.tuning.key
    assert facts["limits"]["max_work_group_size"] == own.device.max_work_group_size
    assert facts["profile"]["device_class"] == own.profile.device_class
    assert {(k["kernel"], k["verdict"]) for k in document["kernels"]} >= {("softmax", "wrong")}
    assert {f["kernel"] for f in document["failures"]} == {"softmax"}
    assert document["tuning"] == {"conv_f32_1": "direct"}
    assert document["rates"]["gbytes_per_s"] > 0 and "cpu" in document["condition"]["before"]


def test_nothing_personal(monkeypatch, own: Device, tmp_path: Path) -> None:
    """Planted in everything that a report could take it from: the environment, the driver's words,
    a build log, a tuning table, sensors and the files beside them."""
    for name in ("USER", "LOGNAME", "USERNAME"):
        monkeypatch.setenv(name, USER)
    monkeypatch.setenv("HOME", f"/home/{USER}")
    monkeypatch.setattr(getpass, "getuser", lambda: USER)
    monkeypatch.setattr(socket, "gethostname", lambda: f"{HOST}.example.org")
    monkeypatch.setattr(platform, "node", lambda: HOST)
    serial = tmp_path / "serial"
    serial.write_text(f"{SERIAL}\0\n")
    monkeypatch.setattr(privacy, "_SERIALS", (str(serial), str(tmp_path / "none")))
    sensors = tmp_path / "sys"
    zone = sensors / "class/thermal/thermal_zone0"
    zone.mkdir(parents=True)
    for name, text in (("type", f"soc-{HOST}"), ("temp", "45000"), ("serial", SERIAL)):
        (zone / name).write_text(text)
    monkeypatch.setattr(field_report, "clocks_and_heat", lambda: condition.clocks_and_heat(sensors))
    told = f"/home/{USER}/{FILE}/{FILE}.cl:3: error on {HOST.upper()} ({SERIAL}), C:\\Users\\{USER}"
    monkeypatch.setattr(
        own, "report", dataclasses.replace(own.report, platform=f"Remote {HOST}:7777 of {USER}")
    )
    own.tuning.table = {f"conv of {USER}": f"/home/{USER}/{FILE}"}
    build = devices.Device.program

    def fails(self, file, defines=""):
        if file == "softmax":
            raise devices.BackendUnavailableError(told)
        return build(self, file, defines)

    monkeypatch.setattr(devices.Device, "program", fails)
    text = json.dumps(field_report.examine_opencl().to_dict(), ensure_ascii=False)
    found = json.loads(text)
    assert found["condition"]["before"]["zones"] == [{"type": "soc-…", "temp": 45000}]
    assert "error on …" in found["kernels"][-1]["detail"]
    for planted_word in (USER, HOST, SERIAL, FILE, "example.org", "/home"):
        assert planted_word.lower() not in text.lower(), planted_word


def test_a_device_that_cannot_be_used_is_a_report_too(monkeypatch, tmp_path: Path) -> None:
    def refuse() -> None:
        raise devices.BackendUnavailableError("libmali.so: needs libfoo.so, which is not installed")

    monkeypatch.setattr(field_report, "choose", refuse)
    path = tmp_path / "report.json"
    assert main(["doctor", "--field-report", str(path)]) == 1
    report = field_report.read(path)
    assert report.device is None and "needs libfoo.so" in report.attempts[-1].result


def test_the_doctor_checks_prints_and_writes(own: Device, tmp_path: Path, capsys) -> None:
    path = tmp_path / "report.json"
    assert main(["doctor", "--check", "opencl", "--field-report", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "softmax" in shown and " ok " in shown and f"wrote {path}" in shown
    assert main(["doctor", "--check", "opencl", "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    check_schema("doctor", told)
    assert (
        set(told) == {"schema", *json.loads(path.read_text())}
        and told["kernels"][0]["verdict"] == "ok"
    )
    with planted(Fault("numbers", "softmax")):
        assert main(["doctor", "--check", "opencl"]) == 1
    assert "gives different results than the reference" in capsys.readouterr().out
    assert main(["doctor", "model.lite", "--check", "opencl"]) == 2


def test_another_machine_takes_it_over(
    monkeypatch, own: Device, document: dict[str, Any], tmp_path: Path, capsys
) -> None:
    """The same device and driver, an empty cache but for one measured size."""
    document["tuning"]["conv_f32_2"] = "image"
    path = written(tmp_path, document)
    folder = tmp_path / "other"
    other = fresh(folder)
    other.tuning.table = {"conv_f32_2": "direct"}
    monkeypatch.setattr(field_report, "open_device", lambda report: other)
    assert main(["tune", "--import", str(path), "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    check_schema("tune", told)
    assert told["tuning"] == {"conv_f32_1": "direct"} and told["known"] == 1
    assert told["failures"] == document["failures"]
    again = fresh(folder)
    assert set(again.verdicts.failures) == {f["program"] for f in document["failures"]}
    assert not again.verdicts.passed  # others' numbers are not ours
    assert again.tuning.table == {"conv_f32_1": "direct", "conv_f32_2": "direct"}
    assert main(["tune", "--import", str(path)]) == 0
    assert "imported 0 failed variants and 0 measured sizes" in capsys.readouterr().out
    session = lw.open(lw.shipped("digits.onnx"))
    adopted = session.import_tuning(path)
    assert (adopted.failures, adopted.tuning) == ([], {})
    assert adopted.known == len(told["failures"]) + 2
    assert session.code[-1] == f"session.import_tuning({str(path)!r})"


def test_another_device_or_driver_refuses_it(document: dict[str, Any], tmp_path: Path) -> None:
    document["device"] |= {"key": "0" * 16, "name": "Mali-G52", "driver": "r32p1"}
    report = field_report.read(written(tmp_path, document))
    with pytest.raises(
        TargetMismatchError, match=r"belongs to Mali-G52 with driver r32p1, but this machine has "
    ):
        field_report.adopt(report)


FAILURE = {"program": "ab", "kernel": "k", "variant": "", "kind": "build", "detail": "no"}
ROW = {"kernel": "k", "dtype": "f32", "way": "", "verdict": "ok", "cases": 1}
DAMAGES: list[dict[str, Any]] = [
    {"format": "other"}, {"format": 1}, {"version": "1"}, {"device": []}, {"device": {}},
    {"failures": {}}, {"failures": [1]}, {"failures": [{**FAILURE, "kind": "magic"}]},
    {"failures": [{**FAILURE, "detail": "\x1b[2J"}]}, {"failures": [FAILURE] * 2001},
    {"kernels": [{**ROW, "verdict": "great"}]}, {"kernels": [{**ROW, "seconds": float("nan")}]},
    {"kernels": [{**ROW, "cases": 1 << 70}]}, {"tuning": {"a": 1}}, {"tuning": {"x" * 500: "a"}},
    {"tuning": {"a\nb": "c"}}, {"rates": {"a": "fast"}}, {"rates": {"a": float("inf")}},
    {"attempts": [[]]}, {"condition": {"a": [[[[[[[[[1]]]]]]]]]}},
    {"condition": {"a": [0] * 200_001}},
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda d: json.dumps(d)[:40])
def test_what_is_no_report_is_refused(
    document: dict[str, Any], damage: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(ModelFormatError, match="report"):
        field_report.read(written(tmp_path, {**document, **damage}))


def test_no_file_ends_in_anything_but_an_error(document: dict[str, Any], tmp_path: Path) -> None:
    text = json.dumps(document)
    for hostile in (text[:-1], "", "null", "[" * 100_000, '{"a": ' * 50_000, "\0", f"[{text}]"):
        with pytest.raises(ModelFormatError, match="report"):
            field_report.read(written(tmp_path, hostile))
    for key in document:
        left = {k: v for k, v in document.items() if k != key}
        path = written(tmp_path, left)
        try:
            field_report.read(path)
        except LiteError as error:
            assert "report.json" in str(error) and key in str(error)
    with pytest.raises(VersionError, match="version 2"):
        field_report.read(written(tmp_path, {**document, "version": 2}))
    with pytest.raises(ModelFormatError, match="not a regular file"):
        field_report.read(tmp_path)
    with pytest.raises(ModelFormatError, match="No such file"):
        field_report.read(tmp_path / "none.json")
    with pytest.raises(ModelFormatError, match="at most"):
        field_report.read(written(tmp_path, text + " " * (4 << 20)))
