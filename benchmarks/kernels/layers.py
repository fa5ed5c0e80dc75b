"""Times every convolution of a zoo network alone, through the kernel interface.

    python benchmarks/kernels/layers.py mobilenet_v1 [--threads 2] [--isa avx2] [--cold 2] [--check]
    python benchmarks/kernels/layers.py --lines layers.txt     # lines as layers.cc describes them

The layers and their kernels come from the network's plan; options go to the program (layers.cc),
which is linked with the objects of `make native`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
BUILD = ROOT / "build" / "native"


def program() -> Path:
    """Compiles layers.cc against the native build. Raises CalledProcessError."""
    subprocess.run(["make", "-s", "native"], cwd=ROOT, check=True)
    native, out = ROOT / "engine" / "native", BUILD / "layers"
    # Objects of sources that are gone may still lie there.
    objects = [
        str(p)
        for folder in (BUILD / "CMakeFiles").glob("lite_*.dir")
        if not folder.name.startswith(("lite_run", "lite_count"))
        for p in folder.rglob("*.o")
        if (native / p.relative_to(folder).with_suffix("")).is_file()
    ]
    subprocess.run(
        [
            "g++",
            "-std=gnu++17",
            "-O2",
            f"-I{native / 'include'}",
            f"-I{native / 'src'}",
            str(Path(__file__).with_name("layers.cc")),
            *objects,
            "-lpthread",
            "-o",
            str(out),
        ],
        check=True,
    )
    return out


def lines_of(network: str) -> list[str]:
    """One line per convolution of the network's plan: kernel, shapes, attributes."""
    import tempfile

    import onnx
    from lite_engine import load, optimize
    from lite_engine.plan import make_plan

    from benchmarks import zoo

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{network}.onnx"
        onnx.save(zoo.build(network), path)
        model = optimize(load(path), targets=["x86"])
    plan = make_plan(model.graph, "cpu")
    lines = []
    for step in plan.steps:
        if step.op != "Conv":
            continue
        x, w, y = (plan.tensors[i] for i in (step.inputs[0], step.inputs[1], step.outputs[0]))
        pads, strides = step.attrs.get("pads") or [0] * 4, step.attrs.get("strides") or [1, 1]
        dilations, activation = step.attrs.get("dilations") or [1], step.attrs.get("activation")
        residual = len(step.inputs) > 3 and step.inputs[3] >= 0
        lines.append(
            " ".join(
                map(
                    str,
                    (
                        step.kernel,
                        *x.dims[1:4],
                        y.dims[3],
                        *w.dims[2:4],
                        strides[0],
                        pads[0],
                        dilations[0],
                        step.attrs.get("group", 1),
                        activation or "-",
                        int(residual),
                    ),
                )
            )
        )
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", nargs="?")
    parser.add_argument("--lines", type=Path)
    options, rest = parser.parse_known_args()
    if (options.network is None) == (options.lines is None):
        parser.error("give a network of the zoo or --lines FILE")
    text = options.lines.read_text() if options.lines else "\n".join(lines_of(options.network))
    return subprocess.run([str(program()), *rest], input=text + "\n", text=True).returncode


if __name__ == "__main__":
    sys.exit(main())
