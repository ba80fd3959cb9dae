"""What a run predicts: the next token, masked tokens, or how outputs resemble the whole."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from model.heads import sentence_vector
from model.loading import LoadedModel
from model.trace import Trace

TOP = 10


def logit_positions(loaded: LoadedModel, ids: Sequence[int]) -> tuple[int, ...]:
    """The positions whose logits a trace needs: the last, or for a masked model each mask token."""
    if loaded.config.readout == "logits":
        return (len(ids) - 1,)
    if loaded.config.readout == "masked" and loaded.encoder is not None:
        return tuple(i for i, token in enumerate(ids) if token == loaded.encoder.mask_id)
    return ()


def readout(loaded: LoadedModel, trace: Trace) -> dict[str, object] | None:
    """The prediction of a trace, as the API shows it; None where the run left the range of its numbers."""
    if not trace.finite:
        return None
    if loaded.config.readout == "embedding":
        final = trace.final.float()
        similarity = F.cosine_similarity(final, sentence_vector(final)[None], dim=1)  # [T]
        return {"kind": "embedding", "similarity": similarity.tolist()}
    tops = [top_tokens(loaded, row) for row in _rows(trace)]
    if loaded.config.readout == "logits":
        return {"kind": "logits", "position": trace.logit_positions[-1], "top": tops[-1]}
    found = zip(trace.logit_positions, tops, strict=True)
    return {"kind": "masked", "positions": [{"position": position, "top": top} for position, top in found]}


def top_tokens(loaded: LoadedModel, logits: Tensor) -> list[dict[str, object]]:
    """The likeliest tokens under logits [V], each with its probability over the whole vocabulary."""
    probabilities, ids = torch.softmax(logits.float(), dim=-1).topk(min(TOP, logits.shape[-1]))
    pairs = zip(ids.tolist(), probabilities.tolist(), strict=True)
    return [{"id": id_, "text": label(loaded, id_), "p": p} for id_, p in pairs]


def label(loaded: LoadedModel, id_: int) -> str:
    """The text a token id stands for, or the id itself for a model without tokenizer."""
    return str(id_) if loaded.encoder is None else loaded.encoder.label(id_)


def _rows(trace: Trace) -> list[Tensor]:
    return [] if trace.logits is None else list(trace.logits)
