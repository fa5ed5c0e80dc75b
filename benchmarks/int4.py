"""Weights in 4 bits: file size, error and time against float32 and onnxruntime's MatMulNBits.

    python -m benchmarks.int4 [--nets vit_tiny,vit_small,decoder] [--groups 32,64,128] [--turns 5]
    python -m benchmarks.int4 --draws 3 [--groups 32,64]

Errors are relative to each engine's own float32 outputs, of the same standard normal input. Both
round to the nearest step, onnxruntime with its own quantizer at the same group size. Times are the
least of one thread's processor time, float32 and 4 bits in turn. vit_small is a vision transformer
of 384 columns and 12 blocks, decoder one token through the products of 4 blocks of 1024 columns.

--draws compares errors only: vit_small with weights of other seeds, symmetric, the mean error of
three inputs, and over the draws the geometric mean of our error over onnxruntime's.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from lite_engine import optimize
from lite_engine.model_file import Model
from lite_engine.ops.matmul_nbits import group_count
from lite_engine.quantize import Groups, quantize_weights_int4
from lite_engine.runtime import host_target
from onnx import helper, numpy_helper
from onnxruntime.capi._pybind_state import quantize_matmul_4bits

from benchmarks import zoo
from benchmarks.int8_gain import least_ms, program
from benchmarks.zoo import transformer
from benchmarks.zoo._net import Net


def theirs(model: onnx.ModelProto, size: int, symmetric: bool) -> onnx.ModelProto:
    """The model with every MatMul and Gemm of a constant matrix as MatMulNBits of com.microsoft."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    constants = {t.name: t for t in made.graph.initializer}
    for node in made.graph.node:
        if node.op_type not in ("MatMul", "Gemm") or node.input[1] not in constants:
            continue
        w = numpy_helper.to_array(constants[node.input[1]])
        if w.ndim != 2:
            continue
        turned = any(a.name == "transB" and a.i for a in node.attribute)
        w, bias = w.T if turned else w, list(node.input[2:])
        del node.attribute[:]
        (k, n), groups = w.shape, group_count(w.shape[0], size)
        b = np.zeros((n, groups, size // 2), np.uint8)
        scales, zeros = np.zeros(n * groups, np.float32), np.zeros(n * group_count(groups, 2), "u1")
        quantize_matmul_4bits(b, np.ascontiguousarray(w), scales, zeros, size, n, k, symmetric)
        names = [f"{node.output[0]}.{part}" for part in ("b", "scales", "zeros")]
        arrays = [b, scales] if symmetric else [b, scales, zeros]
        made.graph.initializer.extend(
            numpy_helper.from_array(a, name) for a, name in zip(arrays, names)
        )
        missing = [""] * (4 - len(arrays)) if bias else []
        node.input[1:] = [*names[: len(arrays)], *missing, *bias]
        node.op_type, node.domain = "MatMulNBits", "com.microsoft"
        node.attribute.extend(
            helper.make_attribute(key, value)
            for key, value in {"K": k, "N": n, "bits": 4, "block_size": size}.items()
        )
    if "com.microsoft" not in [o.domain for o in made.opset_import]:
        made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return made


def decoder() -> onnx.ModelProto:
    """One token through the products of 4 blocks of a decoder: 1024 columns, hidden 4096."""
    net = Net("decoder")
    x = net.input("token", (1, 1, 1024))
    for _ in range(4):
        for width in (1024, 1024, 1024, 4096, 1024):
            x = net.matmul(x, width)
    net.output(x, "y")
    return net.build()


NETS = {
    "vit_small": lambda: transformer.vit(384, heads=6, blocks=12),
    "decoder": decoder,
}


def _answer(model: onnx.ModelProto, feed: dict[str, np.ndarray]) -> np.ndarray:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, feed)[0])


def relative(got: np.ndarray, want: np.ndarray) -> float:
    return float(np.linalg.norm(got - want) / np.linalg.norm(want))


