"""Whisper in `transformers`: the tensors of our model under the names that its checkpoints have."""

import torch
from torch import Tensor
from transformers import WhisperConfig, WhisperForConditionalGeneration
from transformers.modeling_outputs import Seq2SeqLMOutput

from model.checkpoints import whisper
from model.config import AudioConfig, EncoderConfig, TransformerConfig
from model.loading import LoadedModel


def whisper_peer(ours: LoadedModel) -> WhisperForConditionalGeneration:
    """The model of `transformers`; raises RuntimeError for a tensor that has no counterpart."""
    config = _config(ours.config)
    with torch.device("meta"):
        model = WhisperForConditionalGeneration(config)
    state = _state(ours)
    state["proj_out.weight"] = state["model.decoder.embed_tokens.weight"]
    model.load_state_dict(state, strict=True, assign=True)
    return model.eval()


def last_logits(
    peer: WhisperForConditionalGeneration, ids: Tensor, mel: Tensor, *, attentions: bool
) -> Seq2SeqLMOutput:
    """Its forward with the last position's logits alone, which it has no argument for."""
    run = peer.model(input_features=mel, decoder_input_ids=ids, use_cache=False, output_attentions=attentions)
    return Seq2SeqLMOutput(
        logits=peer.proj_out(run.last_hidden_state[:, -1:]),
        encoder_last_hidden_state=run.encoder_last_hidden_state,
        encoder_attentions=run.encoder_attentions,
        decoder_attentions=run.decoder_attentions,
        cross_attentions=run.cross_attentions,
    )


def audio(config: TransformerConfig) -> tuple[EncoderConfig, AudioConfig]:
    """Encoder and front of a model that hears. Raises TypeError for one that reads."""
    if config.encoder is None or not isinstance(config.encoder.front, AudioConfig):
        raise TypeError("a Whisper has an encoder that hears")
    return config.encoder, config.encoder.front


def _state(ours: LoadedModel) -> dict[str, Tensor]:
    """Our reader's table, read from right to left."""
    own, state = ours.transformer.state_dict(), {}
    for row in whisper.table(ours.config):
        for layer in range(row.layers or 1) if "{layer}" in row.source else range(1):
            one = row.at(layer)
            state[f"model.{one.source}"] = own[one.targets[0]]
    return state


def _config(ours: TransformerConfig) -> WhisperConfig:
    (encoder, front), decoder = audio(ours), ours.stack
    return WhisperConfig(
        vocab_size=ours.embedding.vocabulary,
        num_mel_bins=front.mel_bins,
        d_model=decoder.width,
        encoder_layers=encoder.stack.layers,
        decoder_layers=decoder.layers,
        encoder_attention_heads=encoder.stack.attention.heads,
        decoder_attention_heads=decoder.attention.heads,
        encoder_ffn_dim=encoder.stack.feed_forward.width,
        decoder_ffn_dim=decoder.feed_forward.width,
        max_source_positions=front.frames,
        max_target_positions=decoder.max_tokens,
        pad_token_id=ours.stop[0],
        bos_token_id=ours.stop[0],
        eos_token_id=ours.stop[0],
        decoder_start_token_id=ours.start[0],
        attn_implementation="sdpa",
    )
