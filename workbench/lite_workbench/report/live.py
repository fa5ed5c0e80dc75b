"""The section of a page that runs models in the reader's browser, and what it fetches."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lite_engine import Model, Predictor, optimize
from lite_engine._native import web_module_path
from lite_engine.compare.judge import FLOAT_TOLERANCE
from lite_engine.errors import TargetMismatchError
from lite_engine.files import write_file
from lite_engine.model_file import read_model
from lite_engine.model_file.writer import cpu_plans
from lite_engine.profile.roof import page_graphs
from lite_messages import tr
from lite_widgets import (
    ErrorStrip,
    GraphView,
    LayerTable,
    Roofline,
    Tabbed,
    TimingLine,
    TypeSummary,
    columns,
)

from ..state import SessionState
from .page import Section

RUNS = 20
_LINK = "live"


def live_section(intro: str) -> Section:
    """Empty widgets that the page's own runs fill; `live.js` draws the bar above them."""
    tabs = Tabbed(
        {
            tr("Layers"): LayerTable(link=_LINK),
            tr("Roofline"): Roofline(link=_LINK),
            tr("Types"): TypeSummary(link=_LINK),
        },
        height=496,
    )
    graph = GraphView(link=_LINK)
    widgets = [TimingLine(link=_LINK), columns(graph, tabs, kind="graph"), ErrorStrip(link=_LINK)]
    return Section("live", tr("In this browser"), intro, widgets, bar='<div id="lite-live"></div>')


def report_config(sessions: Sequence[SessionState]) -> dict[str, Any]:
    """Everything inside the page. Raises TargetMismatchError for a model that no browser runs,
    BackendUnavailableError where the runtime was not built for WebAssembly."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder)
        models = []
        for number, session in enumerate(sessions):
            file = save_for_pages(session.versions[session.base], made / f"{number}.lite")
            models.append({"title": session.path.name, "file": _data(file)})
        config = write_runtime(made)
        inside = {kind: _data(made / name) for kind, name in config["roofs"].items()}
        return {
            **config, "runtime": _data(made / config["runtime"]), "roofs": inside,
            "models": models, "drop": False,
        }  # fmt: skip


def write_runtime(folder: Path) -> dict[str, Any]:
    """lite.wasm and the two models that measure a browser's roofs; the config that names them."""
    write_file(folder / "lite.wasm", web_module_path().read_bytes())
    for kind, graph in page_graphs().items():
        save_for_pages(optimize(graph), folder / f"{kind}.lite")
    roofs = {kind: f"{kind}.lite" for kind in page_graphs()}
    return {"runtime": "lite.wasm", "roofs": roofs, "runs": RUNS}


def save_for_pages(model: Model, path: Path) -> Path:
    """The model for the one target that a page has. Raises TargetMismatchError."""
    made = model.but(targets=["wasm"]).save(path)
    if note := read_model(made).notes.get("wasm"):
        raise TargetMismatchError(
            tr("{model} cannot run in a page: {note}", model=model.name, note=note)
        )
    return made


def record_values(
    model: Model, feeds: Mapping[str, np.ndarray], folder: Path, stem: str
) -> dict[str, str]:
    """What the NumPy reference makes of every value of PROG.web, in the layout that the program
    has it in: `{stem}.values.json` and `.bin`; returns their names for the config."""
    plan = cpu_plans(model, "wasm")["PROG.web"]
    written = [plan.tensors[i] for step in plan.steps for i in step.outputs if i >= 0]
    tensors = {tensor.name: tensor for tensor in written}
    values = {v.name for node in model.graph.nodes for v in node.outputs}
    taps = [name for name in tensors if name in values]
    made = Predictor(model, "reference").run(feeds, taps=taps)
    rows, data, at = [], [], 0
    for name in [*feeds, *taps]:
        is_input = name in feeds
        array = np.asarray(feeds[name]) if is_input else tensors[name].to_physical(made[name])
        dtype = str(plan.tensors[plan.tensor_of[name]].dtype)
        rows.append(
            {"name": name, "dtype": dtype, "input": is_input, "offset": at, "bytes": array.nbytes}
        )
        padding = -array.nbytes % 8
        data += [array.tobytes(), b"\0" * padding]
        at += array.nbytes + padding
    about = {"tolerance": 10 * FLOAT_TOLERANCE, "arrays": rows}
    names = {"about": f"{stem}.values.json", "data": f"{stem}.values.bin"}
    write_file(folder / names["about"], json.dumps(about))
    write_file(folder / names["data"], b"".join(data))
    return names


def _data(path: Path) -> str:
    return f"data:application/octet-stream;base64,{base64.b64encode(path.read_bytes()).decode()}"
