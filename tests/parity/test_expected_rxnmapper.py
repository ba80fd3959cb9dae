"""RXNMapper (Schwaller et al. 2021): a head that nobody trained for it maps atoms."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AlbertConfig, AlbertForMaskedLM

from model.inputs import Inputs
from model.loading import LoadedModel, load_model
from tests.parity.references import ours

pytestmark = pytest.mark.weights
REACTION = "CC(=O)Cl.OCc1ccccc1>>CC(=O)OCc1ccccc1"
LAYER, HEAD = 10, 5
# Methyl, carbonyl carbon and oxygen come from the chloride, all else from the alcohol; chlorine leaves.
REACTANT_OF = [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11]
LEAVES = "Cl"


@pytest.fixture(scope="module")
def rxnmapper(weights: Callable[[str], Path]) -> LoadedModel:
    return load_model(weights("rxnmapper"))


@pytest.fixture(scope="module")
def tokens(rxnmapper: LoadedModel) -> tuple[list[int], list[str]]:
    assert rxnmapper.encoder is not None
    encoded = rxnmapper.encoder.encode(REACTION)
    assert encoded.notices == []
    return encoded.ids, [token.text for token in encoded.tokens]


def test_masked_symbols_are_predicted(rxnmapper: LoadedModel, tokens: tuple[list[int], list[str]]) -> None:
    assert rxnmapper.encoder is not None
    assert rxnmapper.encoder.mask_id is not None
    ids, texts = tokens
    places = torch.arange(1, len(ids) - 1)
    masked = torch.tensor([ids]).repeat(len(places), 1)
    masked[torch.arange(len(places)), places] = rxnmapper.encoder.mask_id
    with torch.inference_mode():
        final = rxnmapper.transformer(Inputs(masked))[torch.arange(len(places)), places]
        found = rxnmapper.transformer.logits(final).softmax(-1)
    assert found.argmax(-1).tolist() == ids[1:-1]
    chances = {int(place): p[ids[place]].item() for place, p in zip(places, found, strict=True)}
    leaving = texts.index(LEAVES)
    # Nothing else in the reaction says which halide it was.
    assert 0.5 < chances.pop(leaving) < 0.7
    assert min(chances.values()) > 0.97
    assert sorted(chances.values())[len(chances) // 2] > 0.999


def test_a_head_links_each_product_atom_to_its_reactant_atom(
    rxnmapper: LoadedModel, tokens: tuple[list[int], list[str]]
) -> None:
    ids, texts = tokens
    atoms = [place for place, text in enumerate(texts) if text[0].isalpha()]
    arrow = texts.index(">>")
    reactants, products = [p for p in atoms if p < arrow], [p for p in atoms if p > arrow]
    assert len(products) == len(REACTANT_OF)
    site = rxnmapper.transformer.trace(Inputs.of(ids)).sites[f"encoder.self.{LAYER}"]
    weights = site.attention(range(HEAD, HEAD + 1), range(len(ids)))[0]  # [T, T]
    most_attended = weights[products][:, reactants].argmax(-1).tolist()
    assert most_attended == REACTANT_OF
    links = [(texts[p], texts[reactants[r]]) for p, r in zip(products, most_attended, strict=True)]
    assert all(product == reactant for product, reactant in links)


def test_it_agrees_with_transformers(
    weights: Callable[[str], Path], rxnmapper: LoadedModel, tokens: tuple[list[int], list[str]]
) -> None:
    folder = weights("rxnmapper")
    stated = AlbertConfig.from_json_file(folder / "config.json")
    reference = AlbertForMaskedLM(stated).eval().double()
    reference.set_attn_implementation("eager")
    state = torch.load(folder / "pytorch_model.bin", map_location="cpu", weights_only=True)
    found = reference.load_state_dict(state, strict=False)
    assert not [name for name in found.missing_keys if "position_ids" not in name]
    with torch.no_grad():
        expected = reference(torch.tensor([tokens[0]]), output_attentions=True)
    run = ours(load_model(folder, dtype="float64"), tokens[0])
    assert run.logits is not None
    assert (run.attention - torch.cat(expected.attentions)).abs().max() < 1e-9
    assert (run.logits - expected.logits[0]).abs().max() < 1e-9
    single = ours(rxnmapper, tokens[0])
    assert single.logits is not None
    assert (single.logits - expected.logits[0]).abs().max() < 1e-4 * expected.logits.abs().max()
