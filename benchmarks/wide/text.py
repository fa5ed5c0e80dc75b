"""Text encoders and decoders of transformers, from configurations: four blocks of published
width."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers as library

from benchmarks.wide.settle import settle

BLOCKS = 4
TOKENS = 128
#: Keys and values that a decoder's step finds.
PAST = 128


class Hidden(torch.nn.Module):
    """A model called with positional tensors that gives its hidden states."""

    def __init__(self, model: torch.nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *values: torch.Tensor) -> torch.Tensor:
        given = dict(zip(self.names, values, strict=True))
        return self.model(**given, return_dict=True).last_hidden_state


class Step(torch.nn.Module):
    """One token of a decoder: its keys and values of earlier tokens are inputs, the new ones
    outputs."""

    def __init__(self, model: torch.nn.Module, blocks: int) -> None:
        super().__init__()
        self.model, self.blocks = model, blocks

    def forward(self, input_ids: torch.Tensor, *past: torch.Tensor) -> tuple[torch.Tensor, ...]:
        cache = library.DynamicCache()
        for block in range(self.blocks):
            cache.update(past[2 * block], past[2 * block + 1], block)
        found = self.model(
            input_ids=input_ids, past_key_values=cache, use_cache=True, return_dict=True
        )
        layers = found.past_key_values.layers
        return found.last_hidden_state, *(t for x in layers for t in (x.keys, x.values))


Built = tuple[torch.nn.Module, dict[str, torch.Tensor]]


def ids(vocabulary: int, length: int = TOKENS) -> torch.Tensor:
    return torch.randint(0, vocabulary, (1, length))


def encoder(model: torch.nn.Module, **inputs: torch.Tensor) -> Built:
    settle(model)
    return Hidden(model, tuple(inputs)), inputs


def step(model: torch.nn.Module, heads: int, size: int, vocabulary: int) -> Built:
    settle(model)
    names = [f"past_{kind}_{i}" for i in range(BLOCKS) for kind in ("key", "value")]
    past = {name: torch.randn(1, heads, PAST, size) for name in names}
    return Step(model, BLOCKS), {"input_ids": ids(vocabulary, 1), **past}


def bert() -> Built:
    config = library.BertConfig(num_hidden_layers=BLOCKS)
    mask = torch.ones(1, TOKENS, dtype=torch.int64)
    return encoder(library.BertModel(config), input_ids=ids(1000), attention_mask=mask)


def distilbert() -> Built:
    config = library.DistilBertConfig(n_layers=BLOCKS)
    mask = torch.ones(1, TOKENS, dtype=torch.int64)
    return encoder(library.DistilBertModel(config), input_ids=ids(1000), attention_mask=mask)


def albert() -> Built:
    config = library.AlbertConfig(
        hidden_size=768, intermediate_size=3072, num_attention_heads=12, num_hidden_layers=BLOCKS
    )
    return encoder(library.AlbertModel(config), input_ids=ids(1000))


def _gpt2() -> torch.nn.Module:
    return library.GPT2Model(library.GPT2Config(n_layer=BLOCKS, vocab_size=4000))


def gpt2() -> Built:
    """A prompt: causal."""
    model = _gpt2()
    model.config.use_cache = False
    return encoder(model, input_ids=ids(1000))


def gpt2_step() -> Built:
    return step(_gpt2(), 12, 64, 1000)


def _llama() -> torch.nn.Module:
    """Grouped heads: eight of queries, two of keys."""
    config = library.LlamaConfig(
        hidden_size=512, intermediate_size=1408, num_hidden_layers=BLOCKS, num_attention_heads=8,
        num_key_value_heads=2, vocab_size=4000,
    )  # fmt: skip
    return library.LlamaModel(config)


def llama() -> Built:
    model = _llama()
    model.config.use_cache = False
    return encoder(model, input_ids=ids(1000))


def llama_step() -> Built:
    return step(_llama(), 2, 64, 1000)


def _t5() -> Any:
    return library.T5Config(num_layers=BLOCKS, use_cache=False, is_encoder_decoder=False)


def t5_encoder() -> Built:
    """Relative bias."""
    return encoder(library.T5EncoderModel(_t5()), input_ids=ids(1000))


def t5_decoder() -> Built:
    """Causal attention, and cross-attention to an encoder's states."""
    config = _t5()
    config.is_decoder = True
    model = library.models.t5.modeling_t5.T5Stack(config)
    model.set_input_embeddings(torch.nn.Embedding(config.vocab_size, config.d_model))
    states = torch.randn(1, TOKENS, config.d_model)
    return encoder(model, input_ids=ids(1000, 32), encoder_hidden_states=states)


BUILDERS: dict[str, Callable[[], Built]] = {
    f.__name__: f
    for f in (albert, bert, distilbert, gpt2, gpt2_step, llama, llama_step, t5_decoder, t5_encoder)
}


def build(name: str) -> Built:
    """The network and its inputs by name."""
    return BUILDERS[name]()
