"""Runs of our model and of the eager one of `transformers` on one checkpoint folder, layer by layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from transformers import BertPreTrainedModel, PreTrainedModel

from model.inputs import Inputs
from model.loading import LoadedModel
from model.plan import OWN, Plan
from model.trace import Trace


@dataclass(frozen=True)
class Run:
    """The stream [L + 1, T, D], the last hidden state after a final norm, attention [L, H, T, S], logits."""

    stream: Tensor
    final: Tensor
    attention: Tensor
    logits: Tensor | None

    def assert_near(self, other: "Run", bound: float) -> None:
        """Fails unless every tensor is within `bound`, relative to max(1, its largest value)."""
        for name in ("stream", "final", "attention", "logits"):
            a, b = getattr(self, name), getattr(other, name)
            if b is None:
                assert a is None
                continue
            for layer, (x, y) in enumerate(zip(a, b, strict=True)):
                error = (x - y).abs().max().item() / max(1.0, y.abs().max().item())
                assert error <= bound, f"{name} {layer}: {error:.2g}"


def load(kind: type[PreTrainedModel], folder: Path, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """The model of a folder as `transformers` reads it; no weight may be missing or left over."""
    model, found = kind.from_pretrained(
        folder, attn_implementation="eager", dtype=dtype, output_loading_info=True, local_files_only=True
    )
    strange = {*found["missing_keys"], *found["unexpected_keys"]}
    assert not {name for name in strange if "pooler" not in name}
    return model.eval()


@torch.no_grad()
def theirs(model: PreTrainedModel, ids: Sequence[int], **inputs: Tensor) -> Run:
    """A run of `transformers`' model."""
    base = model.base_model
    blocks = base.encoder.layer if isinstance(model, BertPreTrainedModel) else base.layers
    leaving: list[Tensor] = []
    hook = blocks[-1].register_forward_hook(lambda *call: leaving.append(call[-1]))
    out = model(torch.tensor([list(ids)]), output_hidden_states=True, output_attentions=True, **inputs)
    hook.remove()
    stream = torch.cat([*out.hidden_states[:-1], *leaving])
    logits = out.logits[0] if "logits" in out else None
    return Run(stream, out.hidden_states[-1][0], torch.cat(out.attentions), logits)


def ours(
    loaded: LoadedModel, ids: Sequence[int], plan: Plan = OWN, segments: Sequence[int] | None = None
) -> Run:
    """The same of our model."""
    positions = range(len(ids)) if loaded.config.head else ()
    inputs = Inputs.of(ids, segments)
    trace = loaded.transformer.trace(inputs, plan, record=["resid"], logit_positions=positions)
    return Run(torch.stack(list(trace.resid.values())), trace.final, attention(trace), trace.logits)


def attention(trace: Trace) -> Tensor:
    """Attention of every layer, head and row, [L, H, T, S]."""
    return torch.stack([site.attention(site.all_heads, range(site.queries)) for site in trace.sites.values()])


def assert_peaked(attention: Tensor) -> None:
    """Fails unless in every layer the median row has under 0.6 of the entropy that its open keys allow."""
    for weights in attention:
        entropy = torch.special.entr(weights).sum(-1)
        open_keys = (weights > 0).sum(-1)
        rows = open_keys > 1
        assert (entropy[rows] / open_keys[rows].log()).median() < 0.6
