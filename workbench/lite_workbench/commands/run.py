"""`lite run`: one inference."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_engine.adapter import OVERLAP, THRESHOLD, Adapter
from lite_engine.errors import UsageError
from lite_engine.files import writing
from lite_engine.images import is_image, open_image
from lite_engine.lines import read_labels
from lite_messages import tr

from ..answers import TOP, Answer, answer_of, real_of, score_text
from ..inputs import GUESSED_OPTION, feeds_of, is_guessed, png
from ..recipes import RecipeAnswer, recipe_answers
from ._base import (
    ADAPTER_HELP,
    PREPROCESS_HELP,
    Command,
    add_backend,
    add_device,
    add_input,
    add_model,
    at_least,
    load_model,
    set_preprocess,
    share,
)
from ._table import clip, table

if TYPE_CHECKING:
    from lite_engine.ir import QuantParams
    from lite_engine.model_file import Model
    from lite_engine.runtime.shares import Share


@dataclass
class RunResult:
    """Outputs of one inference, taps among them, and what they say. `picture` is the (width,
    height) of the image that was given, `shares` backend → its share of the layers and of their
    time."""

    model: str
    backend: str
    explanation: str
    outputs: dict[str, np.ndarray]
    taps: dict[str, np.ndarray] = field(default_factory=dict)
    answer: Answer = field(default_factory=lambda: Answer("values", ""))
    picture: tuple[int, int] | None = None
    note: str = ""
    shares: dict[str, Share] = field(default_factory=dict)
    recipes: list[RecipeAnswer] = field(default_factory=list)
    quants: dict[str, QuantParams] = field(default_factory=dict)

    @property
    def top(self) -> list[tuple[int, str, float]]:
        """(index, label, score) of a classifier's best classes, else nothing."""
        if self.answer.kind != "top":
            return []
        return [(i["index"], i["label"], i["score"]) for i in self.answer.items]

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "backend": self.backend,
            "shares": {name: asdict(share) for name, share in self.shares.items()},
            "outputs": {k: statistics(v) | self._scale(k) for k, v in self.outputs.items()},
            "taps": {k: statistics(v) for k, v in self.taps.items()},
            "answer": self.answer.to_dict(),
            "recipes": [asdict(recipe) for recipe in self.recipes],
            "top": [{"index": i, "label": n, "score": s} for i, n, s in self.top],
        }

    def _scale(self, name: str) -> dict[str, Any]:
        """real = (integer − zero_point) · scale, of an output that is quantized."""
        quant = self.quants.get(name)
        if quant is None:
            return {}
        return {"scale": float(quant.scale), "zero_point": int(quant.zero_point)}

    def __getitem__(self, name: str) -> np.ndarray:
        return self.outputs[name]


def statistics(array: np.ndarray) -> dict[str, Any]:
    """Shape, type, range and count of values that are not finite."""
    out: dict[str, Any] = {"shape": list(array.shape), "dtype": str(array.dtype)}
    if array.size and array.dtype.kind in "iuf":
        finite = array[np.isfinite(array)]
        out["not_finite"] = int(array.size - finite.size)
        if finite.size:
            out.update(
                min=float(finite.min()),
                max=float(finite.max()),
                mean=float(finite.mean(dtype=np.float64)),
                std=float(finite.std(dtype=np.float64)),
            )
    return out


def _configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_input(parser)
    parser.add_argument(
        "--seed",
        type=at_least(0),
        metavar="N",
        help=tr("random data of this seed for the inputs without --input (default: 0, for all)"),
    )
    parser.add_argument(
        "--tokenizer",
        metavar="FILE",
        help=tr("vocab.txt or tokenizer.json; --input is then a text, or a .txt file"),
    )
    parser.add_argument(
        "--sample",
        type=at_least(0),
        metavar="N",
        help=tr("--input is a data set, of which this sample is taken, counted from 0"),
    )
    add_backend(parser)
    add_device(parser)
    parser.add_argument(
        "--tune", action="store_true", help=tr("measure the available backends and use the fastest")
    )
    parser.add_argument(
        "--output", metavar="FILE.npz", help=tr("write the outputs, and the values of --tap")
    )
    parser.add_argument(
        "--draw", metavar="FILE.png", help=tr("write the image with the answer drawn on it")
    )
    parser.add_argument("--labels", metavar="FILE", help=tr("class labels, one per line"))
    parser.add_argument("--preprocess", metavar="HOW", help=PREPROCESS_HELP)
    parser.add_argument("--adapter", metavar="HOW", help=ADAPTER_HELP)
    parser.add_argument(
        "--top",
        type=at_least(1),
        metavar="N",
        help=tr("number of classes to show (default: {top})", top=TOP),
    )
    parser.add_argument(
        "--threshold",
        type=share,
        metavar="S",
        help=tr(
            "smallest score of a detection (default: the model's adapter's, or {threshold:g})",
            threshold=THRESHOLD,
        ),
    )
    parser.add_argument(
        "--overlap",
        type=share,
        metavar="S",
        help=tr(
            "IoU threshold of non-maximum suppression (default: the model's "
            "adapter's, or {overlap:g})",
            overlap=OVERLAP,
        ),
    )
    parser.add_argument(
        "--tap",
        action="append",
        default=[],
        metavar="NAME",
        help=tr("also keep this intermediate value; repeatable"),
    )
    parser.add_argument(
        "--tap-stats", action="store_true", help=tr("show statistics of the values of --tap")
    )
    parser.add_argument(
        "-v", "--verbose", action="store_true", help=tr("explain the choice of the backend")
    )


