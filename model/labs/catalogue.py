"""Which labs there are. No torch here: a lab's own module is imported when it is first run."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING

from model.errors import UnknownLab
from model.labs.parameters.alibi import AlibiLab, T5Buckets
from model.labs.parameters.attention_row import AttentionRow, MaskSwap
from model.labs.parameters.base import Parameters
from model.labs.parameters.block import Depth, Stream, Switches, Walk
from model.labs.parameters.context import Context
from model.labs.parameters.cross_attention import CrossAttention
from model.labs.parameters.families import Archetypes, ConfigCard, Families, ScalingLaws
from model.labs.parameters.feed_forward import Activations, Facts, Forms, Neurons
from model.labs.parameters.heads import HeadLabels, Heads, HeadSearch, OnePattern
from model.labs.parameters.order import MaskOrder, Order
from model.labs.parameters.positions import LearnedPositions, PastLength, Positions
from model.labs.parameters.recurrence import Gradients, Paths, Recall, Recurrence, RecurrenceTime
from model.labs.parameters.rope import RopeLab, RopeModel
from model.labs.parameters.scaling import RealScores, Scaling, SoftmaxGradient, SoftmaxSaturation

if TYPE_CHECKING:
    from model.labs.bench import Bench
    from model.labs.result import Result


@dataclass(frozen=True)
class Lab:
    """A lab: what it asks, the claims it tests, and the module of `model.labs` whose `run` answers.

    `lengthy` says that at its defaults it takes about a second or more: pages run it again when Run is
    pressed, others at each change. Any lab may take some seconds for a large model, a long text or large
    numbers. `clocks` says that what it measures is time.
    """

    name: str
    question: str
    claims: tuple[str, ...]
    parameters: type[Parameters]
    module: str
    lengthy: bool = False
    clocks: bool = False

    def run(self, parameters: Parameters, bench: "Bench") -> "Result":
        """Runs it; what the tokenizer tells of the texts joins the notes.

        Raises AtlasError where the parameters and the model do not go together.
        """
        from model.labs.reading import noticing  # noqa: PLC0415 -- this is where torch comes in

        experiment: Callable[[Parameters, Bench], Result] = import_module(f"model.labs.{self.module}").run
        with noticing() as notices:
            result = experiment(parameters, bench)
        return replace(result, notes=list(dict.fromkeys([*result.notes, *notices])))


_ALL: tuple[Lab, ...] = (
    Lab(
        "attention-row", "What does one query make of all keys?", ("C3", "C4"), AttentionRow, "attention_row"
    ),
    Lab("mask-swap", "What does a mask forbid?", ("C18",), MaskSwap, "mask_swap"),
    Lab("heads", "Why several heads, and how do they become one output?", ("C7",), Heads, "heads"),
    Lab("one-pattern", "What is lost where heads must share a pattern?", ("C7",), OnePattern, "one_pattern"),
    Lab("head-labels", "What does each head do?", ("C8",), HeadLabels, "head_labels", lengthy=True),
    Lab("head-search", "Which heads link one word to another?", ("C8",), HeadSearch, "head_search"),
    Lab("context", "How does one word come to mean two things?", ("C6",), Context, "context", lengthy=True),
    Lab("scaling", "How far do scores spread?", ("C5",), Scaling, "scaling"),
    Lab(
        "softmax-saturation", "When does softmax saturate?", ("C5",), SoftmaxSaturation, "softmax_saturation"
    ),
    Lab(
        "softmax-gradient",
        "What gradient reaches a query?",
        ("C5",),
        SoftmaxGradient,
        "softmax_gradient",
    ),
    Lab(
        "real-scores",
        "How far do a real model's scores spread?",
        ("C5",),
        RealScores,
        "real_scores",
    ),
    Lab("positions", "How do sines and cosines tell positions?", ("C10",), Positions, "positions"),
    Lab("rope", "What does rotating q and k make of their score?", ("C11",), RopeLab, "rope"),
    Lab("rope-model", "Does a real score depend on m − n?", ("C11",), RopeModel, "rope_model", lengthy=True),
    Lab("alibi", "How fast does each head's bias grow with distance?", ("C12",), AlibiLab, "alibi"),
    Lab("t5-buckets", "Which distances share a bucket?", ("C12",), T5Buckets, "t5_buckets"),
    Lab("learned-positions", "What is in a learned table?", ("C12",), LearnedPositions, "learned_positions"),
    Lab("past-length", "What holds past the length?", ("C12",), PastLength, "past_length", lengthy=True),
    Lab("order", "Does order matter without positions?", ("C9",), Order, "order"),
    Lab("mask-order", "How does a causal mask tell order?", ("C9",), MaskOrder, "mask_order"),
    Lab("archetypes", "Which tokens see which?", ("C17",), Archetypes, "archetypes"),
    Lab(
        "cross-attention",
        "Where does a decoder look in its source?",
        ("C17",),
        CrossAttention,
        "cross_attention",
        lengthy=True,
    ),
    Lab("families", "What are published models made of?", ("C21",), Families, "families"),
    Lab("config", "What is a config.json's model made of?", ("C21",), ConfigCard, "config_card"),
    Lab("scaling-laws", "Where on the scaling curves is a model?", ("C20",), ScalingLaws, "scaling_laws"),
    Lab("block", "What happens in one block?", ("C16",), Walk, "block"),
    Lab("stream", "What is written into the stream?", ("C13", "C14"), Stream, "stream"),
    Lab("switches", "What breaks without its parts?", ("C13", "C14"), Switches, "switches"),
    Lab("depth", "How deep do gradients carry?", ("C13", "C14"), Depth, "depth", lengthy=True),
    Lab("feed-forward", "What does a neuron make of its input?", ("C15",), Activations, "feed_forward"),
    Lab("ffn-forms", "What does a gate buy?", ("C15",), Forms, "ffn_forms", lengthy=True),
    Lab("neurons", "Which neurons speak for a token?", ("C15",), Neurons, "neurons"),
    Lab("facts", "Where does an answer enter?", ("C15",), Facts, "facts", lengthy=True),
    Lab("recurrence", "How many steps wait for each other?", ("C1",), Recurrence, "recurrence"),
    Lab(
        "recurrence-time",
        "What does waiting cost?",
        ("C1",),
        RecurrenceTime,
        "recurrence_time",
        lengthy=True,
        clocks=True,
    ),
    Lab("paths", "How far does information travel?", ("C20",), Paths, "paths"),
    Lab("gradients", "How far do gradients reach?", ("C2",), Gradients, "gradients", lengthy=True),
    Lab("recall", "What is recalled after a gap?", ("C2",), Recall, "recall", lengthy=True),
)

LABS: dict[str, Lab] = {lab.name: lab for lab in _ALL}


def no_lab(name: str) -> UnknownLab:
    """The error for a name that no lab has."""
    return UnknownLab(f"There is no lab {name}: there are {', '.join(LABS)}.", labs=list(LABS))
