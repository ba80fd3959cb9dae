"""`attention-atlas trace`: what it writes is what the model computes, under the names its help promises."""

import base64
import json
import re

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from app import saved
from app.cli import app
from app.schemas import RECORDABLES
from model.inputs import Inputs
from model.loading import load_model
from model.plan import Plan
from tests import tiny
from tests.app.test_encoder_decoder import sound

SOURCE, TARGET = [2, 5, 6, 8, 12, 3], [2, 12, 8, 5]
CROSS_BLOCKED = [{"kind": "block", "query": 2, "key": 1, "sites": "decoder.cross.*"}]


def run(*arguments):
    return CliRunner().invoke(app, ["trace", *map(str, arguments), "--device", "cpu", "--dtype", "float32"])


def ran(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    return result


def ids(tokens):
    return ",".join(map(str, tokens))


def arrays(path):
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def test_every_array_of_a_model_with_two_stacks(models, tmp_path):
    plan, out = tmp_path / "plan.json", tmp_path / "out.npz"
    plan.write_text(json.dumps(CROSS_BLOCKED))
    records = [option for what in RECORDABLES for option in ("--record", what)]
    options = ["--ids", ids(SOURCE), "--target-ids", ids(TARGET), "--plan", plan, *records, "--npz", out]
    assert ran(models / "bart", *options).stdout == ""
    found = arrays(out)
    loaded = load_model(models / "bart")
    inputs = Inputs(Inputs.of(TARGET).ids, source=Inputs.of(SOURCE))
    expected = loaded.transformer.trace(inputs, Plan.parse(CROSS_BLOCKED), RECORDABLES, range(len(TARGET)))
    assert found["ids"].tolist() == TARGET
    assert found["source_ids"].tolist() == SOURCE
    assert found["tokens"].tolist() == ["[CLS]", "it", "did", "the"]
    assert found["source_tokens"].tolist() == ["[CLS]", "the", "animal", "did", "it", "[SEP]"]
    names = {"ids", "source_ids", "tokens", "source_tokens", "logits", "final/decoder", "final/encoder"}
    names |= {f"attention/{site}" for site in expected.sites}
    names |= {f"{what}/{stack}/{layer}" for what, kept in expected.kept.items() for stack, layer in kept}
    assert set(found) == names
    np.testing.assert_array_equal(found["logits"], expected.logits)
    np.testing.assert_array_equal(found["final/encoder"], expected.memory)
    np.testing.assert_array_equal(found["resid/encoder/3"], expected.resid["encoder", 3])
    np.testing.assert_array_equal(
        found["head_out/cross/decoder/1"], expected.kept["head_out/cross"]["decoder", 1]
    )
    cross = found["attention/decoder.cross.1"]
    assert (cross.shape, cross.dtype) == ((6, 4, 6), np.float32)
    assert cross[:, 2, 1].max() == 0
    np.testing.assert_allclose(cross.sum(-1), 1, atol=1e-6)


def test_text_and_target_are_tokenized(models, tmp_path):
    out = tmp_path / "out.npz"
    ran(models / "bart", "the animal did it", "--target", "it did the", "--npz", out)
    assert arrays(out)["ids"].tolist() == TARGET
    assert arrays(out)["source_ids"].tolist() == SOURCE


def test_a_model_of_one_stack_has_no_source(models, tmp_path):
    out = tmp_path / "out.npz"
    ran(models / "bert", "the animal", "--npz", out)
    assert set(arrays(out)) == {
        *("ids", "tokens", "final/encoder"),
        *(f"attention/encoder.self.{n}" for n in range(3)),
    }


def test_what_the_model_writes_and_what_it_hears(models, tmp_path):
    wav = tmp_path / "sound.wav"
    wav.write_bytes(base64.b64decode(sound(rate=8000)))
    result = ran(models / "whisper", "--audio", wav, "--json")
    body = json.loads(result.stdout)
    assert body["written"] is True
    assert len(body["source_tokens"]) == 50
    assert "note: The sound was resampled from 8000 Hz to 16000 Hz." in result.stderr


def test_a_saved_page_holds_every_head_of_every_kind(models, tmp_path):
    page = tmp_path / "page.html"
    ran(models / "bart", "the animal did it", "--target", "it did the", "--html", page)
    text = page.read_text("utf-8")
    found = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    assert [site["site"] for site in data["sites"]][-1] == "decoder.cross.1"
    assert len(data["source_tokens"]) == 6
    assert len(data["weights"]) == len(data["sites"])
    for site, packed in zip(data["sites"], data["weights"], strict=True):
        size = site["heads"] * site["queries"] * site["keys"]
        values = np.frombuffer(base64.b64decode(packed), np.uint8).reshape(-1, site["keys"])
        assert values.size == size
        np.testing.assert_allclose(values.sum(-1), 255, atol=site["keys"])


def test_a_page_that_would_be_too_large_is_refused(models, tmp_path, monkeypatch):
    monkeypatch.setattr(saved, "MAX_PAGE_WEIGHTS", 100)
    result = run(models / "bert", "the animal", "--html", tmp_path / "page.html")
    assert result.exit_code == 1
    assert "use --npz" in result.stderr
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--ids", "2,5"], "--npz FILE, --html FILE or --json"),
        (["--ids", "2,x", "--json"], "--ids 2,x is not a list"),
        (["--ids", "2,5", "--target-ids", "", "--json"], "--target-ids  is not a list"),
        (["--ids", "2,5", "--target-ids", "2", "--target", "it", "--json"], "one of the two"),
        (["--ids", "2,5", "--audio", "nowhere.wav", "--json"], "nowhere.wav cannot be read"),
        (["--ids", "2,5", "--plan", "nowhere.json", "--json"], "nowhere.json is not a readable"),
        (["--ids", "2,5", "--target-ids", "2", "--record", "nonsense", "--json"], "record"),
        (["--ids", "2,5", "--target-ids", "2", "--npz", "no/where/out.npz"], "cannot be written"),
    ],
)
def test_what_goes_wrong_is_one_sentence_and_exit_1(models, arguments, words):
    result = run(models / "bart", *arguments)
    assert result.exit_code == 1
    assert words in result.stderr
    assert result.stderr.startswith("attention-atlas: ")
    assert result.stdout == ""


def test_fp64_stays_fp64(models, tmp_path):
    out = tmp_path / "out.npz"
    result = CliRunner().invoke(
        app,
        [
            "trace",
            str(models / "t5"),
            "--ids",
            ids(tiny.ids(5)),
            "--dtype",
            "float64",
            "--device",
            "cpu",
            "--npz",
            str(out),
        ],
    )
    assert result.exit_code == 0, result.stderr
    assert {array.dtype for name, array in arrays(out).items() if "/" in name} == {np.dtype(np.float64)}
    assert torch.tensor(arrays(out)["attention/decoder.cross.0"]).sum(-1).sub(1).abs().max() < 1e-12
