"""Two folders whose files go together by their names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lite_engine.errors import UsageError
from lite_engine.images import is_image
from lite_messages import tr

from ..dataset import Sample
from ..reading import inputs_in

Names = Sequence[tuple[str, str]]


def folders(path: Path, names: Names) -> tuple[Path, Path] | None:
    """The first pair of folders that are both there."""
    pairs = ((path / a, path / b) for a, b in names)
    return next(((a, b) for a, b in pairs if a.is_dir() and b.is_dir()), None)


def paired(path: Path, found: tuple[Path, Path] | None, images: Path | None) -> list[Sample]:
    """A sample for each file of the second folder; its input has the same name, whatever the
    suffix. Raises UsageError."""
    if found is None:
        raise UsageError(tr("the folders of inputs and labels are missing"), where=path)
    inputs, labels = images or found[0], found[1]
    by_name = {p.relative_to(inputs).with_suffix(""): p for p in inputs_in(inputs)}
    samples = []
    for label in sorted(p for p in labels.rglob("*") if is_image(p)):
        name = label.relative_to(labels).with_suffix("")
        if name not in by_name:
            raise UsageError(
                tr("there is no file {name} in {inputs}", name=name, inputs=inputs), where=label
            )
        samples.append(Sample(str(by_name[name].relative_to(inputs)), by_name[name], label))
    return samples
