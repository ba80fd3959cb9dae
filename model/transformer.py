"""START HERE. A Transformer, as in the figure of "Attention Is All You Need" (Vaswani et al. 2017, figure 1).

    ids -> embeddings -> stack of blocks -> head -> prediction
    source ids or sound -> encoder -> memory, which the blocks of a decoder read by cross-attention

    embeddings.py   ids to vectors, with position where it is added        audio.py   sound to vectors
    stack.py        block: x + Attention(x), then x + FFN(x), with norms
    attention.py    q, k, v and W_O        scores.py   softmax(QKᵀ · scale + bias + mask) V, the only place
    position.py     rotary positions       bias.py     positions as biases      masks.py   who sees whom
    heads.py        the prediction         recorder.py, trace.py   what a run leaves behind
    plan.py         what a run changes     cache.py, generate.py   token by token

Letters: B batch, T query position, S key position, H query heads, G key/value heads, D model width, K head
width, F FFN width, L layers, V vocabulary.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from model.attention import Attention
from model.audio import AudioFront
from model.cache import Cache
from model.config import AudioConfig, EncoderConfig, TransformerConfig, layer_of
from model.embeddings import Embeddings
from model.errors import PlanError
from model.heads import TokenHead
from model.inputs import Inputs
from model.masks import blind_query
from model.places import check_places, placed
from model.plan import OWN, Plan, Program, lengths
from model.recorder import Recordable, Recorder
from model.rules import MaskRule, mask_in_words
from model.stack import Block, Stack, StackRun
from model.trace import Trace


class Encoder(nn.Module):
    """The left half of the figure: a front for text or sound, and a stack."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        stack = config.stack
        self.front: AudioFront | Embeddings
        if isinstance(config.front, AudioConfig):
            self.front = AudioFront(config.front, stack.width, stack.position)
        else:
            self.front = Embeddings(config.front, stack.width, stack.position)
        self.stack = Stack(stack)

    def forward(self, inputs: Inputs, run: StackRun, places: Tensor | None) -> Tensor:
        """The memory [B, S, D] of a source text, or of sound."""
        if isinstance(self.front, AudioFront):
            assert inputs.mel is not None
            x = self.front(inputs.mel, places)  # [B, S, D]
        else:
            assert inputs.source is not None
            x = self.front(inputs.source.ids, inputs.source.segments, places)  # [B, S, D]
        memory: Tensor = self.stack(x, run)  # [B, S, D]
        return memory


class Transformer(nn.Module):
    """Encoder-only, decoder-only, or encoder–decoder. What sets the first two apart is their mask alone."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        stack = config.stack
        self.encoder = Encoder(config.encoder) if config.encoder else None
        self.embeddings = Embeddings(config.embedding, stack.width, stack.position)
        self.stack = Stack(stack)
        self.head = TokenHead(stack.width, config.embedding.vocabulary, config.head) if config.head else None

    def forward(
        self,
        inputs: Inputs,
        plan: Plan = OWN,
        recorder: Recorder | None = None,
        *,
        cache: Cache | None = None,
        fused: bool = True,
    ) -> Tensor:
        """The last hidden state [B, T, D] of a run under `plan`, after any final norm.

        With a `cache`, `inputs.ids` are all tokens so far, and only those run that the cache does not hold
        yet. Raises PlanError where the plan does not fit this model and input.
        """
        program = self.program(plan, inputs.tokens, inputs.source_tokens)
        run = StackRun(program, inputs.positions, inputs.real, recorder=recorder, fused=fused)
        if self.encoder is not None and (cache is None or cache.tokens == 0):
            memory = self.encode(inputs, run)  # [B, S, D]
            real = None if inputs.source is None else inputs.source.real
            run = replace(run, memory=memory, memory_real=real)
        first = 0 if cache is None else cache.tokens
        places = placed(program.positions.get(self.config.stack.name), inputs.positions)
        segments = None if inputs.segments is None else inputs.segments[:, first:]
        x = self.embeddings(inputs.ids[:, first:], segments, None if places is None else places[:, first:])
        final: Tensor = self.stack(x, replace(run, cache=cache, first=first))  # [B, T, D]
        if cache is not None:
            cache.tokens = inputs.tokens
        return final

    def encode(self, inputs: Inputs, run: StackRun) -> Tensor:
        """What the encoder makes of its input: the memory [B, S, D]."""
        assert self.encoder is not None
        source = inputs.source or Inputs(torch.zeros(1, inputs.source_tokens, device=inputs.ids.device))
        own = replace(run, positions=source.positions, real=source.real)
        memory: Tensor = self.encoder(
            inputs, own, placed(run.program.positions.get("encoder"), own.positions)
        )
        if run.recorder is not None:
            run.recorder.keep_memory(memory)
        return memory

    def attention_at(self, site: str) -> Attention:
        """The attention at a site of any stack."""
        stack = self.stack
        if self.encoder is not None and self.config.stack_of(site).name == "encoder":
            stack = self.encoder.stack
        block = stack.blocks[layer_of(site)]
        assert isinstance(block, Block)
        attention = block.cross if site in stack.config.cross_sites else block.attention
        assert attention is not None
        return attention

    def logits(self, final: Tensor) -> Tensor:
        """Token logits [B, T, V] of hidden states [B, T, D]. Raises ValueError without a token head."""
        if self.head is None:
            raise ValueError("this model's readout is an embedding: it has no token logits")
        logits: Tensor = self.head(final)  # [B, T, V]
        return logits

    def program(self, plan: Plan, tokens: int, source_tokens: int = 0) -> Program:
        """What `plan` comes to. Raises PlanError where it does not fit, also where a query sees no key."""
        program = plan.program(self.config, tokens, source_tokens)
        for stack in self.config.stacks:
            change = program.positions.get(stack.name)
            if change is not None:
                check_places(change, stack.position, lengths(stack.self_sites[0], tokens, source_tokens)[0])
        seen: set[tuple[MaskRule, int, int]] = set()
        for site, rule in program.rules.items():
            for mask in dict.fromkeys(rule.masks):
                queries, keys = lengths(site, tokens, source_tokens)
                if (mask, queries, keys) not in seen:
                    seen.add((mask, queries, keys))
                    _refuse_blind(mask, site, queries, keys)
        return program

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
        return Trace(
            recorder.in_order(self.config.sites),
            recorder.kept,
            final[0],
            logits,
            tuple(logit_positions),
            recorder.memory,
        )


def _refuse_blind(mask: MaskRule, site: str, queries: int, keys: int) -> None:
    query = blind_query(mask, queries, keys)
    if query is not None:
        raise PlanError(
            f"With the mask “{mask_in_words(mask)}” query {query} sees no key in {site}: "
            "leave it at least one.",
            site=site,
            query=query,
        )