def _call(args: argparse.Namespace) -> RunResult:
    from lite_engine.devices import find_device
    from lite_engine.ir.bfloat16 import widened
    from lite_engine.runtime import Predictor

    labels = read_labels(args.labels) if args.labels else None
    model = load_model(args)
    set_preprocess(model, args)
    options = {"threads": args.threads, "precision": args.precision}
    predictor = None
    if not args.tune:  # before the inputs' types are read: a file's own program needs no graph
        predictor = Predictor(model, args.backend, device=find_device(args.device), **options)
    elif args.backend != "auto" or args.device != "local":
        raise UsageError(
            tr("--tune chooses the backend"), fix=tr("leave out --backend and --device")
        )
    names = predictor.input_names if predictor else ()
    feeds, picture = _input(model, args, names)
    if predictor is None:
        from lite_engine.runtime.fastest import fastest

        predictor = fastest(model, feeds, **options)
    ran = predictor
    values = widened(predictor.run(feeds, taps=args.tap), lambda: ran.graph)
    outputs = {n: values[n] for n in predictor.output_names}
    taps = {n: values[n] for n in args.tap}
    result = RunResult(
        model.name,
        predictor.backend,
        predictor.explain(),
        outputs,
        taps,
        _answer(model, feeds, outputs, labels, picture, args),
        picture,
        GUESSED_OPTION if picture and is_guessed(model) else "",
        predictor.shares({n: a.shape for n, a in feeds.items()}),
        quants=_quants(model, outputs),
    )
    if result.note and len(args.input) == 1 and args.sample is None:
        adapter = _adapter(model, args)
        result.recipes = recipe_answers(
            model, predictor, args.input[0].rpartition("=")[2], labels, adapter
        )
    if args.draw:
        _draw(args, model, labels, outputs)
    if args.output:
        _save(args.output, {**outputs, **taps})
    return result


def _input(
    model: Model, args: argparse.Namespace, names: Sequence[str]
) -> tuple[dict[str, np.ndarray], tuple[int, int] | None]:
    """Feeds, and (width, height) of the image among them. Raises UsageError, ShapeError."""
    from lite_engine.runtime.inputs import random_feeds, read_feeds

    if args.tokenizer is None and args.sample is None:
        feeds = read_feeds(model, args.input, names) if args.input else {}
        if args.seed is not None or not args.input:
            feeds = {**random_feeds(model, args.seed or 0), **feeds}
        return feeds, _look(args.input)
    option = "--sample" if args.tokenizer is None else "--tokenizer"
    if len(args.input) != 1 or (args.tokenizer is not None and args.sample is not None):
        raise UsageError(tr("{option} goes with one --input", option=option))
    (source,) = args.input
    if args.sample is not None:
        from ..evaluate.formats import sample_of

        source = sample_of(source, args.sample)
    feeds, image = feeds_of(model, source, tokenizer=args.tokenizer)
    return feeds, open_image(image).size if image else None


def _draw(
    args: argparse.Namespace, model: Model, labels: list[str] | None,
    outputs: dict[str, np.ndarray],
) -> None:  # fmt: skip
    """The answer on the image, as pipelines draw it. Raises UsageError without an image."""
    from lite_engine.pipeline import drawn

    file = args.input[0].rpartition("=")[2] if len(args.input) == 1 else ""
    adapter = _adapter(model, args)
    if not is_image(file) or adapter.function is not None:
        raise UsageError(
            tr("--draw needs one image as the input, and an adapter without a Python function")
        )
    made = drawn(model, png(open_image(file)), list(outputs.values()), labels, adapter)
    with writing(args.draw) as written:
        written.write(made)


def _quants(model: Model, outputs: dict[str, np.ndarray]) -> dict[str, QuantParams]:
    """Scale and zero point of the outputs that are integers of one scale."""
    if not any(a.dtype.kind in "iu" for a in outputs.values()):
        return {}  # only then the graph is needed
    known = {v.name: v.quant for v in model.graph.outputs}
    return {n: q for n in outputs if (q := known.get(n)) is not None and q.scale.size == 1}


def _answer(
    model: Model,
    feeds: dict[str, np.ndarray],
    outputs: dict[str, np.ndarray],
    labels: list[str] | None,
    picture: tuple[int, int] | None,
    args: argparse.Namespace,
) -> Answer:
    adapter = _adapter(model, args)  # refuses a wrong option for random data, too
    if not args.input:  # random data has no answer
        return Answer("values", "")
    return answer_of(model, feeds, outputs, labels, picture=picture, adapter=adapter)


