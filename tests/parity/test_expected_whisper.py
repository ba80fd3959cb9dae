"""whisper-tiny.en (Radford et al. 2022): what it hears, and where in the sound it looks while it says so."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration

from model.cache import Cache
from model.checkpoints.ctranslate2 import CTranslate2
from model.inputs import Inputs
from model.loading import LoadedModel, load_model
from model.mel import SAMPLE_RATE, log_mel
from model.trace import Trace
from model.wav import read_sound

pytestmark = pytest.mark.weights
# Of Debian's package pocketsphinx-testdata.
CLIPS = Path("/usr/share/pocketsphinx/test/data")
FRAMES_A_SECOND = SAMPLE_RATE // 320
START, STOP = (50257, 50362), 50256


@pytest.fixture(scope="module")
def whisper(weights: Callable[[str], Path]) -> LoadedModel:
    return load_model(weights("whisper-tiny.en"))


def _mel(whisper: LoadedModel, samples: Tensor) -> Tensor:
    assert whisper.config.encoder is not None
    return log_mel(samples, whisper.config.encoder.front)[None]


def _clip(name: str) -> Tensor:
    file = CLIPS / name
    if not file.is_file():
        pytest.skip(f"the speech clip {file} is not here: install Debian's pocketsphinx-testdata")
    if file.suffix == ".wav":
        return read_sound(file.read_bytes()).samples
    return torch.from_numpy(np.fromfile(file, "<i2").astype(np.float32) / 2**15)


@torch.inference_mode()
def _say(whisper: LoadedModel, mel: Tensor, *, limit: int = 60) -> list[int]:
    model, cache, ids = whisper.transformer, Cache(), list(whisper.config.start)
    while len(ids) < limit:
        last = model(Inputs(torch.tensor([ids]), mel=mel), cache=cache)[:, -1:]
        ids.append(int(model.logits(last).argmax()))
        if ids[-1] == STOP:
            return ids
    return ids


def _looks(weights: Callable[[str], Path], trace: Trace, seconds: float) -> Tensor:
    """Where the alignment heads look while each token is read, in seconds: the centre of their mean."""
    heads = json.loads((weights("whisper-tiny.en") / "config.json").read_text())["alignment_heads"]
    assert len(heads) == 8
    sites = [(trace.sites[f"decoder.cross.{layer}"], head) for layer, head in heads]
    maps = [site.attention(range(head, head + 1), range(site.queries))[0] for site, head in sites]
    mean = torch.stack(maps).mean(0)[:, : round(seconds * FRAMES_A_SECOND)]  # [T, S]
    places = torch.arange(mean.shape[1]) / FRAMES_A_SECOND
    return (mean * places).sum(-1) / mean.sum(-1)


def test_a_transcript_begins_and_ends_as_the_tokenizer_says(whisper: LoadedModel) -> None:
    assert (whisper.config.start, whisper.config.stop) == (START, (STOP,))
    assert whisper.encoder is not None
    assert whisper.encoder.decode(START) == "<|startoftranscript|><|notimestamps|>"


@pytest.mark.parametrize(
    ("clip", "said"),
    [
        ("goforward.raw", " Go forward 10 meters."),
        ("something.raw", " Go somewhere and do something."),
        (
            "librivox/sense_and_sensibility_01_austen_64kb-0930.wav",
            " He might even have been made amiable himself.",
        ),
    ],
)
def test_speech_is_heard_and_followed(
    weights: Callable[[str], Path], whisper: LoadedModel, clip: str, said: str
) -> None:
    samples = _clip(clip)
    mel = _mel(whisper, samples)
    ids = _say(whisper, mel)
    assert whisper.encoder is not None
    assert whisper.encoder.decode(ids[len(START) : -1]) == said
    trace = whisper.transformer.trace(Inputs(torch.tensor([ids]), mel=mel))
    # The row of a token is the one that predicts the next; the full stop is heard in no particular place.
    looks = _looks(weights, trace, len(samples) / SAMPLE_RATE)[1 : len(ids) - 3]
    assert (looks.diff() > 0).all(), looks
    assert looks[-1] - looks[0] > len(samples) / SAMPLE_RATE / 4


def test_it_agrees_with_transformers(weights: Callable[[str], Path], whisper: LoadedModel) -> None:
    reference = _reference(weights("whisper-tiny.en") / "model.bin")
    time = torch.arange(3 * SAMPLE_RATE) / SAMPLE_RATE
    samples = torch.sin(2 * torch.pi * (200 + 100 * time) * time) * torch.sin(5 * time) ** 2 * 0.3
    extractor = WhisperFeatureExtractor(feature_size=80)
    theirs = extractor(samples.numpy(), sampling_rate=SAMPLE_RATE, return_tensors="pt").input_features
    mel = _mel(whisper, samples)
    assert (mel - theirs).abs().max() < 1e-5
    ids = torch.tensor([[*START, 1514, 2651, 838, 10700, 13, STOP]])
    with torch.no_grad():
        expected = reference(
            input_features=theirs, decoder_input_ids=ids, output_hidden_states=True, output_attentions=True
        )
    count = ids.shape[1]
    trace = whisper.transformer.trace(Inputs(ids, mel=mel), record=["resid"], logit_positions=range(count))
    for kind, weights_of in (
        ("encoder.self", expected.encoder_attentions),
        ("decoder.self", expected.decoder_attentions),
        ("decoder.cross", expected.cross_attentions),
    ):
        for layer, attention in enumerate(weights_of):
            site = trace.sites[f"{kind}.{layer}"]
            for head in range(6):
                found = site.attention(range(head, head + 1), range(site.queries))[0]
                assert (found - attention[0, head]).abs().max() < 1e-5, (kind, layer, head)
    for stack, states in (
        ("encoder", expected.encoder_hidden_states),
        ("decoder", expected.decoder_hidden_states),
    ):
        for layer, state in enumerate(states[:-1]):
            found = trace.resid[stack, layer]
            assert (found - state[0]).abs().max() <= 1e-5 * state.abs().max().clamp(min=1), (stack, layer)
    assert trace.logits is not None
    error = (trace.logits - expected.logits[0]).abs().max()
    assert error <= 1e-5 * expected.logits.abs().max()


def _reference(file: Path) -> WhisperForConditionalGeneration:
    """The weights in `transformers`' Whisper: our code only reads the file, it maps no name."""
    source = CTranslate2(file)
    config = WhisperConfig(
        vocab_size=51864,
        d_model=384,
        encoder_layers=4,
        decoder_layers=4,
        encoder_attention_heads=6,
        decoder_attention_heads=6,
        encoder_ffn_dim=1536,
        decoder_ffn_dim=1536,
        num_mel_bins=80,
        pad_token_id=STOP,
        bos_token_id=STOP,
        eos_token_id=STOP,
        decoder_start_token_id=START[0],
        attn_implementation="eager",
    )
    model = WhisperForConditionalGeneration(config).eval()
    state = {name: _find(source, name).float() for name in model.state_dict()}
    model.load_state_dict(state)
    return model


