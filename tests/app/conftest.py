"""One server for all tests that leave it as it was; those that change its settings start their own."""

import pytest

from tests.serving import (
    BART,
    BERT,
    LLAMA,
    MASKED,
    MUTE,
    T5,
    WHISPER,
    WILD,
    load,
    serving,
    write_models,
)


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    return write_models(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="session")
def client(models):
    with serving(models) as client:
        for model in (BERT, MASKED, LLAMA, MUTE, WILD, BART, T5, WHISPER):
            assert load(client, model)[-1]["state"] == "ready"
        yield client
