"""`lite evaluate`: task metrics on labeled data."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lite_engine.lines import read_labels
from lite_engine.settings import BACKENDS
from lite_messages import tr, trn

from ..names import FLOAT, GIVEN
from ._base import (
    ADAPTER_HELP,
    PREPROCESS_HELP,
    Command,
    add_device,
    add_model,
    at_least,
    load_model,
    set_preprocess,
)
from ._table import clip, table

if TYPE_CHECKING:
    from lite_engine.model_file import Model

    from ..cluster import Cluster, Progress
    from ..evaluate import Dataset, Evaluation, PipelineSide, Side

#: What --versions takes besides files: how one file may run. FLOAT is its float graph in the
#: float precision that the file has for the backend.
PRECISIONS = {GIVEN: None, FLOAT: None, **{p: p for p in ("fp32", "fp16", "bf16", "int8")}}
SHOWN = 10


def add_dataset(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """The options that say which labeled data, and how labels become classes."""
    parser.add_argument(
        "--data",
        required=required,
        metavar="DATASET",
        help=tr(
            "labeled data: a folder per class, a list of files and labels, .npz, "
            "COCO JSON, Pascal VOC, folders of images and masks, a .tsv of text "
            "lines, or pairs of images"
        ),
    )
    parser.add_argument(
        "--task", metavar="TASK", help=tr("the task, where the data set allows several")
    )
    add_images(parser)
    parser.add_argument(
        "--labels", metavar="FILE", help=tr("class labels of the model, one per line")
    )
    parser.add_argument(
        "--label-offset",
        type=int,
        default=0,
        metavar="N",
        help=tr(
            "number to add to the data set's classes, like 1 if class 0 of the model is background"
        ),
    )
    add_limit(parser)
    parser.add_argument(
        "--metric", default="", metavar="NAME",
        help=tr("the metric that is compared and that budgets are about, like CER or mAP@.5 "
                "(default: the task's first)"),
    )  # fmt: skip


def add_images(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--images",
        metavar="DIR",
        help=tr(
            "the folder of the images that a list or annotation file names (default: beside it)"
        ),
    )


def add_limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--limit", type=at_least(1), metavar="N", help=tr("use at most N samples, spread evenly")
    )


def add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workers", type=at_least(1), metavar="N",
        help=tr("run in N processes with one thread each, on a local Dask cluster"),
    )  # fmt: skip
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help=tr("run on this Dask cluster, like tls://host:8786"),
    )
    parser.add_argument(
        "--dashboard", action="store_true",
        help=tr("with --workers: also start Dask's dashboard, on 127.0.0.1"),
    )  # fmt: skip


def add_mlflow(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--mlflow", metavar="URI",
        help=tr("also log the result to this MLflow tracking store: a folder, file:// or https://"),
    )  # fmt: skip


def counting(what: str) -> Progress:
    """Progress of long work as a line of the terminal."""
    from lite_engine.progress import tell

    return lambda done, total: tell(what, done, total)


def cluster_of(args: argparse.Namespace) -> Cluster:
    from ..cluster import Cluster

    return Cluster(args.workers, args.scheduler, dashboard=args.dashboard)


def dataset_of(args: argparse.Namespace) -> Dataset:
    """The data set that the options name. Raises UsageError."""
    from ..evaluate import read_dataset

    made = replace(read_dataset(args.data, task=args.task, images=args.images), metric=args.metric)
    return made.shifted(args.label_offset) if args.label_offset else made


def _configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_dataset(parser, required=True)
    parser.add_argument(
        "--backend",
        default="auto",
        metavar="B,…",
        help=tr(
            "backends to evaluate on, the first is the baseline (default: the best one available)"
        ),
    )
    parser.add_argument(
        "--versions",
        default=GIVEN,
        metavar="V,…",
        help=tr(
            "float, fp16, bf16, int8 (each if the file has it) or other model files; the "
            "first is the baseline (default: as in the file)"
        ),
    )
    parser.add_argument(
        "--threads", type=at_least(1), metavar="N", help=tr("number of CPU threads")
    )
    add_device(parser)
    add_cluster(parser)
    add_mlflow(parser)
    parser.add_argument("--preprocess", metavar="HOW", help=PREPROCESS_HELP)
    parser.add_argument("--adapter", metavar="HOW", help=ADAPTER_HELP)
    parser.add_argument(
        "--predictions", metavar="FILE.json",
        help=tr("write the predictions; those of detectors in COCO's results format"),
    )  # fmt: skip
    parser.add_argument(
        "--rows",
        type=at_least(0),
        default=SHOWN,
        metavar="N",
        help=tr(
            "number of samples to show (default: {shown}); --json has all of them", shown=SHOWN
        ),
    )


def _call(args: argparse.Namespace) -> Evaluation:
    from lite_engine.adapter import Adapter
    from lite_engine.files import write_file
    from lite_engine.runtime import strict_json

    from ..evaluate import Side, evaluate
    from ..saved_runs import check_mlflow, export_mlflow, keep_evaluation
    from ._first_look import say_first

    labels = read_labels(args.labels) if args.labels else None
    data = dataset_of(args)
    adapter = Adapter.parse(args.adapter) if args.adapter else None
    sides = sides_of(args)
    if args.mlflow:
        check_mlflow(args.mlflow)
    if isinstance(sides[0], Side):
        say_first(sides[0].model, lambda: data, args)
    made = evaluate(
        sides, data, labels=labels, limit=args.limit, adapter=adapter,
        cluster=cluster_of(args), progress=counting(tr("samples")),
    )  # fmt: skip
    if args.predictions:
        write_file(args.predictions, strict_json.dumps(made.predictions, ensure_ascii=False) + "\n")
    keep_evaluation(made, args.model)
    if args.mlflow:
        export_mlflow(made, args.mlflow)
    return made


def sides_of(args: argparse.Namespace) -> Sequence[Side | PipelineSide]:
    """Every version on every backend, of a model or a pipeline. Raises UsageError."""
    from lite_engine.pipeline import is_pipeline

    return _pipelines(args) if is_pipeline(args.model) else _models(args)


def _pipelines(args: argparse.Namespace) -> list[PipelineSide]:
    """Raises UsageError."""
    from lite_engine.errors import UsageError
    from lite_engine.model_file import in_float
    from lite_engine.pipeline import Pipeline

    from ..evaluate import PipelineSide

    if args.preprocess or args.adapter:
        raise UsageError(
            tr("the models of a pipeline have their own preprocessing and adapters"),
            fix=tr("write them into its stages"),
        )
    versions = _words(args.versions, "--versions")
    backends = _words(args.backend, "--backend")
    shown = _short(versions)
    there = "" if args.device == "local" else f"@{args.device}"
    sides = []
    for version in versions:
        pipeline = Pipeline.open(args.model if version in (GIVEN, FLOAT) else version)
        if version == FLOAT:
            pipeline = pipeline.but({p.name: in_float(p.model) for p in pipeline.parts})
        for backend in backends:
            name = "@".join(
                [shown[version]] * (len(versions) > 1) + [backend] * (len(backends) > 1)
            )
            sides.append(PipelineSide(
                name or backend, pipeline, backend + there, version, threads=args.threads
            ))  # fmt: skip
    return sides


def _models(args: argparse.Namespace) -> list[Side]:
    """Raises UsageError."""
    from lite_engine.devices import find_device
    from lite_engine.errors import UsageError
    from lite_engine.runtime import Predictor

    from ..evaluate import Side
    from ..evaluate.shards import resource_of

    versions = _words(args.versions, "--versions")
    backends = _words(args.backend, "--backend")
    for name in backends:
        if name not in BACKENDS:
            raise UsageError(
                tr("{name!r} is not a backend", name=name),
                fix=tr("choose from {backends}", backends=", ".join(BACKENDS)),
            )
    board = cluster_of(args).used and bool(resource_of([args.device]))
    if board and "auto" in backends:
        raise UsageError(
            tr("the backend of {device} is not known here", device=args.device),
            fix=tr("pass --backend, like --backend arm"),
        )
    shown = _short(versions)
    device, sides = None if board else find_device(args.device), []
    for version in versions:
        model = _version(args, version)
        for backend in backends:
            made = Predictor(
                model, backend, threads=args.threads, device=device,
                precision=PRECISIONS.get(version),
            )  # fmt: skip
            name = "@".join(
                [shown[version]] * (len(versions) > 1) + [made.backend] * (len(backends) > 1)
            )
            sides.append(Side(name or made.backend, made, version, args.device))
    return sides


def _short(versions: Sequence[str]) -> dict[str, str]:
    """What each version is called: a file by its name alone, unless two have the same."""
    from pathlib import Path

    names = [v if v in PRECISIONS else Path(v).name for v in versions]
    return {v: n if names.count(n) == 1 else v for v, n in zip(versions, names, strict=True)}


def _words(text: str, option: str) -> list[str]:
    from lite_engine.errors import UsageError

    words = [w.strip() for w in text.split(",") if w.strip()]
    if not words or len(set(words)) < len(words):
        raise UsageError(
            tr(
                "{option} needs different names, separated by commas, got {text!r}",
                option=option,
                text=text,
            )
        )
    return words


def _version(args: argparse.Namespace, version: str) -> Model:
    """The model, or another file; with the preprocessing that was given. Raises UsageError for a
    float version of a file that has none."""
    from lite_engine.model_file import in_float

    path = args.model if version in PRECISIONS else version
    given = {**vars(args), "model": path, "precision": PRECISIONS.get(version)}
    if path != args.model:
        given["params"] = None
    model = load_model(argparse.Namespace(**given))
    set_preprocess(model, args)
    float_asked = version in PRECISIONS and version not in (GIVEN, "int8")
    return in_float(model) if float_asked else model


def _show(result: Evaluation, args: argparse.Namespace) -> str:
    rows = [[s.name, s.backend, s.precision, *(m.figure for m in s.metrics)] for s in result.sides]
    names = [m.name for m in result.sides[0].metrics]
    lines = [tr("note: {note}", note=note) for note in result.notes]
    lines += [tr("left out: {error}", error=error) for _, error in result.unreadable[:SHOWN]]
    if len(result.unreadable) > SHOWN:
        lines.append(tr("left out: {count} more samples", count=len(result.unreadable) - SHOWN))
    lines += [
        trn(
            "{model} on {dataset}: {task}, {n} sample, 95 % intervals",
            "{model} on {dataset}: {task}, {n} samples, 95 % intervals",
            result.samples,
            model=result.model,
            dataset=result.dataset,
            task=result.task,
        ),
        "",
        table(["", tr("backend"), tr("precision"), *names], rows),
        *(["", *result.sentences] if result.changes else []),
        *_samples(result, args.rows),
        *_confused(result),
    ]
    return "\n".join(lines)


def _samples(result: Evaluation, most: int) -> list[str]:
    """The samples to look at first: disagreements, or the wrong ones of a single side."""
    several = len(result.sides) > 1
    found = result.disagreements if several else result.errors
    if not found or not most:
        return []
    rows = [
        [clip(row.name, 40), clip(row.label, 24), *(
            ("  " if s.right is None else "✓ " if s.right else "✗ ") + clip(s.prediction, 24)
            + (f" {s.score:.3f}" if s.score is not None else "")
            for s in row.sides.values()
        )]
        for row in found[:most]
    ]  # fmt: skip
    what = tr("predictions that differ") if several else tr("samples with an error")
    heads = [tr("sample"), tr("label"), *(side.name for side in result.sides)]
    return ["", f"{what}: {len(found)}", table(heads, rows)]


def _confused(result: Evaluation) -> list[str]:
    worst = result.sides[-1].confusion[:3]
    if not worst:
        return []
    said = ", ".join(
        tr("{label} as {other} ({count}×)", label=label, other=other, count=n)
        for label, other, n in worst
    )
    return [
        "",
        tr("{sides}: most frequent confusions: {said}", sides=result.sides[-1].name, said=said),
    ]


COMMAND = Command("evaluate", _configure, _call, _show, data=lambda result: result.to_dict())