NAMES = {
    "self_attn.out_proj": "self_attention/linear_1",
    "self_attn_layer_norm": "self_attention/layer_norm",
    "encoder_attn.q_proj": "attention/linear_0",
    "encoder_attn.out_proj": "attention/linear_2",
    "encoder_attn_layer_norm": "attention/layer_norm",
    "fc1": "ffn/linear_0",
    "fc2": "ffn/linear_1",
    "final_layer_norm": "ffn/layer_norm",
    "embed_tokens.weight": "embeddings/weight",
    "embed_positions.weight": "position_encodings/encodings",
}
STACKED = {
    "self_attn.q_proj": ("self_attention/linear_0", 0, 3),
    "self_attn.k_proj": ("self_attention/linear_0", 1, 3),
    "self_attn.v_proj": ("self_attention/linear_0", 2, 3),
    "encoder_attn.k_proj": ("attention/linear_1", 0, 2),
    "encoder_attn.v_proj": ("attention/linear_1", 1, 2),
}


def _find(source: CTranslate2, name: str) -> Tensor:
    if name == "proj_out.weight":
        return source.tensor("decoder/embeddings/weight")
    path = name.removeprefix("model.").replace("layers.", "layer_")
    for part, (target, place, count) in STACKED.items():
        if f".{part}." in path:
            return source.tensor(path.replace(part, target).replace(".", "/")).chunk(count)[place]
    for part, target in NAMES.items():
        # "layer_norm" ends in names that are longer.
        path = path.replace(f".{part}", f"/{target}")
    path = path.replace(".", "/")
    if "norm" in path:
        path = path.replace("/weight", "/gamma").replace("/bias", "/beta")
    return source.tensor(path)
