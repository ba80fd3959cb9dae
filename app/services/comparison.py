"""Holds two traces against each other: attention by head, representations by layer, and the readout."""

from collections.abc import Iterator
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from app.services.alignment import Alignment, align, identity
from app.services.opened import Opened
from app.services.payload import finite
from app.services.readouts import top_tokens
from model.errors import InputError
from model.heads import sentence_vector
from model.trace import SiteTrace

# Attention cells of all heads of both models held at once when looking for the closest heads.
CLOSEST_CELLS = 1 << 24
HEAD_CELLS = 1 << 22


def compare(a: Opened, b: Opened, by: Literal["token", "word"]) -> dict[str, object]:
    """The answer of POST /api/compare. What cannot be compared is null, with the reason beside it."""
    same_text = a.prepared.texts == b.prepared.texts
    _check_comparable(a, b)
    alignment = align(a.prepared.encoded, b.prepared.encoded, by, same_text=same_text)
    same_weights = _weights(a) == _weights(b)
    sites = _compare_heads(a, b, alignment) if same_weights else None
    closest, closest_reason = (None, _SEE_SITES) if same_weights else _closest(a, b, alignment)
    layers = _compare_layers(a, b) if same_weights and alignment.same_tokens else None
    readout, readout_reason = _compare_readouts(a, b, same_weights=same_weights)
    answer = {
        "a": _side(a),
        "b": _side(b),
        "by": by,
        "same_weights": same_weights,
        "alignment": alignment.as_json(),
        "unaligned": {"a": alignment.left_a, "b": alignment.left_b},
        "sites": sites,
        "sites_reason": _sites_reason(a, b) if same_weights else _SEE_CLOSEST,
        "overall": _overall(sites, a, b, alignment),
        "closest": closest,
        "closest_reason": closest_reason,
        "layers": layers,
        "layers_reason": None if layers else _layers_reason(same_weights=same_weights),
        "readout": readout,
        "readout_reason": readout_reason,
    }
    return finite(answer)


def _check_comparable(a: Opened, b: Opened) -> None:
    """Raises InputError where encoder–decoder runs have not the same tokens on both sides."""
    one, other = a.prepared.reading, b.prepared.reading
    if one.source is None and other.source is None:
        return
    if (one.source is None) != (other.source is None):
        paired, single = (a, b) if other.source is None else (b, a)
        raise InputError(
            f"{paired.prepared.model_id} reads a source and a target, {single.prepared.model_id} one text: "
            "they cannot be compared."
        )
    if not one.same_source(other) or one.encoded.ids != other.encoded.ids:
        raise InputError(
            "Two runs of an encoder–decoder model are compared on the same source and the same target: "
            "give both sides the target that one of them has."
        )


def _compare_heads(a: Opened, b: Opened, alignment: Alignment) -> list[dict[str, object]]:
    """Each site that ran on both sides; a plan may leave a layer's attention out."""
    others = b.entry.trace.sites
    both = [(site, others[name]) for name, site in a.entry.trace.sites.items() if name in others]
    return [_compare_site(site_a, site_b, _at(alignment, a, site_a)) for site_a, site_b in both]


def _at(alignment: Alignment, a: Opened, site: SiteTrace) -> Alignment:
    """The alignment of a site: token by token where an encoder's tokens are queries or keys."""
    if a.prepared.reading.source is None or site.site.startswith("decoder.self"):
        return alignment
    return identity(site.keys)


def _compare_site(a: SiteTrace, b: SiteTrace, alignment: Alignment) -> dict[str, object]:
    found: list[Tensor] = []
    for heads in _head_groups(a):
        difference = (
            alignment.of_a(_weights_of(a, heads)) - alignment.of_b(_weights_of(b, heads))
        ).abs()  # [H, U, U+1]
        shown = difference[:, :, :-1]
        distance = difference.sum(dim=2).mean(dim=1) / 2  # [H]
        found.append(torch.stack([shown.amax(dim=(1, 2)), shown.mean(dim=(1, 2)), distance], dim=1))
    stack, kind, layer = a.site.split(".")
    heads_found = [{"max": most, "mean": mean, "tv": tv} for most, mean, tv in torch.cat(found).tolist()]
    return {"site": a.site, "stack": stack, "kind": kind, "layer": int(layer), "heads": heads_found}


def _overall(
    sites: list[dict[str, object]] | None, a: Opened, b: Opened, alignment: Alignment
) -> dict[str, object]:
    """Total variation: mean over heads where these correspond, else between the maps averaged over heads."""
    if sites is not None:
        distances = [head["tv"] for site in sites for head in _heads(site)]
        return {"tv": sum(distances) / len(distances) if distances else None, "over": "heads"}
    if not _head_count(a) or not _head_count(b):
        return {"tv": None, "over": "mean map"}
    difference = (_mean_map(a, alignment, "a") - _mean_map(b, alignment, "b")).abs()  # [U, U+1]
    return {"tv": float(difference.sum(dim=1).mean() / 2), "over": "mean map"}


def _heads(site: dict[str, object]) -> list[dict[str, float]]:
    heads = site["heads"]
    assert isinstance(heads, list)
    return heads


def _mean_map(opened: Opened, alignment: Alignment, side: Literal["a", "b"]) -> Tensor:
    project = alignment.of_a if side == "a" else alignment.of_b
    total = torch.zeros(alignment.units, alignment.units + 1)
    count = 0
    for site in _aligned_sites(opened):
        for heads in _head_groups(site):
            total += project(_weights_of(site, heads)).sum(dim=0)
            count += len(heads)
    return total / count  # [U, U+1]


