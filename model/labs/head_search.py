"""Which heads link one word to another: the weight, beside that between other words at the same distance."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model.errors import InputError
from model.labs.bench import Bench
from model.labs.parameters.heads import HeadSearch
from model.labs.probing import opened
from model.labs.reading import Ran, run_ids
from model.labs.result import Axis, Chart, Check, Heatmap, Line, Result
from model.labs.word_links import (
    Word,
    find_word,
    read_short,
    repeated_note,
    same_distance,
    word_weights,
    words_of,
)
from model.trace import SiteTrace

MAX_TOKENS = 512
RANKED = 10
SHOWN_WORDS = 64


@dataclass(frozen=True)
class Search:
    """What was asked, in a text that ran: places of both words, and `rows` [L · H, W] of the one that looks.

    `elsewhere` [L · H] is the mean weight between other words at this distance, None where there are none.
    """

    ran: Ran
    words: Sequence[Word]
    looking: int
    target: int
    rows: Tensor
    elsewhere: Tensor | None

    @property
    def heads(self) -> int:
        """Heads a layer."""
        return self.ran.loaded.config.stack.attention.heads

    def name(self, head: int) -> str:
        """A head as L3H1."""
        return f"L{head // self.heads}H{head % self.heads}"

    @property
    def linked(self) -> bool:
        """Whether any head gives the link any weight: a mask may hide it."""
        return bool((self.rows[:, self.target] > 0).any())

    @property
    def order(self) -> list[int]:
        """All heads, the strongest link first."""
        order: list[int] = self.rows[:, self.target].argsort(descending=True, stable=True).tolist()
        return order


def run(parameters: HeadSearch, bench: Bench) -> Result:
    """Ranks every head. Raises what `read_short` raises, and InputError where a word is not in the text."""
    loaded = bench.model(parameters.model)
    encoded = read_short(loaded, parameters.model, parameters.text, MAX_TOKENS)
    words = words_of(encoded, parameters.text)
    looking = find_word(words, parameters.word, parameters.word_occurrence)
    target = find_word(words, parameters.target, parameters.target_occurrence)
    if looking == target:
        raise InputError(f"“{parameters.word}” cannot be linked to itself: name another word or occurrence.")
    ran = Ran(loaded, encoded, run_ids(loaded, encoded))
    with torch.inference_mode():
        search = _search(ran, words, looking, target)
        checks = _checks(search, parameters)
    rows = [_row(search, head) for head in search.order[:RANKED]] if search.linked else []
    facts = {
        "text": parameters.text,
        "model": parameters.model,
        "heads": len(search.rows),
        "looking": words[looking].label,
        "target": words[target].label,
        "stack": next(iter(ran.trace.sites)).rpartition(".")[0],
        "best": _best(search) if search.linked else None,
        "table": rows,
    }
    if not search.linked:
        return Result([_links(search)], checks, facts, _notes(search))
    row, notes = _looks(search)
    return Result([_links(search), row], checks, facts, [*_notes(search), *notes])


def _search(ran: Ran, words: Sequence[Word], looking: int, target: int) -> Search:
    rows, elsewhere = [], []
    for site in ran.trace.sites.values():
        weights = _between(site, words)  # [H, W, W]
        rows.append(weights[:, looking])
        elsewhere.append(same_distance(weights, words, looking, target))
    others = [mean for mean in elsewhere if mean is not None]
    return Search(ran, words, looking, target, torch.cat(rows), torch.cat(others) if others else None)


def _between(site: SiteTrace, words: Sequence[Word]) -> Tensor:
    patterns = site.attention(site.all_heads, range(site.queries)).float().cpu()  # [H, T, T]
    return word_weights(patterns, words)  # [H, W, W]


def _row(search: Search, head: int) -> dict[str, object]:
    row = search.rows[head]
    place = int(row.argmax())
    elsewhere = None if search.elsewhere is None else search.elsewhere[head].item()
    return {
        "head": search.name(head),
        "weight": row[search.target].item(),
        "at this distance elsewhere": elsewhere,
        "looks most at": search.words[place].label,
        "with weight": row[place].item(),
    }


def _best(search: Search) -> dict[str, object]:
    head = search.order[0]
    row = search.rows[head]
    first = search.words[search.looking].tokens[0]
    return {
        "name": search.name(head),
        "layer": head // search.heads,
        "head": head % search.heads,
        "weight": row[search.target].item(),
        "elsewhere": None if search.elsewhere is None else search.elsewhere[head].item(),
        "compared": search.elsewhere is not None,
        "flat": _flat(search),
        "query": first,
        "key": search.words[search.target].tokens[0],
    }


def _flat(search: Search) -> float:
    """What a head that looks at every open key alike would give the target."""
    seen = opened(search.ran.trace).float()  # [T, T]
    pattern = seen / seen.sum(dim=1, keepdim=True)
    return word_weights(pattern, search.words)[search.looking, search.target].item()


def _links(search: Search) -> Heatmap:
    values = search.rows[:, search.target].view(-1, search.heads)  # [L, H]
    title = f"Weight from “{search.words[search.looking].label}” to “{search.words[search.target].label}”"
    layers, heads = values.shape
    return Heatmap(
        "links", title, Axis("head"), Axis("layer"), list(range(heads)), list(range(layers)), values, "weight"
    )


def _looks(search: Search) -> tuple[Chart, list[str]]:
    """The whole row of the first head, or its largest part."""
    head = search.order[0]
    row = search.rows[head]
    places = sorted({search.target, *row.argsort(descending=True)[: SHOWN_WORDS - 1].tolist()})
    names = [f"{place} {search.words[place].label}" for place in places]
    title = f"Where {search.name(head)} looks from “{search.words[search.looking].label}”"
    chart = Chart("row", title, Axis("word"), Axis("weight"), [Line("weight", names, row[places])], "bars")
    left_out = len(row) - len(places)
    least = "the word with the smallest weight is", "words with the smallest weights are"
    words = least[0].capitalize() if left_out == 1 else f"{left_out} {least[1]}"
    notes = [f"{words} not drawn in the row."] if left_out else []
    return chart, notes


def _checks(search: Search, parameters: HeadSearch) -> list[Check]:
    """The drawn weights against single cells of the trace's matrices; a row's sum against 1."""
    looking = find_word(search.words, parameters.word, parameters.word_occurrence)
    target = find_word(search.words, parameters.target, parameters.target_occurrence)
    queries, keys = search.words[looking].tokens, search.words[target].tokens
    drawn, found = _links(search).values, []
    for layer, name in enumerate(search.ran.loaded.config.stack.self_sites):
        site = search.ran.trace.sites[name]
        rows = [site.attention(site.all_heads, range(query, query + 1))[:, 0].tolist() for query in queries]
        for head in range(site.heads):
            weight = sum(row[head][key] for row in rows for key in keys) / len(queries)
            found.append(abs(weight - drawn[layer, head].item()))
    name = "largest difference between a drawn weight and the trace's own cells"
    # Single weights of at most 1 in fp32, added in another order.
    checks = [Check(name, 0.0, max(found), 1e-5, about="links")]
    if search.linked:
        best = search.order[0]
        name = f"sum of the row of {search.name(best)} over all words"
        checks.append(Check(name, 1.0, search.rows[best].sum().item(), 1e-5, about="row"))
    return checks


def _notes(search: Search) -> list[str]:
    notes = [note for place in (search.looking, search.target) for note in repeated_note(search.words, place)]
    looking, target = search.words[search.looking], search.words[search.target]
    seen = opened(search.ran.trace)[list(looking.tokens)][:, list(target.tokens)]
    if not seen.any():
        notes.append(
            f"“{looking.label}” cannot see “{target.label}” under this model's mask: no head links them."
        )
    pieces = [f"“{word.label}” {len(word.tokens)}" for word in (looking, target) if len(word.tokens) > 1]
    if pieces:
        tokens = f"Words of several tokens: {', '.join(pieces)}"
        notes.append(f"{tokens}. Weights are summed over those looked at, averaged over those that look.")
    return notes
