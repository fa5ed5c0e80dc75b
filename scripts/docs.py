"""Writes the reference pages of the documentation from the code itself.

docs.py [FOLDER]     default docs/reference; nothing there is edited by hand
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import pkgutil
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent
PACKAGES = ("lite_engine", "lite_workbench", "lite_widgets")


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table; bars in cells are escaped."""
    lines = [head, ("---",) * len(head), *rows]
    cells = [[str(c).replace("|", "\\|").replace("\n", " ") for c in line] for line in lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in cells) + "\n"


def settings_page() -> str:
    from lite_engine.settings import SETTINGS

    rows = [(f"`{s.name}`", s.help, f"`{s.default}`") for s in SETTINGS.values()]
    head = "# Settings\n\nEnvironment variables; `lite doctor` lists them with their values.\n\n"
    return head + table(("variable", "meaning", "default"), rows)


def operators_page() -> str:
    from lite_engine.ops import all_ops

    rows = []
    for op in sorted(all_ops(), key=lambda op: op.name):
        kernels = {
            b: ", ".join(dict.fromkeys(f"`{k.name}`" for k in op.kernels if k.backend == b)) or "–"
            for b in ("cpu", "opencl")
        }
        attrs = ", ".join(f"`{name}`" for name in op.attrs) or "–"
        inputs = ", ".join(f"`{name}`" for name in op.inputs)
        rows.append((f"`{op.name}`", inputs, attrs, kernels["cpu"], kernels["opencl"], op.source))
    text = (
        f"# Operators\n\n{len(rows)} operators. `?` marks an optional input, `*` a variadic one. "
        "An operator without a kernel for a backend runs on the next one (OpenCL, CPU, "
        "reference).\n\n"
    )
    head = ("operator", "inputs", "attributes", "CPU kernels", "OpenCL kernels", "source")
    return text + table(head, rows)


def passes_page() -> str:
    from lite_engine.passes import pipeline

    homes = {
        id(thing): (module, attribute)
        for module in submodules("lite_engine.passes")
        for attribute, thing in vars(module).items()
        if module is not pipeline
    }
    rows = {}
    for step in pipeline.PIPELINE:
        module, attribute = homes.get(id(step), (pipeline, ""))
        text = step.__doc__ if step.__doc__ != type(step).__doc__ else None
        lines = (text or module.__doc__ or "").strip().splitlines()
        rows.setdefault(getattr(step, "name", attribute), lines[0] if lines else "")
    head = "# Passes\n\nIn the pipeline's order. `lite convert --journal` shows what each did.\n\n"
    return head + table(("pass", "what it does"), rows.items())


def submodules(package: str) -> list[ModuleType]:
    path = importlib.import_module(package).__path__
    return [importlib.import_module(f"{package}.{m.name}") for m in pkgutil.iter_modules(path)]


def python_page() -> str:
    parts = ["# Python\n"]
    for package in PACKAGES:
        module = importlib.import_module(package)
        parts.append(f"## {package}\n\n{inspect.cleandoc(module.__doc__ or '').splitlines()[0]}\n")
        for name in sorted(getattr(module, "__all__", ())):
            parts.append(member(package, name, getattr(module, name)))
    return "\n".join(parts)


def member(package: str, name: str, thing: object) -> str:
    """One public name: signature and docstring, a class with its public methods."""
    if not callable(thing):
        return f"### `{package}.{name}`\n"
    text = f"### `{package}.{name}{signature(thing)}`\n\n{block(thing)}"
    if inspect.isclass(thing):
        for key, value in vars(thing).items():
            if not key.startswith("_") and (inspect.isfunction(value)) and value.__doc__:
                text += f"\n#### `{key}{signature(value)}`\n\n{block(value)}"
    return text


def signature(thing: Callable[..., object]) -> str:
    try:
        return str(inspect.signature(thing)).replace("'", "")
    except (TypeError, ValueError):
        return "(…)"


def block(thing: object) -> str:
    text = inspect.getdoc(thing) or ""
    return f"```text\n{text}\n```\n" if text else ""


def commands_page() -> str:
    from lite_workbench.cli import usage
    from lite_workbench.commands import available, get_command, parser_for

    parts = [f"# Commands\n\n```text\n{usage()}\n```\n"]
    for verb in available():
        text = parser_for(get_command(verb)).format_help()
        parts.append(f"## lite {verb}\n\n```text\n{text}```\n")
    return "\n".join(parts)


def schemas_page() -> str:
    import json

    from lite_workbench import schemas

    parts = [f"# JSON schemas\n\n{inspect.cleandoc(schemas.__doc__ or '')}\n"]
    for verb in schemas.VERSIONS:
        text = json.dumps(schemas.schema(verb), indent=1)
        parts.append(f"## {schemas.schema_name(verb)}\n\n```json\n{text}\n```\n")
    return "\n".join(parts)


def extending_page() -> str:
    """The sections of CONTRIBUTING.md that add something."""
    parts = (ROOT / "CONTRIBUTING.md").read_text().split("\n## ")
    chosen = [part for part in parts if part.startswith("Add ")]
    return "# Adding to it\n\n" + "\n".join(f"## {part}" for part in chosen)


def gallery_page() -> str:
    """The lessons with what they show where no kernel runs; `scripts/gallery.py` writes those."""
    import json

    rows = []
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        first = "".join(json.loads(path.read_text("utf-8"))["cells"][0]["source"])
        title, question = first.splitlines()[0].removeprefix("# "), first.split("**")[1]
        rows.append((f"[{title}](gallery/{path.stem}.html)", question))
    head = "# Gallery\n\nEvery lesson as a page, with what it shows where no kernel runs.\n\n"
    return head + table(("lesson", "question"), rows)


PAGES = {
    "gallery.md": gallery_page,
    "extending.md": extending_page,
    "commands.md": commands_page,
    "python.md": python_page,
    "operators.md": operators_page,
    "passes.md": passes_page,
    "settings.md": settings_page,
    "schemas.md": schemas_page,
}


def main(folder: Path) -> None:
    os.environ["COLUMNS"] = "100"  # argparse wraps to the terminal
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (folder / name).write_text(page())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "docs" / "reference")
    main(parser.parse_args().folder)
