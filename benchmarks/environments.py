"""Where the peers are installed: LITE_BENCH_PEERS names a folder with two environments.

    python -m benchmarks.environments          # makes them (make bench does)
    python -m benchmarks.environments export   # makes a third one, which `--set wide` needs

`run` holds the engines (the `bench` extra of this project), `convert` the converters of LiteRT and
ncnn, whose packages conflict with the engines'. A package that cannot be installed is said and left
out: its rows stay empty. `export` holds PyTorch and the libraries of the wide set.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import venv
from pathlib import Path

# pnnx: its program is enough, torch (which it asks for) is not needed.
CONVERT = ("tensorflow-cpu==2.19.*", "onnx2tf==1.29.24", "onnx", "onnxruntime", "--no-deps pnnx")
EXPORT = ("numpy", "onnx", "onnxscript", "torch", "torchvision", "timm", "transformers")
#: PyTorch for processors alone, of PyTorch's own index: the usual build brings gigabytes of CUDA.
FOR_PROCESSORS = "torch==2.13.0+cpu torchvision==0.28.0"
#: Engines whose model is made in the environment of converters.
CONVERTED_APART = ("ncnn", "litert")


def folder() -> Path:
    return Path(os.environ.get("LITE_BENCH_PEERS") or Path("build") / "peers").absolute()


def python_of(engine: str, *, converting: bool = False) -> str:
    """The interpreter that runs an engine; ours runs in this one, as do all without a folder."""
    if engine == "lite":
        return sys.executable
    name = "convert" if converting and engine in CONVERTED_APART else "run"
    path = folder() / name / "bin" / "python"
    return str(path) if path.exists() else sys.executable


def exporter() -> str:
    """The interpreter that exports the wide set. Raises RuntimeError that tells how to get one."""
    path = folder() / "export" / "bin" / "python"
    python = str(path) if path.exists() else sys.executable
    code = f"import importlib.util as u; print(all(map(u.find_spec, {EXPORT})))"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    if found.stdout.strip() != "True":
        wanted = ", ".join(EXPORT)
        raise RuntimeError(
            f"the wide set needs {wanted}: run `python -m benchmarks.environments export`"
        )
    return python


def versions(engines: list[str]) -> dict[str, str]:
    """Versions of the peers' packages; an engine that is not installed is left out."""
    packages = {"mnn": "MNN", "litert": "ai-edge-litert"}
    found: dict[str, str] = {}
    for engine in engines:
        if engine == "lite":
            continue
        name = packages.get(engine, engine)
        done = subprocess.run(
            [python_of(engine), "-c",
             f"import importlib.metadata as m; print(m.version({name!r}))"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            found[engine] = done.stdout.strip()
    return found


def extra() -> tuple[str, ...]:
    """The `bench` extra of this project, and what quantising (`benchmarks.models`) needs."""
    wanted = (r.partition(";") for r in importlib.metadata.requires("lite-workbench") or ())
    peers = tuple(name.strip() for name, _, when in wanted if "bench" in when)
    return (*peers, "onnx", "sympy", "ai-edge-quantizer")


def install(export: bool = False) -> int:
    """Makes the environments of the peers, or that of the exporters, once; number of packages that
    are missing afterwards."""
    done = folder() / ("complete-export" if export else "complete")
    if done.exists():
        return 0
    missing = 0
    peers = (("run", extra()), ("convert", CONVERT))
    for name, packages in (("export", EXPORT),) if export else peers:
        python = folder() / name / "bin" / "python"
        if not python.exists():
            venv.create(folder() / name, with_pip=True)
        if export and not _installed(python, FOR_PROCESSORS):
            print(
                f"pip does not find {FOR_PROCESSORS}: the usual build is installed, on Linux with "
                "CUDA (several GB); PIP_EXTRA_INDEX_URL can name PyTorch's index of such builds",
                file=sys.stderr,
            )
        for package in packages:
            if not _installed(python, package):
                missing += 1
                last = package.split()[-1]
                print(f"{last} cannot be installed into {folder() / name}", file=sys.stderr)
    if not missing:
        done.touch()
    return missing


def _installed(python: Path, package: str) -> bool:
    """Whether pip installs it: options and requirements, all of them or none."""
    return not subprocess.run(
        [str(python), "-m", "pip", "install", "--quiet", *package.split()],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
    ).returncode  # fmt: skip


if __name__ == "__main__":
    install(sys.argv[1:] == ["export"])
