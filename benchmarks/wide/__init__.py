"""The wide set: networks that nobody tuned for, built by their own libraries with random weights.

    python -m benchmarks --set wide
    python -m benchmarks --nets wide/resnet34,wide/timm.ghostnet_100,wide/transformers.roberta

A name says which library builds it: torchvision's and timm's by their names there (`timm.` before
the latter), transformers' by a configuration in `text` and `speech`. Other networks of torchvision
and timm, and other model types of transformers (`transformers.` before them), need not be in the
set. Each is exported to ONNX once, in the environment of exporters, and kept in the folder of
models.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

#: Name → module of this package that builds it.
NETWORKS: dict[str, str] = {
    **dict.fromkeys(
        (
            # one of each torchvision classification family
            "alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_v2_s",
            "googlenet", "inception_v3", "maxvit_t", "mnasnet1_0", "mobilenet_v2",
            "mobilenet_v3_large", "regnet_x_400mf", "regnet_y_400mf", "resnet50",
            "resnext50_32x4d", "shufflenet_v2_x1_0", "squeezenet1_1", "swin_t", "swin_v2_t",
            "vgg11", "vit_b_16", "wide_resnet50_2",
            # and of each segmentation family
            "deeplabv3_mobilenet_v3_large", "deeplabv3_resnet50", "fcn_resnet50",
            "lraspp_mobilenet_v3_large",
            # hybrids, mixers and attention of timm
            "timm.convmixer_768_32", "timm.edgenext_small", "timm.efficientformer_l1",
            "timm.fastvit_t8", "timm.hrnet_w18_small", "timm.levit_128s", "timm.mixer_s32_224",
            "timm.mobilevit_s", "timm.poolformer_s12", "timm.repvit_m0_9",
            "timm.xcit_nano_12_p16_224",
        ),
        "vision",
    ),
    **dict.fromkeys(
        ("albert", "bert", "distilbert", "gpt2", "gpt2_step", "llama", "llama_step", "t5_decoder",
         "t5_encoder"),
        "text",
    ),
    **dict.fromkeys(
        ("audio_spectrogram", "wav2vec2", "wav2vec2_conformer", "whisper_decoder",
         "whisper_encoder"),
        "speech",
    ),
}  # fmt: skip
NAMES = tuple(NETWORKS)


def builder_of(name: str) -> str:
    """The module of this package that builds a network, of the set or of a library."""
    return NETWORKS.get(name, "configured" if name.startswith("transformers.") else "vision")


def key() -> str:
    """Of the files that build the networks: a changed one makes new models."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        if file.name != "__init__.py":
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]
