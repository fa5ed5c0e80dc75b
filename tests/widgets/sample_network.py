"""A made-up line recogniser of about 60 layers: names, shapes and costs."""

from __future__ import annotations

from functools import cache


class _Net:
    """Collects layers of a MobileNetV3-like trunk with names, shapes and costs."""

    def __init__(self) -> None:
        self.nodes: list[dict] = []
        self.shape = [1, 3, 48, 320]
        self.last, self.block, self.source = "x", "", 0

    def add(self, short, op, kind, inputs, out, *, macs=0, weights=0, acts=1):
        name = f"{self.block}/{short}"
        sources = [f"{op}_{self.source + i}" for i in range(acts)]
        self.source += acts
        self.nodes.append(
            {
                "name": name,
                "op": op,
                "type": kind,
                "inputs": inputs,
                "macs": macs,
                "output_shapes": [out],
                "sources": sources,
                "weights": weights,
                "block": self.block,
            }
        )
        return name

    def conv(self, short, k, cout, *, dw=False, stride=(1, 1), act=True):
        _, cin, h, w = self.shape
        h, w, c = -(-h // stride[0]), -(-w // stride[1]), cin if dw else cout
        kind = "Depthwise conv" if dw else "Conv 1×1" if k == 1 else "Conv k×k"
        macs = h * w * c * (1 if dw else cin) * k * k
        self.shape = [1, c, h, w]
        self.last = self.add(
            short,
            "DepthwiseConv" if dw else "Conv",
            kind,
            [self.last],
            self.shape,
            macs=macs,
            weights=c * (1 if dw else cin) * k * k * 4,
            acts=3 if act else 2,
        )

    def squeeze_excite(self):
        _, c, h, w = self.shape
        start = self.last
        pool = self.add("se/pool", "GlobalAveragePool", "Pool", [start], [1, c, 1, 1])
        down = self.add(
            "se/fc1",
            "Conv",
            "SE fc",
            [pool],
            [1, c // 4, 1, 1],
            macs=c * c // 4,
            weights=c * c,
            acts=2,
        )
        up = self.add(
            "se/fc2", "Conv", "SE fc", [down], [1, c, 1, 1], macs=c * c // 4, weights=c * c, acts=2
        )
        self.last = self.add("mul", "Mul", "Elementwise", [start, up], [1, c, h, w])

    def unit(self, block, k, grow, cout, *, stride=(1, 1), se=True, expand=True):
        self.block, start, cin = block, self.last, self.shape[1]
        if expand:
            self.conv("expand", 1, grow)
        self.conv("dw", k, self.shape[1], dw=True, stride=stride)
        if se:
            self.squeeze_excite()
        self.conv("project", 1, cout, act=False)
        if cin == cout and stride == (1, 1):
            self.last = self.add("add", "Add", "Elementwise", [self.last, start], self.shape)


@cache
def sample_nodes() -> tuple[dict, ...]:
    net = _Net()
    net.block = "stem"
    net.conv("conv", 3, 16, stride=(2, 2))
    net.unit("b1", 3, 16, 16, expand=False)
    net.unit("b2", 3, 72, 24, stride=(2, 1), se=False)
    net.unit("b3", 3, 88, 24, se=False)
    net.unit("b4", 5, 96, 40, stride=(2, 1))
    net.unit("b5", 5, 240, 40)
    net.unit("b6", 5, 240, 40)
    net.unit("b7", 5, 120, 48, stride=(2, 1))
    net.unit("b8", 5, 144, 48)
    net.block = "neck"
    net.conv("conv", 1, 288)
    net.last = net.add("pool", "AveragePool", "Pool", [net.last], [1, 288, 1, 80])
    net.last = net.add("squeeze", "Squeeze", "Layout", [net.last], [1, 288, 80])
    net.last = net.add("transpose", "Transpose", "Layout", [net.last], [1, 80, 288])
    net.block = "head"
    net.last = net.add(
        "fc1",
        "MatMul",
        "MatMul",
        [net.last],
        [1, 80, 96],
        macs=80 * 288 * 96,
        weights=288 * 96 * 4,
        acts=3,
    )
    net.last = net.add(
        "fc2",
        "MatMul",
        "MatMul",
        [net.last],
        [1, 80, 97],
        macs=80 * 96 * 97,
        weights=96 * 97 * 4,
        acts=2,
    )
    net.add("softmax", "Softmax", "Elementwise", [net.last], [1, 80, 97])
    return tuple(net.nodes)


def elements(shape) -> int:
    out = 1
    for size in shape:
        out *= size
    return out
