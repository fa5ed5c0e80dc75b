"""A pipeline in one `.lite` file: section PIPE says the stages, MODEL.0 and so on are whole model
files. A model that several stages use lies there once."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lite_messages import tr

from ..documents import parse
from ..errors import ModelFormatError, VersionError, reason_of
from ..files import LITE_MAGIC
from ..model_file import Model
from ..model_file._container import read_container, write_container
from ..model_file.native_stage import FORMAT
from ..model_file.reader import open_file
from ..preprocess import Preprocess
from ..terminal import one_line
from .stages import Part
from .widths import read_widths


def is_bundle(path: str | Path) -> bool:
    """Is it a pipeline's `.lite` file? Raises ModelFormatError for one that cannot be read or is
    damaged: it would be taken for a model."""
    path = Path(path)
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            start = file.read(len(LITE_MAGIC))
    except OSError as error:
        raise ModelFormatError(
            tr("cannot be read ({reason})", reason=reason_of(error)), where=path
        ) from None
    return start == LITE_MAGIC and "PIPE" in read_container(path)


def is_pipeline(path: str | Path) -> bool:
    """Is it a pipeline's file, .yaml, .json with `stages`, or .lite?"""
    path = Path(path)
    if path.suffix in (".yaml", ".yml"):
        return True
    if path.suffix != ".json":
        return is_bundle(path)
    try:
        made = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(made, dict) and "stages" in made


def sections_of(parts: Sequence[Part]) -> list[str]:
    """The section of each part's model; parts that share one share it."""
    models: list[int] = []
    tags = []
    for part in parts:
        if id(part.model) not in models:
            models.append(id(part.model))
        tags.append(f"MODEL.{models.index(id(part.model))}")
    return tags


def write_bundle(path: Path, document: dict[str, Any], parts: Sequence[Part]) -> Path:
    """Writes the file and returns its path. Raises LiteError when it cannot be written."""
    text = json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
    sections: dict[str, list[bytes | memoryview]] = {"PIPE": [text]}
    with tempfile.TemporaryDirectory() as folder:
        for tag, part in zip(sections_of(parts), parts, strict=True):
            if tag not in sections:
                sizes = part.sized() if part.widths else ()
                file = part.model.save(Path(folder) / f"{tag}.lite", sizes=sizes)
                sections[tag] = [file.read_bytes()]
    return write_container(path, sections)


def read_bundle(path: Path) -> tuple[dict[str, Any], list[Part]]:
    """What the file says of the pipeline, and its models. Raises ModelFormatError, VersionError."""
    sections = read_container(path)
    if "PIPE" not in sections:
        raise ModelFormatError(tr("section {missing} is missing", missing="PIPE"), where=path)
    document = parse(bytes(sections["PIPE"]), "pipeline")
    if document["format"].integer() > FORMAT:
        raise VersionError(
            tr("this pipeline was written by a newer version"), fix=tr("update lite-workbench")
        )
    stages = document["stages"].into(list[dict[str, Any]])
    models: dict[str, Model] = {}
    parts = []
    for each in document["models"].items():
        tag, name = each["section"].text(), each["name"].text()
        if tag not in sections:
            missing = one_line(tag)
            raise ModelFormatError(tr("section {missing} is missing", missing=missing), where=path)
        if tag not in models:
            models[tag] = open_file(path, sections[tag])
        labels = tuple(label.text() for label in each["labels"].items())
        heard, seen = each.get("features"), each.get("preprocess")
        preprocess = Preprocess.from_dict(seen.value if seen else {})
        features = heard.into(dict[str, Any]) if heard else None
        read = each["read"].into(dict[str, Any])
        widths = each.get("widths")
        parts.append(
            Part(name, models[tag], preprocess, labels, read, features,
                 read_widths(widths.value if widths else None))
        )  # fmt: skip
    return {**document.value, "stages": stages}, parts
