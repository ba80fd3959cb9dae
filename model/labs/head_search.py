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
from model.labs.word_links import Word, find_word, read_short, same_distance, word_weights, words_of
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
    rows = [_row(search, head) for head in search.order[:RANKED]]
    facts = {
        "text": parameters.text,
        "model": parameters.model,
        "heads": len(search.rows),
        "looking": words[looking].label,
        "target": words[target].label,
        "stack": next(iter(ran.trace.sites)).rpartition(".")[0],
        "best": _best(search),
        "table": rows,
    }
    row, notes = _looks(search)
    return Result([_links(search), row], _checks(search), facts, [*_notes(search), *notes])


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


def _checks(search: Search) -> list[Check]:
    total = search.rows[search.order[0]].sum().item()
    return [
        Check(
            f"sum of the row of {search.name(search.order[0])} over all words", 1.0, total, 1e-5, about="row"
        )
    ]


def _notes(search: Search) -> list[str]:
    notes = []
    looking, target = search.words[search.looking], search.words[search.target]
    seen = opened(search.ran.trace)[list(looking.tokens)][:, list(target.tokens)]
    if not seen.any():
        notes.append(f"This model's mask hides “{target.label}” from “{looking.label}”: every weight is 0.")
    pieces = [f"“{word.label}” {len(word.tokens)}" for word in (looking, target) if len(word.tokens) > 1]
    if pieces:
        tokens = f"Words of several tokens: {', '.join(pieces)}"
        notes.append(f"{tokens}. Weights are summed over those looked at, averaged over those that look.")
    return notes
