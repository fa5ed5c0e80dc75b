"""The inputs of a model, all at once: files, noise, a text, a sample of a data set; and labels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_engine.errors import UsageError
from lite_engine.images import is_image
from lite_engine.runtime.texts import takes_text
from lite_messages import tr
from lite_widgets import Form

from ..data_sets import data_sets
from ..inputs import may_be_image

if TYPE_CHECKING:
    from ._base import Step

_NOISE, _NONE = "", ""
_ARRAYS = (".npy", ".npz", ".csv", ".wav")
#: Files of a folder that are offered.
MOST = 40


class InputsPanel:
    """A form with a row per input; `view` is hidden until `open`. `used()` is called when the
    session has taken what was chosen."""

    def __init__(self, step: Step, used: Callable[[], None]) -> None:
        self.step, self._used = step, used
        self.view = Form(title=tr("Inputs"), button=tr("Use and run"))
        self.view.layout.display = "none"
        step.on(self.view, "close", lambda _: self.close())
        step.on(self.view, "submit", lambda payload: self._submit(payload["values"]))

    def open(self) -> None:
        """Offers what lies beside the model and in the working folder now."""
        session = self.step.session
        files = _files(session.path)
        fields: list[dict[str, Any]] = [
            {"name": f"input:{value.name}", "label": f"{value.name} ({value.type})",
             "options": [[_NOISE, tr("random data")],
                         *[[str(p), p.name] for p in files if _may_be(p, value.shape)]]}
            for value in session.graph.inputs
        ]  # fmt: skip
        fields.append({"name": "seed", "label": tr("Seed of the random data"), "optional": True,
                       "hint": "0"})  # fmt: skip
        if sets := data_sets(session.path):
            fields += [
                {"name": "data", "label": tr("Or a sample from a data set"),
                 "options": [[_NONE, tr("none")], *sets]},
                {"name": "sample", "label": tr("Number of the sample"), "optional": True,
                 "hint": "0"},
            ]  # fmt: skip
        if takes_text(session.graph):
            known = [p for p in files if p.name in ("vocab.txt", "tokenizer.json")]
            fields += [
                {"name": "text", "label": tr("Or a text"), "optional": True},
                {"name": "tokenizer", "label": tr("Tokenizer"), "optional": True,
                 "hint": "vocab.txt"},
            ]  # fmt: skip
            if known and not self.view.values.get("tokenizer"):
                self.view.values = {**self.view.values, "tokenizer": str(known[0])}
        fields.append({"name": "labels", "label": tr("Labels"), "optional": True,
                       "hint": tr("labels.txt, one class per line")})  # fmt: skip
        with self.view.hold_sync():
            self.view.fields, self.view.errors = fields, {}
            self.view.layout.display = None

    def close(self) -> None:
        self.view.layout.display = "none"

    def _submit(self, values: dict[str, str]) -> None:
        """A field that is wrong is marked; the others stay as they were filled in."""
        self.view.values = values
        field = "labels"
        try:
            if values["labels"]:
                self.step.session.set_labels(values["labels"])
            field = "seed"
            seed = _number(values["seed"])
            if values.get("data"):
                field = "sample"
                number = _number(values["sample"])
                self.step.session.set_input(values["data"], sample=number)
            elif values.get("text"):
                field = "tokenizer"
                tokenizer = values["tokenizer"] or "vocab.txt"
                self.step.session.set_input(values["text"], tokenizer=tokenizer)
            else:
                field = next(name for name in values if name.startswith("input:"))
                chosen = {
                    name.removeprefix("input:"): path or None
                    for name, path in values.items()
                    if name.startswith("input:")
                }
                noise = not any(chosen.values())
                self.step.session.set_input(None if noise else chosen, seed=seed)
        except UsageError as error:
            self.view.errors = {field: f"{error.what}: {error.fix}" if error.fix else error.what}
            return
        self.view.errors = {}
        self.close()
        self._used()


def _number(text: str) -> int:
    """Raises UsageError."""
    if text and not text.isdecimal():
        raise UsageError(tr("expected a whole number, got {text!r}", text=text))
    return int(text or 0)


def _files(model: Path) -> list[Path]:
    """Images, arrays and tokenizers beside the model and in the working folder."""
    found: dict[Path, Path] = {}
    for folder in (model.parent, Path()):
        for path in sorted(folder.glob("*")):
            named = path.name in ("vocab.txt", "tokenizer.json")
            if named or is_image(path) or path.suffix.lower() in _ARRAYS:
                found.setdefault(path.resolve(), path)
    return list(found.values())[:MOST]


def _may_be(path: Path, shape: Any) -> bool:
    """An image only for an input that could be one."""
    if path.suffix.lower() in _ARRAYS:
        return True
    return is_image(path) and may_be_image(shape)
