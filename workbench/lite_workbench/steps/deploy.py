"""Deploy: what do I ship?"""

from __future__ import annotations

from pathlib import Path

from lite_widgets import BundleList, SourceCode, columns

from ._base import Step, button

_PYTHON = """from lite_engine import Predictor

predictor = Predictor("{name}.lite", backend="auto")
outputs = predictor.run({{"{input}": pixels}})   # {shape}
"""
_SHELL = """lite_run --model {name}.lite --input {input}.npy --output out.npz
"""


class DeployStep(Step):
    """The files with their sizes, what was changed by hand, and the code that loads them."""

    name = "Deploy"
    title = "What do I ship?"

    def build(self) -> None:
        self.bundle = BundleList(button="Write bundle")
        self.code = SourceCode()
        self.on(self.bundle, "write", lambda _: self._write())
        self.on(self.notice, "why", lambda _: self.go("Compare"))
        self.header.buttons = [button("notebook", "Export notebook")]
        self.on(self.header, "notebook", lambda _: self._notebook())
        self.follow("versions", lambda _: self._fill())
        self.follow("overrides", lambda _: self._fill())
        self.show(columns(self.bundle, self.code, kind="half"))
        self._fill()

    def _fill(self) -> None:
        session = self.session
        model, stem = session.model, session.path.stem
        weights = sum(v.const.nbytes for v in model.graph.constants() if v.const is not None)
        labels = "\n".join(map(str, model.metadata.get("labels", ()))).encode()
        items = [
            {"id": "model", "file": f"{stem}.lite", "bytes": weights, "fixed": True,
             "what": f"{session.version} model for {', '.join(model.targets) or 'any target'}"},
            {"id": "walk", "file": f"{stem}_walk.ipynb", "what": "this walk as a notebook",
             "bytes": sum(map(len, session.code)) + 600},
        ]  # fmt: skip
        if labels:
            items.append(
                {"id": "labels", "file": "labels.txt", "what": "labels", "bytes": len(labels)}
            )
        self.bundle.items = items
        self.bundle.chosen = [i["id"] for i in items if not i.get("fixed")]
        self.bundle.note = f"to {stem}_bundle/"
        value = model.graph.inputs[0]
        names = {"name": stem, "input": value.name, "shape": str(value.type)}
        self.code.sources = {"Python": _PYTHON.format(**names), "Shell": _SHELL.format(**names)}
        moved = ", ".join(f"**{k}** runs on {v}" for k, v in session.overrides.items())
        if moved:
            self.tell("warn", f"{moved}.", detail="Set by hand after the comparison.",
                      actions=[["why", "See why", False]])  # fmt: skip
        else:
            self.quiet()

    def _write(self) -> None:
        session = self.session
        folder = Path(f"{session.path.stem}_bundle")
        folder.mkdir(exist_ok=True)
        made = session.export(folder / session.path.stem)
        if "walk" in self.bundle.chosen:
            session.notebook(folder / f"{session.path.stem}_walk")
        if "labels" in self.bundle.chosen:
            labels = "\n".join(map(str, session.model.metadata.get("labels", ()))) + "\n"
            (folder / "labels.txt").write_text(labels, encoding="utf-8")
        size = sum(p.stat().st_size for p in folder.iterdir())
        self.tell("done", f"**Wrote** `{made.parent}/`: {size / 1e6:.2f} MB")

    def _notebook(self) -> None:
        made = self.session.notebook(f"{self.session.path.stem}_walk")
        self.tell("done", f"**Wrote** `{made}`")
