"""Saves networks with seeded random weights by the `paddlepaddle` package, with its own outputs.

    python make_paddle_zoo.py OUT pir|program [NAME …]

Runs where paddlepaddle is installed (an environment of its own: it conflicts with much). For each
network (of the list below, or of paddle.vision.models) OUT gets NAME/inference.{json|pdmodel},
inference.pdiparams and case.npz (in0…, out0…).
`pir` is Paddle 3's form; `program` is the older ProgramDesc.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

FORM = sys.argv[2] if len(sys.argv) > 2 else "pir"
os.environ["FLAGS_enable_pir_api"] = "1" if FORM == "pir" else "0"  # noqa: SIM112
os.environ["FLAGS_use_mkldnn"] = "0"  # noqa: SIM112

import numpy as np  # noqa: E402
import paddle  # noqa: E402
from paddle import nn  # noqa: E402
from paddle.nn import functional as F  # noqa: E402

models = paddle.vision.models
Network = tuple[Callable[[], nn.Layer], list[tuple[int, ...]]]


def image(size: int = 64) -> list[tuple[int, ...]]:
    return [(1, 3, size, size)]


class Sequence(nn.Layer):
    """Two layers, both directions, LSTM then GRU, as text recognisers have them."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(12, 8, num_layers=2, direction="bidirect")
        self.gru = nn.GRU(16, 6)
        self.fc = nn.Linear(6, 5)

    def forward(self, x):
        y, _ = self.lstm(x)
        y, _ = self.gru(y)
        return F.softmax(self.fc(y), axis=-1)


class Attention(nn.Layer):
    """A transformer layer over patches: layer norm, softmax, matmul, gelu, reshape, transpose."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Conv2D(3, 16, 4, 4)
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, activation="gelu")
        self.norm = nn.LayerNorm(16)

    def forward(self, x):
        y = self.patch(x).flatten(2).transpose([0, 2, 1])
        return self.norm(self.layer(y)).mean(axis=1)


class Upsampling(nn.Layer):
    """A decoder: nearest, bilinear (both alignments), bicubic, transposed convolution, shuffle."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Conv2DTranspose(4, 4, 3, 2, padding=1, output_padding=1)
        self.conv = nn.Conv2D(3, 4, 3, padding="SAME")
        self.norm = nn.GroupNorm(2, 4)
        self.instance = nn.InstanceNorm2D(4)

    def forward(self, x):
        y = self.norm(self.up(self.conv(x)))
        y = F.interpolate(y, scale_factor=2, mode="nearest")
        z = F.interpolate(y, size=[40, 24], mode="bilinear", align_corners=True)
        w = F.interpolate(y, size=[40, 24], mode="bilinear", align_corners=False)
        v = F.interpolate(y, size=[40, 24], mode="bicubic", align_corners=False)
        y = self.instance(paddle.concat([z, w, v + z], axis=1).mean(axis=1, keepdim=True) + z)
        return F.pixel_shuffle(y, 2)


class Pieces(nn.Layer):
    """Indexing, splitting, padding, reduction, comparison, selection."""

    def forward(self, x):
        a, b = paddle.split(x, [1, 2], axis=1)
        y = F.pad(b, [1, 2, 0, 1], mode="reflect") + F.pad(b, [1, 2, 0, 1], value=0.5)
        y = y[:, :, 1:-1:2, ::2]
        top, index = paddle.topk(y.flatten(2), 3, axis=-1)
        mask = paddle.where(a > 0, a, paddle.full_like(a, -0.5))
        s = paddle.stack([top.sum(-1), top.max(-1), top.min(-1)], axis=1)
        t = paddle.tile(s.unsqueeze(-1), [1, 1, 1, 2]).squeeze(0)
        i = paddle.argmax(y, axis=1).astype("float32") + index.astype("float32").sum()
        return mask, paddle.clip(t, -1.0, 2.0), i, paddle.cumsum(t, axis=1), F.one_hot(index, 1024)


