"""Speech models: a sound instead of a text, kept in the page alone."""

from base64 import b64encode
from pathlib import Path

import pytest

from tests.browser.atlas import REFUSED, Atlas
from tests.browser.conftest import Opener
from tests.browser.paired import write_sound
from tests.browser.test_paired import choose, open_model, posted, title

pytestmark = pytest.mark.browser

WHISPER = "local:paired/whisper"
DROP = """([name, packed]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([Uint8Array.from(atob(packed), (c) => c.charCodeAt(0))], name));
  document.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true }));
}"""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half a second of sound: as much as the tiny model hears, and less than its encoder's length."""
    return write_sound(tmp_path_factory.mktemp("sound") / "tone.wav", 0.5)


@pytest.fixture
def whisper(opened: Opener, paired_server: str) -> Atlas:
    """A tiny Whisper opened by a link, which carries no sound."""
    return open_model(opened, paired_server, WHISPER)


def hear(atlas: Atlas, file: Path) -> Atlas:
    with atlas.page.expect_response(lambda response: response.url.endswith("/api/traces")):
        atlas.find("sound-file").set_input_files(file)
    return atlas.settled()


def test_a_link_says_that_the_sound_is_missing(whisper: Atlas, sound: Path) -> None:
    assert whisper.find("text").is_hidden()
    told = whisper.find("problem").inner_text()
    assert "a link carries none but the example" in told
    assert "choose a WAV or FLAC file" in told
    assert whisper.page.locator(".stage").is_hidden()
    hear(whisper, sound)
    assert whisper.state == "ready"
    assert whisper.find("problem").is_hidden()


def test_the_source_is_told_in_seconds(whisper: Atlas, sound: Path) -> None:
    hear(whisper, sound)
    assert title(whisper).startswith("cross ")
    assert "40 source frames" in whisper.sentence
    key = whisper.find("pair").locator("h2 bdi").nth(1).inner_text()
    assert key.endswith(" s")
    assert 0 <= float(key.removesuffix(" s")) < 0.8
    choose(whisper, "Encoder")
    band = whisper.page.locator("[data-testid=tokens] canvas")
    band.focus()
    before = whisper.find("pair").locator("h2 bdi").nth(1).inner_text()
    whisper.page.keyboard.press("ArrowLeft" if band.get_attribute("aria-valuenow") != "0" else "ArrowRight")
    whisper.settled()
    assert whisper.find("pair").locator("h2 bdi").nth(1).inner_text() != before


def test_the_sound_stays_for_masks_and_for_both_sides_but_out_of_the_link(
    whisper: Atlas, sound: Path
) -> None:
    hear(whisper, sound)
    choose(whisper, "Encoder").mask("causal")
    assert whisper.trace(WHISPER)["plan_words"] == "causal mask at encoder.self.*"
    whisper.find("view").get_by_text("A | B").click()
    whisper.settled()
    assert whisper.state == "ready"
    sides = posted(whisper, "/api/compare")[-1]
    assert sides["a"]["audio"] == sides["b"]["audio"]
    assert len(whisper.page.url) < 1000


def test_a_sound_can_be_dropped(whisper: Atlas, sound: Path) -> None:
    with whisper.page.expect_response(lambda response: response.url.endswith("/api/traces")):
        whisper.page.evaluate(DROP, ["dropped.wav", b64encode(sound.read_bytes()).decode()])
    whisper.settled()
    assert whisper.state == "ready"
    assert "dropped.wav" in whisper.find("sound-name").inner_text()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"ID3 not a sound", "notes.mp3 is neither a WAV nor a FLAC file"),
        (b"RIFF" + bytes(6_000_000), "notes.mp3 has 6.0 MB"),
    ],
)
def test_other_files_are_refused_in_a_sentence(
    whisper: Atlas, tmp_path: Path, content: bytes, words: str
) -> None:
    file = tmp_path / "notes.mp3"
    file.write_bytes(content)
    whisper.find("sound-file").set_input_files(file)
    problem = whisper.find("problem")
    problem.get_by_text(words).wait_for()


def test_the_example_is_heard_or_the_model_says_why_not(whisper: Atlas, sound: Path) -> None:
    whisper.tolerate(REFUSED)
    with whisper.page.expect_response(lambda response: response.url.endswith("/api/traces")) as answer:
        whisper.find("sound-example").click()
    # The tiny model has positions for less than a second, and the recording lasts three.
    assert answer.value.request.post_data_json["recording"]
    whisper.find("problem").get_by_text("but this model hears").wait_for()
    assert whisper.find("sound-play").is_visible()
    hear(whisper, sound)
    assert whisper.state == "ready"
    assert "audio" in posted(whisper, "/api/traces")[-1]


def test_a_phone_shows_the_sound_without_overflow(opened: Opener, paired_server: str, sound: Path) -> None:
    phone = {"viewport": {"width": 390, "height": 800}}
    atlas = hear(open_model(opened, paired_server, WHISPER, phone), sound)
    assert atlas.state == "ready"
    assert atlas.overflow() <= 0


@pytest.mark.parametrize("width", [1280, 390])
def test_beside_a_model_that_reads_every_box_has_a_place_of_its_own(
    opened: Opener, paired_server: str, width: int
) -> None:
    view = {"viewport": {"width": width, "height": 900}}
    reads = {"model": "local:paired/bart", "mask": {"name": "own"}, "scale": "own"}
    atlas = open_model(opened, paired_server, WHISPER, view, view="ab", b=reads)
    parts = atlas.page.locator(".ask > :not(.unseen):visible").all()
    boxes = [box for box in (part.bounding_box() for part in parts) if box is not None]
    assert all(atlas.find(name).is_visible() for name in ("text", "sound", "target"))
    assert atlas.overflow() <= 0
    assert len(boxes) == 6
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            apart_across = one["x"] >= other["x"] + other["width"] or other["x"] >= one["x"] + one["width"]
            apart_down = one["y"] >= other["y"] + other["height"] or other["y"] >= one["y"] + one["height"]
            assert apart_across or apart_down, (one, other)
