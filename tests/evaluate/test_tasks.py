"""Each task on data with exact labels; the figures are those of its library, used by hand."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import replace
from pathlib import Path

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.adapter import Adapter
from lite_engine.errors import LiteError, UsageError
from lite_engine.images import open_image
from lite_engine.model_file import read_model
from lite_workbench.cli import main
from lite_workbench.evaluate import Side, evaluate, read_dataset
from lite_workbench.evaluate.dataset import Box
from lite_workbench.evaluate.results import Change
from lite_workbench.evaluate.tasks._boxes import Found, matched
from PIL import Image
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from rapidfuzz.distance import Levenshtein
from skimage.metrics import peak_signal_noise_ratio, structural_similarity
from sklearn.metrics import jaccard_score

from tests.evaluate import made

pytestmark = pytest.mark.cpu


def sides(graph) -> list[Side]:
    model = optimize(graph, targets=["x86"])
    return [Side("x86", Predictor(model, "x86"))]


@pytest.fixture(scope="module")
def boxes(tmp_path_factory) -> Path:
    return made.detection_set(tmp_path_factory.mktemp("boxes"))


def test_map_is_that_of_pycocotools_on_exported_predictions(boxes, tmp_path):
    path = optimize(made.colors_network(), targets=["x86"]).save(tmp_path / "colors.lite")
    out = tmp_path / "predictions.json"
    adapter = f"{Path(made.__file__)}:boxes_of_colors"
    words = ["evaluate", path, "--data", boxes, "--adapter", adapter, "--predictions", out,
             "--json", tmp_path / "result.json"]  # fmt: skip
    assert main([str(w) for w in words]) == 0
    result = json.loads((tmp_path / "result.json").read_text())
    figures = {m["name"]: m for m in result["sides"][0]["metrics"]}
    (predictions,) = json.loads(out.read_text()).values()
    for row in predictions:  # images are counted as in the file, whose categories are 7 and 14
        row["category_id"] *= 7
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(boxes))
        by_hand = COCOeval(truth, truth.loadRes(predictions), "bbox")
        by_hand.evaluate()
        by_hand.accumulate()
        by_hand.summarize()
    assert figures["mAP"]["value"] == by_hand.stats[0] and 0.2 < by_hand.stats[0] < 0.95
    assert figures["mAP@.5"]["value"] == by_hand.stats[1]
    assert figures["mAP small"]["value"] == by_hand.stats[3]
    assert "mAP large" not in figures  # there is none
    assert figures["mAP"]["low"] < figures["mAP"]["value"] < figures["mAP"]["high"]
    assert {c["name"] for c in result["sides"][0]["classes"]} == {"red", "green"}
    assert len(result["rows"]) == 300


@pytest.mark.parametrize("crowd", [None, 1])
@pytest.mark.parametrize("masks", [False, True])
def test_labels_without_an_object_that_counts_are_told(boxes, tmp_path, crowd, masks, capsys):
    """No precision is defined; with one crowd, or with nothing at all."""
    document = json.loads(boxes.read_text())
    corners = [[0, 0, 9, 0, 9, 9]]
    document["annotations"] = [] if crowd is None else [
        {**document["annotations"][0], "iscrowd": crowd, "segmentation": corners}]  # fmt: skip
    document["images"] = [{**i, "width": made.SIZE, "height": made.SIZE}
                          for i in document["images"][:2]]  # fmt: skip
    (tmp_path / "labels.json").write_text(json.dumps(document))
    path = optimize(made.colors_network(), targets=["x86"]).save(tmp_path / "colors.lite")
    words = ["evaluate", path, "--data", tmp_path / "labels.json", "--images",
             boxes.parent / "images", "--adapter", f"{Path(made.__file__)}:boxes_of_colors",
             "--preprocess", "unit", *(["--task", "instances"] if masks else [])]  # fmt: skip
    assert main([str(w) for w in words]) == 2
    err = capsys.readouterr().err
    assert (
        err.startswith("error: labels: the labels contain no object that can be scored")
        and err.count("\n") == 1
    )


def test_readable_samples_without_objects_are_told(boxes, tmp_path):
    """Those that have some may be the ones that cannot be read."""
    data = read_dataset(boxes).first(2)
    gone = replace(data.samples[0], source=tmp_path / "gone.png")
    empty = replace(data.samples[1], label=())
    with pytest.raises(UsageError, match="the labels contain no object that can be scored"):
        evaluate(sides(made.colors_network()), replace(data, samples=[gone, empty]),
                 adapter=Adapter(function=made.boxes_of_colors))  # fmt: skip


def test_resampling_the_same_images_gives_the_same_average(boxes):
    dataset = read_dataset(boxes)
    made_by = evaluate(sides(made.colors_network()), dataset, limit=40,
                       adapter=Adapter(function=made.boxes_of_colors))  # fmt: skip
    from lite_workbench.evaluate.tasks import _coco

    samples = dataset.first(40).samples
    rows = made_by.predictions["x86"]
    found = [
        [Found(r["category_id"] - 1, tuple(r["bbox"]), r["score"])
         for r in rows if r["image_id"] == n]
        for n in range(1, 41)
    ]  # fmt: skip
    whole = _coco.evaluated(samples, found, dataset.classes)
    drawn = _coco.Resampling(whole)
    once = np.ones((1, 40), np.int64)
    for name, value in _coco.figures(whole).items():
        np.testing.assert_equal(drawn.of(name)(once)[0], value)


def test_voc_and_coco_are_read_alike(tmp_path):
    Image.fromarray(np.zeros((20, 30, 3), np.uint8)).save(tmp_path / "a.png")
    (tmp_path / "a.xml").write_text(
        "<annotation><object><name>cat</name><difficult>1</difficult><bndbox><xmin>3</xmin>"
        "<ymin>5</ymin><xmax>12</xmax><ymax>9</ymax></bndbox></object></annotation>"
    )
    data = read_dataset(tmp_path)
    assert data.task == "detection" and data.classes == ["cat"]
    assert data.samples[0].label == (Box(0, (2.0, 4.0, 10.0, 5.0), 50.0, True),)


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("a.json", "[" * 100_000, "nested too deeply"),
        ("a.json", "{}", "'categories' is missing"),
        ("a.json", '{"categories": [], "annotations": [{"category_id": 1}], "images": []}',
         "there is no category 1"),
        ("a.json", '{"categories": [], "annotations": [], "images": [{"id": 1, "file_name": '
         '"../x.png"}]}', "is outside of"),
        ("a.json", '{"categories": [{"id": 1, "name": "a"}], "annotations": [{"category_id": 1, '
         '"image_id": 1, "bbox": [0, 0, NaN, 1]}], "images": []}', "expected bbox"),
        ("a.xml", "<!DOCTYPE x [<!ENTITY a 'b'>]><annotation/>", "a document type"),
        ("a.xml", "<annotation>", "not a Pascal VOC annotation"),
        ("a.xml", "<annotation><object/></annotation>", "an object without a name"),
        ("a.tsv", "a.png\tA\n../b.png\tB", "is outside of"),
        ("a.tsv", "a.png\tA\nb.png", "expected a file, a tab and its text"),
        ("a.tsv", 'a.png\t[{"transcription": "A", "points": [[1]]}]', "expected points"),
    ],
)  # fmt: skip
def test_hostile_annotations(name, content, what, tmp_path):
    (tmp_path / name).write_text(content)
    with pytest.raises(UsageError, match=what.replace("[", r"\[")):
        read_dataset(tmp_path if name.endswith(".xml") else tmp_path / name)


def test_mean_iou_is_that_of_scikit_learn(tmp_path):
    folder = made.segmentation_set(tmp_path)
    side = sides(made.colors_network())
    result = evaluate(side, read_dataset(folder))
    wanted, got = [], []
    for path in sorted((folder / "images").iterdir()):
        pixels = np.asarray(open_image(path), np.float32).transpose(2, 0, 1)[None] / 255
        got.append(side[0].predictor.run({"x": pixels})["scores"].argmax(1).ravel())
        wanted.append(np.asarray(Image.open(folder / "masks" / path.name)).ravel())
    y, p = np.concatenate(wanted), np.concatenate(got)
    y, p = y[y != 255], p[y != 255]
    iou, accuracy = result["x86"].metrics
    assert iou.value == pytest.approx(jaccard_score(y, p, average="macro"), abs=1e-12)
    assert accuracy.value == pytest.approx(np.mean(y == p), abs=1e-12)
    own = {c.name: c.metrics["IoU"] for c in result["x86"].classes}
    want = jaccard_score(y, p, average=None)
    assert own == pytest.approx(dict(zip(made.NAMES, want, strict=True)))
    assert iou.low < iou.value < iou.high < 1


def test_masks_that_cannot_be_right_are_left_out(tmp_path):
    """Of another shape than the picture, and of classes that no label names."""
    folder = made.segmentation_set(tmp_path, 4)
    masks = sorted((folder / "masks").iterdir())
    Image.fromarray(np.zeros((64, 32), np.uint8)).save(masks[0])
    Image.fromarray(np.full((64, 64), 3, np.uint8)).save(masks[1])
    Image.fromarray(np.zeros((32, 32), np.uint8)).save(masks[2])  # the same shape, smaller
    result = evaluate(sides(made.colors_network()), read_dataset(folder), labels=made.NAMES)
    (_, shape), (_, classes) = result.unreadable
    assert "32×64 pixels, the image 64×64" in shape
    assert "class 3, but there are 3 labels" in classes


def turned(path: Path) -> None:
    """The same stored pixels, of which EXIF says that they lie on their side."""
    exif = Image.Exif()
    exif[0x112] = 6
    with Image.open(path) as stored:
        stored.load()
    stored.save(path, exif=exif)


def test_labels_in_pixels_are_those_of_the_stored_picture(tmp_path):
    """Boxes and masks are as good as without EXIF's orientation, as pycocotools sees them; what is
    shown of a sample are these pixels, too."""
    network = sides(made.colors_network())
    found = Adapter(function=made.boxes_of_colors)
    discs = made.segmentation_set(tmp_path / "discs", 4)
    rectangles = made.detection_set(tmp_path / "rectangles", 4)
    before = [evaluate(network, read_dataset(rectangles), adapter=found),
              evaluate(network, read_dataset(discs))]  # fmt: skip
    for path in [*(rectangles.parent / "images").iterdir(), *(discs / "images").iterdir()]:
        turned(path)
    after = [evaluate(network, read_dataset(rectangles), adapter=found),
             evaluate(network, read_dataset(discs))]  # fmt: skip
    for a, b in zip(before, after, strict=True):
        assert [m.value for m in a["x86"].metrics] == [m.value for m in b["x86"].metrics]
        assert a["x86"].main.value > 0.1
        name, source = next(iter(b.sources.items()))
        seen = b.judge.seen(source)
        assert np.array_equal(seen, np.asarray(Image.open(a.sources[name])))


def test_a_class_is_that_of_the_picture_as_it_is_shown(tmp_path):
    """Not that of the stored pixels: a device, which turns them, answers the same."""
    rng = np.random.default_rng(5)
    for name in ("upright", "stored"):
        (tmp_path / name / "a").mkdir(parents=True)
    picture = Image.fromarray(rng.integers(0, 256, (made.SIZE, made.SIZE, 3), np.uint8))
    picture.save(tmp_path / "upright" / "a" / "1.png")
    lying = tmp_path / "stored" / "a" / "1.png"
    picture.transpose(Image.Transpose.ROTATE_90).save(lying)
    turned(lying)
    (side,) = sides(made.colors_network())
    masks = [side.read(tmp_path / name / "a" / "1.png", [], None, {}).answer.mask
             for name in ("upright", "stored")]  # fmt: skip
    assert np.array_equal(*masks) and len(np.unique(masks[0])) > 1


def test_a_mask_of_16_bits_is_left_out(tmp_path):
    folder = made.segmentation_set(tmp_path, 2)
    first = min((folder / "masks").iterdir())
    Image.fromarray(np.asarray(Image.open(first)).astype(np.uint16)).save(first)
    result = evaluate(sides(made.colors_network()), read_dataset(folder))
    ((name, why),) = result.unreadable
    assert name.endswith(first.name) and "found I" in why


def test_images_are_judged_by_scikit_image(tmp_path):
    rng = np.random.default_rng(3)
    for name in ("input", "target"):
        (tmp_path / name).mkdir()
    for i in range(3):
        picture = rng.integers(0, 256, (made.SIZE, made.SIZE, 3)).astype(np.uint8)
        for name in ("input", "target"):
            Image.fromarray(picture).save(tmp_path / name / f"{i}.png")
    Image.fromarray(picture[:8]).save(tmp_path / "target" / "0.png")
    side = sides(made.blur_network())
    result = evaluate(side, read_dataset(tmp_path))
    out = side[0].predictor.run({"x": picture.transpose(2, 0, 1)[None] / np.float32(255)})
    blurred = np.round(out["blur"][0].transpose(1, 2, 0) * 255).astype(np.uint8)
    row = next(r for r in result.rows if r.name == "2.png").sides["x86"]
    assert row.prediction == f"{peak_signal_noise_ratio(picture, blurred):.2f} dB"
    assert row.score == pytest.approx(structural_similarity(picture, blurred, channel_axis=2))
    assert result.samples == 2 and "64x64" in result.unreadable[0][1]


def test_text_is_judged_by_edit_distances():
    session = lw.open(lw.shipped("ocr.onnx"))
    session.convert(targets=["x86"])
    data = np.load(lw.shipped("ocr_held_back.npz"))
    dimmed = data["images"] // 3
    result = session.evaluate(read_dataset(lw.shipped("ocr_held_back.npz")), ["x86"])
    assert result.task == "text" and len(data["texts"]) == result.samples == 64
    edits = sum(Levenshtein.distance(r.sides["x86"].prediction, r.label) for r in result.rows)
    exact, cer = result["x86"].metrics
    assert cer.value == edits / sum(map(len, data["texts"])) and not cer.higher_is_better
    assert exact.value == np.mean([r.sides["x86"].prediction == r.label for r in result.rows])
    assert dimmed.shape == data["images"].shape


def test_another_metric_is_compared_and_has_the_budget():
    session = lw.open(lw.shipped("ocr.onnx"))
    session.convert(targets=["x86"])
    data = read_dataset(lw.shipped("ocr_held_back.npz")).first(20)
    worse = [replace(s, source=s.source // 2 + 60) for s in data.samples]
    by_cer = replace(data, samples=[*data.samples, *worse], metric="cer")
    made = session.evaluate(by_cer, ["x86", "reference"])
    assert [m.name for m in made["x86"].metrics] == ["CER", "exact match"]
    assert made.changes[0].metric == "CER" and made.changes[0].test == "paired bootstrap"
    with pytest.raises(UsageError, match=r"'mAP' is not a metric .* exact match, CER"):
        session.evaluate(replace(data, metric="mAP"), ["x86"])


@pytest.mark.parametrize(("difference", "word"), [(0.01, "more"), (-0.01, "less")])
def test_an_error_rate_is_neither_gained_nor_lost(difference, word):
    made = Change("float", "int8", "CER", difference, -0.02, 0.02, 0.3, "paired bootstrap", False,
                  False, 3, 1, 2, 50)  # fmt: skip
    assert made.sentence.startswith(f"int8 has 1.0 ± 2.0 points {word} CER than float on 50 ")
    assert made.worse is (difference > 0)


def test_as_many_right_as_before_is_no_difference():
    made = Change("float", "int8", "top-1", 0.0, -0.008, 0.008, 1.0, "McNemar", False, True, 2, 1,
                  1, 300)  # fmt: skip
    assert made.sentence == (
        "int8 has the same top-1 as float (± 0.8 points) on 300 samples: no difference "
        "(McNemar p = 1); 2 predictions changed, 1 better, 1 worse"
    )


@pytest.mark.slow
@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.hours)])
def test_made_lines_in_float_and_int8(tmp_path, count):
    """Exact match and CER by hand: greedy CTC of the outputs, edits by rapidfuzz."""
    session = lw.open(lw.shipped("ocr.onnx"))
    session.convert(targets=["x86"])
    lines = made.text_lines(tmp_path / "lines", count)
    session.quantize(np.load(lw.shipped("ocr_held_back.npz"))["images"][:24], method="minmax")
    result = session.evaluate(lines, ["float", "int8"])
    rows = {row.name: row for row in result.rows}
    assert len(rows) == result.samples == count and not result.unreadable
    for side in ("float", "int8"):
        said = [(row.sides[side].prediction, row.label) for row in rows.values()]
        exact, cer = result[side].metrics
        assert exact.value == np.mean([a == b for a, b in said]) > 0.5
        edits = sum(Levenshtein.distance(a, b) for a, b in said)
        assert cer.value == edits / sum(len(b) for _, b in said) < 0.1
        print(f"{count} lines, {side}: {exact} {cer}")
    labels = ["", *session.model.metadata["labels"][1:]]
    for name in sorted(rows)[:20]:
        pixels = np.asarray(Image.open(lines.parent / name), np.float32) / 127.5 - 1
        (scores,) = session.predictor("x86", "float").run(
            {session.graph.inputs[0].name: np.repeat(pixels[None, None], 3, axis=1)}
        ).values()  # fmt: skip
        best = scores[0].argmax(-1)
        kept = best[np.flatnonzero(np.diff(best, prepend=-1))]
        read = "".join(labels[i] for i in kept if i).strip()
        assert rows[name].sides["float"].prediction.strip() == read


def test_regions_of_a_map(tmp_path):
    picture = np.zeros((made.SIZE, made.SIZE, 3), np.uint8)
    picture[8:18, 12:52] = picture[40:52, 16:48] = 255
    Image.fromarray(picture).save(tmp_path / "a.png")
    label = [{"transcription": text, "points": [[x, y], [x + w, y], [x + w, y + h], [x, y + h]]}
             for text, x, y, w, h in (("A", 6, 2, 52, 22), ("B", 0, 60, 9, 4),
                                      ("###", 9, 33, 46, 26))]  # fmt: skip
    (tmp_path / "det.txt").write_text(f"a.png\t{json.dumps(label)}\n")
    data = read_dataset(tmp_path / "det.txt")
    assert data.task == "regions"
    result = evaluate(sides(made.map_network()), data)
    # a map has shrunken text, its boxes grow: A is found, B is missed, ### does not count
    figures = {m.name: m.value for m in result["x86"].metrics}
    assert figures == {"Hmean": pytest.approx(2 / 3), "precision": 1.0, "recall": 0.5}


def test_each_object_is_found_once():
    wanted = [Box(0, (0, 0, 10, 10), 100), Box(0, (20, 0, 10, 10), 100),
              Box(1, (40, 0, 10, 10), 100, True)]  # fmt: skip
    boxes = [Found(0, (0, 0, 10, 10), 0.9), Found(0, (1, 0, 10, 10), 0.8),
             Found(1, (40, 0, 5, 10), 0.7), Found(1, (20, 0, 10, 10), 0.6)]  # fmt: skip
    assert matched(wanted, boxes) == (1, 2, 3)
    assert matched([], []).f1 == 1.0 and matched(wanted[:1], []).f1 == 0.0


def test_a_task_that_the_outputs_do_not_fit(tmp_path):
    folder = made.segmentation_set(tmp_path, 1)
    session = lw.open(lw.shipped("digits.onnx"))
    with pytest.raises(LiteError, match="the data set needs an image of classes"):
        session.evaluate(folder)


def test_adapters_are_read_and_travel_with_the_file(tmp_path):
    assert Adapter.parse("boxes,threshold=0.2") == Adapter("boxes", 0.2)
    for text in ("circles", "boxes,threshold=2", "boxes,color=1", "boxes,threshold=x", "no.py:f"):
        with pytest.raises(UsageError):
            Adapter.parse(text)
    with pytest.raises(UsageError):
        Adapter.of({"adapter": {"kind": "boxes", "code": "x"}})
    source = optimize(made.map_network(), targets=["x86"]).save(tmp_path / "a.lite")
    words = ["convert", str(source), "-o", str(tmp_path / "b.lite"), "--adapter"]
    assert main([*words, "mask,threshold=0.3"]) == 0
    assert read_model(tmp_path / "b.lite").metadata["adapter"] == {"kind": "mask", "threshold": 0.3}
    assert main(["convert", str(tmp_path / "b.lite"), "-o", str(tmp_path / "c.lite")]) == 0
    assert read_model(tmp_path / "c.lite").metadata["adapter"]["kind"] == "mask"
    assert main([*words, f"{made.__file__}:boxes_of_colors"]) == 2
    (tmp_path / "a.py").write_text("def read(outputs, picture):\n    return 1 / 0\n")
    with pytest.raises(LiteError, match="ZeroDivisionError"):
        Adapter.parse(f"{tmp_path / 'a.py'}:read").call({}, None)
