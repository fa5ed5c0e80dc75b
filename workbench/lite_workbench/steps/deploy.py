"""Deploy: what do I ship?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lite_engine.errors import BackendUnavailableError, TargetMismatchError, UsageError
from lite_engine.export import Exported, bytes_beside, check_programs, check_target
from lite_engine.files import write_file
from lite_engine.model_file import Model
from lite_messages import tr
from lite_widgets import BundleList, SourceCode, columns

from ..names import BACKENDS
from ..state.exports import written
from ..words import number
from ._base import Step, side_name

_PYTHON = """from lite_engine import Predictor

predictor = Predictor("{name}.lite", backend="auto")
outputs = predictor.run({{{inputs}}})   # {types}
"""
_RUNTIME = "bin/ lib/ …"
_ARCH = {"arm": "aarch64", "x86": "x86_64"}
_SAMPLES = {"C": "sample.c", "C++": "sample.cpp", "Java": "Sample.java"}


class DeployStep(Step):
    """The files with their sizes, what was changed by hand, and the code that loads them."""

    name = "Deploy"
    title = tr("What goes to the device?")

    def build(self) -> None:
        self._made: tuple[Any, tuple[int, Model]] | None = None
        self.bundle = BundleList(button=tr("Write bundle"))
        self.code = SourceCode()
        self._offer_targets()
        self.header.observe(lambda _: self.guard(self._fill), names=["values"])
        self.on(self.bundle, "write", lambda _: self._write())
        self.on(self.notice, "why", lambda _: self.go("Compare"))
        for change in ("versions", "overrides"):
            self.follow(change, lambda _: self.entered())
        self.show(columns(self.bundle, self.code, kind="half"))
        self._fill()

    def entered(self) -> None:
        """The file is written again where somebody sees what it weighs: now, or at the next
        visit."""
        if self.here and (self._made is None or self._made[0] != self._key()):
            self._offer_targets()
            self._fill()

    def _offer_targets(self) -> None:
        """Processors that the model was converted for; one of them stays chosen."""
        targets = [t for t in self.session.model.targets if t in _ARCH] or ["x86"]
        options = [[t, t, t] for t in targets]
        self.header.segments = {"name": "target", "label": tr("Device"), "options": options}
        if self.header.values.get("target") not in targets:
            self.header.values = {"target": "arm" if "arm" in targets else targets[0]}

    def _misfit(self, file: Model) -> TargetMismatchError | None:
        """Why the chosen device gets no runner."""
        target = self.header.values["target"]
        try:
            check_target(self.session.model, target)
            check_programs([file], target)
        except TargetMismatchError as error:
            return error
        return None

    def _key(self) -> Any:
        """What the written file follows from."""
        session, model = self.session, self.session.model
        return id(model), repr(model.metadata), repr(session.overrides), tuple(session.int8_targets)

    def _file(self) -> tuple[int, Model]:
        """What is shipped, written once for each state of the session: programs are a large part of
        a small model's file, and only writing tells which there are. Raises LiteError."""
        key = self._key()
        if self._made is None or self._made[0] != key:
            self._made = key, written(self.session)
        return self._made[1]

    @property
    def folder(self) -> Path:
        return Path(f"{self.session.stem}_bundle")

    def _fill(self) -> None:
        session = self.session
        model, stem = session.model, session.stem
        size, file = self._file()
        without = file.metadata.get("notes", {})
        labels = self._labels().encode()
        items = [
            {
                "id": "model",
                "file": f"{stem}.lite",
                "bytes": size,
                "fixed": True,
                "what": tr(
                    "model for {targets}, {version}",
                    version=session.version,
                    targets=", ".join(side_name(t) for t in model.targets if t not in without)
                    or "Python",
                ),
            },
            *self._device_items(file),
            {
                "id": "walk",
                "file": f"{stem}_walk.ipynb",
                "what": tr("this session as a notebook"),
                "bytes": sum(map(len, session.code)) + 600,
            },
        ]
        if labels:
            items.append(
                {"id": "labels", "file": "labels.txt", "what": tr("labels"), "bytes": len(labels)}
            )
        self.bundle.items = items
        self.bundle.chosen = [i["id"] for i in items if not i.get("fixed")]
        self.bundle.note = tr("to {folder}/", folder=self.folder)
        given = ", ".join(f'"{v.name}": array' for v in model.graph.inputs)
        types = ", ".join(str(v.type) for v in model.graph.inputs) or tr("no input")
        names = {"name": stem, "inputs": given, "types": types}
        self.code.sources = {"Python": _PYTHON.format(**names)}
        if (why := self._misfit(file)) is not None:
            detail = tr("The bundle has the model for Python and no runner: {fix}", fix=why.fix)
            self.tell("warn", f"**{why.what}**", detail=detail)
            return
        if session.overrides.backends:
            told = ", ".join(
                tr("**{layer} runs on {backend}**", layer=k, backend=v)
                if v in BACKENDS
                else tr("**{layer} runs in {precision}**", layer=k, precision=v)
                for k, v in session.overrides.backends.items()
            )
            self.tell(
                "warn",
                f"{told}.",
                detail=tr(
                    "Overridden after the comparison. The file contains the "
                    "override, so every program that loads it runs the layer there."
                ),
                actions=[["why", tr("See why"), False]],
            )
        else:
            self.quiet()

    def _device_items(self, file: Model) -> list[dict[str, Any]]:
        """Runner and library for the chosen device, where they are built and the file has a program
        for them."""
        target = self.header.values["target"]
        if self._misfit(file) is not None:
            return []
        try:
            size = bytes_beside(file, target)
        except BackendUnavailableError:
            return []
        what = tr("runner, library, samples, report for {target}", target=target)
        return [{"id": "device", "file": _RUNTIME, "what": what, "bytes": size}]

    def _labels(self) -> str:
        return "".join(f"{x}\n" for x in self.session.model.metadata.get("labels", ()))

    # ---- writing

    def _write(self) -> None:
        session, chosen, folder = self.session, self.bundle.chosen, self.folder
        target, labels = self.header.values["target"], self._labels()

        def work() -> None:
            if folder.is_file():
                raise UsageError(
                    tr("{folder} is a file, but the bundle is a folder", folder=folder),
                    fix=tr("move or rename the file"),
                )
            folder.mkdir(exist_ok=True)
            if "device" in chosen:
                session.export(folder, target=target)
            else:
                session.export(folder / session.stem)
            if "walk" in chosen:
                session.notebook(folder / f"{session.stem}_walk")
            if "labels" in chosen:
                write_file(folder / "labels.txt", labels)
            self.on_main(self._written)

        self.start(tr("Writing {folder}/", folder=folder), work)

    def _written(self) -> None:
        """The samples of the folder, what its files weigh, and that they are there."""
        samples = {k: self.folder / "samples" / name for k, name in _SAMPLES.items()}
        found = {k: p.read_text("utf-8") for k, p in samples.items() if p.exists()}
        self.code.sources = {**self.code.sources, **found}
        self._weigh()
        size = _bytes_in(self.folder)
        self.tell(
            "done",
            tr("**Wrote** `{folder}/`: {size}", folder=self.folder, size=number(size, "B")),
        )

    def _weigh(self) -> None:
        """The files that were written take the place of what was estimated."""
        session, folder = self.session, self.folder
        made = {i["file"]: folder / i["file"] for i in self.bundle.items if i["id"] != "device"}
        sizes = {name: path.stat().st_size for name, path in made.items() if path.is_file()}
        if isinstance(session.exported, Exported):
            sizes[_RUNTIME] = _bytes_in(folder) - sum(sizes.values())
        self.bundle.items = [
            {**i, "bytes": sizes.get(i["file"], i["bytes"])} for i in self.bundle.items
        ]


def _bytes_in(folder: Path) -> int:
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
