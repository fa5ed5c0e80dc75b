"""`lite pipeline`: several models and the steps between them, from a photo to an answer."""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_engine.errors import UsageError
from lite_engine.files import writing
from lite_messages import tr

from ..pipelines.tables import choices_table, comparison_table, found, profile_table, stage_table
from ._base import Command, add_backend, drop, positive
from ._pipeline_stream import rates_line, stream
from ._table import table

if TYPE_CHECKING:
    from lite_engine.pipeline import Guess, Pipeline, PipelineComparison, PipelineProfile, Rates

    from ..pipelines.quantizing import PipelineQuantization


@dataclass
class PipelineResult:
    """What was opened, the file that was written, the answer about an image, how another backend's
    differs, what each stage and layer takes, and which stages are int8. `guesses` are families that
    a model without an adapter may belong to."""

    pipeline: Pipeline
    file: str = ""
    answer: dict[str, Any] = field(default_factory=dict)
    comparison: PipelineComparison | None = None
    guesses: list[Guess] = field(default_factory=list)
    profile: PipelineProfile | None = None
    quantization: PipelineQuantization | None = None
    rates: Rates | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "pipeline": self.pipeline.name,
            "models": list(self.pipeline.models),
            "stages": list(self.pipeline.stages),
            "file": self.file,
            "answer": self.answer,
            "comparison": self.comparison.to_dict() if self.comparison else None,
            "guesses": [asdict(guess) for guess in self.guesses],
            "profile": self.profile.to_dict() if self.profile else None,
            "stream": asdict(self.rates) if self.rates else None,
            "quantization": self.quantization.to_dict() if self.quantization else None,
        }


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pipeline", nargs="+", metavar="PIPELINE",
        help=tr("a .yaml, .json or .lite file, or a single model; with --family its models"),
    )  # fmt: skip
    parser.add_argument(
        "--family", metavar="NAME",
        help=tr("a built-in pipeline: ppocr, ppocrv2, text, plates, ssd, yolo, yolov3, "
                "yolov3-tiny, yolov5, yolov8, yolox, nanodet, nanodet-plus, fcos, pose, "
                "heatmaps, embedding, ultraface, classification, segmentation, image or "
                "keywords"),
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
    parser.add_argument(
        "--compare", metavar="BACKEND",
        help=tr("name the stage that differs on this backend, like opencl or "
                "arm@emulated, and show what that changes in the answer"),
    )  # fmt: skip
    parser.add_argument(
        "--stream", metavar="FRAMES",
        help=tr("run on the images of this folder, or on this Motion-JPEG file, as frames of a "
                "video"),
    )  # fmt: skip
    parser.add_argument(
        "--fps", type=positive, metavar="N",
        help=tr("feed frames at this rate and drop those that are late (default: every frame "
                "is processed)"),
    )  # fmt: skip
    parser.add_argument(
        "--profile", action="store_true",
        help=tr("measure each stage and the layers of its model on --image"),
    )  # fmt: skip
    parser.add_argument(
        "--quantize", metavar="DIR",
        help=tr("make stages int8, calibrated with these images, as far as --max-drop allows"),
    )  # fmt: skip
    parser.add_argument(
        "--data", metavar="DATASET",
        help=tr("labeled data to judge --quantize by (default: the share of unchanged "
                "answers)"),
    )  # fmt: skip
    parser.add_argument(
        "--task", metavar="TASK", help=tr("the task, where the data set allows several")
    )
    parser.add_argument(
        "--max-drop", type=drop, metavar="P%",
        help=tr("what the metric may lose by --quantize (default: 1%%, or 1dB of PSNR)"),
    )  # fmt: skip
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
    from lite_engine.pipeline import Pipeline, compare, guess, profile

    if args.compare and not args.image:
        raise UsageError(tr("--compare needs --image"))
    if args.profile and not args.image:
        raise UsageError(tr("--profile needs --image"))
    if args.draw and not args.image:
        raise UsageError(tr("--draw needs --image"))
    if args.family:
        opened = Pipeline.of_family(args.family, args.pipeline, args.labels)
    elif len(args.pipeline) > 1 or args.labels:
        raise UsageError(
            tr("several models, or --labels, need --family"), fix=_suggested(args.pipeline)
        )
    else:
        opened = Pipeline.open(args.pipeline[0])
    result = PipelineResult(opened)
    if args.quantize:
        _quantize(result, args)
        opened = result.pipeline
    (first, *others) = opened.parts
    if not args.family and not others and not first.read and not first.features:
        result.guesses = guess([first.model])
    if args.output:
        result.file = str(result.pipeline.save(Path(args.output), parse_targets(args.targets)))
    options = {"threads": args.threads, "precision": args.precision}
    if args.image:
        result.answer = result.pipeline.run(args.image, args.backend, times=True, **options)
    if args.stream:
        quiet = args.json == "-"
        result.rates = stream(opened, args.stream, args.backend, args.fps, quiet=quiet, **options)
    if args.profile:
        result.profile = profile(opened, args.image, args.backend, **options)
    if args.compare:
        result.comparison = compare(opened, args.image, args.backend, args.compare, **options)
    if args.draw:
        with writing(args.draw) as file:
            file.write(result.pipeline.drawn())
    return result


def _quantize(result: PipelineResult, args: argparse.Namespace) -> None:
    """Puts the pipeline with stages in int8 in place of the one that was opened. Raises
    LiteError."""
    from ..evaluate import Drop, read_dataset
    from ..pipelines.quantizing import quantize_stages

    data = read_dataset(args.data, task=args.task) if args.data else None
    drop = (args.max_drop or Drop(1.0, hundredths=True)).of(data)
    made = quantize_stages(result.pipeline, args.quantize, data, max_drop=drop)
    result.quantization, result.pipeline = made, made.pipeline


def _suggested(paths: list[str]) -> str:
    """The family that these models look like, to be confirmed."""
    from lite_engine.model_file import open_model
    from lite_engine.pipeline import FAMILIES, guess

    for one in guess([open_model(path) for path in paths]):
        return tr(
            "pass --family {family} if that is right ({evidence})",
            family=one.family, evidence=one.evidence,
        )  # fmt: skip
    return tr("pass one of {known}", known=", ".join(FAMILIES))


def _show(result: PipelineResult, args: argparse.Namespace) -> str:
    lines = [repr(result.pipeline).strip("<>")]
    if result.answer:
        rows = [list(row) for row in found(result.answer["answers"])]
        lines += [
            "",
            table([tr("what"), tr("answer"), tr("score"), tr("box (px)")], rows, right=(2,)),
        ]
        heads, times = stage_table(result.answer["times"])
        lines += ["", table(heads, times, right=(1, 2, 3, 4, 5, 6))]
    if result.rates:
        lines += ["", rates_line(result.rates)]
    if result.profile:
        lines += ["", table(*profile_table(result.profile), right=(1, 2, 3, 4, 5, 6))]
    if result.quantization:
        heads, choices = choices_table(result.quantization)
        lines += ["", result.quantization.headline, table(heads, choices, right=(2, 3, 4))]
    if result.comparison:
        lines += ["", *_compared(result.comparison)]
    lines += [
        tr("looks like the family {family}: {evidence}; pass --family {family} if that is right",
           family=one.family, evidence=one.evidence)
        for one in result.guesses
    ]  # fmt: skip
    for path in (result.file, args.draw):
        lines += [tr("wrote {path}", path=path)] if path else []
    return "\n".join(lines)


def _compared(made: PipelineComparison) -> list[str]:
    """Each model's error and its effect, and how the answers differ."""
    heads, rows = comparison_table(made)
    if made.changes:
        first = tr("{candidate} differs from {baseline}:",
                   candidate=made.candidate, baseline=made.baseline)  # fmt: skip
    else:
        first = tr("{candidate} gives the same answer as {baseline}",
                   candidate=made.candidate, baseline=made.baseline)  # fmt: skip
    return [table(heads, rows, right=(1, 2, 3)), first, *made.changes]


COMMAND = Command("pipeline", _configure, _call, _show, data=lambda result: result.to_dict())
