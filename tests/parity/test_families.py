"""Every family and variant against `transformers`: each layer, each kind of attention, logits, generation."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import GenerationMixin

from model.cache import Cache
from model.checkpoints.reader import FAMILIES
from model.checkpoints.source import SINGLE
from model.errors import CheckpointError
from model.generate import greedy
from model.inputs import Inputs
from model.loading import load_model
from tests.parity.families import ROWS, SKIPPED, Both, arguments, ids, inputs, one_thread
from tests.parity.references import assert_peaked, load

BOUND = 1e-5
WRITTEN = 12


@pytest.fixture(scope="module", params=ROWS, ids=lambda row: row.name)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with one_thread():
        yield request.param.build(tmp_path_factory.mktemp("family"))


def _near(found: Tensor, expected: Tensor, what: str) -> None:
    assert found.shape == expected.shape, what
    error = (found - expected).abs().max().item() / max(1.0, expected.abs().max().item())
    assert error <= BOUND, f"{what}: {error:.2g}"


def _skipped(both: Both, check: str) -> None:
    if (both.row.name, check) in SKIPPED:
        pytest.skip(SKIPPED[both.row.name, check])


def test_there_is_a_row_for_every_family_that_is_read() -> None:
    assert {row.family for row in ROWS} == set(FAMILIES)


def test_what_is_skipped_is_a_row_and_has_a_reason() -> None:
    assert {name for name, _ in SKIPPED} <= {row.name for row in ROWS}
    assert all(SKIPPED.values())


def _groups(out: dict[str, tuple[Tensor, ...]], main: str) -> dict[str, tuple[Tensor, ...]]:
    """Attention of each kind, as `transformers` calls it."""
    if "encoder_attentions" not in out:
        return {f"{main}.self": out["attentions"]}
    names = {"encoder.self": "encoder", "decoder.self": "decoder", "decoder.cross": "cross"}
    return {ours: out[f"{theirs}_attentions"] for ours, theirs in names.items()}


def _streams(out: dict[str, tuple[Tensor, ...]], main: str) -> dict[str, tuple[Tensor, ...]]:
    if "encoder_hidden_states" not in out:
        return {main: out["hidden_states"]}
    return {name: out[f"{name}_hidden_states"] for name in ("encoder", "decoder")}


def test_every_layer_every_attention_and_the_logits_agree(both: Both) -> None:
    config = both.ours.config
    for tokens, source_tokens in both.row.lengths:
        given = inputs(both.row, tokens, source_tokens)
        with torch.no_grad():
            out = both.reference(**arguments(given), output_hidden_states=True, output_attentions=True)
        positions = range(tokens) if config.head else ()
        trace = both.ours.transformer.trace(given, record=["resid"], logit_positions=positions)
        where = f"{tokens} × {source_tokens}"
        for group, expected in _groups(out, config.stack.name).items():
            for layer, weights in enumerate(expected):
                site = trace.sites[f"{group}.{layer}"]
                _near(site.attention(site.all_heads, range(site.queries)), weights[0], f"{where} {site.site}")
            if (tokens, source_tokens) == both.row.lengths[-1]:
                assert_peaked(torch.cat(expected))
        for stack, states in _streams(out, config.stack.name).items():
            for layer, state in enumerate(states[:-1]):
                _near(trace.resid[stack, layer], state[0], f"{where} {stack} {layer}")
            final = trace.final if stack == config.stack.name else trace.memory
            _near(final, states[-1][0], f"{where} {stack} final")
        if config.head:
            _near(trace.logits, out.logits[0], f"{where} logits")


def test_fused_and_explicit_agree(both: Both) -> None:
    for lengths in both.row.lengths:
        given = inputs(both.row, *lengths)
        explicit, fused = (both.ours.transformer(given, fused=fused) for fused in (False, True))
        _near(fused, explicit, str(lengths))


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_padded_batch_equals_single_runs(both: Both, side: str) -> None:
    """Of texts of three lengths, in target and source."""
    lengths, source_lengths = (23, 9, 1), (11, 30, 2)
    beside = both.row.lengths[-1][1] > 0
    target = _padded([ids(length, length) for length in lengths], side)
    singles = [Inputs.of(ids(length, length)) for length in lengths]
    mel = inputs(both.row, 1, 40).mel if both.row.family == "whisper" else None
    if mel is not None:
        batch = replace(target, mel=mel.expand(3, -1, -1))
        singles = [replace(single, mel=mel) for single in singles]
    elif beside:
        batch = replace(target, source=_padded([ids(n, n) for n in source_lengths], side))
        singles = [
            replace(single, source=Inputs.of(ids(n, n)))
            for single, n in zip(singles, source_lengths, strict=True)
        ]
    else:
        batch = target
    for fused in (True, False):
        together = both.ours.transformer(batch, fused=fused)
        for row, single in enumerate(singles):
            _near(
                together[row, target.real[row]],
                both.ours.transformer(single, fused=fused)[0],
                f"{side} {row}",
            )


def _padded(texts: list[list[int]], side: str) -> Inputs:
    longest = max(map(len, texts))
    table, real = (
        torch.zeros(len(texts), longest, dtype=torch.long),
        torch.zeros(len(texts), longest, dtype=torch.bool),
    )
    for row, text in enumerate(texts):
        place = slice(longest - len(text), longest) if side == "left" else slice(0, len(text))
        table[row, place], real[row, place] = torch.tensor(text), True
    return Inputs(table, real=real)


def test_with_a_cache_nothing_changes_but_the_work(both: Both) -> None:
    _skipped(both, "generation")
    tokens = 30
    given = inputs(both.row, tokens, both.row.lengths[1][1])
    whole = both.ours.transformer(given)[0]
    cache, ends = Cache(), (11, 12, 13, 20, *range(21, tokens + 1))
    with torch.inference_mode():
        parts = [
            both.ours.transformer(replace(given, ids=given.ids[:, :end]), cache=cache)[0] for end in ends
        ]
    assert [len(part) for part in parts[:4]] == [11, 1, 1, 7]
    _near(torch.cat(parts), whole, "cache")


def test_greedy_generation_agrees(both: Both) -> None:
    _skipped(both, "generation")
    start = list(both.ours.config.start) or ids(11)
    given = replace(inputs(both.row, 1, both.row.lengths[1][1]), ids=torch.tensor([start]))
    settings = {"max_new_tokens": WRITTEN, "do_sample": False}
    # The mixin's own: Whisper's puts long recordings together, which is not what is compared.
    written = GenerationMixin.generate(both.reference, **arguments(given), **settings)
    expected = written[0, len(start) :].tolist()
    assert len(expected) == WRITTEN
    assert list(greedy(both.ours.transformer, given, (), WRITTEN)) == expected
    assert (
        list(greedy(both.ours.transformer, given, expected[3:4], WRITTEN))
        == expected[: expected.index(expected[3])]
    )
    longer = given.ids[0].tolist()
    for token in expected:
        final = both.ours.transformer(replace(given, ids=torch.tensor([longer])))
        assert both.ours.transformer.logits(final[:, -1:]).argmax().item() == token
        longer.append(token)


def test_flan_t5_has_a_head_of_its_own_and_leaves_the_last_state_unscaled(tmp_path: Path) -> None:
    """As published: what `transformers` makes itself is tied, whatever its configuration says."""
    row = next(row for row in ROWS if row.name == "T5, gated, untied")
    both = row.build(tmp_path)
    head = torch.randn(97, 60, generator=torch.Generator().manual_seed(3)) * row.spread
    save_file(load_file(tmp_path / SINGLE) | {"lm_head.weight": head}, tmp_path / SINGLE, {"format": "pt"})
    stated = json.loads((tmp_path / "config.json").read_text("utf-8"))
    del stated["scale_decoder_outputs"]
    (tmp_path / "config.json").write_text(json.dumps(stated | {"tie_word_embeddings": False}), "utf-8")
    reference, ours = load(row.model, tmp_path), load_model(tmp_path)
    assert torch.equal(reference.lm_head.weight, head)
    given = inputs(row, 13, 50)
    with torch.no_grad():
        expected = reference(**arguments(given)).logits
    found = ours.transformer.logits(ours.transformer(given))
    _near(found, expected, "logits")
    tied = both.ours.transformer.logits(both.ours.transformer(given))
    assert (found - tied).abs().max() > 0.1


@pytest.mark.parametrize("name", ["LLaMA", "Qwen2, tied", "GPT-2", "BART", "Whisper"])
def test_a_tied_head_that_differs_is_refused(tmp_path: Path, name: str) -> None:
    row = next(row for row in ROWS if row.name == name)
    both = row.build(tmp_path)
    assert both.ours.config.head is not None
    if not both.ours.config.head.tied:
        stated = json.loads((tmp_path / "config.json").read_text("utf-8"))
        (tmp_path / "config.json").write_text(json.dumps(stated | {"tie_word_embeddings": True}), "utf-8")
    head = "proj_out.weight" if row.family == "whisper" else "lm_head.weight"
    save_file(load_file(tmp_path / SINGLE) | {head: torch.zeros(97, 60)}, tmp_path / SINGLE)
    with pytest.raises(CheckpointError, match="the two differ") as caught:
        load_model(tmp_path)
    assert head in caught.value.detail
