"""A trace as a page that opens from a file, with no server behind it."""

import base64
import json
from pathlib import Path

import torch

from app.pages import TEMPLATE_ENGINE
from app.services.opened import Opened
from model.errors import OverBudget

# All heads are kept in full in the saved page, one byte a weight; a page beyond this opens slowly everywhere.
MAX_PAGE_WEIGHTS = 48_000_000


def write_html(opened: Opened, path: Path) -> None:
    """Writes a page with all heads that opens from a file. Raises OverBudget where it would be too large."""
    trace = opened.entry.trace
    weights = sum(site.heads * site.queries * site.keys for site in trace.sites.values())
    if weights > MAX_PAGE_WEIGHTS:
        raise OverBudget(
            f"A page with all heads of {trace.tokens} tokens would hold {weights / 1e6:.0f} million weights, "
            f"more than the {MAX_PAGE_WEIGHTS / 1e6:.0f} million a browser opens well: use --npz."
        )
    answer, title = opened.as_json(), f"{opened.prepared.model_id}, {opened.prepared.plan.in_words()}"
    heads = [_bytes(site.attention(site.all_heads, range(site.queries))) for site in trace.sites.values()]
    data = {
        "title": title,
        "tokens": answer["tokens"],
        "source_tokens": answer["source_tokens"],
        "sites": answer["sites"],
        "weights": heads,
    }
    # "<" is written as an escape so that no token can close the script element that holds the data.
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    page = TEMPLATE_ENGINE.get_template("saved.html").render(title=title, data=text)
    path.write_text(page, "utf-8")


def _bytes(weights: torch.Tensor) -> str:
    """Weights [H, T, S] as base64 of round(255 w)."""
    return base64.b64encode((weights * 255).round().to(torch.uint8).cpu().numpy().tobytes()).decode()
