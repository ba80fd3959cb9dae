"""START HERE. A Transformer, as in the figure of "Attention Is All You Need" (Vaswani et al. 2017, figure 1).

    ids -> embeddings -> stack of blocks -> head -> prediction

    embeddings.py   ids to vectors, with position where it is added
    stack.py        block: x + Attention(x), then x + FFN(x), with norms
    attention.py    q, k, v and W_O        scores.py   softmax(QKᵀ · scale + mask) V, and nothing else does it
    position.py     rotary positions       masks.py    who sees whom
    heads.py        the prediction         recorder.py, trace.py   what a run leaves behind

Letters: B batch, T query position, S key position, H query heads, G key/value heads, D model width,
K head width, F FFN width, L layers, V vocabulary.
"""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from model.config import TransformerConfig
from model.embeddings import Embeddings
from model.errors import PlanError
from model.heads import TokenHead
from model.inputs import Inputs
from model.interventions import OWN, Plan
from model.masks import blind_query
from model.recorder import Recordable, Recorder
from model.rules import MaskRule, ScoreRule, mask_in_words
from model.stack import Stack
from model.trace import Trace


class Transformer(nn.Module):
    """An encoder-only or decoder-only Transformer. What sets them apart is the mask in their config."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        stack = config.stack
        self.embeddings = Embeddings(config.embedding, stack.width, stack.position)
        self.stack = Stack(stack)
        self.head = TokenHead(stack.width, config.embedding.vocabulary, config.head) if config.head else None

    def forward(
        self, inputs: Inputs, plan: Plan = OWN, recorder: Recorder | None = None, *, fused: bool = True
    ) -> Tensor:
        """The last hidden state [B, T, D] of a run under `plan`, after any final norm.

        Raises PlanError where the plan does not fit this model and input.
        """
        rules = self.score_rules(plan, inputs.tokens)
        x = self.embeddings(inputs)  # [B, T, D]
        final: Tensor = self.stack(x, inputs, rules, recorder, fused=fused)  # [B, T, D]
        return final

    def logits(self, final: Tensor) -> Tensor:
        """Token logits [B, T, V] of hidden states [B, T, D]. Raises ValueError without a token head."""
        if self.head is None:
            raise ValueError("this model's readout is an embedding: it has no token logits")
        logits: Tensor = self.head(final)  # [B, T, V]
        return logits

    def score_rules(self, plan: Plan, tokens: int) -> Mapping[str, ScoreRule]:
        """The score rule of every site under `plan`. Raises PlanError, also where a query sees no key."""
        rules = plan.score_rules(self.config.stack, tokens)
        first_sites: dict[MaskRule, str] = {}
        for site, rule in rules.items():
            for mask in rule.masks:
                first_sites.setdefault(mask, site)
        for mask, site in first_sites.items():
            query = blind_query(mask, tokens)
            if query is not None:
                raise PlanError(
                    f"With the mask “{mask_in_words(mask)}” query {query} sees no key in {site}: "
                    "leave it at least one.",
                    site=site,
                    query=query,
                )
        return rules

    @torch.inference_mode()
    def trace(
        self,
        inputs: Inputs,
        plan: Plan = OWN,
        record: Iterable[Recordable] = (),
        logit_positions: Sequence[int] = (),
    ) -> Trace:
        """Runs one sequence and keeps the causes of its attention; logits only at `logit_positions`."""
        if inputs.ids.shape[0] != 1 or inputs.real is not None:
            raise ValueError("a trace holds one unpadded sequence: batched arithmetic changes bits")
        recorder = Recorder(frozenset(record))
        final = self(inputs, plan, recorder)  # [1, T, D]
        logits = self.logits(final[:, list(logit_positions)])[0] if logit_positions else None
        return Trace(recorder.sites, recorder.resid, final[0], logits, tuple(logit_positions))
