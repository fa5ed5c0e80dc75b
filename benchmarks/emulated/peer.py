"""Runs inside the emulated Python: one peer, one model, N inferences with one thread in float32.

python peer.py onnxruntime|ncnn|litert MODEL FEEDS.npz N

ncnn's MODEL is the folder of pnnx's m.ncnn.param and m.ncnn.bin; LiteRT's is channels last.
"""

import sys
from pathlib import Path

import numpy as np


def onnxruntime(model, feeds):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, ["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)


def ncnn(model, feeds):
    import ncnn

    net = ncnn.Net()
    net.opt.num_threads, net.opt.use_vulkan_compute = 1, False
    for name in ("fp16_packed", "fp16_storage", "fp16_arithmetic", "bf16_storage"):
        setattr(net.opt, f"use_{name}", False)
    if net.load_param(str(model / "m.ncnn.param")) or net.load_model(str(model / "m.ncnn.bin")):
        raise RuntimeError(f"ncnn does not load {model}")
    (x,), (name,), (out,) = feeds.values(), net.input_names(), net.output_names()
    mat = ncnn.Mat(x[0]).clone()

    def run():
        extractor = net.create_extractor()
        extractor.input(name, mat)
        return [np.array(extractor.extract(out)[1])]

    return run


def litert(model, feeds):
    from ai_edge_litert.interpreter import Interpreter

    net = Interpreter(model_path=str(model), num_threads=1)
    net.allocate_tensors()
    (x,) = feeds.values()
    net.set_tensor(
        net.get_input_details()[0]["index"], np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    )

    def run():
        net.invoke()
        return [net.get_tensor(net.get_output_details()[0]["index"])]

    return run


ENGINES = {f.__name__: f for f in (onnxruntime, ncnn, litert)}

if __name__ == "__main__":
    engine, path, inputs, runs = sys.argv[1:]
    with np.load(inputs) as file:
        inference = ENGINES[engine](Path(path), {name: file[name] for name in file.files})
    for _ in range(int(runs)):
        result = inference()
    print("outputs", *np.ravel(result[0])[:3])
