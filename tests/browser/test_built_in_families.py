"""RXNMapper and Whisper as they open, from their real weights."""

import re
from pathlib import Path

import pytest

from model.recordings import recordings
from tests.browser.atlas import Atlas
from tests.browser.conftest import Opener
from tests.browser.paired import write_sound
from tests.browser.test_paired import title

pytestmark = [pytest.mark.browser, pytest.mark.weights]

REACTION = "CC(=O)Cl.OCc1ccccc1>>CC(=O)OCc1ccccc1"


def chosen(atlas: Atlas, model: str) -> Atlas:
    atlas.find("model").select_option(model)
    return atlas.settled()


@pytest.mark.usefixtures("family_weights")
def test_rxnmapper_opens_with_its_reaction(atlas: Atlas) -> None:
    chosen(atlas, "rxnmapper")
    assert atlas.find("text").input_value() == REACTION
    # The published atom-mapping head, whatever rule would have chosen, and two atoms that are one.
    said = re.search(r"^(\S+) looks most at (\S+) (\d\.\d\d) in L10H5", atlas.sentence)
    assert said, atlas.sentence
    assert said[1].lower() == said[2].lower()
    assert float(said[3]) > 0.5
    assert "put the model’s mask token" in atlas.find("readout").inner_text()
    atlas.run(REACTION.replace("Cl", "[MASK]", 1))
    assert atlas.find("readout").locator("h3").inner_text() == "Prediction for [MASK] at place 7"
    most = atlas.find("readout").locator("li").first.inner_text().split()
    assert most[0] == "Cl"


@pytest.mark.usefixtures("family_weights")
def test_a_text_of_ones_own_outlives_the_choice_of_a_model(atlas: Atlas) -> None:
    atlas.run("CCO.CC(=O)O>>CCOC(C)=O")
    chosen(atlas, "rxnmapper")
    assert atlas.find("text").input_value() == "CCO.CC(=O)O>>CCOC(C)=O"


@pytest.mark.usefixtures("family_weights")
def test_a_long_reaction_does_not_break_a_phone(opened: Opener, server: str) -> None:
    atlas = opened(server, viewport={"width": 390, "height": 800}).open()
    chosen(atlas, "rxnmapper").run(f"{'C' * 90}[C@@H](Cl)Br>>{'C' * 90}O")
    assert atlas.state == "ready"
    assert atlas.overflow() <= 0


@pytest.mark.usefixtures("family_weights")
def test_whisper_writes_what_it_hears(atlas: Atlas, tmp_path: Path) -> None:
    chosen(atlas, "whisper-tiny.en")
    said = next(iter(recordings().values())).said
    assert atlas.state == "ready"
    assert said in atlas.find("sound-name").inner_text()
    assert said in atlas.find("written").inner_text()
    with atlas.page.expect_response(lambda response: response.url.endswith("/api/traces")):
        atlas.find("sound-file").set_input_files(write_sound(tmp_path / "tone.wav"))
    atlas.settled()
    assert atlas.state == "ready"
    assert title(atlas).startswith("cross ")
    assert "1,500 source frames" in atlas.sentence
    assert "tone.wav" in atlas.find("sound-name").inner_text()
    # the silence behind the sound is left out until it is asked for
    assert "keys 0–49 of" in atlas.find("zoom").inner_text()
    assert "wrote" in atlas.find("written").inner_text()


@pytest.mark.usefixtures("family_weights")
def test_a_link_carries_the_recording_that_came_along(atlas: Atlas, opened: Opener, server: str) -> None:
    chosen(atlas, "whisper-tiny.en")
    sentence = atlas.sentence
    again = opened(server)
    again.page.goto(atlas.page.url)
    again.settled()
    assert again.sentence == sentence
    assert again.trace("whisper-tiny.en")["written"]


@pytest.mark.usefixtures("family_weights")
def test_what_is_heard_can_be_played_and_stopped(atlas: Atlas) -> None:
    assert not atlas.find("sound-play").is_visible()
    chosen(atlas, "whisper-tiny.en")
    play = atlas.find("sound-play")
    play.click()
    play.get_by_text("Stop").wait_for()
    play.click()
    play.get_by_text("Play").wait_for()
