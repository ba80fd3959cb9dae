"""The built-in models, ours and `transformers`' on the same weights, in one process."""

from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedModel, WhisperForConditionalGeneration

from app.settings import load_settings
from benchmarks.peers.hugging_face import same_weights
from benchmarks.peers.whisper import audio, last_logits
from model import zoo
from model.config import TransformerConfig
from model.inputs import Inputs
from model.loading import LoadedModel, load_model
from model.recorder import Recordable
from model.trace import Trace


@dataclass(frozen=True)
class Both:
    """One model twice. Where it predicts the next token, both are asked for the last one's logits alone."""

    ours: LoadedModel
    peer: PreTrainedModel
    mel: Tensor | None = None

    def trace(self, ids: Tensor, record: tuple[Recordable, ...] = ()) -> Trace:
        """Forward and recording, as the server runs it."""
        last = (ids.shape[1] - 1,) if self.ours.config.readout == "logits" else ()
        return self.ours.transformer.trace(Inputs(ids, mel=self.mel), record=record, logit_positions=last)

    @torch.inference_mode()
    def theirs(self, ids: Tensor, *, attentions: bool = False) -> object:
        """The forward of `transformers`, without a cache of keys and values that nobody reads."""
        if self.mel is not None:
            assert isinstance(self.peer, WhisperForConditionalGeneration)
            return last_logits(self.peer, ids, self.mel, attentions=attentions)
        next_token = self.ours.config.readout == "logits"
        decoder = {"use_cache": False, "logits_to_keep": 1} if next_token else {}
        return self.peer(ids, output_attentions=attentions, **decoder)

    def use_eager(self) -> None:
        """From now on the peer computes attention explicitly: what its `output_attentions` needs."""
        self.peer.set_attn_implementation("eager")

    def ids(self, tokens: int) -> Tensor:
        """Random ids [1, T]: the time does not depend on which."""
        vocabulary = self.ours.config.embedding.vocabulary
        low, draw = min(1000, vocabulary // 2), torch.Generator().manual_seed(tokens)
        return torch.randint(low, vocabulary, (1, tokens), generator=draw)

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
    pair = Both(ours, same_weights(ours, path), sound(ours.config))
    for parameter in (*ours.transformer.parameters(), *pair.peer.parameters()):
        parameter.sum()
    return pair


def sound(config: TransformerConfig) -> Tensor | None:
    """All that an encoder can hear, as noise [1, M, 2S]; None for a model that reads."""
    if config.encoder is None:
        return None
    _, front = audio(config)
    shape = (1, front.mel_bins, 2 * front.frames)
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))
