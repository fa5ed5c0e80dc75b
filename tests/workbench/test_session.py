"""Session: what it does equals what the engine does, and who observes hears of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine import LiteError, Predictor, load, optimize
from lite_engine.errors import UsageError
from lite_engine.ir import to_text
from lite_engine.passes import pipeline
from lite_engine.profile.advice import Advice
from lite_workbench.answer_difference import mark_different
from lite_workbench.answers import answer
from lite_workbench.inputs import feeds_of, save_upload
from lite_workbench.notebook import cells_of
from lite_workbench.state import overrides
from lite_workbench.steps.profile import advice_for

from tests.report.data import data_of
from tests.small_models import class_token
from tests.workbench.sessions import opened

pytestmark = pytest.mark.cpu


@pytest.fixture
def session() -> lw.Session:
    return opened("x86", "arm", "opencl")


def test_import_is_light() -> None:
    code = (
        "import sys, lite_workbench\n"
        "heavy = {'numpy', 'ipywidgets', 'IPython', 'pandas', 'anywidget', 'lite_widgets'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_widgets_without_their_packages_say_how_to_install_them() -> None:
    code = (
        "import sys\n"
        "sys.modules['ipywidgets'] = None\n"
        "import lite_workbench as lw\n"
        "try: lw.Workbench\n"
        "except lw.LiteError as error: print(error)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Workbench needs the package ipywidgets" in out.stdout
    assert "pip install 'lite-workbench[lab]'" in out.stdout


def test_every_public_name_is_there() -> None:
    for name in lw.__all__:
        assert getattr(lw, name) is not None
    with pytest.raises(AttributeError):
        lw.nothing


def test_run_reads_the_digit(session: lw.Session) -> None:
    heard: list[str] = []
    session.observe(lambda what, _: heard.append(what))
    run = session.run(lw.shipped("digits.png"), backend="x86")
    assert run.text == "7" and run.answer.kind == "top"
    expected = Predictor(session.model, "x86").run(session.feeds)
    np.testing.assert_array_equal(run["probability"], expected["probability"])
    assert heard[0] == "input" and "run" in heard and "code" in heard
    assert "7" in run._repr_html_()


def test_the_code_repeats_the_walk(session: lw.Session, tmp_path: Path) -> None:
    session.run(lw.shipped("digits.png"), backend="x86")
    session.compare("x86", "reference")
    session.profile(backend="x86", runs=2)
    names: dict = {}
    exec("\n".join(session.code), names)  # the lines are the product: they must run
    assert names["session"].runs["x86"].text == "7"
    assert names["diff"].agrees and len(names["profile"].layers)
    book = json.loads(session.notebook(tmp_path / "walk").read_text("utf-8"))
    assert book["cells"][1]["source"].startswith("import lite_workbench as lw\nsession = lw.open(")


def test_planted_fault_is_found_and_moved_away(session: lw.Session) -> None:
    session.set_input(lw.shipped("digits.png"))
    layer = next(n.name for n in session.model.graph.nodes[3:] if n.op == "Conv")
    session.plant_fault(layer, "swap_channels", backend="reference")
    diff = session.compare("x86", "reference")
    assert diff.first_divergence["name"] == layer
    alone = session.values("reference", layer, alone_after="x86")
    assert not np.allclose(session.values("x86", layer), alone)
    session.override(layer, "x86")
    assert session.compare("x86", "reference").agrees
    session.override(layer, None)
    assert not session.compare("x86", "reference").agrees


def test_a_layer_alone_where_the_batch_is_open(tmp_path: Path) -> None:
    """Flat reads a shape that is computed from the batch, which no run makes."""
    session = lw.open(optimize(class_token()).save(tmp_path / "m.lite"))
    session.set_input({"x": np.ones((2, 6, 4), np.float32)})
    session.compare("reference", "x86")
    alone = session.values("x86", "flat", alone_after="reference", pair=("reference", "x86"))
    want = session.values("x86", "mix").reshape(2, 35)
    # The reference's sums against those of x86: what cancels keeps an error of the summands' size.
    np.testing.assert_allclose(alone, want, rtol=1e-5, atol=1e-6)


def test_selection_is_a_table(session: lw.Session) -> None:
    pytest.importorskip("pandas")
    name = session.model.graph.nodes[2].name
    heard: list = []
    session.observe(lambda _, value: heard.append(value), "selected")
    session.selected = name
    session.selected = [name]
    assert heard == [[name]]
    assert session.selection["name"].tolist() == [name]
    session.profile(backend="x86", runs=2)
    assert session.selection["median_ms"].item() > 0


def test_a_profile_is_kept_with_its_advice(session: lw.Session) -> None:
    from lite_engine.history import History

    made = session.profile(backend="x86", runs=2)
    _, kept = History().get(History().list(limit=1)[0].id)
    assert kept.to_dict() == made.to_dict()
    row = {"name": made.layers[0].name}
    session.advice["x86"] = [
        Advice("some-rule", [row["name"]], "it is slow", "do less", 0.5, "lite profile m",
               "session.override('conv', 'reference')")
    ]  # fmt: skip
    shown = advice_for(session.advice["x86"], row)
    assert shown["button"] == "Try it" and "'conv'" in shown["code"]
    assert "(saves up to 500 µs): `lite profile m`" in shown["text"]
    assert advice_for(session.advice["x86"], {"name": "another"}) is None


def test_quantized_version(session: lw.Session, tmp_path: Path) -> None:
    digits = np.load(lw.shipped("digits_held_back.npz"))
    quantization = session.quantize(digits["images"][:20], limit=16)
    assert session.version == "int8" and quantization.verdict.passed
    given = lw.open(session.export(tmp_path / "int8.lite"))  # it holds nothing else
    assert list(given.versions) == [given.version] == ["as in the file"]
    assert session.run(lw.shipped("digits.png"), backend="x86").text == "7"
    session.use("float")
    assert session.run(backend="x86").version == "float"
    kept = [quantization.made.parent.nodes[0].name]
    session.quantize(digits["images"][:20], keep_float=kept, limit=8)
    assert session.version == "mixed" and set(session.versions) == {"float", "int8", "mixed"}
    diff = session.compare("float", "int8", tolerance=0.5)
    assert diff.layers and diff.candidate == "int8"


def test_a_comparison_keeps_its_version(session: lw.Session, tmp_path: Path) -> None:
    layer = "/b1/pw/Conv"  # becomes two when it is quantised
    session.compare("reference", "x86")
    before = session.values("x86", layer, pair=("reference", "x86"))
    session.quantize(np.load(lw.shipped("digits_held_back.npz"))["images"][:20], limit=8)
    assert layer not in [n.name for n in session.predictor("x86").graph.nodes]
    again = session.values("x86", layer, pair=("reference", "x86"))
    assert np.array_equal(again, before)
    session.export(tmp_path / "bundle", target="x86")  # its report shows that comparison
    page = (tmp_path / "bundle" / "report.html").read_text("utf-8")
    assert layer in json.dumps(data_of(page))


def test_threads_count_from_the_next_run(session: lw.Session) -> None:
    for threads in (2, 1):
        session.threads = threads
        assert session.predictor("x86").threads == threads


def test_export_is_the_same_model(session: lw.Session, tmp_path: Path) -> None:
    made = session.export(tmp_path / "d")
    again = lw.open(made)
    assert again.targets == session.targets
    assert again.run(lw.shipped("digits.png"), backend="x86").text == "7"


@pytest.mark.parametrize(
    ("do", "says"),
    [
        (lambda s: s.use(None), "no version None; choose from float$"),
        (lambda s: s.use([1]), r"no version \[1\]; choose from float$"),
        (lambda s: s.override("nope", "x86"), "no layer"),
        (lambda s: s.override(s.model.graph.nodes[0].name, "tpu"), "not one of"),
        (lambda s: s.compare("x86", "tpu"), "choose from"),
        (lambda s: s.plant_fault("a", "nothing"), "not one of"),
        (lambda s: s.run("nothing.png"), "no such file"),
        (lambda s: s.explore(), "session.quantize"),
    ],
)
def test_wrong_use_says_how(session: lw.Session, do, says: str) -> None:
    with pytest.raises(LiteError, match=says):
        do(session)


@pytest.mark.parametrize("of", ["run", "predictor", "use"])
def test_a_version_that_there_is_not_is_one_line(session: lw.Session, of: str) -> None:
    given = {"run": (None, "x86", "int8"), "predictor": ("x86", "int8"), "use": ("int8",)}[of]
    with pytest.raises(UsageError, match=r"^there is no version 'int8'; choose from float$"):
        getattr(session, of)(*given)


def test_shipped_names_what_there_is() -> None:
    with pytest.raises(LiteError, match=r"ocr\.onnx"):
        lw.shipped("nothing.onnx")
    for path in (lw.shipped("ocr.onnx"), lw.shipped("digits.onnx")):
        assert path.stat().st_size < 2_000_000


# ---- answers, inputs, code


def test_a_line_is_read_by_ctc() -> None:
    labels = ["", "A", "B"]
    steps = [0, 1, 1, 0, 1, 2, 2, 0]
    scores = np.eye(3, dtype=np.float32)[steps][None] * 0.9
    said = answer({"y": scores}, labels)
    assert (said.kind, said.text) == ("text", "AAB")
    assert said.confidence == pytest.approx(0.9)
    other = answer({"y": scores[:, :5]}, labels)
    mark_different(said, other)
    assert [item["bad"] for item in other.items] == [False, False, True]
    assert other.items[-1]["label"] == "∅"


def test_other_outputs_are_values() -> None:
    said = answer({"a": np.full((2, 3), np.nan), "b": np.arange(4)}, [])
    assert said.kind == "values"
    assert said.items[0]["text"] == "no finite values" and said.items[1]["text"] == "0 … 3"


def test_an_image_in_every_form_gives_the_same_feed(session: lw.Session) -> None:
    from PIL import Image

    path = lw.shipped("digits.png")
    forms = [path, str(path), path.read_bytes(), np.asarray(Image.open(path).convert("RGB"))]
    feeds = [feeds_of(session.model, form)[0]["image"] for form in forms]
    for feed in feeds[1:]:
        np.testing.assert_array_equal(feed, feeds[0])
    with pytest.raises(UsageError, match="not an image"):
        feeds_of(session.model, b"not an image")


@pytest.mark.parametrize("name", ["..", "", "a\0b", "/"])
def test_hostile_upload_names(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        save_upload(name, b"x", tmp_path)


def test_uploads_overwrite_nothing(tmp_path: Path) -> None:
    first = save_upload("../../evil/a.onnx", b"one", tmp_path)
    assert first == tmp_path / "a.onnx"
    assert save_upload("a.onnx", b"one", tmp_path) == first
    assert save_upload("C:\\x\\a.onnx", b"two", tmp_path) == tmp_path / "a-2.onnx"
    assert first.read_bytes() == b"one"


def test_cells_show_what_was_assigned() -> None:
    lines = ["import lite_workbench as lw", "session = lw.open('m')", "d = session.compare('a')"]
    assert cells_of(lines) == [
        "import lite_workbench as lw\nsession = lw.open('m')", "d = session.compare('a')\nd"
    ]  # fmt: skip


def test_precision_of_single_layers(session: lw.Session) -> None:
    first, second = [n.name for n in session.base_model.graph.nodes if n.op == "Conv"][:2]
    with pytest.raises(UsageError, match=r"session\.quantize"):
        session.override(first, precision="int8")
    assert session.version == "float" and session.overrides.backends == {}
    digits = np.load(lw.shipped("digits_held_back.npz"))["images"]
    session.quantize(digits[:20], limit=16)

    def integers(version: str) -> set[str]:
        """Which of the two convolutions compute in integers, by what they came from."""
        sources = {
            s for n in session.versions[version].graph.nodes if n.op == "QLinearConv"
            for s in n.sources
        }  # fmt: skip
        nodes = session.base_model.graph.nodes
        return {n.name for n in nodes if n.name in (first, second) and sources & set(n.sources)}

    assert integers("int8") == {first, second}
    session.override(first, precision="fp32")
    assert session.version == "custom" and session.overrides.precisions == {first: "fp32"}
    assert integers("custom") == {second}
    assert session.overrides.verdict.sqnr_db > 6
    assert session.compare("float", "custom", tolerance=0.5).layers
    session.override(first)
    assert session.version == "int8" and "custom" not in session.versions

    session.use("float")
    change = session.try_override(first, "reference", "x86", runs=2, precision="int8")
    assert change.before_ms > 0 and integers("custom") == {first}
    assert session.overrides.backends == {first: "reference"}
    placed = overrides.backends_in(session)
    assert placed and set(placed.values()) == {"reference"}
    rows = {r.name: r.backend for r in session.profile("x86", runs=2).layers}
    assert all(rows[name] == "reference" for name in placed)
    softmax = session.base_model.graph.nodes[-1].name
    with pytest.raises(UsageError, match="cannot compute in int8"):
        session.override(softmax, precision="int8")
    assert session.overrides.precisions == {first: "int8"}, "a refused change changes nothing"


def test_the_file_keeps_what_was_set_by_hand(session: lw.Session, tmp_path: Path) -> None:
    """Layers that were moved, and int8 for one target, come back when the file is opened."""
    from lite_engine.model_file import read_model

    session.convert(["x86", "arm", "opencl"])
    digits = np.load(lw.shipped("digits_held_back.npz"))["images"]
    layer = next(n.name for n in session.model.graph.nodes if n.op == "Conv")
    session.override(layer, "x86")
    with pytest.raises(UsageError, match=r"no int8 version yet; call session\.quantize"):
        session.export(tmp_path / "m", int8=["arm"])
    session.quantize(digits[:20], limit=16)
    session.use("float")
    path = session.export(tmp_path / "m", int8=["arm"])
    assert session.code[-1] == f"session.export({str(tmp_path / 'm')!r}, int8=['arm'])"
    model = read_model(path)
    assert model.overrides == {"opencl": {layer: "cpu"}} and model.precision("arm") == "int8"
    opened = lw.open(path)
    assert opened.overrides.backends == {layer: "x86"} and opened.int8_targets == ["arm"]
    assert list(opened.versions) == ["float", "int8"]
    assert opened.run(lw.shipped("digits.png"), "x86", "int8").precision == "int8"
    again = tmp_path / "again" / "m.lite"
    again.parent.mkdir()
    assert read_model(opened.export(again)).overrides == model.overrides
    opened.override(layer, None)
    assert read_model(opened.export(again)).overrides == {}


def test_a_layer_of_a_half_precision_version_stays_in_full(tmp_path: Path) -> None:
    session = lw.open(lw.shipped("digits.onnx"))
    session.convert(targets=["x86"], precision={"x86": "bf16"})
    first = next(n.name for n in session.model.graph.nodes if n.op == "Conv")
    assert overrides.choices(session, first, "x86") == ["fp32", "int8"]
    half = session.run(lw.shipped("digits.png"), backend="x86").outputs["probability"]
    session.override(first, precision="fp32")
    assert session.version == "float" and session.overrides.backends == {first: "fp32"}
    assert overrides.held(session, first) == {"backend": "", "precision": "fp32"}
    assert session.predictor("x86").overrides == {first: "fp32"}
    mixed = session.run(backend="x86").outputs["probability"]
    assert abs(mixed - half).max() < 0.1
    made = lw.open(session.export(tmp_path / "d"))
    assert made.model.overrides == {"x86": {first: "fp32"}}
    session.override(first)
    assert session.overrides.backends == {}


def test_layers_of_one_name_are_told_apart_within_their_block() -> None:
    from lite_workbench.views import _label

    names = ["m/Conv_1/dw", "m/Conv_1/pw", "m/Conv_2/dw", "n/Conv_1/dw", "n/1/dw/dw", "same"]
    rows: list[dict] = [{"name": name, "block": name.partition("/")[0]} for name in names]
    _label(rows)
    assert [row.get("label") for row in rows] == [
        "Conv_1/dw", None, "Conv_2/dw", "Conv_1/dw", "dw/dw", None,
    ]  # fmt: skip


def test_selected_layers_become_a_model(tmp_path: Path) -> None:
    session = lw.Session(lw.shipped("digits.onnx"))
    layer = next(n.name for n in session.model.graph.nodes if n.op == "Conv")
    session.selected = [layer]
    made = session.extract(tmp_path / "part")
    part = load(made)
    assert "Conv" in {n.op for n in part.nodes} and len(part.nodes) < 6
    assert session.code[-1] == f"session.extract({str(tmp_path / 'part')!r}, {[layer]!r})"


def test_opening_and_converting_run_the_passes_once(monkeypatch) -> None:
    """What `lite info` asks of them at opening is what the first version is made of; a second
    conversion makes a graph of its own."""
    ran = []
    passes = pipeline.run_passes

    def counted(graph, *rest):
        ran.append(graph)
        passes(graph, *rest)

    monkeypatch.setattr(pipeline, "run_passes", counted)
    path = lw.shipped("digits.onnx")
    session = lw.open(path)
    session.prepare("unit")
    first = session.convert()
    assert len(ran) == 1
    expected = optimize(path, metadata={"preprocess": first.metadata["preprocess"]})
    assert to_text(first.graph) == to_text(expected.graph)
    assert first.journal.entries == expected.journal.entries
    second = session.convert()
    assert second.graph is not first.graph and to_text(second.graph) == to_text(first.graph)
