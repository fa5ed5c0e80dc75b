"""Trains the text-line recogniser that the lessons use, and writes it as ONNX.

    pip install torch pillow matplotlib onnx onnxscript
    python notebooks/models/train_ocr.py [--minutes 20]

A small network in the shape of PP-OCR's recognisers: a MobileNetV3 trunk that keeps the width, a
linear head, CTC. It reads receipt lines: digits, capitals and `. : -` and space. Data: text
rendered with the DejaVu and STIX fonts that matplotlib carries, blurred, tilted, shaded and given
noise; the held-back lines come from another seed. The figures printed, and kept in the file's
metadata, are on those lines. On one CPU core the network needs hours; the shipped one saw 880,000
lines in 3.5 minutes on a GPU.
"""

from __future__ import annotations

import argparse
import json
import string
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import matplotlib
import numpy as np
import onnx
import torch
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from torch import nn
from torch.nn import functional as F

HERE = Path(__file__).parent
FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
FACES = (
    "DejaVuSans",
    "DejaVuSans-Bold",
    "DejaVuSansMono",
    "DejaVuSansMono-Bold",
    "DejaVuSerif",
    "STIXGeneral",
    "STIXGeneralBol",
)
ALPHABET = string.digits + string.ascii_uppercase + ".:- "
LABELS = ["", *ALPHABET]  # 0 is the CTC blank
HEIGHT, WIDTH, STEPS = 48, 320, 80
SEED, HELD_BACK = 7, 2000
WORDS = """
    TOTAL SUBTOTAL TAX CASH CHANGE CARD DATE TIME ITEM QTY TABLE BREAD MILK COFFEE TEA WATER
    JUICE APPLE RICE SOUP SALAD CHEESE BUTTER EGGS FISH CAKE ORDER STORE RECEIPT NO REF VISA
    DISCOUNT BALANCE PAID THANK YOU OPEN TIP EUR USD
""".split()


# ---------------------------------------------------------------- text and pictures


def sentence(rng: np.random.Generator) -> str:
    """A line as receipts have them, or letters with no meaning."""
    money = f"{rng.integers(0, 10 ** int(rng.integers(1, 4)))}.{rng.integers(0, 100):02d}"
    word = WORDS[rng.integers(len(WORDS))]
    kind = rng.integers(7)
    if kind == 0:
        return f"{word} {money}"
    if kind == 1:
        return f"{word}: {money}"
    if kind == 2:
        return f"{rng.integers(1, 32):02d}-{rng.integers(1, 13):02d}-{rng.integers(2000, 2040)}"
    if kind == 3:
        return f"{word} {rng.integers(0, 24):02d}:{rng.integers(0, 60):02d}"
    if kind == 4:
        return f"{word} {WORDS[rng.integers(len(WORDS))]}"
    text = "".join(ALPHABET[i] for i in rng.integers(0, len(ALPHABET), rng.integers(3, 15)))
    return " ".join(text.split()) or word


@cache
def font(face: str, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(FONTS / f"{face}.ttf"), size)


def render(text: str, rng: np.random.Generator, clean: bool = False) -> np.ndarray:
    """(48,320) uint8: dark text on light paper, sometimes the other way round."""
    face = FACES[rng.integers(len(FACES))]
    size = int(rng.integers(22, 43))
    while font(face, size).getlength(text) > WIDTH - 4:
        size -= 1
    length = font(face, size).getlength(text)
    left = 2 + rng.random() * (WIDTH - 4 - length) * (rng.random() < 0.6)
    if rng.random() < 0.25:
        left = WIDTH - 2 - length  # flush right, as the amounts are
    image = Image.new("L", (WIDTH, HEIGHT), 0)
    top = HEIGHT / 2 + (0 if clean else rng.normal(0, 1.5))
    ImageDraw.Draw(image).text((left, top), text, 255, font(face, size), anchor="lm")
    if not clean:
        tilt = float(rng.normal(0, 0.6))
        image = image.rotate(tilt, Image.Resampling.BILINEAR)
        image = image.filter(ImageFilter.GaussianBlur(float(abs(rng.normal(0, 0.6)))))
    ink, paper = int(rng.integers(0, 90)), int(rng.integers(150, 256))
    if rng.random() < 0.1:
        ink, paper = paper, ink
    mask = np.asarray(image, np.float32) / 255
    shade = np.linspace(0, rng.normal(0, 12), WIDTH, dtype=np.float32)
    noise = rng.normal(0, abs(rng.normal(0, 7)), (HEIGHT, WIDTH)).astype(np.float32)
    return np.clip(paper + (ink - paper) * mask + shade + noise, 0, 255).astype(np.uint8)


def lines(seed: int, count: int) -> tuple[np.ndarray, list[str]]:
    """`count` pictures (N,48,320) uint8 and their texts."""
    rng = np.random.default_rng(seed)
    texts = [sentence(rng) for _ in range(count)]
    return np.stack([render(text, rng) for text in texts]), texts


