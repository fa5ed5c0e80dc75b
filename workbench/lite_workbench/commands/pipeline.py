"""`lite pipeline`: several models and the steps between them, from a photo to an answer."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_engine.errors import UsageError
from lite_engine.files import writing
from lite_messages import tr

from ._base import Command, add_backend
from ._table import table

if TYPE_CHECKING:
    from lite_engine.pipeline import Pipeline


@dataclass
class PipelineResult:
    """What was opened, the file that was written, and the answer about an image."""

    pipeline: Pipeline
    file: str = ""
    answer: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "pipeline": self.pipeline.name,
            "models": list(self.pipeline.models),
            "stages": list(self.pipeline.stages),
            "file": self.file,
            "answer": self.answer,
        }


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pipeline", nargs="+", metavar="PIPELINE",
        help=tr("a .yaml, .json or .lite file, or a single model; with --family its models"),
    )  # fmt: skip
    parser.add_argument(
        "--family", metavar="NAME",
        help=tr("a ready pipeline: ppocr, text, plates, ssd, yolo, ultraface, classification, "
                "segmentation or keywords"),
    )  # fmt: skip
    parser.add_argument(
        "--labels", metavar="FILE", help=tr("labels of the last model of --family, one per line")
    )
    parser.add_argument(
        "--image", "--sound", metavar="FILE", help=tr("run on this image or WAV file")
    )
    parser.add_argument(
        "--draw", metavar="FILE.png", help=tr("write the image with the results drawn on it")
    )
    add_backend(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE.lite",
        help=tr("write the pipeline with its models as one file"),
    )
    parser.add_argument(
        "--targets", metavar="A,B", default="x86,arm",
        help=tr("targets of models that were not converted yet (default: x86,arm)"),
    )  # fmt: skip


def _call(args: argparse.Namespace) -> PipelineResult:
    from lite_engine.model_file import parse_targets
    from lite_engine.pipeline import Pipeline

    if args.draw and not args.image:
        raise UsageError(tr("--draw needs --image"))
    if args.family:
        opened = Pipeline.of_family(args.family, args.pipeline, args.labels)
    elif len(args.pipeline) > 1 or args.labels:
        raise UsageError(tr("several models, or --labels, need --family"))
    else:
        opened = Pipeline.open(args.pipeline[0])
    result = PipelineResult(opened)
    if args.output:
        result.file = str(result.pipeline.save(Path(args.output), parse_targets(args.targets)))
    if args.image:
        options = {"threads": args.threads, "precision": args.precision}
        result.answer = result.pipeline.run(args.image, args.backend, times=True, **options)
    if args.draw:
        with writing(args.draw) as file:
            file.write(result.pipeline.drawn())
    return result


def _show(result: PipelineResult, args: argparse.Namespace) -> str:
    lines = [repr(result.pipeline).strip("<>")]
    if result.answer:
        rows = [list(row) for row in found(result.answer["answers"])]
        lines += [
            "",
            table([tr("what"), tr("answer"), tr("score"), tr("box (px)")], rows, right=(2,)),
        ]
        times = [
            [s["name"], s["pictures"], f"{s['ms']:.1f}"] for s in result.answer["times"]["stages"]
        ]
        times.append([tr("total"), "", f"{result.answer['times']['total_ms']:.1f}"])
        lines += ["", table([tr("stage"), tr("pictures"), "ms"], times, right=(1, 2))]
    for path in (result.file, args.draw):
        lines += [tr("wrote {path}", path=path)] if path else []
    return "\n".join(lines)


def found(answers: dict[str, Any], indent: str = "") -> list[tuple[str, str, str, str]]:
    """A row for each thing that was found: model, answer, score, place."""
    rows: list[tuple[str, str, str, str]] = []
    for model, answer in answers.items():
        if answer["kind"] == "text":
            rows.append((indent + model, answer["text"], f"{answer['confidence']:.3f}", ""))
        for item in answer.get("items", []):
            score = item.get("score", item.get("share"))
            box = " ".join(f"{v:.0f}" for v in item.get("box", []))
            told = "" if score is None else f"{score:.3f}"
            rows.append((indent + model, item.get("label", answer["kind"]), told, box))
            rows += found(item.get("answers", {}), indent + "  ")
    return rows


COMMAND = Command("pipeline", _configure, _call, _show, data=lambda result: result.to_dict())
