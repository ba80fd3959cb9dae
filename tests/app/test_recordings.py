"""Sounds that come along: listed, served, and named in a trace instead of a file."""

import base64
import io

import soundfile

from model.recordings import recordings
from tests.app.test_encoder_decoder import sound
from tests.serving import BERT, WHISPER, problem, trace


def refused(client, status=422, slug="bad-input", **request):
    return problem(client.post("/api/traces", json=request), status, slug)["detail"]


def test_each_is_listed_and_served_as_the_file_it_is(client):
    listed = client.get("/api/recordings").json()["recordings"]
    assert [one["name"] for one in listed] == list(recordings())
    for one in listed:
        answer = client.get(f"/api/recordings/{one['name']}")
        assert answer.headers["content-type"] == "audio/flac"
        assert soundfile.info(io.BytesIO(answer.content)).samplerate == 16_000
        assert answer.content == recordings()[one["name"]].content()
    unknown = problem(client.get("/api/recordings/song"), 404, "unknown-recording")["detail"]
    assert "choose one of" in unknown


def test_a_trace_hears_a_recording_as_it_hears_the_same_file(client, monkeypatch):
    short = base64.b64decode(sound())
    monkeypatch.setattr("model.recordings.Recording.content", lambda _: short)
    named = trace(client, model=WHISPER, recording="amiable")
    given = trace(client, model=WHISPER, audio=sound())
    assert named["id"] == given["id"]
    assert named["source_tokens"] == given["source_tokens"]


def test_one_sound_is_heard_and_only_by_a_model_that_hears(client):
    both = refused(client, model=WHISPER, audio=sound(), recording="amiable")
    assert "the name of a recording, and no text" in both
    unknown = refused(client, 404, "unknown-recording", model=WHISPER, recording="song")
    assert "no recording song" in unknown
    reads = refused(client, model=BERT, text="a cat", recording="amiable")
    assert "leave out the target and the sound" in reads
    # as long as it is, the tiny model cannot hear it, and says so
    assert "but this model hears" in refused(client, 422, "too-long", model=WHISPER, recording="amiable")
