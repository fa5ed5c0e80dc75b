"""Any model type of transformers (`transformers.TYPE`, as in `transformers.roberta`), from its
default configuration, with at most four blocks, and few words, whose embeddings would only fill the
file."""

from __future__ import annotations

import torch
import transformers as library

from benchmarks.wide.settle import settle
from benchmarks.wide.text import BLOCKS, TOKENS, Built, ids

_PREFIX = "transformers."
#: Names that configurations give the number of blocks.
_DEPTHS = ("num_hidden_layers", "num_layers", "encoder_layers", "decoder_layers",
           "num_decoder_layers", "num_encoder_layers")  # fmt: skip
#: Beyond this width a default configuration has billions of weights: these sizes instead.
_WIDEST = 1024
_SMALL = {"hidden_size": 512, "intermediate_size": 1408, "num_attention_heads": 8,
          "num_key_value_heads": 2, "head_dim": 64}  # fmt: skip
_WORDS = 4000
_SPECIAL = ("pad", "bos", "eos", "sep", "cls", "mask", "decoder_start")
_SAMPLES, _FRAMES = 16000, 3000


class States(torch.nn.Module):
    """A model called with positional tensors that gives its last hidden states, or else the first
    tensor that it returns."""

    def __init__(self, model: torch.nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *values: torch.Tensor) -> torch.Tensor:
        given = dict(zip(self.names, values, strict=True))
        found = self.model(**given, return_dict=True)
        states = found.get("last_hidden_state")
        return states if states is not None else next(iter(found.values()))


def build(name: str) -> Built:
    """The model and its inputs by name. Raises ValueError for a type that transformers lacks, or
    whose inputs are not text, an image, or sound."""
    kind = name.removeprefix(_PREFIX)
    try:
        config = library.AutoConfig.for_model(kind)
    except ValueError:
        raise ValueError(f"transformers has no model type {kind}") from None
    _shrink(config)
    model = library.AutoModel.from_config(config)
    settle(model)
    inputs = _inputs(model, config)
    return States(model, tuple(inputs)), inputs


def _shrink(config: library.PretrainedConfig) -> None:
    said = {**config.to_dict(), **{k: getattr(config, v) for k, v in config.attribute_map.items()}}
    sizes = {k: v for k, v in said.items() if isinstance(v, int)}  # others follow from these
    if sizes.get("hidden_size", 0) > _WIDEST:
        sizes |= {name: size for name, size in _SMALL.items() if said.get(name)}
    sizes |= {name: min(sizes[name], BLOCKS) for name in _DEPTHS if name in sizes}
    words = sizes["vocab_size"] = min(sizes.get("vocab_size", _WORDS), _WORDS)
    sizes |= {n: 0 for w in _SPECIAL if sizes.get(n := f"{w}_token_id", 0) >= words}
    for name, size in sizes.items():
        if name in said and said[name] != size:
            setattr(config, name, size)
    if said.get("layer_types"):
        config.layer_types = said["layer_types"][: config.num_hidden_layers]
    config.use_cache = False
    for part in config.sub_configs:
        if isinstance(getattr(config, part, None), library.PretrainedConfig):
            _shrink(getattr(config, part))


def _inputs(model: torch.nn.Module, config: library.PretrainedConfig) -> dict[str, torch.Tensor]:
    main = model.main_input_name
    decoder = {"decoder_input_ids": ids(1000, TOKENS // 4)}
    more = decoder if getattr(config, "is_encoder_decoder", False) else {}
    if main == "input_ids":
        length = getattr(config, "max_position_embeddings", None) or TOKENS
        return {main: ids(1000, min(length, TOKENS)), **more}
    if main == "pixel_values":
        size = getattr(config, "image_size", 224)
        rows, columns = (size, size) if isinstance(size, int) else size
        return {main: torch.randn(1, getattr(config, "num_channels", 3), rows, columns)}
    if main == "input_values":
        return {main: torch.randn(1, _SAMPLES), **more}
    if main == "input_features":
        bands = getattr(config, "num_mel_bins", 80)
        return {main: torch.randn(1, bands, _FRAMES), **more}
    raise ValueError(f"{type(model).__name__} reads {main}: text, images and sound are built")


__all__ = ["build"]