def _adapter(model: Model, args: argparse.Namespace) -> Adapter:
    """The one that was given or the model's, with the thresholds that were given."""
    adapter = Adapter.parse(args.adapter) if args.adapter else Adapter.of(model.metadata)
    given = {k: v for k in ("threshold", "overlap") if (v := getattr(args, k)) is not None}
    more = {} if args.top is None else {"top": args.top}
    return replace(adapter, **given, more={**adapter.more, **more})


def _look(files: list[str]) -> tuple[int, int] | None:
    """(width, height) of the image among the inputs."""
    images = [f for f in (item.rpartition("=")[2] for item in files) if is_image(f)]
    return open_image(images[0]).size if images else None


def _save(path: str, arrays: dict[str, np.ndarray]) -> None:
    with writing(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def _show(result: RunResult, args: argparse.Namespace) -> str:
    from lite_engine.runtime.shares import sentence

    ran = sentence(result.shares, result.backend)
    head = tr("{model} on {backend}: {ran}", model=result.model, backend=result.backend, ran=ran)
    lines = []
    if result.note:
        lines = [tr("note: {note}", note=result.note), *recipe_lines(result.recipes), ""]
    lines.append(f"{result.explanation}\n{ran}" if args.verbose else head)
    shown = {**result.outputs, **(result.taps if args.tap_stats else {})}
    rows = []
    for name, array in shown.items():
        s = statistics(real_of(array, result.quants.get(name)))
        number = [f"{s[k]:.4g}" if k in s else "–" for k in ("min", "max", "mean")]
        rows.append(
            [
                name,
                f"{array.dtype} {'×'.join(map(str, s['shape'])) or tr('scalar')}",
                *number,
                s.get("not_finite", "–"),
                *([_integers(array, name in result.quants)] if result.quants else []),
            ]
        )
    lines.append(
        table(
            [tr("value"), tr("type"), tr("min"), tr("max"), tr("mean"), tr("not finite")]
            + ([tr("raw integers")] if result.quants else []),
            rows,
            right=(2, 3, 4, 5),
        )
    )
    if result.answer.text:
        lines += ["", _said(result)]
    lines += [tr("note: {note}", note=result.answer.note)] if result.answer.note else []
    for path in filter(None, (args.output, args.draw)):
        lines.append(tr("wrote {path}", path=path))
    return "\n".join(lines)


def recipe_lines(recipes: list[RecipeAnswer]) -> list[str]:
    """What each recipe would answer, as a table."""
    if not recipes:
        return []
    rows = [
        [r.preprocess, r.meaning, clip(r.text, 40), "" if r.score is None else f"{r.score:.3f}",
         tr("the model's format or first layers suggest it") if r.likely else ""]
        for r in recipes
    ]  # fmt: skip
    heads = ["--preprocess", tr("pixels become"), tr("answer"), tr("score"), ""]
    shown = 5 if any(r.likely for r in recipes) else 4
    return [table(heads[:shown], [row[:shown] for row in rows], right=(3,))]


def _integers(array: np.ndarray, quantized: bool) -> str:
    return f"{array.min()} … {array.max()}" if quantized and array.size else ""


def _said(result: RunResult) -> str:
    """The answer in words or as a table."""
    said = result.answer
    if said.kind == "top":
        rows = [[i["index"], i["label"], score_text(i, 4), i.get("raw", "")] for i in said.items]
        heads = ["#", tr("label"), tr("score"), tr("raw")]
        shown = 4 if any("raw" in i for i in said.items) else 3
        return table(heads[:shown], [row[:shown] for row in rows], right=(0, 2, 3))
    if said.kind == "boxes":
        rows = [[b["label"], f"{b['score']:.3f}", *_corners(b, result.picture)] for b in said.items]
        unit = " (px)" if result.picture else ""
        heads = [tr("label"), tr("score"), *(f"{k}{unit}" for k in ("x0", "y0", "x1", "y1"))]
        return said.text + ("\n" + table(heads, rows, right=(1, 2, 3, 4, 5)) if rows else "")
    if said.kind == "values":
        return table([tr("class"), tr("share")], [[i["label"], i["text"]] for i in said.items])
    return tr(
        "text: {text} (mean confidence {confidence:.3f})",
        text=said.text,
        confidence=said.confidence or 0,
    )


def _corners(box: dict[str, Any], picture: tuple[int, int] | None) -> list[str]:
    """In pixels of the image that was given, in parts of the picture when there is none."""
    if picture is None:
        return [f"{v:.3f}" for v in box["box"]]
    return [f"{v * picture[i % 2]:.0f}" for i, v in enumerate(box["box"])]


COMMAND = Command("run", _configure, _call, _show, data=lambda result: result.to_dict())
