"""The built-in models, ours and `transformers`' on the same weights, in one process."""

from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedModel

from app.settings import load_settings
from benchmarks.peers.hugging_face import same_weights
from model import zoo
from model.inputs import Inputs
from model.loading import LoadedModel, load_model
from model.recorder import Recordable
from model.trace import Trace


@dataclass(frozen=True)
class Both:
    """One model twice. With a token head both are asked for the last position's logits alone."""

    ours: LoadedModel
    peer: PreTrainedModel

    def trace(self, ids: Tensor, record: tuple[Recordable, ...] = ()) -> Trace:
        """Forward and recording, as the server runs it."""
        last = (ids.shape[1] - 1,) if self.ours.config.head else ()
        return self.ours.transformer.trace(Inputs(ids), record=record, logit_positions=last)

    @torch.inference_mode()
    def theirs(self, ids: Tensor, *, attentions: bool = False) -> object:
        """The forward of `transformers`, without a cache of keys and values that nobody reads."""
        decoder = {"use_cache": False, "logits_to_keep": 1} if self.ours.config.head else {}
        return self.peer(ids, output_attentions=attentions, **decoder)

    def use_eager(self) -> None:
        """From now on the peer computes attention explicitly: what its `output_attentions` needs."""
        self.peer.set_attn_implementation("eager")

    def ids(self, tokens: int) -> Tensor:
        """Random ids [1, T]: the time does not depend on which."""
        vocabulary = self.ours.config.embedding.vocabulary
        return torch.randint(1000, vocabulary, (1, tokens), generator=torch.Generator().manual_seed(tokens))

    def assert_equal(self) -> None:
        """Raises AssertionError unless both sides compute the same."""
        ids = self.ids(48)
        trace, theirs = self.trace(ids), self.theirs(ids)
        mine = trace.final if trace.logits is None else trace.logits
        other = theirs.last_hidden_state[0] if trace.logits is None else theirs.logits[0]
        error = (mine - other).abs().max().item() / other.abs().max().item()
        assert error < 1e-4, f"the two models differ by {error:.2g}: their times cannot be compared"


def both(model_id: str) -> Both:
    """A built-in model, every weight touched. Raises LookupError where it has not been fetched."""
    path = zoo.local(zoo.entries()[model_id], load_settings().cache_dir)
    if path is None:
        raise LookupError(f"{model_id} is not here: attention-atlas models fetch {model_id}")
    ours = load_model(path)
    pair = Both(ours, same_weights(ours, path))
    for parameter in (*ours.transformer.parameters(), *pair.peer.parameters()):
        parameter.sum()
    return pair
