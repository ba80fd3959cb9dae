import math

import numpy as np
import pytest

from app.services import comparison
from tests.serving import BERT, CAUSAL, LLAMA, MASKED, MUTE, TEXT, all_weights, app_of, problem, trace

OTHER = "the hello hi a"


def compare(client, a, b, by="token"):
    answer = client.post("/api/compare", json={"a": a, "b": b, "by": by})
    assert answer.status_code == 200, answer.text
    return answer.json()


def between(weights, units):
    """Attention between units, pieces summed as keys and averaged as queries, then a column for the rest."""
    keys = np.stack([weights[..., unit].sum(axis=-1) for unit in units], axis=-1)
    keys = np.concatenate(
        [keys, weights.sum(axis=-1, keepdims=True) - keys.sum(axis=-1, keepdims=True)], axis=-1
    )
    return np.stack([keys[..., unit, :].mean(axis=-2) for unit in units], axis=-2)


def maps(client, answer, side, request):
    weights = all_weights(client, trace(client, **request))
    return between(weights, [unit[side] for unit in answer["alignment"]])


def distance(a, b):
    return np.abs(a - b).sum(axis=-1).mean(axis=-1) / 2


def test_one_model_under_two_masks(client):
    a, b = {"model": BERT, "text": TEXT}, {"model": BERT, "text": TEXT, "plan": CAUSAL}
    answer = compare(client, a, b)
    assert answer["same_weights"] is True
    assert answer["by"] == "token"
    assert [answer[side]["plan_words"] for side in "ab"] == ["the model's own", "causal mask"]
    assert answer["a"]["model"] == trace(client, **a)["model"]
    assert [unit["a"] for unit in answer["alignment"]] == [[i] for i in range(8)]
    assert [unit["label"] for unit in answer["alignment"]][:2] == ["[CLS]", "the"]
    assert answer["unaligned"] == {"a": [], "b": []}
    one, other = (all_weights(client, trace(client, **side)) for side in (a, b))
    for layer, site in enumerate(answer["sites"]):
        assert (site["site"], site["stack"], site["kind"], site["layer"]) == (
            f"encoder.self.{layer}",
            "encoder",
            "self",
            layer,
        )
        for head, found in enumerate(site["heads"]):
            change = np.abs(one[layer, head] - other[layer, head])
            assert found["max"] == pytest.approx(change.max(), rel=1e-4)
            assert found["mean"] == pytest.approx(change.mean(), rel=1e-4)
            assert found["tv"] == pytest.approx(distance(one[layer, head], other[layer, head]), rel=1e-4)
            assert 0 < found["tv"] <= 1
    assert answer["overall"]["over"] == "heads"
    assert answer["overall"]["tv"] == pytest.approx(distance(one, other).mean(), rel=1e-4)
    assert answer["sites_reason"] is None
    assert (answer["closest"], answer["closest_reason"]) == (
        None,
        "Both sides have the same heads: see what changed in each.",
    )


def recorded(client, request):
    body = trace(client, **request, record=["resid"])
    return app_of(client).state.services.engine().entry(body["id"]).trace


