"""The Learn pages: a tour in this order, each page a template of its own."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

from app.paths import TEMPLATES


@dataclass(frozen=True)
class LearnPage:
    """One page of the tour: its place, its title, the question it answers, the claims to try on it."""

    slug: str
    title: str
    question: str
    claims: tuple[str, ...]


TOUR = (
    LearnPage(
        "attention", "One row of attention", "What do queries, keys and values do?", ("C3", "C4", "C18")
    ),
    LearnPage("scaling", "Scaling", "Why divide by √d_k?", ("C5",)),
    LearnPage("heads", "Many heads", "Why several heads, and what does each do?", ("C7", "C8")),
    LearnPage("positions", "Positions", "What would break without positions?", ("C9", "C10", "C11", "C12")),
    LearnPage("context", "Context", "How does one word come to mean two things?", ("C6",)),
    LearnPage("block", "The block", "Why residuals, why norms?", ("C13", "C14", "C16")),
    LearnPage("feed-forward", "Feed-forward", "What does the other half of a block do?", ("C15",)),
    LearnPage(
        "recurrence", "Recurrence against attention", "What did attention replace?", ("C1", "C2", "C20")
    ),
    LearnPage(
        "families", "Families", "Which Transformers are there, and what do they cost?", ("C17", "C20", "C21")
    ),
)

PAGES = {page.slug: page for page in TOUR}


@cache
def used(slug: str, kind: Literal["lab", "widget"]) -> tuple[str, ...]:
    """The labs or the widgets that a page's template names, each once."""
    source = (TEMPLATES / "learn" / f"{slug}.html").read_text("utf-8")
    return tuple(dict.fromkeys(re.findall(rf'data-{kind}="([\w-]+)"', source)))
