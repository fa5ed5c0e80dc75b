"""What reads texts that devices, caches, a command's options and other people's machines hold, as
readers of fuzz targets (guided.py)."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import lite_workbench as lw
import numpy as np
from lite_engine import optimize
from lite_engine.adapter import Adapter
from lite_engine.backends.opencl import verdicts
from lite_engine.backends.opencl.custom import opencl_kernel
from lite_engine.backends.opencl.tuning import Tuning
from lite_engine.devices import condition
from lite_engine.devices.opencl import read_listing
from lite_engine.devices.runner import read_results
from lite_engine.doctor import field_report
from lite_engine.documents import parse, renamed
from lite_engine.errors import LiteError
from lite_engine.ir.text import from_text, to_text
from lite_engine.ops import custom_op
from lite_engine.preprocess import Preprocess
from lite_engine.profile import Profile, roof
from lite_engine.quantize.curve import read_curve
from lite_workbench.sweep import saved

from tests.small_models import classifier

from .guided import Reader
from .readers import Seeds, files, limited, sources, told

# ---- what caches, devices and other machines hold

DEVICE: dict[str, Any] = {
    "key": "0123456789abcdef", "name": "GPU", "platform": "P", "vendor": "V", "version": "1.2",
    "driver": "1", "language": "1.2", "profile": {"lanes": 8}, "limits": {"units": 4},
    "extensions": ["cl_khr_fp16"],
}  # fmt: skip
REPORT: dict[str, Any] = {
    "format": field_report.FORMAT, "version": 1, "engine": "1.0", "machine": "x", "system": "Linux",
    "attempts": [{"what": "lib", "result": "found"}], "device": DEVICE,
    "condition": {"before": {"clock_khz": 5}, "after": {}}, "rates": {"flops": 1e9},
    "kernels": [{"kernel": "k", "dtype": "f32", "way": "", "verdict": "ok", "cases": 3}],
    "failures": [{"program": "p", "kernel": "k", "variant": "v", "kind": next(iter(verdicts.KINDS)),
                  "detail": "d"}],
    "tuning": {"conv 1": "tile 2"},
}  # fmt: skip
LISTING: dict[str, Any] = {
    "libraries": [{"library": "libOpenCL.so", "found_by": "loader", "state": "found", "reason": "",
                   "fix": ""}],
    "devices": [], "kernels": {"conv": "0" * 64},
}  # fmt: skip


VERDICTS: dict[str, Any] = {
    "device": "d", "driver": "1", "passed": ["p"], "failures": REPORT["failures"],
}  # fmt: skip
ROOFS: dict[str, Any] = {
    "cpu": {"gflops": 1.0, "gbytes_per_s": 2.0, "cache_gbytes_per_s": 3.0, "what": "w",
            "cache_bytes": 4, "measured": 1, "integer_gops": 0.0, "date": "2026-11-24"},
}  # fmt: skip
CURVE: dict[str, Any] = {
    "options": {}, "ranges": {}, "ranking": ["a"],
    "points": [{"scheme": {"activation": "u8", "keep_float": ["a"]}, "options": {}, "cost": 1.0,
                "sqnr_db": 2.0, "size_bytes": 3, "float_layers": 1, "top1_agreement": 0.5}],
}  # fmt: skip
SWEEP: dict[str, Any] = {
    "key": "k",
    "cells": [{"choice": {"backend": "x86", "precision": "fp32", "threads": 1},
               "status": "measured", "runs": 2, "latency_ms": 1.5}],
}  # fmt: skip
GRAPH = to_text(classifier(), [])
CONDITION = "performance\n1500000\n-5\n\n2 kB\n41000\n"
#: As docs/own_operators.md writes them.
KERNEL = """//@ options STRENGTH:number
//@ kernel twice
//@ items n
//@ let m = (n + 3) / 4
//@ reads x[m * 4] when n % 4 == 0
//@ writes y[n]
kernel void twice(global const T *x, global T *y, int n) {
  const int i = get_global_id(0);
  if (i < n) ST(y, i, 2 * LD(x, i));
}
"""


@cache
def _profile() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        session = lw.open(optimize(classifier()).save(Path(place) / "m.lite"))
        profile = session.profile("reference", runs=1)
    made: dict[str, Any] = json.loads(json.dumps(profile.to_dict()))
    return made


def _profiles(place: Path) -> Seeds:
    """As measured, and of an emulated board, where instructions are counted."""
    emulated = {"times_meaningful": False, "emulated": True}
    changes = ({}, emulated, {**emulated, "instructions": {"run": 9, "first_result": 12}},
               {"step_ms": 0.1})  # fmt: skip
    yield from files(**{f"{i}_json": {**_profile(), **change} for i, change in enumerate(changes)})(
        place
    )


def _shown(path: Path) -> None:
    profile = Profile.from_dict(parse(path.read_bytes(), "profile").value)
    profile.headline.encode()
    profile.table()


#: More than the seeds have, and less than mutants reach.
MOST_REPORT = 3000


def _report(path: Path) -> None:
    told(limited(field_report.read, field_report, _MOST_BYTES=MOST_REPORT, MOST_FAILURES=2,
                 _MOST_VALUES=400))(path)  # fmt: skip
    for other in (path.parent, path.with_name("missing")):
        with suppress(LiteError):
            field_report.read(other)


def _reports(place: Path) -> Seeds:
    many = {**REPORT, "failures": REPORT["failures"] * 3}
    values = {**REPORT, "rates": {str(i): i for i in range(210)}}
    unknown = {**REPORT, "kernels": [{**REPORT["kernels"][0], "verdict": "x"}]}
    texts = {**REPORT, "tuning": {str(i): "x" * 300 for i in range(12)}}
    yield from files(r_json=REPORT, m_json=many, v_json=values, u_json=unknown, t_json=texts)(place)


def _unnamed(read: Callable[[Path], object]) -> Callable[[Path], None]:
    """A LiteError of one line is an answer, also where it cannot know the file."""

    def checked(path: Path) -> None:
        try:
            read(path)
        except LiteError as error:
            assert "\n" not in str(error), error

    return checked


def _text(read: Callable[[str], object], source: str, *texts: str) -> Reader:
    seeds = {f"{i}_txt": text for i, text in enumerate(texts)}
    whole = _unnamed(lambda path: read(path.read_text(encoding="utf-8", errors="replace")))
    return Reader(files(**seeds), whole, sources(source))


def _graph_text(text: str) -> None:
    arrays: list[np.ndarray] = []
    to_text(classifier(), arrays)
    from_text(text, arrays)


@custom_op("fuzz::Twice")
def _twice(x: np.ndarray) -> np.ndarray:
    return x * 2


def _kernel_text(text: str) -> None:
    opencl_kernel(_twice, text)


def _results(place: Path) -> Seeds:
    folder = place / "results"
    folder.mkdir()
    np.save(folder / "y.npy", np.zeros(3, np.float32))
    (folder / "profile.json").write_text(json.dumps({"steps": [{"name": "a", "us": [1.0]}]}))
    for path in sorted(folder.iterdir()):
        yield folder, path


@dataclass
class _Inner:
    of: str = field(default="", metadata=renamed("before"))


@dataclass
class _Everything:
    """One field for each kind that `Part.into` reads."""

    number: float
    integer: int
    truth: bool
    word: Literal["a", "b"]
    many: list[int]
    named: dict[str, float]
    row: tuple[int, ...]
    inner: list[_Inner]
    maybe: float | None = None
    free: Any = None


EVERYTHING: dict[str, Any] = {
    "number": 1.5, "integer": 2, "truth": 1, "word": "b", "many": [1, 2], "named": {"a": 1},
    "row": [1], "inner": [{"before": "x"}, {"of": "y"}], "maybe": None, "free": {"deep": [[]]},
}  # fmt: skip


def _document(text: str) -> None:
    document = parse(text, "document")
    document.into(_Everything)
    document["many"][1].integer()
    for key in ("maybe", "free"):
        part = document.get(key)
        assert part is None or part.where == f"document.{key}"


READERS = {
    "field_report": Reader(
        _reports,
        _report,
        sources("e/doctor/field_report.py:read,_bytes,_check"),
    ),
    "profile": Reader(
        _profiles,
        _unnamed(_shown),
        sources("e/profile/record.py:from_dict,headline"),
    ),
    "results": Reader(
        _results,
        _unnamed(lambda path: read_results("board", path, ["y"])),
        sources("e/devices/runner.py:read_results"),
    ),
    "verdicts": Reader(
        files(v_json=VERDICTS),
        told(lambda path: verdicts.Verdicts.load(path, "d", "1")),
        sources("e/backends/opencl/verdicts.py:load,_read,failure_of,detail_of"),
    ),
    "tuning": Reader(
        files(t_json={"conv 1": "tile 2"}),
        told(Tuning.load),
        sources("e/backends/opencl/tuning.py:load"),
    ),
    "roofs": Reader(files(r_json=ROOFS), told(roof._read), sources("e/profile/roof.py:_read")),
    "curve": Reader(
        files(c_json=CURVE), told(read_curve), sources("e/quantize/curve.py:read_curve,_check")
    ),
    "sweep": Reader(
        files(s_json=SWEEP),
        told(lambda path: saved.load(path, "k", [])),
        sources("w/sweep/saved.py:load"),
    ),
    "listing": _text(
        lambda text: read_listing("board", text).lines(),
        "e/devices/opencl.py:read_listing,text,lines",
        json.dumps(LISTING),
    ),
    "condition": _text(
        condition.parse_output, "e/devices/condition.py:parse,parse_output", CONDITION
    ),
    "preprocess": _text(
        lambda text: Preprocess.parse(text).to_dict(),
        "e/preprocess.py:parse,from_dict,_short,__post_init__,to_dict",
        "imagenet,crop",
        "pm1,bgr",
        "mean=104/117/123,bgr,size=240x320,pad=3,crop=0.9,nhwc",
        '{"mean": [1, 2, 3], "std": [1], "size": [4, 5], "fit": "height", "layout": "nchw"}',
    ),
    "documents": _text(
        _document,
        "e/documents.py:parse,__getitem__,get,items,fields,text,integer,number,truth,into,_read,"
        "_made,_as,_another",
        json.dumps(EVERYTHING),
        json.dumps({**EVERYTHING, "number": 2**70}),
        json.dumps({**EVERYTHING, "many": [1]}),
        json.dumps({**EVERYTHING, "maybe": 0.5, "word": "c"}),
    ),
    "adapter": _text(
        lambda text: Adapter.parse(text).to_dict(),
        "e/adapter.py:parse,of,_value,_number,__post_init__,options",
        "boxes,decode=yolov5,threshold=0.5",
        "top,count=3",
        '{"kind": "mask"}',
    ),
    "graph_text": _text(_graph_text, "e/ir/text.py:from_text,_Parser", GRAPH),
    "kernel_text": _text(
        _kernel_text, "e/backends/opencl/reach.py:statement,_parameter,_line,_code", KERNEL
    ),
}
