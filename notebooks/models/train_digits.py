"""Trains the digit classifier that the lessons and `make demo` use, and writes it as ONNX.

    pip install torch scikit-learn pillow onnx onnxscript
    python notebooks/models/train_digits.py

Data: the 1,797 handwritten 8x8 digits that scikit-learn carries (UCI "Optical Recognition of
Handwritten Digits", test part), enlarged to 32x32. One fifth is held back; the accuracy printed and
kept in the file's metadata is on that fifth. Seeded: the same versions give the same network.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import torch
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional as F

HERE = Path(__file__).parent
SEED, EPOCHS, BATCH, SIZE = 20, 40, 64, 32


class Block(nn.Module):
    """Depthwise 3x3, batch norm, ReLU, pointwise, batch norm, hard-swish; a residual when it
    fits."""

    def __init__(self, cin: int, cout: int, stride: int) -> None:
        super().__init__()
        self.dw = nn.Conv2d(cin, cin, 3, stride, 1, groups=cin, bias=False)
        self.dw_norm = nn.BatchNorm2d(cin)
        self.pw = nn.Conv2d(cin, cout, 1, bias=False)
        self.pw_norm = nn.BatchNorm2d(cout)
        self.skip = stride == 1 and cin == cout

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.dw_norm(self.dw(x)))
        y = F.hardswish(self.pw_norm(self.pw(y)))
        return x + y if self.skip else y


class Digits(nn.Module):
    """(N,1,32,32) in 0..1 → (N,10) probabilities."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 24, 3, 2, 1, bias=False)
        self.stem_norm = nn.BatchNorm2d(24)
        self.b1 = Block(24, 48, 1)
        self.b2 = Block(48, 48, 1)
        self.b3 = Block(48, 96, 2)
        self.b4 = Block(96, 96, 1)
        self.b5 = nn.Conv2d(96, 96, 3, 1, 1)
        self.fc = nn.Linear(96, 10)

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.stem_norm(self.stem(x)))
        y = self.b4(self.b3(self.b2(self.b1(y))))
        y = F.relu(self.b5(y)).mean((2, 3))
        return self.fc(y)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.softmax(self.logits(x), 1)


def pixels(images: np.ndarray) -> np.ndarray:
    """(N,8,8) in 0..16 → (N,32,32) uint8, as they are shipped: white on black."""
    grey = np.round(images * (255 / 16)).astype(np.uint8)
    return np.stack([np.asarray(Image.fromarray(g).resize((SIZE, SIZE), 2)) for g in grey])


def augmented(x: torch.Tensor) -> torch.Tensor:
    """Small seeded shifts, turns and scalings."""
    n = len(x)
    angle, scale = (torch.rand(n) - 0.5) * 0.4, 1 + (torch.rand(n) - 0.5) * 0.25
    shift = (torch.rand(n, 2) - 0.5) * 0.25
    cos, sin = torch.cos(angle) * scale, torch.sin(angle) * scale
    theta = torch.stack([cos, -sin, shift[:, 0], sin, cos, shift[:, 1]], 1).view(n, 2, 3)
    grid = F.affine_grid(theta, list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, align_corners=False)


def main() -> None:
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    data = load_digits()
    images, labels = pixels(data.images), data.target
    train, test, y_train, y_test = train_test_split(
        images, labels, test_size=0.2, random_state=SEED, stratify=labels
    )
    x = torch.from_numpy(train).float().unsqueeze(1) / 255
    y = torch.from_numpy(y_train)
    model = Digits()
    optimiser = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.02)
    steps = EPOCHS * (len(x) // BATCH + 1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 6e-3, total_steps=steps)
    for _ in range(EPOCHS):
        for part in torch.randperm(len(x)).split(BATCH):
            loss = F.cross_entropy(model.logits(augmented(x[part])), y[part], label_smoothing=0.05)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    model.eval()
    with torch.no_grad():
        guesses = model(torch.from_numpy(test).float().unsqueeze(1) / 255).argmax(1).numpy()
    accuracy = float((guesses == y_test).mean())
    print(f"accuracy on {len(test)} held-back digits: {accuracy:.4f}")
    write(model, test, y_test, accuracy)


def write(model: Digits, test: np.ndarray, labels: np.ndarray, accuracy: float) -> None:
    """digits.onnx with labels and preprocessing in it, one sample, and the held-back digits."""
    path = HERE / "digits.onnx"
    torch.onnx.export(
        model,
        (torch.zeros(1, 1, SIZE, SIZE),),
        str(path),
        input_names=["image"],
        output_names=["probability"],
        opset_version=18,
        dynamo=False,
        do_constant_folding=False,
    )
    exported = onnx.load(path)
    preprocess = {
        "mean": [0.0],
        "std": [255.0],
        "colour": "grey",
        "layout": "nchw",
        "size": [SIZE, SIZE],
    }
    facts = {
        "labels": json.dumps([str(d) for d in range(10)]),
        "preprocess": json.dumps(preprocess),
        "accuracy": f"{accuracy:.4f} on {len(test)} held-back digits",
    }
    onnx.helper.set_model_props(exported, facts)
    onnx.save(exported, path)
    Image.fromarray(test[int(np.flatnonzero(labels == 7)[0])]).save(HERE / "digits.png")
    np.savez_compressed(HERE / "digits_held_back.npz", images=test, labels=labels.astype(np.uint8))


if __name__ == "__main__":
    main()
