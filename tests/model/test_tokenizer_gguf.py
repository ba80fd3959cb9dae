import pytest

from model.checkpoints.gguf_splitting import SPLITTINGS
from model.checkpoints.gguf_vocabulary import TokenType, read_vocabulary
from model.checkpoints.tokenizer_gguf import gguf_tokenizer, merges_by_score, tokenizer_spec
from model.errors import CheckpointError, ConfigError, InputError
from model.text import TextEncoder
from tests.model.small_tokenizers import byte_level, sentence_piece


def named(**values):
    return {f"tokenizer.ggml.{key}": value for key, value in values.items()}


def byte_level_fields(pre="gpt-2", **more):
    """GGUF metadata that says what `byte_level` says."""
    spec = byte_level()
    tokens = sorted(spec["model"]["vocab"], key=spec["model"]["vocab"].get)
    merges = [" ".join(merge) for merge in spec["model"]["merges"]]
    types = [TokenType.CONTROL if token == "<|end|>" else TokenType.NORMAL for token in tokens]
    stated = {
        "model": "gpt2",
        "pre": pre,
        "tokens": tokens,
        "merges": merges,
        "token_type": types,
        "bos_token_id": 0,
    }
    return named(**{**stated, "eos_token_id": 0, **more})


def sentence_piece_fields(**more):
    """GGUF metadata that says what `sentence_piece` says: the scores fall in the order of the merges."""
    spec = sentence_piece()
    tokens = sorted(spec["model"]["vocab"], key=spec["model"]["vocab"].get)
    order = ["".join(merge) for merge in spec["model"]["merges"]]
    scores = [-float(order.index(token)) if token in order else -1000.0 for token in tokens]
    types = [TokenType.UNKNOWN, TokenType.CONTROL, TokenType.CONTROL] + [TokenType.BYTE] * 256
    types += [TokenType.NORMAL] * (len(tokens) - len(types))
    ends = {"bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0}
    return named(
        **{"model": "llama", "tokens": tokens, "scores": scores, "token_type": types, **ends, **more}
    )


TEXTS = [
    "the animal did not",
    "they are 25 keys",
    "hi  hello",
    "Karadžić 💩 …",
    " a\n\n b",
    "<|end|>the",
    "你 </s>hi",
]


@pytest.mark.parametrize("text", TEXTS)
def test_byte_level_metadata_is_the_same_tokenizer(text):
    assert gguf_tokenizer(byte_level_fields()).encode(text) == TextEncoder(byte_level()).encode(text)


@pytest.mark.parametrize("text", TEXTS)
def test_sentence_piece_metadata_is_the_same_tokenizer(text):
    assert gguf_tokenizer(sentence_piece_fields()).encode(text) == TextEncoder(sentence_piece()).encode(text)


def test_merges_come_in_the_order_of_the_scores_and_never_make_control_pieces():
    tokens = ["<unk>", "a", "b", "ab", "ba", "aba", "<", "/s>", "</s>"]
    types = [TokenType.UNKNOWN, *[TokenType.NORMAL] * 7, TokenType.CONTROL]
    vocabulary = read_vocabulary(named(tokens=tokens, token_type=types))
    merges = merges_by_score(vocabulary, [0, -9, -9, -2.0, -1.0, -3.0, -9, -9, 0])
    assert merges == [("b", "a"), ("a", "b"), ("a", "ba"), ("ab", "a")]


# What each pattern cuts, read off the regular expressions that the models' makers published.
CUTS = [
    ("gpt-2", "it's IT'S 1234  x!\n", ["it", "'s", " IT", "'", "S", " 1234", " ", " x", "!", "\n"]),
    ("smollm", "it's 1234 x", ["it", "'s", " ", "1", "2", "3", "4", " x"]),
    ("llama-bpe", "it's IT'S 1234 x!\n", ["it", "'s", " IT", "'S", " ", "123", "4", " x", "!\n"]),
    ("qwen2", "it's IT'S 12 x!\n", ["it", "'s", " IT", "'S", " ", "1", "2", " x", "!\n"]),
    ("tekken", "aB CamelCase 12", ["a", "B", " Camel", "Case", " ", "1", "2"]),
]


@pytest.mark.parametrize(("pre", "text", "pieces"), CUTS, ids=[pre for pre, _, _ in CUTS])
def test_pre_tokenizers_cut_as_their_names_say(pre, text, pieces):
    encoder = TextEncoder({**tokenizer_spec(byte_level_fields(pre)), "post_processor": None})
    cut = encoder._tokenizer.pre_tokenizer.pre_tokenize_str(text)
    assert [text[start:end] for _, (start, end) in cut] == pieces


def test_qwen2_composes_characters_first():
    assert gguf_tokenizer(byte_level_fields("qwen2")).encode("e\u0301").tokens[0].text == "é·1/2"
    assert gguf_tokenizer(byte_level_fields("gpt-2")).encode("e\u0301").tokens[0].text == "e"


@pytest.mark.parametrize("pre", SPLITTINGS)
def test_bos_is_added_by_default_only_where_the_name_says_so(pre):
    added = [t.text for t in gguf_tokenizer(byte_level_fields(pre)).encode("the").tokens if t.special]
    assert added == (["<|end|>"] if pre in ("llama-bpe", "llama3", "llama-v3", "tekken") else [])


@pytest.mark.parametrize(
    ("flags", "specials"),
    [
        ({}, ["<s>"]),
        ({"add_bos_token": False}, []),
        ({"add_bos_token": True, "add_eos_token": True}, ["<s>", "</s>"]),
    ],
)
def test_bos_and_eos_as_the_file_states(flags, specials):
    tokens = gguf_tokenizer(sentence_piece_fields(**flags)).encode("hi").tokens
    assert [t.text for t in tokens if t.special] == specials


def test_no_space_before_the_text_where_the_file_says_so():
    plain = gguf_tokenizer(sentence_piece_fields(add_space_prefix=False, add_bos_token=False))
    assert [t.text for t in plain.encode("hello").tokens] == ["hello"]
    assert plain.decode(plain.encode(" hi").ids) == " hi"


def test_control_tokens_are_special_and_user_defined_ones_are_not():
    fields = byte_level_fields()
    spare = next(token for token in reversed(fields["tokenizer.ggml.tokens"]) if len(token) > 3)
    place = fields["tokenizer.ggml.tokens"].index(spare)
    fields["tokenizer.ggml.tokens"][place] = "<tool>"
    fields["tokenizer.ggml.token_type"][place] = TokenType.USER_DEFINED
    fields["tokenizer.ggml.merges"] = []
    tokens = gguf_tokenizer(fields).encode("<|end|>a<tool>b").tokens
    assert [(t.text, t.special) for t in tokens] == [
        ("<|end|>", True),
        ("a", False),
        ("<tool>", False),
        ("b", False),
    ]


def test_unknown_characters_side_by_side_are_one_piece_in_a_vocabulary_without_bytes():
    fields = sentence_piece_fields()
    fields["tokenizer.ggml.token_type"][3:259] = [TokenType.NORMAL] * 256
    encoded = gguf_tokenizer(fields).encode("hi说说")
    assert [(t.text, t.span) for t in encoded.tokens[2:]] == [("<unk>", (2, 4))]
    assert "说说 became <unk>" in encoded.notices[0]


def test_a_piece_that_is_a_token_needs_no_merges_where_the_name_says_so():
    whole = gguf_tokenizer(byte_level_fields("llama-bpe", merges=[], add_bos_token=False)).encode("the the")
    assert [t.text for t in whole.tokens] == ["the", " the"]
    assert len(gguf_tokenizer(byte_level_fields("gpt-2", merges=[])).encode("the the").ids) == 7


def test_a_file_has_no_template_for_a_pair():
    with pytest.raises(InputError, match="one text, not a pair"):
        gguf_tokenizer(sentence_piece_fields()).encode("hi", "hi")


def test_a_file_without_types_still_has_its_bos():
    fields = byte_level_fields(add_bos_token=True)
    del fields["tokenizer.ggml.token_type"]
    assert [t.text for t in gguf_tokenizer(fields).encode("<|end|>").tokens if t.special] == ["<|end|>"] * 2


def test_the_mask_token():
    assert gguf_tokenizer(byte_level_fields(mask_token_id=0)).mask_id == 0
    assert gguf_tokenizer(byte_level_fields()).mask_id is None


@pytest.mark.parametrize(
    ("fields", "named_in_the_refusal"),
    [
        (named(model="rwkv"), "'rwkv'"),
        ({}, "None"),
        (byte_level_fields("default"), "'default'"),
        (named(model="gpt2", tokens=["a"]), "'not stated'"),
        (sentence_piece_fields(precompiled_charsmap=[1]), "precompiled_charsmap"),
        (sentence_piece_fields(remove_extra_whitespaces=True), "remove_extra_whitespaces"),
    ],
)
def test_kinds_that_are_not_implemented_are_refused_by_name(fields, named_in_the_refusal):
    with pytest.raises(ConfigError, match="run ids") as refusal:
        gguf_tokenizer(fields)
    assert named_in_the_refusal in refusal.value.detail


@pytest.mark.parametrize(
    "fields",
    [
        byte_level_fields(tokens=[]),
        byte_level_fields(tokens=["a", "a"], token_type=[1, 1]),
        byte_level_fields(token_type=[1]),
        byte_level_fields(merges=["x y"]),
        byte_level_fields(merges=["a b c"]),
        byte_level_fields(add_bos_token=True, bos_token_id=None),
        byte_level_fields(add_bos_token=True, bos_token_id=10**6),
        sentence_piece_fields(scores=[0.0]),
    ],
    ids=["empty", "twice", "types", "no such piece", "three pieces", "no bos", "bos out of range", "scores"],
)
def test_metadata_that_contradicts_itself_is_refused(fields):
    with pytest.raises(CheckpointError, match="fetch the file again"):
        gguf_tokenizer(fields)