def measure(name: str, sizes: list[int], turns: int, folder: Path) -> None:
    proto = NETS[name]() if name in NETS else zoo.build(name)
    source = folder / f"{name}.onnx"
    onnx.save(proto, str(source))
    model = optimize(source, targets=[host_target()])
    big = model.save(folder / f"{name}.lite").stat().st_size
    rng = np.random.default_rng(0)
    (value,) = model.graph.inputs
    shape = tuple(int(d) for d in value.shape or ())  # type: ignore[arg-type]
    whole = value.dtype is not None and not value.dtype.is_float
    x = rng.integers(0, 1000, shape) if whole else rng.standard_normal(shape).astype(np.float32)
    feed = {value.name: x}
    plain = program(folder / f"{name}.lite", None)
    want, their_want = np.asarray(plain.run([x])[0]), _answer(proto, feed)
    for size in sizes:
        for symmetric in (True, False):
            made = quantize_weights_int4(model.graph, Groups(size, symmetric))
            path = Model(made.graph, targets=[host_target()]).save(folder / f"{name}.int4.lite")
            small = program(path, None)
            error = relative(np.asarray(small.run([x])[0]), want)
            other = relative(_answer(theirs(proto, size, symmetric), feed), their_want)
            times = least_ms([plain, small], [x], turns)
            print(
                f"{name:14} group {size:3} {'symmetric ' if symmetric else 'asymmetric'} "
                f"file {path.stat().st_size / big:.3f} of {big / 1e6:.1f} MB  "
                f"{len(made.layers)} layers  error {error:.4f}, onnxruntime {other:.4f}  "
                f"float32 {times[0]:.2f} ms, 4 bits {times[1]:.2f} ms"
            )


def _errors(seed: int, sizes: list[int], folder: Path) -> dict[int, tuple[float, float]]:
    """Group size → our and onnxruntime's mean error on three inputs, for one draw of weights."""
    proto = transformer.vit(384, heads=6, blocks=12, seed=seed)
    source = folder / "vit_small.onnx"
    onnx.save(proto, str(source))
    model = optimize(source, targets=[host_target()])
    plain = program(model.save(folder / "vit_small.lite"), None)
    (value,) = model.graph.inputs
    rng = np.random.default_rng(9)
    xs = [rng.standard_normal(value.shape).astype(np.float32) for _ in range(3)]
    wants = [(np.array(plain.run([x])[0]), _answer(proto, {value.name: x})) for x in xs]
    found = {}
    for size in sizes:
        made = quantize_weights_int4(model.graph, Groups(size, True))
        path = Model(made.graph, targets=[host_target()]).save(folder / "vit_small.int4.lite")
        small, other = program(path, None), theirs(proto, size, True)
        pairs = [
            (relative(np.asarray(small.run([x])[0]), want),
             relative(_answer(other, {value.name: x}), their_want))
            for x, (want, their_want) in zip(xs, wants, strict=True)
        ]  # fmt: skip
        ours, own = np.mean(pairs, axis=0)
        found[size] = float(ours), float(own)
    return found


def draws(count: int, sizes: list[int], folder: Path) -> None:
    """Ratios of errors for `count` draws of vit_small's weights."""
    ratios: dict[int, list[float]] = {size: [] for size in sizes}
    for seed in range(count):
        for size, (ours, other) in _errors(seed, sizes, folder).items():
            ratios[size].append(ours / other)
            print(f"draw {seed} group {size:3} error {ours:.4f}, onnxruntime {other:.4f}, "
                  f"ratio {ours / other:.3f}", flush=True)  # fmt: skip
    for size, own in ratios.items():
        mean = float(np.exp(np.mean(np.log(own))))
        print(f"group {size:3} ratio {mean:.2f} ({min(own):.2f} to {max(own):.2f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nets", default="vit_tiny,vit_small,decoder")
    parser.add_argument("--groups", default="32,64,128")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--draws", type=int, metavar="N", help="compare errors of N draws only")
    args = parser.parse_args()
    sizes = [int(s) for s in args.groups.split(",")]
    ort.set_default_logger_severity(3)  # it warns of each weight that is read no more
    with tempfile.TemporaryDirectory() as folder:
        if args.draws:
            draws(args.draws, sizes, Path(folder))
            return
        for name in args.nets.split(","):
            measure(name, sizes, args.turns, Path(folder))


if __name__ == "__main__":
    main()
