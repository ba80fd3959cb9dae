"""A whole server over tiny random models, for tests that ask it over HTTP."""

import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from tests import tiny, tiny_families
from tests.model.small_tokenizers import sentence_piece, word_piece

BASE = "http://localhost:8000"
BERT, MASKED, LLAMA, MUTE, WILD, BROKEN, BART, T5, WHISPER = (
    f"local:tiny/{name}"
    for name in ("bert", "masked", "llama", "mute", "wild", "broken", "bart", "t5", "whisper")
)
PIECES = 300
TEXT = "the animals did a cab"
CAUSAL = [{"kind": "set_mask", "rule": {"name": "causal"}}]


def write_models(root: Path) -> Path:
    """Writes the folder `tiny` of models: of one stack and two, without tokenizer, overflowing."""
    folder = root / "tiny"
    folder.mkdir()
    llama = tiny.LLAMA | {"vocab_size": PIECES}
    tokenizers = {
        tiny.write(folder / "bert", tiny.BERT, tiny.bert_tensors()): word_piece(),
        tiny.write(folder / "masked", tiny.BERT, tiny.bert_tensors(masked=True)): word_piece(),
        tiny.write(folder / "llama", llama, tiny.llama_tensors(llama)): sentence_piece(),
        tiny_families.write(folder / "bart", tiny_families.BART): word_piece(),
        tiny_families.write(folder / "whisper", tiny_families.WHISPER): word_piece(),
    }
    for place, spec in tokenizers.items():
        (place / "tokenizer.json").write_text(json.dumps(spec), "utf-8")
    tiny_families.write(folder / "t5", tiny_families.T5)
    mute = tiny.LLAMA | {"num_hidden_layers": 2}
    tiny.write(folder / "mute", mute, tiny.llama_tensors(mute))
    loud = {name: tensor * 1e25 for name, tensor in tiny.llama_tensors().items()}
    tiny.write(folder / "wild", tiny.LLAMA, loud)
    tiny.write(folder / "broken", tiny.BERT | {"hidden_act": "tanhshrink"}, tiny.bert_tensors())
    return folder


def settings(root: Path, **given: Any) -> Settings:
    """Settings of a server that offers the models of `root` and fetches nothing."""
    return Settings(
        **{"preload": (), "hub": False, "model_root": (root,), "cache_dir": root.parent / "cache"} | given
    )


@contextmanager
def serving(root: Path, **given: Any) -> Iterator[TestClient]:
    """A running server, asked as its own page would."""
    app = create_app(settings(root, **given))
    with TestClient(app, base_url=BASE, raise_server_exceptions=False) as client:
        yield client


def app_of(client: TestClient) -> FastAPI:
    """The application that a client asks."""
    assert isinstance(client.app, FastAPI)
    return client.app


def load(client: TestClient, model: str) -> list[dict[str, Any]]:
    """Asks for a model and waits for it; returns the states it went through."""
    answer = client.post("/api/models/load", json={"model": model})
    assert answer.status_code == 200, answer.text
    return events(answer)


def events(answer: httpx.Response) -> list[dict[str, Any]]:
    """The data of server-sent events."""
    return [json.loads(event.removeprefix("data: ")) for event in answer.text.split("\n\n") if event]


def trace(client: TestClient, **request: Any) -> dict[str, Any]:
    """Opens a trace; the model is the encoder unless named."""
    answer = client.post("/api/traces", json={"model": BERT} | request)
    assert answer.status_code == 201, answer.text
    return answer.json()


def npy(answer: httpx.Response) -> np.ndarray:
    """The tensor of an answer."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-npy"
    return np.load(io.BytesIO(answer.content), allow_pickle=False)


def weights(client: TestClient, opened: Mapping[str, Any], site: str, head: int, **query: Any) -> np.ndarray:
    """One head's matrix."""
    return npy(client.get(f"/api/traces/{opened['id']}/attention/{site}/{head}", params=query))


def all_weights(client: TestClient, opened: Mapping[str, Any]) -> np.ndarray:
    """Every head's weights in fp64: [L, H, T, S]."""
    layers = [
        np.stack([weights(client, opened, site["site"], head) for head in range(site["heads"])])
        for site in opened["sites"]
    ]
    return np.stack(layers).astype(np.float64)


def problem(answer: httpx.Response, status: int, slug: str) -> dict[str, Any]:
    """The problem document of an answer, checked: one sentence, no trace of the program."""
    body = answer.json()
    assert answer.status_code == status, body
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"
    assert body["type"] == f"urn:attention-atlas:{slug}", body
    assert body["status"] == status
    assert body["title"]
    sentence = body["detail"]
    assert sentence.endswith("."), sentence
    assert "\n" not in sentence
    assert "Traceback" not in answer.text
    assert 'File "' not in answer.text
    return body
