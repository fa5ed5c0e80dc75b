"""Makes text_finder.onnx, which says where dark text lies on bright paper, and receipt.png.

    python make_text_finder.py

Nothing is trained: what is darker than its surroundings is ink, ink is joined along the line
(a dilation and an erosion, as pooling), and a steep sigmoid makes a probability map of it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from lite_engine.exporters.onnx import write_onnx
from lite_engine.ir import DType, Graph, Value
from PIL import Image

HERE = Path(__file__).parent
SIZE = (256, 384)
#: Darker than the paper around by this, of 0 to 1; how steep the map is there.
CONTRAST, STEEP = 0.12, 40.0
#: Line → its upper left corner on the page.
LINES = {"total": (60, 60), "date": (300, 210), "item": (120, 380)}
PAPER = (236, 232, 224)


def finder() -> Graph:
    """(1,3,H,W) of 0 to 1 → (1,1,H,W) probabilities."""
    graph = Graph("text_finder")
    image = Value("image", DType.F32, (1, 3, *SIZE))
    graph.inputs = [image]

    def add(op: str, name: str, inputs: list[Value], **attrs: object) -> Value:
        return graph.add(op, inputs, attrs, name=name).output

    def pool(op: str, name: str, value: Value, height: int, width: int) -> Value:
        pads = [height // 2, width // 2] * 2
        return add(op, name, [value], kernel_shape=[height, width], pads=pads, strides=[1, 1])

    grey = add("Conv", "grey", [image, graph.constant(np.full((1, 3, 1, 1), 1 / 3, np.float32))])
    ink = add(
        "Relu", "ink", [add("Sub", "darker", [pool("AveragePool", "paper", grey, 25, 25), grey])]
    )
    joined = add("Neg", "turned", [pool("MaxPool", "join", ink, 5, 25)])
    shrunk = add("Neg", "lines", [pool("MaxPool", "shrink", joined, 3, 21)])
    above = add("Sub", "above", [shrunk, graph.constant(np.float32(CONTRAST))])
    steep = add("Mul", "steep", [above, graph.constant(np.float32(STEEP))])
    graph.outputs = [add("Sigmoid", "probability", [steep])]
    return graph


def page() -> Image.Image:
    """Three lines of text that ocr.onnx knows, on one page."""
    made = Image.new("RGB", (768, 512), PAPER)
    for name, corner in LINES.items():
        with Image.open(HERE / f"ocr_{name}.png") as line:
            made.paste(line.convert("RGB"), corner)
    return made


if __name__ == "__main__":
    write_onnx(finder(), HERE / "text_finder.onnx")
    page().save(HERE / "receipt.png", optimize=True)