def test_how_far_the_layers_and_the_sentence_moved(client):
    a, b = {"model": BERT, "text": TEXT}, {"model": BERT, "text": TEXT, "plan": CAUSAL}
    answer = compare(client, a, b)
    one, other = recorded(client, a), recorded(client, b)
    assert [(layer["stack"], layer["layer"]) for layer in answer["layers"]] == [
        ("encoder", i) for i in range(3)
    ]
    assert answer["layers_reason"] is None
    for layer, found in enumerate(answer["layers"]):
        x, y = (side.resid["encoder", layer + 1].double().numpy() for side in (one, other))
        cosines = (x * y).sum(axis=1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
        assert found["cosine"] == pytest.approx(cosines.mean(), rel=1e-4)
        assert found["relative"] == pytest.approx(np.linalg.norm(x - y) / np.linalg.norm(x), rel=1e-4)
    means = [side.final.double().numpy().mean(axis=0) for side in (one, other)]
    cosine = means[0] @ means[1] / np.linalg.norm(means[0]) / np.linalg.norm(means[1])
    assert answer["readout"] == {"kind": "embedding", "cosine": pytest.approx(cosine, rel=1e-4)}


def test_how_far_the_prediction_moved(client):
    a = {"model": LLAMA, "text": OTHER}
    b = a | {"plan": [{"kind": "set_mask", "rule": {"name": "bidirectional"}}]}
    answer = compare(client, a, b)
    logits = [recorded(client, side).logits[-1].double().numpy() for side in (a, b)]
    p, q = (np.exp(x - x.max()) / np.exp(x - x.max()).sum() for x in logits)
    readout = answer["readout"]
    assert readout["kind"] == "logits"
    assert readout["tv"] == pytest.approx(np.abs(p - q).sum() / 2, rel=1e-4)
    assert readout["kl"] == pytest.approx((p * np.log(p / q)).sum(), rel=1e-4)
    assert [top["id"] for top in readout["a"]] == np.argsort(-p)[:10].tolist()
    assert readout["b"] == trace(client, **b)["readout"]["top"]


def test_a_run_beside_itself(client):
    answer = compare(client, *[{"model": LLAMA, "text": OTHER}] * 2)
    assert answer["a"] == answer["b"]
    assert {value for site in answer["sites"] for head in site["heads"] for value in head.values()} == {0}
    assert answer["overall"]["tv"] == 0
    assert all(layer["cosine"] == pytest.approx(1) and layer["relative"] == 0 for layer in answer["layers"])
    assert answer["readout"]["tv"] == answer["readout"]["kl"] == 0


@pytest.mark.parametrize("by", ["token", "word"])
def test_two_models(client, by):
    a, b = {"model": BERT, "text": OTHER}, {"model": LLAMA, "text": OTHER}
    answer = compare(client, a, b, by)
    assert answer["same_weights"] is False
    assert answer["sites"] is None
    assert answer["sites_reason"] == "The heads of two models are not the same heads: see the closest ones."
    assert answer["layers"] is None
    assert "different spaces" in answer["layers_reason"]
    assert answer["readout"] is None
    assert answer["readout_reason"] == "One model reads out a sentence vector, the other the next token."
    one, other = maps(client, answer, "a", a), maps(client, answer, "b", b)
    assert answer["overall"]["over"] == "mean map"
    expected = distance(one.mean(axis=(0, 1)), other.mean(axis=(0, 1)))
    assert answer["overall"]["tv"] == pytest.approx(expected, rel=1e-4)
    distances = distance(one.reshape(15, 1, *one.shape[2:]), other.reshape(1, 18, *other.shape[2:]))
    assert len(answer["closest"]) == 15
    assert answer["closest_reason"] is None
    for place, found in enumerate(answer["closest"]):
        assert found["a"] == {"site": f"encoder.self.{place // 5}", "head": place % 5}
        assert found["tv"] == pytest.approx(distances[place].min(), rel=1e-4)
        nearest = 6 * int(found["b"]["site"][-1]) + found["b"]["head"]
        assert distances[place, nearest] == pytest.approx(distances[place].min(), rel=1e-4)


def test_words_gather_the_pieces_of_either_tokenizer(client):
    answer = compare(
        client, {"model": BERT, "text": "the animals"}, {"model": LLAMA, "text": "the animals"}, "word"
    )
    assert [unit["label"] for unit in answer["alignment"]] == ["the", "animals"]
    assert [unit["a"] for unit in answer["alignment"]] == [[1], [2, 3]]
    tokens = trace(client, model=LLAMA, text="the animals")["tokens"]
    assert [unit["b"] for unit in answer["alignment"]] == [
        [i for i, token in enumerate(tokens) if token["words"] == [word]] for word in (0, 2)
    ]
    assert answer["unaligned"]["a"] == [0, 4]
    aligned = {i for unit in answer["alignment"] for i in unit["b"]}
    assert answer["unaligned"]["b"] == [i for i in range(len(tokens)) if i not in aligned]


def test_distances_are_symmetric_and_bounded(client):
    a, b = {"model": BERT, "text": OTHER}, {"model": BERT, "text": OTHER, "plan": CAUSAL}
    for by in ("token", "word"):
        there, back = compare(client, a, b, by), compare(client, b, a, by)
        assert there["overall"]["tv"] == pytest.approx(back["overall"]["tv"])
        for one, other in zip(there["sites"], back["sites"], strict=True):
            for x, y in zip(one["heads"], other["heads"], strict=True):
                assert x == pytest.approx(y)
                assert 0 <= x["mean"] <= x["max"] <= 1
                assert 0 <= x["tv"] <= 1


def test_one_model_by_word(client):
    a, b = {"model": BERT, "text": TEXT}, {"model": BERT, "text": TEXT, "plan": CAUSAL}
    answer = compare(client, a, b, "word")
    one, other = maps(client, answer, "a", a), maps(client, answer, "b", b)
    assert one.sum(axis=-1) == pytest.approx(np.ones((3, 5, 5)), abs=1e-5)
    for layer, site in enumerate(answer["sites"]):
        for head, found in enumerate(site["heads"]):
            change = np.abs(one[layer, head] - other[layer, head])
            assert found["tv"] == pytest.approx(change.sum(axis=-1).mean() / 2, rel=1e-4)
            assert found["max"] == pytest.approx(change[:, :-1].max(), rel=1e-4)
            assert found["mean"] == pytest.approx(change[:, :-1].mean(), rel=1e-4)
    assert answer["layers"] is not None


def test_heads_in_groups_are_the_same_as_all_at_once(client, monkeypatch):
    a, b = {"model": BERT, "text": TEXT}, {"model": BERT, "text": TEXT, "plan": CAUSAL}
    whole = compare(client, a, b)
    monkeypatch.setattr(comparison, "HEAD_CELLS", 130)
    for one, other in zip(compare(client, a, b)["sites"], whole["sites"], strict=True):
        for x, y in zip(one["heads"], other["heads"], strict=True):
            assert x == pytest.approx(y, rel=1e-5)


def test_too_many_maps_to_search_are_said_to_be(client, monkeypatch):
    monkeypatch.setattr(comparison, "CLOSEST_CELLS", 4 * 5 * 33 - 1)
    answer = compare(client, {"model": BERT, "text": OTHER}, {"model": LLAMA, "text": OTHER}, "word")
    assert len(answer["alignment"]) == 4
    assert answer["closest"] is None
    assert answer["closest_reason"] == (
        "The maps of 33 heads over 4 positions are too many to search: shorten the text."
    )
    assert answer["overall"]["over"] == "mean map"


def test_two_texts_correspond_where_they_begin_and_end_alike(client):
    a = {"model": BERT, "text": "the animal did it !"}
    b = {"model": BERT, "text": "the animals didn't c it !"}
    by_token, by_word = compare(client, a, b), compare(client, a, b, "word")
    assert [unit["label"] for unit in by_token["alignment"]] == ["the", "animal", "it", "!"]
    assert [unit["a"] for unit in by_token["alignment"]] == [[1], [2], [4], [5]]
    assert [unit["label"] for unit in by_word["alignment"]] == ["the", "it", "!"]
    for answer in (by_token, by_word):
        for unit in answer["alignment"]:
            texts = [
                "".join(trace(client, **side)["tokens"][i]["text"] for i in unit[name])
                for side, name in ((a, "a"), (b, "b"))
            ]
            assert texts == [unit["label"]] * 2
        assert answer["layers"] is None
        assert (
            answer["layers_reason"]
            == "The two inputs have different tokens, so their vectors do not pair up."
        )
        one, other = maps(client, answer, "a", a), maps(client, answer, "b", b)
        assert answer["overall"]["tv"] == pytest.approx(distance(one, other).mean(), rel=1e-4)


def test_a_word_more_is_no_other_word(client):
    """Place alone would pair "animal" with "did" here."""
    answer = compare(client, {"model": BERT, "text": "the the"}, {"model": BERT, "text": "the"}, "word")
    assert [(unit["a"], unit["b"]) for unit in answer["alignment"]] == [([1], [1])]


@pytest.mark.parametrize(
    ("a", "b", "by"),
    [
        ({"model": BERT, "text": "the"}, {"model": BERT, "text": "it"}, "word"),
        ({"model": BERT, "text": "the"}, {"model": BERT, "text": "it"}, "token"),
        ({"model": BERT, "ids": [5, 6]}, {"model": BERT, "ids": [5, 6]}, "word"),
        ({"model": BERT, "ids": [5, 6]}, {"model": MUTE, "ids": [6, 5]}, "token"),
        ({"model": BERT, "text": "!"}, {"model": BERT, "text": "a"}, "word"),
    ],
)
def test_nothing_in_common(client, a, b, by):
    answer = client.post("/api/compare", json={"a": a, "b": b, "by": by})
    assert f"no {by} in common" in problem(answer, 422, "bad-input")["detail"]


def test_masked_predictions_are_not_compared(client):
    answer = compare(client, {"model": MASKED, "text": "the [MASK]"}, {"model": MASKED, "text": "the [MASK]"})
    assert answer["readout"] is None
    assert "side by side" in answer["readout_reason"]


def test_readouts_of_two_models_are_not_compared(client):
    request = [{"model": model, "ids": [4, 5, 6]} for model in (LLAMA, MUTE)]
    answer = compare(client, *request)
    assert answer["readout"] is None
    assert "different spaces" in answer["readout_reason"]
    assert answer["layers"] is None


def test_comparing_is_running_both(client):
    request = {"model": BERT, "text": "did it !"}
    answer = compare(client, request, request)
    assert client.get(f"/api/traces/{answer['a']['id']}/heads").status_code == 200
    assert math.isclose(answer["overall"]["tv"], 0)
