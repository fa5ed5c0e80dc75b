"""Writes a folder that runs a model on a device without Python."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from shlex import quote
from typing import Any

from lite_messages import tr

from .._native import header_path, library_path, runner_path
from ..errors import TargetMismatchError, UsageError, check_choice
from ..files import filling, write_file
from ..model_file import Model, read_model
from ..model_file.opencl_programs import opencl_devices
from . import web
from .trim import trim

ARCHITECTURES = {"arm": "aarch64", "x86": "x86_64"}
TEMPLATES = Path(__file__).parent / "templates"
#: Paddle-Lite's interfaces over ours.
_PADDLE = (
    "paddle_api.cc", "paddle_api.h", "paddle_config.cc", "paddle_log.h", "paddle_place.h",
    "paddle_use_kernels.h", "paddle_use_ops.h", "paddle_use_passes.h",
)  # fmt: skip
_PADDLE_JAVA = (
    "ConfigBase.java", "MobileConfig.java", "PaddlePredictor.java", "PowerMode.java", "Tensor.java",
)  # fmt: skip
#: Template → place in the folder.
_FILES = {
    "lite_runtime.hpp": "include/lite_runtime.hpp",
    "sample.c": "samples/sample.c",
    "sample.cpp": "samples/sample.cpp",
    "sample.py": "samples/sample.py",
    "Sample.java": "samples/Sample.java",
    "LiteRuntime.java": "java/lite/LiteRuntime.java",
    "lite_jni.c": "java/lite_jni.c",
    **{f"paddle/{name}": f"paddle/{name}" for name in _PADDLE},
    **{f"paddle/java/{name}": f"java/com/baidu/paddle/lite/{name}" for name in _PADDLE_JAVA},
    "CMakeLists.txt": "CMakeLists.txt",
    "README.md": "README.md",  # last: it lists the others with their sizes
}
#: What people change in a folder, and the ending under which that is kept.
_EDITED = ("README.md", "CMakeLists.txt", "app/app.cpp", "app/app.py", "index.html", "page.css",
           "samples/sample.c", "samples/sample.cpp", "samples/sample.py",
           "samples/Sample.java")  # fmt: skip
OLD = ".old"
#: What each part is, for people.
_WHAT = {
    "bin/lite_run": tr("static runner, needs nothing else on the device"),
    "bin/lite_run_opencl": tr("the same with OpenCL, linked with the device's C library"),
    "lib/liblite_runtime.so": tr("the runtime library for your own program"),
    "include/lite_runtime.h": tr("C interface"),
    "include/lite_runtime.hpp": "C++ interface",
    "app/app.cpp": tr("the application in C++"),
    "app/app.py": tr("the application in Python"),
    "app/src/main/cpp/native": tr("the runtime's sources"),
    "Runtime/native": tr("the runtime's sources"),
    "app/src/main/cpp/lite_engine": tr("OpenCL kernels, which the runtime has built in"),
    "Runtime/lite_engine": tr("OpenCL kernels, which the runtime has built in"),
    "build.sh": tr("builds the runtime"),
    "Package.swift": tr("describes the package"),
    "CMakeLists.txt": tr("builds the samples or the application"),
    "README.md": tr("how to use these files"),
    "report.html": tr("report about the model, with its profile"),
}
#: What the page says where the folder has libraries.
_WITH_LIBRARIES = """\
## With other people's kernels

From `bin`, with the libraries of backends or custom operators in `lib`; `--trust` loads the kernels
that the model's file brings:

```
./lite_run_opencl ../{model} {options}
```

Without its library the CPU runs a backend's layers, and `--info` gives the reason.

