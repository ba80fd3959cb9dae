"""BERT (Devlin et al. 2019): encoder-only, learned positions, post-norm, GELU. MiniLM is one."""

from collections.abc import Sequence

from model.checkpoints.attributes import LARGEST_LENGTH, Attributes
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.mapping import Ignore, Take, take
from model.checkpoints.source import Source, WithoutPrefix
from model.config import (
    Activation,
    AttentionConfig,
    EmbeddingConfig,
    FeedForwardConfig,
    HeadConfig,
    LayerNorm,
    Learned,
    StackConfig,
    TransformerConfig,
)
from model.rules import Bidirectional

ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
_DROPOUT = ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout")
_CLASSIFIER = (
    "directionality",
    "pooler_fc_size",
    "pooler_num_attention_heads",
    "pooler_num_fc_layers",
    "pooler_size_per_head",
    "pooler_type",
)


def read(attributes: Attributes, source: Source, architectures: Sequence[str]) -> Checkpoint:
    """The checkpoint of a BERT folder, with its masked-token head where it has one, else an embedding's."""
    source = WithoutPrefix(source, "bert.")
    masked = "cls.predictions.bias" in source.names
    config = _config(attributes, masked=masked)
    notices = () if masked else _notices(architectures)
    return Checkpoint("bert", config, source, _table(source, masked=masked), _IGNORED, notices)


def _config(attributes: Attributes, *, masked: bool) -> TransformerConfig:
    width, heads = attributes.integer("hidden_size", 768), attributes.integer("num_attention_heads", 12)
    norm = LayerNorm(attributes.number("layer_norm_eps", 1e-12))
    activation = attributes.choice("hidden_act", ACTIVATIONS, "gelu")
    attributes.expect(position_embedding_type="absolute", pruned_heads={}, tie_word_embeddings=True)
    attributes.expect(is_decoder=False, is_encoder_decoder=False)
    attributes.expect(add_cross_attention=False, cross_attention_hidden_size=0)
    attributes.no_effect(*_DROPOUT, *_CLASSIFIER)
    head_width = attributes.divide("hidden_size", width, "num_attention_heads", heads)
    stack = StackConfig(
        name="encoder",
        layers=attributes.integer("num_hidden_layers", 12),
        width=width,
        attention=AttentionConfig(heads, heads, head_width, head_width**-0.5, qkv_bias=True, out_bias=True),
        feed_forward=FeedForwardConfig(
            attributes.integer("intermediate_size", 3072), activation, gated=False, bias=True
        ),
        norm=norm,
        norm_placement="post",
        final_norm=False,
        position=Learned(attributes.integer("max_position_embeddings", 512, LARGEST_LENGTH)),
        mask=Bidirectional(),
    )
    vocabulary, segments = attributes.integer("vocab_size", 30522), attributes.integer("type_vocab_size", 2)
    embedding = EmbeddingConfig(vocabulary, segments, norm)
    head = HeadConfig(tied=True, bias=True, transform=(activation, norm)) if masked else None
    return TransformerConfig(embedding, stack, "masked" if masked else "embedding", head)


def _table(source: Source, *, masked: bool) -> list[Take]:
    gain, shift = ("gamma", "beta") if "embeddings.LayerNorm.gamma" in source.names else ("weight", "bias")

    def norm(name: str, target: str) -> list[Take]:
        return [take(f"{name}.{gain}", f"{target}.gain"), take(f"{name}.{shift}", f"{target}.bias")]

    def linear(name: str, target: str) -> list[Take]:
        return [take(f"{name}.{part}", f"{target}.{part}") for part in ("weight", "bias")]

    block, layer = "stack.blocks.{layer}", "encoder.layer.{layer}"
    words = ["embeddings.tokens.weight", *(["head.projection.weight"] if masked else [])]
    table = [
        take("embeddings.word_embeddings.weight", *words),
        take("embeddings.position_embeddings.weight", "embeddings.positions.weight"),
        take("embeddings.token_type_embeddings.weight", "embeddings.segments.weight"),
        *norm("embeddings.LayerNorm", "embeddings.norm"),
        *linear(f"{layer}.attention.self.query", f"{block}.attention.q"),
        *linear(f"{layer}.attention.self.key", f"{block}.attention.k"),
        *linear(f"{layer}.attention.self.value", f"{block}.attention.v"),
        *linear(f"{layer}.attention.output.dense", f"{block}.attention.o"),
        *norm(f"{layer}.attention.output.LayerNorm", f"{block}.attention_norm"),
        *linear(f"{layer}.intermediate.dense", f"{block}.ffn.up"),
        *linear(f"{layer}.output.dense", f"{block}.ffn.down"),
        *norm(f"{layer}.output.LayerNorm", f"{block}.ffn_norm"),
    ]
    if masked:
        table += [take("cls.predictions.bias", "head.projection.bias")]
        table += linear("cls.predictions.transform.dense", "head.dense")
        table += norm("cls.predictions.transform.LayerNorm", "head.norm")
    return table


_IGNORED = (
    Ignore(r"embeddings\.position_ids", "a counter 0, 1, 2 …, not a weight"),
    Ignore(r"pooler\.dense\.(weight|bias)", "feeds classifiers only; the readout is the mean of the tokens"),
    Ignore(r"cls\.seq_relationship\.(weight|bias)", "next-sentence classifier, not shown"),
    Ignore(r"cls\.predictions\.decoder\.weight", "tied", copy_of="embeddings.word_embeddings.weight"),
    Ignore(r"cls\.predictions\.decoder\.bias", "tied", copy_of="cls.predictions.bias"),
    Ignore(r"(classifier|qa_outputs)\.(weight|bias)", "a task's classifier, not shown"),
)


def _notices(architectures: Sequence[str]) -> tuple[str, ...]:
    whole = ("BertModel", "BertForMaskedLM", "BertForPreTraining")
    return tuple(
        f"The checkpoint is a {name}: its classifier is left out, the mean of the token outputs is read."
        for name in architectures
        if name not in whole
    )
