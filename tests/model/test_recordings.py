import pytest

from model.errors import UnknownRecording
from model.mel import SAMPLE_RATE
from model.recordings import recording, recordings
from model.wav import read_sound


def test_each_recording_is_a_sound_whose_words_and_origin_are_known():
    assert recordings()
    for name, one in recordings().items():
        samples = read_sound(one.content()).samples
        assert 1 < len(samples) / SAMPLE_RATE < 30
        assert samples.abs().max() > 0.1
        assert one.name == name
        assert all(one.as_json().values())
        assert one.licence == "public domain"


def test_a_recording_that_there_is_not_is_refused_with_those_there_are():
    with pytest.raises(UnknownRecording, match=r"no recording song: choose one of amiable\."):
        recording("song")
