"""A small vision transformer: patch embedding, encoder blocks, class token."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import onnx

from ._net import Net, Tensor


def _layer_norm(net: Net, x: Tensor) -> Tensor:
    """(x − μ) / √(σ² + ε) · γ + β, decomposed as torch wrote it before opset 17."""
    width = x.shape[-1]
    centred = net.op("Sub", x, net.op("ReduceMean", x, axes=[-1], keepdims=1)[0])[0]
    square = net.op("Pow", centred, net.scalar(2.0))[0]
    variance = net.op("ReduceMean", square, axes=[-1], keepdims=1)[0]
    deviation = net.op("Sqrt", net.op("Add", variance, net.scalar(1e-5))[0])[0]
    y = net.op("Div", centred, deviation)[0]
    gamma = (1 + 0.1 * net.rng.standard_normal(width)).astype(np.float32)
    beta = (0.1 * net.rng.standard_normal(width)).astype(np.float32)
    y = net.op("Mul", y, net.const(gamma, "gamma"))[0]
    return replace(x, name=net.op("Add", y, net.const(beta, "beta"))[0], moment=1.0)


def _heads(net: Net, x: Tensor, heads: int, perm: tuple[int, ...]) -> Tensor:
    """(N, T, C) → heads, with the batch size read from the tensor as exporters write it."""
    n, t, c = x.shape
    batch = net.op("Gather", net.op("Shape", x)[0], net.const(np.array(0, np.int64)), axis=0)[0]
    batch = net.op("Unsqueeze", batch, net.ints(0))[0]
    shape = net.op("Concat", batch, net.ints(t), net.ints(heads), net.ints(c // heads), axis=0)[0]
    y = net.op("Reshape", x, shape)[0]
    return net.transpose(Tensor(y, (n, t, heads, c // heads), x.moment), *perm)


def _attention(net: Net, x: Tensor, heads: int) -> Tensor:
    n, t, c = x.shape
    q = _heads(net, net.matmul(x, c), heads, (0, 2, 1, 3))
    k = _heads(net, net.matmul(x, c), heads, (0, 2, 3, 1))
    v = _heads(net, net.matmul(x, c), heads, (0, 2, 1, 3))
    scores = net.op("MatMul", q, k)[0]
    scores = net.op("Div", scores, net.scalar(math.sqrt(c // heads)))[0]
    weights = net.op("Softmax", scores, axis=-1)[0]
    mixed = Tensor(net.op("MatMul", weights, v)[0], q.shape, 0.2)
    net.macs += 2 * n * t * t * c
    return net.matmul(net.reshape(net.transpose(mixed, 0, 2, 1, 3), n, t, c), c)


def encoder_block(net: Net, x: Tensor, heads: int) -> Tensor:
    """Pre-norm attention and feed-forward, hidden layer four times as wide; x is (N, T, C)."""
    x = net.add(x, _attention(net, _layer_norm(net, x), heads))
    hidden = net.act(net.matmul(_layer_norm(net, x), 4 * x.shape[-1]), "gelu")
    return net.add(x, net.matmul(hidden, x.shape[-1]))


def vit(width: int, *, heads: int, blocks: int, seed: int = 0) -> onnx.ModelProto:
    """224x224, patches of 16, hidden layers four times as wide; `seed` draws the weights."""
    net = Net("vit_tiny" if width == 192 else f"vit_{width}", seed)
    x = net.conv(net.input("image", (1, 3, 224, 224)), width, 16, 16, 0, bias=True)
    x = net.transpose(net.reshape(x, 1, width, 196), 0, 2, 1)
    token = net.const(net.rng.standard_normal((1, 1, width)).astype(np.float32), "token")
    y = net.op("Concat", token, x, axis=1)[0]
    position = net.const((0.3 * net.rng.standard_normal((1, 197, width))).astype(np.float32), "pos")
    x = Tensor(net.op("Add", y, position)[0], (1, 197, width), 1.1)
    for _ in range(blocks):
        x = encoder_block(net, x, heads)
    x = _layer_norm(net, x)
    y = net.op("Gather", x, net.const(np.array(0, np.int64)), axis=1)[0]
    net.output(net.gemm(Tensor(y, (1, width), 1.0), 1000), "logits")
    return net.build()


def vit_tiny() -> onnx.ModelProto:
    """Width 192, 3 heads, 6 blocks."""
    return vit(192, heads=3, blocks=6)


def text_encoder() -> onnx.ModelProto:
    """BERT-like: 64 tokens of 4000, width 128, 2 heads, 2 blocks, post-norm, tanh pooler."""
    net = Net("text_encoder")
    ids = net.input("input_ids", (1, 64), onnx.TensorProto.INT64)
    table = net.const(net.rng.standard_normal((4000, 128)).astype(np.float32), "embedding")
    y = net.op("Gather", table, ids, axis=0)[0]
    position = net.const((0.3 * net.rng.standard_normal((1, 64, 128))).astype(np.float32), "pos")
    x = _layer_norm(net, Tensor(net.op("Add", y, position)[0], (1, 64, 128), 1.1))
    for _ in range(2):
        x = _layer_norm(net, net.add(x, _attention(net, x, 2)))
        hidden = net.act(net.matmul(x, 512), "gelu")
        x = _layer_norm(net, net.add(x, net.matmul(hidden, 128)))
    y = net.op("Slice", x, net.ints(0), net.ints(1), net.ints(1))[0]
    y = net.op("Squeeze", y, net.ints(1))[0]
    net.output(net.unary("Tanh", net.gemm(Tensor(y, (1, 128), 1.0), 128)), "pooled")
    return net.build()
