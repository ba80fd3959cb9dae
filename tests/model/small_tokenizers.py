"""Small tokenizers of each kind, made on the spot, as the content of a tokenizer.json."""

import json
from typing import Any

from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

SENTENCES = [
    "the animal did not cross the street because it was too tired",
    "they are 25 keys",
    "Karadžić, 💩 …",
]


def _spec(tokenizer: Tokenizer) -> dict[str, Any]:
    return json.loads(tokenizer.to_str())


def word_piece() -> dict[str, Any]:
    """BERT uncased: lower-cases, strips accents, drops controls; set to truncate and pad, to be ignored."""
    pieces = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "the",
        "animal",
        "##s",
        "did",
        "##n",
        "'",
        "t",
        "it",
    ]
    pieces += ["kara", "##d", "##zic", "…", "a", "##b", "c", "25", "ה", "##מ", "i", "j", "!"]
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    specials = [("[CLS]", 2), ("[SEP]", 3)]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=specials
    )
    tokenizer.add_special_tokens([AddedToken(piece, special=True) for piece in pieces[:5]])
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    return _spec(tokenizer)


def byte_level(vocab_size: int = 300) -> dict[str, Any]:
    """GPT-2's kind with few merges: most characters beyond ASCII are several tokens; set to trim offsets."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, initial_alphabet=alphabet, special_tokens=["<|end|>"], show_progress=False
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    return _spec(tokenizer)


def sentence_piece() -> dict[str, Any]:
    """LLaMA's kind: spaces as marks, a mark put before the text, unknown characters as bytes."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    pieces += ["▁", "h", "i", "e", "l", "o", "▁h", "▁hi", "▁▁", "ll", "he", "llo", "hello", "▁hello"]
    merges = ["▁ h", "▁h i", "l l", "▁ ▁", "h e", "ll o", "he llo", "▁ hello"]
    model = models.BPE(
        vocab={piece: i for i, piece in enumerate(pieces)},
        merges=[tuple(merge.split(" ")) for merge in merges],
        unk_token="<unk>",
        fuse_unk=True,
        byte_fallback=True,
    )
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(steps)
    tokenizer.add_special_tokens([AddedToken(piece, special=True, normalized=False) for piece in pieces[:3]])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)]
    )
    return _spec(tokenizer)


def unigram() -> dict[str, Any]:
    """XLM-R's kind: scored pieces, words marked by their space, RoBERTa's template."""
    scored = [
        ("<s>", 0.0),
        ("</s>", 0.0),
        ("<unk>", 0.0),
        ("▁", -2.0),
        ("▁it", -1.0),
        ("s", -1.0),
        ("▁▁", -1.0),
    ]
    tokenizer = Tokenizer(models.Unigram(scored, unk_id=2))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    tokenizer.add_special_tokens([AddedToken(piece, special=True) for piece, _ in scored[:3]])
    tokenizer.add_tokens([AddedToken("▁▁▁", normalized=False)])
    return _spec(tokenizer)
