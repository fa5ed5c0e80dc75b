"""Speech encoders and decoders of transformers, from configurations: published widths, four
blocks."""

from __future__ import annotations

from collections.abc import Callable

import torch
import transformers as library

from benchmarks.wide.text import BLOCKS, Built, encoder, ids

SAMPLES = 16000  # one second


def wav2vec2() -> Built:
    config = library.Wav2Vec2Config(num_hidden_layers=BLOCKS)
    return encoder(library.Wav2Vec2Model(config), input_values=torch.randn(1, SAMPLES))


def wav2vec2_conformer() -> Built:
    """Convolution beside attention with relative positions."""
    config = library.Wav2Vec2ConformerConfig(
        num_hidden_layers=BLOCKS, hidden_size=512, intermediate_size=2048, num_attention_heads=8,
        position_embeddings_type="rotary",
    )  # fmt: skip
    return encoder(library.Wav2Vec2ConformerModel(config), input_values=torch.randn(1, SAMPLES))


def audio_spectrogram() -> Built:
    """A vision transformer over a spectrogram."""
    config = library.ASTConfig(num_hidden_layers=BLOCKS, max_length=256)
    return encoder(library.ASTModel(config), input_values=torch.randn(1, 256, 128))


def _whisper() -> library.WhisperConfig:
    return library.WhisperConfig(
        d_model=384, encoder_layers=BLOCKS, decoder_layers=BLOCKS, encoder_attention_heads=6,
        decoder_attention_heads=6, encoder_ffn_dim=1536, decoder_ffn_dim=1536, use_cache=False,
        vocab_size=4000, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    )  # fmt: skip


def whisper_encoder() -> Built:
    """Thirty seconds: 1500 positions."""
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    return encoder(WhisperEncoder(_whisper()), input_features=torch.randn(1, 80, 3000))


def whisper_decoder() -> Built:
    """Cross-attention to 1500 positions."""
    from transformers.models.whisper.modeling_whisper import WhisperDecoder

    states = torch.randn(1, 1500, 384)
    return encoder(
        WhisperDecoder(_whisper()), input_ids=ids(1000, 32), encoder_hidden_states=states
    )


BUILDERS: dict[str, Callable[[], Built]] = {
    f.__name__: f
    for f in (audio_spectrogram, wav2vec2, wav2vec2_conformer, whisper_decoder, whisper_encoder)
}


def build(name: str) -> Built:
    """The network and its inputs by name."""
    return BUILDERS[name]()
