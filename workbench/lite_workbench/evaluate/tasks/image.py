"""Image outputs (super-resolution, denoising): PSNR and SSIM, with scikit-image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_engine.errors import UsageError
from lite_engine.images import open_image
from lite_messages import tr

from ..statistics import Measure, average
from ._base import Outcome, Task, UnreadableLabel

if TYPE_CHECKING:
    from ...answers import Answer
    from ..dataset import Sample

#: PSNR of equal images, which is infinite.
EQUAL_DB = 100.0


class ImageOutput(Task):
    """A sample's label is the image that should come out; `data` of an outcome is (PSNR, SSIM)."""

    def options(self) -> Mapping[str, Any]:
        return {"kind": "image"}

    def truth(self, sample: Sample) -> str:
        return str(getattr(sample.label, "name", "image"))

    def outcome(self, sample: Sample, answer: Answer, picture: tuple[int, int] | None) -> Outcome:
        from skimage.metrics import peak_signal_noise_ratio, structural_similarity

        made = answer.image
        if made is None:
            raise self.refuse(answer, tr("an image"))
        wanted = _target(sample.label, made.shape)
        with np.errstate(divide="ignore"):
            psnr = min(float(peak_signal_noise_ratio(wanted, made, data_range=255)), EQUAL_DB)
        window = min(7, *(n - (n + 1) % 2 for n in made.shape[:2]))
        ssim = float(
            structural_similarity(wanted, made, data_range=255, channel_axis=2, win_size=window)
        )
        return Outcome(f"{psnr:.2f} dB", ssim, max(ssim, 0.0), None, (psnr, ssim))

    def measures(self, samples: Sequence[Sample], outcomes: Sequence[Outcome]) -> list[Measure]:
        columns = np.array([o.data for o in outcomes]).T
        return [average(n, column) for n, column in zip(("PSNR", "SSIM"), columns, strict=True)]


def _target(label: Any, shape: tuple[int, ...]) -> np.ndarray:
    """(H,W,C) uint8 of the shape that was made. Raises UnreadableLabel."""
    if isinstance(label, np.ndarray):
        target = label
    else:
        try:
            target = np.asarray(open_image(label).convert("L" if shape[2] == 1 else "RGB"))
        except UsageError as error:
            raise UnreadableLabel.of(error) from None
    target = target[..., None] if target.ndim == 2 else target
    if target.shape != shape:
        raise UnreadableLabel(
            tr(
                "expected an image of {width}x{height} like the model's output, found {w}x{h}",
                width=shape[1],
                height=shape[0],
                w=target.shape[1],
                h=target.shape[0],
            ),
            where=label if not isinstance(label, np.ndarray) else "",
        )
    return target


TASK = ImageOutput
