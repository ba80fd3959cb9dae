"""What is written into the stream, and what norms make of it, against numbers taken from a trace by hand."""

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
    checks = stream.run(Stream(model="smollm2", layer=3), real_bench).checks
    assert [check.holds for check in checks] == [True, False, True, False]


def test_a_layer_there_is_not_is_refused(real_bench: Bench) -> None:
    with pytest.raises(InputError, match="There is no layer 6"):
        stream.run(Stream(layer=6), real_bench)
