"""The same weights in `transformers`, with its fused attention."""

from pathlib import Path

import torch
from transformers import AlbertModel, BertModel, LlamaConfig, LlamaForCausalLM, PreTrainedModel
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from benchmarks.peers.whisper import whisper_peer
from model.config import Rope, TransformerConfig
from model.loading import LoadedModel

_LLAMA_BLOCK = {
    "attention_norm.gain": "input_layernorm.weight",
    "ffn_norm.gain": "post_attention_layernorm.weight",
    **{f"attention.{x}.weight": f"self_attn.{x}_proj.weight" for x in "qkvo"},
    **{f"ffn.{x}.weight": f"mlp.{x}_proj.weight" for x in ("gate", "up", "down")},
}
_LLAMA = {
    "embeddings.tokens.weight": "model.embed_tokens.weight",
    "stack.final_norm.gain": "model.norm.weight",
    "head.projection.weight": "lm_head.weight",
}


def same_weights(ours: LoadedModel, path: Path) -> PreTrainedModel:
    """The model of `transformers` for one of ours; raises KeyError for a weight that has no counterpart."""
    match ours.family:
        case "bert" | "albert":
            return _encoder(ours.family, path)
        case "whisper":
            return whisper_peer(ours)
        case _:
            return _llama(ours)


def _encoder(family: str, path: Path) -> PreTrainedModel:
    """The stack alone: no head is asked for on either side."""
    kind = BertModel if family == "bert" else AlbertModel
    return kind.from_pretrained(
        path, attn_implementation="sdpa", dtype=torch.float32, add_pooling_layer=False, local_files_only=True
    ).eval()


def _llama(ours: LoadedModel) -> LlamaForCausalLM:
    config = _llama_config(ours.config)
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    state = {_llama_name(name): tensor for name, tensor in ours.transformer.state_dict().items()}
    model.load_state_dict(state, strict=True, assign=True)
    model.model.rotary_emb = LlamaRotaryEmbedding(config)
    return model.eval()


def _llama_name(ours: str) -> str:
    if ours in _LLAMA:
        return _LLAMA[ours]
    _, _, layer, rest = ours.split(".", 3)
    return f"model.layers.{layer}.{_LLAMA_BLOCK[rest]}"


def _llama_config(ours: TransformerConfig) -> LlamaConfig:
    stack, attention = ours.stack, ours.stack.attention
    if not isinstance(stack.position, Rope):
        raise TypeError(f"a LLaMA has rotary positions, not {stack.position}")
    return LlamaConfig(
        vocab_size=ours.embedding.vocabulary,
        hidden_size=stack.width,
        intermediate_size=stack.feed_forward.width,
        num_hidden_layers=stack.layers,
        num_attention_heads=attention.heads,
        num_key_value_heads=attention.kv_heads,
        head_dim=attention.head_width,
        max_position_embeddings=stack.position.max_positions,
        rms_norm_eps=stack.norm.eps,
        rope_parameters={"rope_type": "default", "rope_theta": stack.position.base},
        tie_word_embeddings=True,
        attn_implementation="sdpa",
    )
