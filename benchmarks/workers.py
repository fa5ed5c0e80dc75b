"""Engines behind one protocol: a process each, commands as JSON lines on standard input.

    {"load": "m.onnx", "threads": 1}  →  {"load_s": …, "rss_mib": …, "outputs": [[…first values…]]}
    {"burst": 10}                      →  {"ms": [ … ]}

Inputs are seeded standard-normal float32, the same for every engine. Versions and settings follow
what
each project documents for latency at batch 1.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Run = Callable[[], list[np.ndarray]]


def feeds_of(path: str) -> dict[str, np.ndarray]:
    """Seeded inputs of an ONNX file by name."""
    import onnx

    model = onnx.load(path, load_external_data=False)
    initial = {t.name for t in model.graph.initializer}
    rng = np.random.default_rng(0)
    out = {}
    for value in model.graph.input:
        if value.name in initial:
            continue
        tensor = value.type.tensor_type
        shape = [d.dim_value or 1 for d in tensor.shape.dim]
        if tensor.elem_type == onnx.TensorProto.FLOAT:
            out[value.name] = rng.standard_normal(shape).astype(np.float32)
        else:
            out[value.name] = rng.integers(0, 2, shape).astype(np.int64)
    return out


def lite(path: str, threads: int, precision: str) -> Run:
    from lite_engine import Predictor, optimize
    from lite_engine.runtime import host_target

    predictor = Predictor(optimize(path), host_target(), threads=threads, precision=precision)
    feeds = feeds_of(path)
    execution = predictor.execution()
    ordered = [feeds[n] for n in predictor.input_names]
    return lambda: execution.run(ordered)


def onnxruntime(path: str, threads: int, precision: str) -> Run:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feeds = feeds_of(path)
    return lambda: session.run(None, feeds)


def openvino(path: str, threads: int, precision: str) -> Run:
    import openvino as ov

    settings = {
        "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1",
        "INFERENCE_PRECISION_HINT": {"fp32": "f32", "bf16": "bf16"}[precision],
    }  # fmt: skip
    compiled = ov.Core().compile_model(path, "CPU", settings)
    request = compiled.create_infer_request()
    values = list(feeds_of(path).values())
    for i, value in enumerate(values):
        request.set_input_tensor(i, ov.Tensor(value, shared_memory=False))

    def run() -> list[np.ndarray]:
        request.infer()
        return [request.get_output_tensor(i).data for i in range(len(compiled.outputs))]

    return run


ENGINES: dict[str, Callable[[str, int, str], Run]] = {
    "lite": lite,
    "onnxruntime": onnxruntime,
    "openvino": openvino,
}


def serve(engine: str) -> None:
    """Answers commands until standard input ends."""
    run: Run | None = None
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if "load" in command:
                start = time.perf_counter()
                run = ENGINES[engine](
                    command["load"], command["threads"], command.get("precision", "fp32")
                )
                outputs = run()
                reply: dict[str, Any] = {
                    "load_s": time.perf_counter() - start,
                    "rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                    "outputs": [np.ravel(o)[:4096].astype(float).tolist() for o in outputs],
                }
            else:
                assert run is not None
                times = []
                for _ in range(command["burst"]):
                    start = time.perf_counter()
                    run()
                    times.append((time.perf_counter() - start) * 1e3)
                reply = {"ms": times}
        except Exception as error:  # noqa: BLE001  the report shows what an engine cannot do
            reply = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