def _closest(a: Opened, b: Opened, alignment: Alignment) -> tuple[list[dict[str, object]] | None, str | None]:
    """For every head of A the head of B nearest in total variation, or why they were not sought."""
    if not _head_count(a) or not _head_count(b):
        return None, "A plan leaves all attention out on one side, so there are no heads to hold together."
    heads, units = _head_count(a) + _head_count(b), alignment.units
    if units * (units + 1) * heads > CLOSEST_CELLS:
        return (
            None,
            f"The maps of {heads} heads over {units} positions are too many to search: shorten the text.",
        )
    maps_a, names_a = _all_maps(a, alignment, "a")
    maps_b, names_b = _all_maps(b, alignment, "b")
    distances = torch.cdist(maps_a, maps_b, p=1) / (2 * alignment.units)  # [heads of A, heads of B]
    nearest, index = distances.min(dim=1)
    found = enumerate(zip(index.tolist(), nearest.tolist(), strict=True))
    return [{"a": names_a[i], "b": names_b[j], "tv": tv} for i, (j, tv) in found], None


def _all_maps(
    opened: Opened, alignment: Alignment, side: Literal["a", "b"]
) -> tuple[Tensor, list[dict[str, object]]]:
    project = alignment.of_a if side == "a" else alignment.of_b
    maps, names = [], []
    for site in _aligned_sites(opened):
        maps.append(project(_weights_of(site, site.all_heads)).flatten(1))  # [H, U · (U+1)]
        names += [{"site": site.site, "head": head} for head in site.all_heads]
    return torch.cat(maps), names


def _compare_layers(a: Opened, b: Opened) -> list[dict[str, object]]:
    """Per layer: mean cosine of the vectors leaving the block, and the change relative to the vectors."""
    found: list[dict[str, object]] = []
    stacks = a.entry.loaded.config.stacks
    for stack, layer in [(one, layer) for one in stacks for layer in range(one.layers)]:
        key = (stack.name, layer + 1)
        x, y = a.entry.trace.resid[key].float(), b.entry.trace.resid[key].float()  # [T, D] each
        cosine = float(F.cosine_similarity(x, y, dim=1).mean())
        relative = float((x - y).norm() / x.norm())
        found.append({"stack": stack.name, "layer": layer, "cosine": cosine, "relative": relative})
    return found


def _compare_readouts(
    a: Opened, b: Opened, *, same_weights: bool
) -> tuple[dict[str, object] | None, str | None]:
    kinds = [opened.entry.loaded.config.readout for opened in (a, b)]
    if kinds[0] != kinds[1]:
        return None, f"One model reads out {_READOUT[kinds[0]]}, the other {_READOUT[kinds[1]]}."
    if not same_weights:
        return None, "Two models' outputs live in different spaces, so their difference has no meaning."
    if kinds[0] == "embedding":
        vectors = [sentence_vector(opened.entry.trace.final.float()) for opened in (a, b)]
        return {"kind": "embedding", "cosine": float(vectors[0] @ vectors[1])}, None
    if kinds[0] == "masked":
        return None, "Masked predictions are read side by side in the two columns."
    return _compare_predictions(a, b), None


def _compare_predictions(a: Opened, b: Opened) -> dict[str, object]:
    rows = [_last_logits(opened) for opened in (a, b)]
    log_p, log_q = (torch.log_softmax(row.double(), dim=0) for row in rows)  # [V] each
    p, q = log_p.exp(), log_q.exp()
    return {
        "kind": "logits",
        "tv": float((p - q).abs().sum() / 2),
        "kl": float((p * (log_p - log_q)).sum()),
        "a": top_tokens(a.entry.loaded, rows[0]),
        "b": top_tokens(b.entry.loaded, rows[1]),
    }


def _last_logits(opened: Opened) -> Tensor:
    logits = opened.entry.trace.logits
    assert logits is not None
    return logits[-1]


_LEFT_OUT = "A plan leaves attention out in some layers: the others are compared."
_SEE_SITES = "Both sides have the same heads: see what changed in each."
_SEE_CLOSEST = "The heads of two models are not the same heads: see the closest ones."
_READOUT = {"logits": "the next token", "masked": "masked tokens", "embedding": "a sentence vector"}


def _sites_reason(a: Opened, b: Opened) -> str | None:
    return None if a.entry.trace.sites.keys() == b.entry.trace.sites.keys() else _LEFT_OUT


def _layers_reason(*, same_weights: bool) -> str:
    if not same_weights:
        return "Two models' layers live in different spaces, so their difference has no meaning."
    return "The two inputs have different tokens, so their vectors do not pair up."


def _weights_of(site: SiteTrace, heads: range) -> Tensor:
    return site.attention(heads, range(site.queries)).cpu()  # [H, T, S]


def _head_groups(site: SiteTrace) -> Iterator[range]:
    step = max(1, HEAD_CELLS // (site.queries * site.keys))
    for start in range(0, site.heads, step):
        yield range(start, min(start + step, site.heads))


def _aligned_sites(opened: Opened) -> list[SiteTrace]:
    """Attention between the aligned tokens: beside a decoder, an encoder's are not among these."""
    own = opened.entry.loaded.config.stack.self_sites
    return [site for name, site in opened.entry.trace.sites.items() if name in own]


def _head_count(opened: Opened) -> int:
    return sum(site.heads for site in _aligned_sites(opened))


def _weights(opened: Opened) -> tuple[str, str]:
    return opened.prepared.model_id, opened.prepared.name.revision


def _side(opened: Opened) -> dict[str, object]:
    plan = opened.prepared.plan.in_words()
    return {"id": opened.entry.id, "plan_words": plan, "model": opened.model}