def normalised(pictures: np.ndarray) -> torch.Tensor:
    """(N,48,320) uint8 → (N,3,48,320) f32 in -1..1."""
    x = torch.from_numpy(pictures).float().div_(127.5).sub_(1)
    return x[:, None].expand(-1, 3, -1, -1)


# ---------------------------------------------------------------- network


class Squeeze(nn.Module):
    """Channel attention: mean, two 1x1 convolutions, hard sigmoid."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.fc1 = nn.Conv2d(channels, channels // 4, 1)
        self.fc2 = nn.Conv2d(channels // 4, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.fc1(F.adaptive_avg_pool2d(x, 1)))
        return F.hardsigmoid(self.fc2(y))


class Block(nn.Module):
    """Expand 1x1, depthwise k x k, attention, project 1x1; a residual when it fits."""

    def __init__(self, kernel: int, cin: int, wide: int, cout: int, down: int, se: bool) -> None:
        super().__init__()
        if wide != cin:
            self.expand = nn.Conv2d(cin, wide, 1, bias=False)
            self.expand_norm = nn.BatchNorm2d(wide)
        else:
            self.expand = None
        self.dw = nn.Conv2d(wide, wide, kernel, (down, 1), kernel // 2, groups=wide, bias=False)
        self.dw_norm = nn.BatchNorm2d(wide)
        self.se = Squeeze(wide) if se else None
        self.project = nn.Conv2d(wide, cout, 1, bias=False)
        self.project_norm = nn.BatchNorm2d(cout)
        self.skip = down == 1 and cin == cout

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x
        if self.expand is not None:
            y = F.hardswish(self.expand_norm(self.expand(y)))
        y = F.hardswish(self.dw_norm(self.dw(y)))
        if self.se is not None:
            y = y * self.se(y)
        y = self.project_norm(self.project(y))
        return x + y if self.skip else y


class Recogniser(nn.Module):
    """(N,3,48,320) in -1..1 → (N,80,41) probabilities of blank and letters at 80 places."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 2, 1, bias=False)
        self.stem_norm = nn.BatchNorm2d(16)
        #               kernel in  wide out down attention
        self.b1 = Block(3, 16, 16, 16, 1, True)
        self.b2 = Block(3, 16, 72, 24, 2, False)
        self.b3 = Block(3, 24, 88, 24, 1, False)
        self.b4 = Block(5, 24, 96, 40, 2, True)
        self.b5 = Block(5, 40, 240, 40, 1, True)
        self.b6 = Block(5, 40, 240, 40, 1, True)
        self.b7 = Block(5, 40, 120, 48, 2, True)
        self.b8 = Block(5, 48, 144, 48, 1, True)
        self.neck = nn.Conv2d(48, 288, 1, bias=False)
        self.neck_norm = nn.BatchNorm2d(288)
        self.fc1 = nn.Linear(288, 96)
        self.fc2 = nn.Linear(96, len(LABELS))

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        y = F.hardswish(self.stem_norm(self.stem(x)))
        for block in (self.b1, self.b2, self.b3, self.b4, self.b5, self.b6, self.b7, self.b8):
            y = block(y)
        y = F.hardswish(self.neck_norm(self.neck(y)))
        y = F.avg_pool2d(y, (3, 2)).squeeze(2).transpose(1, 2)
        return self.fc2(F.hardswish(self.fc1(y)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.softmax(self.logits(x), 2)


# ---------------------------------------------------------------- training


def read(probability: np.ndarray) -> str:
    """(80,41) → text: best label of each step, repeats merged, blanks dropped."""
    best = probability.argmax(1)
    kept = best[(best != 0) & (best != np.concatenate([[0], best[:-1]]))]
    return "".join(LABELS[i] for i in kept)


def targets(texts: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    ids = [LABELS.index(letter) for text in texts for letter in text]
    return torch.tensor(ids), torch.tensor([len(text) for text in texts])


def train(model: Recogniser, minutes: float, device: str, workers: int, batch: int) -> None:
    """One cycle of the learning rate over the minutes given; fresh pictures all the time."""
    optimiser = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.02)
    start, seed, seen = time.monotonic(), 1000, 0
    with ProcessPoolExecutor(workers) as pool:
        waiting = [pool.submit(lines, seed + i, batch) for i in range(2 * workers)]
        seed += len(waiting)
        while (done := (time.monotonic() - start) / (60 * minutes)) < 1:
            pictures, texts = waiting.pop(0).result()
            waiting.append(pool.submit(lines, seed, batch))
            seed += 1
            rate = 4e-3 * min(1, done / 0.05) * (0.5 + 0.5 * np.cos(np.pi * done)) + 1e-6
            for group in optimiser.param_groups:
                group["lr"] = rate
            x = normalised(pictures).to(device)
            tint = 1 + 0.1 * torch.randn(len(x), 3, 1, 1, device=device)
            scores = F.log_softmax(model.logits(x * tint), 2).transpose(0, 1)
            ids, lengths = targets(texts)
            steps = torch.full_like(lengths, STEPS)
            loss = F.ctc_loss(scores.float(), ids.to(device), steps, lengths, zero_infinity=True)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimiser.step()
            seen += len(x)
            if seed % 50 == 0:
                print(f"{done:5.1%}  {seen} lines  loss {loss.item():.4f}", flush=True)
        for job in waiting:
            job.cancel()


def measure(model: Recogniser) -> tuple[float, float]:
    """Share of held-back lines and of their letters that are read right (letters by position)."""
    pictures, texts = lines(SEED, HELD_BACK)
    guesses = []
    with torch.no_grad():
        for part in np.array_split(pictures, HELD_BACK // 50):
            guesses += [read(p) for p in model(normalised(part)).numpy()]
    whole = float(np.mean([g == t for g, t in zip(guesses, texts, strict=True)]))
    right = sum(
        a == b for g, t in zip(guesses, texts, strict=True) for a, b in zip(g, t, strict=False)
    )
    return whole, right / sum(map(len, texts))


# ---------------------------------------------------------------- files


def name_nodes(exported: onnx.ModelProto) -> None:
    """Names by block and layer: "/b3/dw/Conv" → "b3/dw", "/HardSwish_1" → "neck/HardSwish"."""
    block = "stem"
    for node in exported.graph.node:
        *scopes, op = [part for part in node.name.split("/") if part]
        scopes = [scope.replace("_norm", "/norm") for scope in scopes]
        top = scopes[0].partition("/")[0] if scopes else block
        if top in ("fc1", "fc2") or (top == "neck" and node.op_type == "Transpose"):
            scopes = ["head", *scopes] if top != "neck" else scopes
            top = "head" if top != "neck" else top
        elif top in ("stem", "neck") and scopes:
            scopes = [top, scopes[0].partition("/")[2] or "conv"]
        if not scopes:
            scopes = [block]
        block = top
        own = len(scopes) > 1 or "/" in scopes[0]
        weighted = node.op_type in ("Conv", "MatMul", "Gemm", "BatchNormalization")
        node.name = "/".join(scopes if own and weighted else [*scopes, op])


def write(model: Recogniser, lines_right: float, letters_right: float) -> None:
    """ocr.onnx with labels and preprocessing in it, node names by block and layer."""
    path = HERE / "ocr.onnx"
    torch.onnx.export(
        model,
        (torch.zeros(1, 3, HEIGHT, WIDTH),),
        str(path),
        input_names=["image"],
        output_names=["probability"],
        opset_version=18,
        dynamo=False,
        do_constant_folding=False,
    )
    exported = onnx.load(path)
    name_nodes(exported)
    preprocess = {
        "mean": [127.5] * 3,
        "std": [127.5] * 3,
        "colour": "rgb",
        "layout": "nchw",
        "size": [HEIGHT, WIDTH],
    }
    facts = {
        "labels": json.dumps(LABELS),
        "preprocess": json.dumps(preprocess),
        "decode": "ctc",
        "accuracy": f"{lines_right:.4f} of lines, {letters_right:.4f} of letters, "
        f"on {HELD_BACK} held-back rendered lines",
    }
    onnx.helper.set_model_props(exported, facts)
    onnx.save(exported, path)


def samples() -> None:
    """One receipt line per picture, and held-back lines for calibration and accuracy.

    The amount of the first touches the right edge, as scanned receipts are often cut: lesson 6 is
    about a kernel that forgets its last column.
    """
    wanted = {"total": ("TOTAL 128.40", 5), "date": ("21-11-2026", -6), "item": ("COFFEE 3.20", -6)}
    for name, (text, beyond) in wanted.items():
        image = Image.new("L", (WIDTH, HEIGHT), 238)
        face = font("DejaVuSansMono", 36)
        left = WIDTH + beyond - face.getlength(text)
        ImageDraw.Draw(image).text((left, HEIGHT / 2), text, 36, face, anchor="lm")
        image.save(HERE / f"ocr_{name}.png")
    pictures, texts = lines(SEED, 64)
    np.savez_compressed(HERE / "ocr_held_back.npz", images=pictures, texts=np.array(texts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=32)
    args = parser.parse_args()
    torch.manual_seed(SEED)
    torch.set_num_threads(args.threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Recogniser().to(device)
    train(model, args.minutes, device, args.workers, args.batch)
    model = model.cpu().eval()
    accuracy = measure(model)
    print(f"{accuracy[0]:.4f} of lines, {accuracy[1]:.4f} of letters")
    write(model, *accuracy)
    samples()


if __name__ == "__main__":
    main()
