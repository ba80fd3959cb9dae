"""What is written into the stream, and what norms make of it, against numbers taken from a trace by hand."""

from collections.abc import Callable

import numpy as np
import pytest

from model.errors import InputError
from model.labs import stream
from model.labs.bench import Bench
from model.labs.parameters.block import Stream
from model.labs.reading import run_text
from model.labs.result import Chart

pytestmark = pytest.mark.weights


def charts(result: object) -> dict[str, Chart]:
    return {one.id: one for one in result.series}  # type: ignore[attr-defined]


def test_what_each_sublayer_writes(real_bench: Bench) -> None:
    ran = run_text(real_bench, "smollm2", Stream().text, record=("resid", "mid", "attn_out", "ffn_out"))
    found = charts(stream.run(Stream(model="smollm2"), real_bench))["writes"].lines
    for line, stream_name, added in zip(found, ("resid", "mid"), ("attn_out", "ffn_out"), strict=True):
        for layer in (0, 7, 29):
            x = ran.trace.kept[stream_name]["decoder", layer].numpy()
            y = ran.trace.kept[added]["decoder", layer].numpy()
            ratio = np.median(np.linalg.norm(y, axis=1) / np.linalg.norm(x, axis=1))
            # torch takes the lower of two middle ones; eleven tokens have one.
            assert line.y[layer] == pytest.approx(ratio, rel=1e-4)


def test_a_pre_norm_stream_grows_and_a_post_norm_stream_does_not(real_bench: Bench) -> None:
    pre = stream.run(Stream(model="smollm2"), real_bench).facts
    post = stream.run(Stream(model="minilm"), real_bench).facts
    assert pre["last"] > 20 * pre["first"]
    assert post["last"] < 2 * post["first"]


@pytest.mark.parametrize(("model", "layer"), [("minilm", 0), ("minilm", 5), ("smollm2", 0), ("smollm2", 17)])
def test_norms_bring_everything_to_one_scale(real_bench: Bench, model: str, layer: int) -> None:
    result = stream.run(Stream(model=model, layer=layer), real_bench)
    assert all(check.holds for check in result.checks)
    for row in result.facts["norms"]:
        assert row["rms normalised"] == pytest.approx(1, abs=1e-3)
        if model == "minilm":
            assert row["mean normalised"] == pytest.approx(0, abs=1e-6)


def test_a_wrong_norm_is_seen(real_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    own = stream._norm_output
    monkeypatch.setattr(stream, "_norm_output", lambda ran, layer, part: 1.01 * own(ran, layer, part))
    failing = [
        check.name
        for check in stream.run(Stream(model="smollm2", layer=3), real_bench).checks
        if not check.holds
    ]
    assert failing == [
        f"{name} norm, rms of its output before γ and β" for name in ("attention", "feed-forward")
    ]


def test_a_layer_there_is_not_is_refused(real_bench: Bench) -> None:
    with pytest.raises(InputError, match="There is no layer 6"):
        stream.run(Stream(layer=6), real_bench)


@pytest.mark.parametrize("model", ["minilm", "smollm2"])
@pytest.mark.parametrize("wrong", [lambda _: 1.0, lambda share: 1.05 * share])
def test_shares_that_are_not_the_streams_are_seen(
    real_bench: Bench, monkeypatch: pytest.MonkeyPatch, model: str, wrong: Callable[[float], float]
) -> None:
    own = stream._share
    monkeypatch.setattr(stream, "_share", lambda ran, layer, part: wrong(own(ran, layer, part)))
    failing = [check for check in stream.run(Stream(model=model), real_bench).checks if not check.holds]
    assert {check.about for check in failing} == {"writes"}
    assert len(failing) == 2


def test_pictures_of_another_scale_are_seen(real_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "rms", lambda x: 1.01 * x.square().mean(dim=-1).sqrt())
    failing = {check.about for check in stream.run(Stream(), real_bench).checks if not check.holds}
    assert {"stream", "norms"} <= failing


@pytest.mark.parametrize("text", ["a", "My name is Bob. " * 15])
@pytest.mark.parametrize("model", ["minilm", "smollm2"])
def test_checks_hold_for_short_and_long_texts(real_bench: Bench, model: str, text: str) -> None:
    assert all(check.holds for check in stream.run(Stream(model=model, text=text), real_bench).checks)


def test_who_writes_more_than_it_finds_is_named(real_bench: Bench) -> None:
    for model, layers in (("minilm", 6), ("smollm2", 30)):
        result = stream.run(Stream(model=model), real_bench)
        more = [
            f"{line.name} in layer {layer}"
            for line in charts(result)["writes"].lines
            for layer in range(layers)
            if line.y[layer] > 1
        ]
        assert all(name in result.facts["more"] for name in more)  # type: ignore[operator]
        assert str(result.facts["more"]).count("in layer") == len(more)
