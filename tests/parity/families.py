"""The parity matrix: a row for every family and variant that is read, with sizes unlike every default.

A new family is one row here; `SKIPPED` is the only place where a check is left out, with its reason.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel

from model.inputs import Inputs
from model.loading import LoadedModel, load_model

# Ids below are special in some family; the last one of 97 is Marian's padding.
FIRST_ID, LAST_ID = 5, 95
# Lengths of the target and, beside a decoder, of the source.
ALONE = ((1, 0), (2, 0), (17, 0), (60, 0))
BESIDE = ((1, 1), (13, 50), (8, 60), (60, 8))


@dataclass(frozen=True)
class Row:
    """One variant: its class in `transformers`, its configuration, and how large its weights are drawn.

    Matrices are drawn with `spread`, those of q and k `peak` times as large: so that attention is peaked, and
    fp32 still good for 1e-5.
    """

    name: str
    kind: str
    config: Mapping[str, Any]
    lengths: tuple[tuple[int, int], ...] = ALONE
    spread: float = 0.2
    peak: float = 1.25

    @cached_property
    def model(self) -> type[PreTrainedModel]:
        """The class in `transformers`."""
        return getattr(transformers, self.kind)

    @property
    def family(self) -> str:
        """What its configuration calls it."""
        return self.model.config_class.model_type

    def reference(self) -> PreTrainedModel:
        """The eager model, its weights drawn so that attention is peaked."""
        config = self.model.config_class(**self.config)
        config._attn_implementation = "eager"
        model = self.model(config)
        random = torch.Generator().manual_seed(0)
        for name, parameter in model.named_parameters():
            parameter.data = self._drawn(name, parameter.data, random)
        # What would end or steer a text of random ids.
        model.generation_config = GenerationConfig(
            pad_token_id=0, decoder_start_token_id=config.to_dict().get("decoder_start_token_id")
        )
        return model.eval()

    def build(self, folder: Path) -> "Both":
        """The model as `transformers` has it, and ours read from the folder it saves."""
        reference = self.reference()
        reference.save_pretrained(folder)
        return Both(self, reference, load_model(folder), folder)

    def _drawn(self, name: str, values: Tensor, random: torch.Generator) -> Tensor:
        if "embed_positions" in name and self.family == "marian":
            return values  # sinusoids, which are no weights
        if values.ndim > 1:
            scores = re.search(r"(query|key|[qk]_proj|[qk]_lin|c_attn|\b[qk])\.weight$|query_key_value", name)
            return torch.randn(values.shape, generator=random) * self.spread * (self.peak if scores else 1)
        gain = name.endswith("weight") and not self.family.startswith("gemma")
        return torch.randn(values.shape, generator=random) * 0.3 + float(gain) * (
            self.peak if re.search("[qk]_norm", name) else 1
        )


@dataclass(frozen=True)
class Both:
    """A model of `transformers`, and ours read from the folder it was saved to."""

    row: Row
    reference: PreTrainedModel
    ours: LoadedModel
    folder: Path


_BERT = {"vocab_size": 97, "hidden_size": 60, "num_hidden_layers": 3, "num_attention_heads": 5} | {
    "intermediate_size": 70,
    "max_position_embeddings": 66,
    "layer_norm_eps": 1e-3,
}
_GPT2 = {"vocab_size": 97, "n_embd": 60, "n_layer": 3, "n_head": 5, "n_positions": 66} | {
    "layer_norm_epsilon": 1e-3,
    "bos_token_id": 1,
    "eos_token_id": 1,
}
_NEOX = (
    {"vocab_size": 97, "hidden_size": 80, "num_hidden_layers": 3, "num_attention_heads": 5}
    | {"intermediate_size": 70, "max_position_embeddings": 66, "layer_norm_eps": 1e-3}
    | {"bos_token_id": 1, "eos_token_id": 1}
)
_LLAMA = (
    {"vocab_size": 97, "hidden_size": 60, "num_hidden_layers": 4, "num_attention_heads": 6}
    | {"num_key_value_heads": 2, "intermediate_size": 70, "max_position_embeddings": 66}
    | {"rms_norm_eps": 1e-3, "rope_parameters": {"rope_type": "default", "rope_theta": 777.0}}
)
_SCALED = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 4.0} | {
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 30,
}
_BLOOM = {"vocab_size": 97, "hidden_size": 60, "n_layer": 3, "n_head": 5, "layer_norm_epsilon": 1e-3}
_BART = (
    {"vocab_size": 97, "d_model": 60, "encoder_layers": 3, "decoder_layers": 2}
    | {"encoder_attention_heads": 5, "decoder_attention_heads": 6}
    | {"encoder_ffn_dim": 70, "decoder_ffn_dim": 50, "max_position_embeddings": 66}
    | {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 3}
    | {"forced_eos_token_id": None}
)
_MARIAN = _BART | {"pad_token_id": 96, "decoder_start_token_id": 96, "decoder_vocab_size": 97}
_T5 = (
    {"vocab_size": 97, "d_model": 60, "d_kv": 14, "d_ff": 70, "num_layers": 3, "num_decoder_layers": 2}
    | {"num_heads": 5, "relative_attention_num_buckets": 12, "relative_attention_max_distance": 30}
    | {"layer_norm_epsilon": 1e-3, "decoder_start_token_id": 0}
)
_WHISPER = (
    {name: size for name, size in _BART.items() if name != "max_position_embeddings"}
    | {"num_mel_bins": 16, "max_source_positions": 40, "max_target_positions": 66}
    | {"begin_suppress_tokens": None, "suppress_tokens": None}
)

ROWS = [
    Row(
        "BERT",
        "BertForMaskedLM",
        _BERT | {"hidden_act": "gelu_new", "type_vocab_size": 3},
        spread=0.15,
        peak=2.5,
    ),
    Row("BERT without head", "BertModel", _BERT | {"hidden_act": "relu"}, spread=0.15, peak=2.5),
    Row(
        "RoBERTa",
        "RobertaForMaskedLM",
        _BERT | {"type_vocab_size": 1, "pad_token_id": 4},
        spread=0.15,
        peak=2.5,
    ),
    Row(
        "XLM-R",
        "XLMRobertaForMaskedLM",
        _BERT | {"type_vocab_size": 1, "pad_token_id": 2},
        spread=0.14,
        peak=2.4,
    ),
    Row(
        "DistilBERT",
        "DistilBertForMaskedLM",
        (
            {"vocab_size": 97, "dim": 60, "n_layers": 3, "n_heads": 5, "hidden_dim": 70}
            | {"max_position_embeddings": 66, "activation": "relu"}
        ),
        spread=0.14,
        peak=2.3,
    ),
    Row(
        "ALBERT",
        "AlbertForMaskedLM",
        _BERT | {"embedding_size": 20, "type_vocab_size": 3},
        spread=0.22,
        peak=2.5,
    ),
    Row("GPT-2", "GPT2LMHeadModel", _GPT2 | {"n_inner": 70}, peak=1.6),
    Row(
        "GPT-2, scale by layer",
        "GPT2LMHeadModel",
        _GPT2 | {"scale_attn_by_inverse_layer_idx": True},
        peak=2.0,
    ),
    Row(
        "GPT-2, no scale",
        "GPT2LMHeadModel",
        _GPT2 | {"scale_attn_weights": False, "activation_function": "relu"},
        peak=1.0,
    ),
    Row(
        "GPT-NeoX, parallel",
        "GPTNeoXForCausalLM",
        _NEOX | {"rope_parameters": {"rope_theta": 333.0, "partial_rotary_factor": 0.5}},
    ),
    Row(
        "GPT-NeoX, in sequence, tied",
        "GPTNeoXForCausalLM",
        _NEOX | {"use_parallel_residual": False, "attention_bias": False, "tie_word_embeddings": True},
    ),
    Row("LLaMA", "LlamaForCausalLM", _LLAMA | {"head_dim": 14, "mlp_bias": True, "hidden_act": "gelu"}),
    Row("LLaMA 3", "LlamaForCausalLM", _LLAMA | {"head_dim": 14, "rope_parameters": _SCALED}),
    Row(
        "Mistral",
        "MistralForCausalLM",
        _LLAMA | {"sliding_window": 7, "max_position_embeddings": 330},
        (*ALONE, (300, 0)),
        spread=0.2,
        peak=1.1,
    ),
    Row(
        "Mistral, no window",
        "MistralForCausalLM",
        _LLAMA | {"sliding_window": None, "head_dim": 12},
        spread=0.2,
        peak=1.1,
    ),
    Row(
        "Qwen2, window in later layers",
        "Qwen2ForCausalLM",
        _LLAMA | {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 2},
    ),
    Row("Qwen2, tied", "Qwen2ForCausalLM", _LLAMA | {"tie_word_embeddings": True}),
    Row("Qwen3", "Qwen3ForCausalLM", _LLAMA | {"head_dim": 14}, peak=2.0),
    Row(
        "Qwen3, biased, window in later layers",
        "Qwen3ForCausalLM",
        (
            _LLAMA
            | {"head_dim": 14, "attention_bias": True}
            | {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}
        ),
        spread=0.2,
        peak=1.8,
    ),
    Row("Gemma", "GemmaForCausalLM", _LLAMA | {"head_dim": 14}),
    Row(
        "Gemma 2",
        "Gemma2ForCausalLM",
        (
            _LLAMA
            | {"head_dim": 14, "sliding_window": 8, "query_pre_attn_scalar": 30}
            | {"attn_logit_softcapping": 12.0, "final_logit_softcapping": 6.0}
            | {"max_position_embeddings": 330}
        ),
        (*ALONE, (300, 0)),
        peak=1.5,
    ),
    Row("BLOOM, 5 heads", "BloomForCausalLM", _BLOOM, (*ALONE, (300, 0))),
    Row("BLOOM, 4 heads", "BloomForCausalLM", _BLOOM | {"n_head": 4}),
    Row(
        "BART",
        "BartForConditionalGeneration",
        _BART | {"scale_embedding": True, "activation_function": "relu"},
        BESIDE,
        spread=0.12,
        peak=2.5,
    ),
    Row(
        "Marian",
        "MarianMTModel",
        _MARIAN | {"scale_embedding": True, "activation_function": "swish"},
        BESIDE,
        spread=0.1,
        peak=3.0,
    ),
    Row("T5", "T5ForConditionalGeneration", _T5, BESIDE, spread=0.13, peak=1.0),
    Row(
        "T5, gated, untied",
        "T5ForConditionalGeneration",
        (
            _T5
            | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "num_layers": 2}
            | {"relative_attention_num_buckets": 32, "relative_attention_max_distance": 128}
        ),
        (*BESIDE, (200, 300)),
        spread=0.125,
        peak=1.0,
    ),
    Row(
        "T5, gated, tied",
        "T5ForConditionalGeneration",
        _T5 | {"feed_forward_proj": "gated-silu"},
        lengths=BESIDE,
        spread=0.12,
        peak=1.0,
    ),
    Row("Whisper", "WhisperForConditionalGeneration", _WHISPER, ((1, 40), (13, 40), (60, 40)), peak=1.7),
]

_NOT_CAUSAL = "an encoder sees what comes later: it does not write token by token"
SKIPPED: dict[tuple[str, str], str] = {
    (row.name, "generation"): _NOT_CAUSAL
    for row in ROWS
    if row.family in {"bert", "roberta", "xlm-roberta", "distilbert", "albert"}
}


@contextmanager
def one_thread() -> Iterator[None]:
    """Tiny matrices gain nothing from more threads, and lose much where others want the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def ids(count: int, seed: int = 0) -> list[int]:
    """Random ids, none of them special."""
    random = torch.Generator().manual_seed(seed)
    return torch.randint(FIRST_ID, LAST_ID + 1, (count,), generator=random).tolist()


def inputs(row: Row, tokens: int, source_tokens: int) -> Inputs:
    """What ours runs on."""
    target = Inputs.of(ids(tokens))
    if row.family == "whisper":
        random = torch.Generator().manual_seed(2)
        return Inputs(
            target.ids, mel=torch.randn(1, row.config["num_mel_bins"], 2 * source_tokens, generator=random)
        )
    return target if not source_tokens else Inputs(target.ids, source=Inputs.of(ids(source_tokens, 1)))


def arguments(given: Inputs) -> dict[str, Tensor]:
    """The same for `transformers`."""
    if given.mel is not None:
        return {"input_features": given.mel, "decoder_input_ids": given.ids}
    if given.source is not None:
        return {"input_ids": given.source.ids, "decoder_input_ids": given.ids}
    return {"input_ids": given.ids}