class Yolo(nn.Layer):
    """A one-stage head: boxes of two scales, then suppression."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.LayerList([nn.Conv2D(3, 2 * 8, 3, s, padding=1) for s in (2, 4)])

    def forward(self, x):
        from paddle.vision import ops

        size = paddle.full([1, 2], 128, "int32")
        found = [
            ops.yolo_box(h(x) * 3, size, anchors, 3, 0.3, down, clip_bbox=True, scale_x_y=1.05)
            for h, anchors, down in zip(self.heads, ([10, 13, 16, 30], [33, 23, 30, 61]), (8, 16))
        ]
        boxes = paddle.concat([b for b, _ in found], axis=1)
        scores = paddle.concat([s for _, s in found], axis=1).transpose([0, 2, 1])
        out, count, _ = ops.matrix_nms(
            boxes, scores, 0.2, 0.1, 50, 20, background_label=-1, return_index=True
        )
        return boxes, scores, out, count


class Anchored(nn.Layer):
    """Priors of a feature map, decoded boxes, regions aligned, a deformable convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2D(3, 4, 3, 8, padding=1)
        self.loc = nn.Conv2D(4, 16, 3, padding=1)
        self.offset = nn.Conv2D(4, 18, 3, padding=1)
        self.weight = self.create_parameter([5, 4, 3, 3])

    def forward(self, x):
        from paddle.vision import ops

        y = self.conv(x)
        priors, variances = ops.prior_box(
            y, x, [8.0], [16.0], [1.0, 2.0], [0.1, 0.1, 0.2, 0.2], flip=True, clip=True
        )
        priors, variances = priors.reshape([-1, 4]), variances.reshape([-1, 4])
        deltas = self.loc(y).transpose([0, 2, 3, 1]).reshape([1, -1, 4])
        boxes = ops.box_coder(priors, variances, deltas, "decode_center_size", axis=0)
        pixels = paddle.clip(boxes[0], 0, 1)[:7] * 64
        regions = ops.roi_align(
            y, pixels, paddle.full([1], 7, "int32"), 3, 1 / 8, sampling_ratio=2, aligned=True
        )
        bent = ops.deform_conv2d(y, self.offset(y), self.weight, padding=1)
        return boxes, regions, bent


class Control(nn.Layer):
    """A loop that runs as often as the data says, and a branch that the data takes."""

    def forward(self, x):
        i = paddle.zeros([1], "int32")
        total = paddle.zeros_like(x)
        while i < 4:
            total = total + x * (i + 1).astype("float32")
            i = i + 1
        if total.sum() > 0:
            y = total * 2
        else:
            y = total - 1
        return y, i


class Activations(nn.Layer):
    """Every activation once."""

    def forward(self, x):
        names = (
            "relu", "relu6", "leaky_relu", "sigmoid", "tanh", "hardswish", "hardsigmoid", "gelu",
            "silu", "swish", "mish", "elu", "selu", "softplus", "softsign", "hardtanh", "celu",
            "hardshrink", "softshrink", "tanhshrink", "log_sigmoid", "thresholded_relu",
        )  # fmt: skip
        y = [getattr(F, name)(x) for name in names]
        y += [paddle.exp(x), paddle.sqrt(x.abs()), paddle.rsqrt(x.abs() + 1), paddle.floor(x)]
        y += [paddle.square(x), paddle.pow(x.abs(), 1.5), paddle.erf(x), F.log_softmax(x), x % 0.7]
        return paddle.concat(y, axis=1)


def vision(name: str) -> Network:
    """A network of the package's vision list, for ten classes."""
    more = {"batch_norm": True} if name.startswith("vgg") else {}
    size = {"alexnet": 224, "googlenet": 224, "inception_v3": 160}.get(name, 64)
    return (lambda: getattr(models, name)(num_classes=10, **more)), image(size)


ZOO: dict[str, Network] = {
    "lenet": (lambda: models.LeNet(), [(1, 1, 28, 28)]),
    "sequence": (Sequence, [(2, 7, 12)]),
    "attention": (Attention, image(16)),
    "upsampling": (Upsampling, [(1, 3, 5, 6)]),
    "pieces": (Pieces, [(1, 3, 12, 10)]),
    "control": (Control, [(2, 3)]),
    "yolo": (Yolo, image(32)),
    "anchored": (Anchored, image(64)),
    "activations": (Activations, [(1, 2, 3, 4)]),
}


def settle(layer: nn.Layer, rng: np.random.Generator) -> None:
    """Weights and statistics that are neither zero nor one."""
    for name, value in layer.state_dict().items():
        array = value.numpy()
        if name.endswith("_variance"):
            new = rng.uniform(0.5, 1.5, array.shape)
        elif name.endswith("_mean"):
            new = rng.normal(0, 0.1, array.shape)
        else:
            new = array + rng.normal(0, 0.02, array.shape)
        value.set_value(new.astype(array.dtype))


def save(name: str, out: Path) -> None:
    make, shapes = ZOO.get(name) or vision(name)
    paddle.seed(1)
    rng = np.random.default_rng(1)
    layer = make()
    layer.eval()
    settle(layer, rng)
    feeds = [rng.normal(size=s).astype(np.float32) for s in shapes]
    spec = paddle.static.InputSpec
    specs = [spec([None, *s[1:]], "float32", f"x{i}") for i, s in enumerate(shapes)]
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    traced = paddle.jit.to_static(layer, input_spec=specs, full_graph=True)
    paddle.jit.save(traced, str(folder / "inference"))
    with paddle.no_grad():
        results = layer(*[paddle.to_tensor(f) for f in feeds])
    results = results if isinstance(results, (tuple, list)) else [results]
    arrays = {f"in{i}": f for i, f in enumerate(feeds)}
    arrays |= {f"out{i}": r.numpy() for i, r in enumerate(results)}
    np.savez(folder / "case.npz", **arrays)


if __name__ == "__main__":
    for network in sys.argv[3:] or ZOO:
        save(network, Path(sys.argv[1]))
        print(network, flush=True)