"""


@dataclass(frozen=True)
class _MoreCode:
    """What the runner needs beyond itself: backends with sub-graphs in the file, libraries, and
    whether the file brings the kernels of custom operators."""

    plugins: Sequence[str]
    libraries: Sequence[Path]
    ship_kernels: bool

    def __bool__(self) -> bool:
        return bool(self.plugins or self.libraries or self.ship_kernels)

    def options(self) -> str:
        """Of the runner, from the folder `bin`."""
        named = [f"--library ../lib/{quote(path.name)}" for path in self.libraries]
        return " ".join([*named, *(["--trust"] if self.ship_kernels else [])])


@dataclass
class Exported:
    """A written folder: bytes by file, the model's kernels when it was trimmed, its OpenCL
    programs."""

    folder: Path
    target: str
    sizes: dict[str, int]
    kernels: list[str] = field(default_factory=list)
    #: Kinds of devices that the model has OpenCL programs for, and what these compute in.
    opencl: list[str] = field(default_factory=list)
    opencl_precision: str = ""

    @property
    def model(self) -> str:
        """The file of the model, or of the pipeline."""
        return next(file for file in self.sizes if file.endswith(".lite"))

    def to_dict(self) -> dict[str, Any]:
        return {
            "folder": str(self.folder),
            "target": self.target,
            "files": [{"file": f, "bytes": n, "what": what_is(f)} for f, n in self.sizes.items()],
            "bytes": sum(self.sizes.values()),
            "kernels": self.kernels,
            "opencl": {"devices": self.opencl, "precision": self.opencl_precision},
        }


def sizes_of(folder: Path) -> dict[str, int]:
    """Bytes by file, by name."""
    files = [p for p in sorted(folder.rglob("*")) if p.is_file()]
    return {str(p.relative_to(folder)): p.stat().st_size for p in files}


def what_is(file: str) -> str:
    if file.endswith(".lite"):
        return "model"
    if file.rstrip("0123456789").endswith(OLD):
        return tr("the file that was here before")
    if file in web.WHAT:
        return web.WHAT[file]
    kind = {
        "app": tr("Android app"),
        "Sources": tr("Swift package"),
        "java": tr("Java binding"),
        "paddle": tr("Paddle-Lite's C++ interface"),
        "samples": tr("sample"),
    }.get(file.split("/")[0], "")
    return _WHAT.get(file, kind)


def export_model(
    model: Model,
    folder: Path,
    target: str = "arm",
    *,
    trimmed: bool = False,
    more: Callable[[Exported], object] | None = None,
    plugins: Sequence[str] = (),
    libraries: Sequence[Path] = (),
    ship_kernels: bool = False,
) -> Exported:
    """Fills `folder` (made when missing, files of an earlier export replaced, what a person changed
    kept as `.old`), whole or not at all, for a CPU target or "web"; `more` adds files of its own
    before anybody sees it. The model's file keeps sub-graphs for the backends `plugins`;
    `libraries` are shared libraries for the device, which execute them or the model's custom
    operators. With `ship_kernels` the file itself brings the kernels of these operators.

    Raises UsageError for an unknown target and for what it cannot have, TargetMismatchError when
    the model has no program for it, BackendUnavailableError when its runner was not built,
    LiteError when writing fails.
    """
    check_target(model, target)
    more_code = _MoreCode(plugins, libraries, ship_kernels)
    if more_code and (trimmed or target == web.TARGET):
        raise UsageError(
            tr("a trimmed runner or a page cannot load libraries"),
            fix=tr("leave out the plug-ins, libraries and kernels"),
        )
    with filling(folder) as part:
        made = _fill(model, part, target, trimmed, more_code)
        keep_changed(folder, part)
        if more is not None:
            more(made)
        made.sizes = sizes_of(part)
    made.folder = folder
    return made


def check_target(model: Model, target: str) -> None:
    """Raises UsageError for an unknown target, TargetMismatchError when the model has no program
    for it."""
    check_choice(tr("target"), target, (*ARCHITECTURES, web.TARGET))
    if target != web.TARGET and model.targets and target not in model.targets:
        also = ",".join([*model.targets, target])
        raise TargetMismatchError(
            tr(
                "{model} was converted for {targets}, not {target}",
                model=model.name,
                targets=", ".join(model.targets),
                target=target,
            ),
            command=f"lite convert {quote(str(model.path or 'MODEL'))} --targets {also}",
        )


def _fill(
    model: Model,
    folder: Path,
    target: str,
    trimmed: bool,
    more_code: _MoreCode,
) -> Exported:
    cut = trim([model], target) if trimmed else None
    kernels = cut.kernels if cut else []
    if target == web.TARGET:
        made = web.fill_web(model, folder, cut.module if cut else None)
        check_programs([read_model(made)], target)
        write_templates(folder, {web.README: "README.md"}, {"@NAME@": model.name})
        return Exported(folder, target, sizes_of(folder), kernels)
    arch = ARCHITECTURES[target]
    runner, library = (cut.runner, cut.library) if cut else (runner_path(arch), library_path(arch))
    made = _write_model(model, folder, target, more_code)
    copy(runner, folder / "bin" / "lite_run", executable=True)
    both = runner.with_name(_WITH_OPENCL)
    if _takes_opencl(model, both, more_code):
        copy(both, folder / "bin" / both.name, executable=True)
    for path in more_code.libraries:
        if not path.is_file():
            raise UsageError(tr("{path} does not exist", path=path))
        copy(path, folder / "lib" / path.name)
    devices = opencl_devices(made)
    runs_opencl = bool(devices) and both.is_file()
    opencl = (TEMPLATES / ("opencl.md" if runs_opencl else "no_opencl.md")).read_text("utf-8")
    copy(library, folder / "lib" / "liblite_runtime.so")
    copy(header_path(), folder / "include" / "lite_runtime.h")
    marks = {"@OPENCL@": opencl, "@MODEL@": made.name, "@NAME@": model.name,
             "@TARGET@": target, "@ARCH@": arch, "@INPUT@": quote(model.graph.inputs[0].name),
             "@DEVICES@": "; ".join(devices), "@PRECISION@": model.display_precision("opencl"),
             "@LIBRARIES@": _WITH_LIBRARIES.format(model=made.name, options=more_code.options())
             if more_code else ""}  # fmt: skip
    write_templates(folder, _FILES, marks)
    return Exported(
        folder, target, sizes_of(folder), kernels, devices,
        model.display_precision("opencl") if devices else "",
    )  # fmt: skip


#: There is none where lite_run itself is not static.
_WITH_OPENCL = "lite_run_opencl"


def _takes_opencl(model: Model, runner: Path, more_code: _MoreCode | None = None) -> bool:
    return bool("opencl" in model.targets or more_code) and runner.is_file()


def bytes_beside(model: Model, target: str) -> int:
    """What `export_model` puts beside the model's file for a CPU target; templates as they are.
    Raises BackendUnavailableError when its runner was not built."""
    arch = ARCHITECTURES[target]
    runner = runner_path(arch)
    both = runner.with_name(_WITH_OPENCL)
    files = [runner, library_path(arch), header_path(), *(TEMPLATES / name for name in _FILES)]
    files += [both] if _takes_opencl(model, both) else []
    return sum(path.stat().st_size for path in files)


def write_templates(folder: Path, files: Mapping[str, str], marks: Mapping[str, str]) -> None:
    """Templates in their places, with the marks' values; "@SIZES@" lists what is there by then."""
    for template, place in files.items():
        text = (TEMPLATES / template).read_text(encoding="utf-8")
        for mark, value in marks.items():
            text = text.replace(mark, value)
        if "@SIZES@" in text:
            text = text.replace("@SIZES@", _listed(folder))
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, text)


def keep_changed(folder: Path, part: Path) -> None:
    """Copies what a person wrote in `folder`, where the export in `part` brings another text, to
    `part` under a name of its own. Every export has another README: it is a person's where the
    folder has no export yet."""
    ours = any((folder / name).exists() for name in ("include/lite_runtime.h", "lite.js"))
    for place in _EDITED:
        old, new = folder / place, part / place
        if not old.is_file() or not new.is_file() or (ours and place == "README.md"):
            continue
        text = old.read_bytes()
        if text != new.read_bytes():
            names = (f"{place}{OLD}{n or ''}" for n in count())
            (part / next(n for n in names if not (folder / n).exists())).write_bytes(text)


def _listed(folder: Path) -> str:
    """Rows of a Markdown table."""
    return "\n".join(
        f"| `{file}` | {size / 1e3:.1f} kB | {what_is(file)} |"
        for file, size in sizes_of(folder).items()
        if file not in ("README.md", "report.html")
    )


def _write_model(model: Model, folder: Path, target: str, more_code: _MoreCode) -> Path:
    """The model's file in the folder, checked to hold a program for the target."""
    if not model.targets:
        model = model.but(targets=[target])
    made = model.save(
        folder / f"{model.name}.lite",
        backends=more_code.plugins,
        ship_kernels=more_code.ship_kernels,
    )
    check_programs([read_model(made)], target)
    return made


def check_programs(written: Iterable[Model], target: str) -> None:
    """Raises TargetMismatchError for a model whose file has no program for the target."""
    page = target == web.TARGET
    for model in written:
        note = model.notes.get(web.MODULE if page else target)
        if note and page:
            raise TargetMismatchError(
                tr("{model} cannot run in a page: {note}", model=model.name, note=note)
            )
        if note:
            raise TargetMismatchError(
                tr("{model} cannot run on a device alone: {note}", model=model.name, note=note),
                fix=tr("run the .lite file there with Python, from a wheel"),
            )


def copy(source: Path, target: Path, *, executable: bool = False) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755 if executable else 0o644)
