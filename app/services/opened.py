"""An opened trace: what a request led to, and how the API tells it."""

from dataclasses import dataclass

from app.services import readouts
from app.services.runs import Prepared
from app.services.trace_store import Entry
from model.rules import mask_in_words, scale_in_words
from model.text import Token
from model.trace import SiteTrace, Trace

_NOT_FINITE = (
    "This run left the range of its number format: some outputs are not finite, so it predicts nothing,"
    " and weights that are not numbers stay blank in the pictures."
)


@dataclass(frozen=True)
class Opened:
    """The trace a request leads to, with the texts and notices that belong to this request alone."""

    prepared: Prepared
    entry: Entry

    def as_json(self) -> dict[str, object]:
        """The answer of POST /api/traces."""
        loaded, trace, prepared = self.entry.loaded, self.entry.trace, self.prepared
        stack, source = loaded.config.stack, prepared.reading.source
        return {
            "id": self.entry.id,
            "model": self.model,
            "tokens": [_token(token) for token in prepared.encoded.tokens],
            "source_tokens": None if source is None else [_token(token) for token in source.tokens],
            "written": prepared.reading.written,
            "sites": [_site(site, beside=source is not None) for site in trace.sites.values()],
            "sizes": {
                "tokens": trace.tokens,
                "layers": stack.layers,
                "heads": stack.attention.heads,
                "bytes": trace.nbytes,
            },
            "device": loaded.device,
            "dtype": loaded.dtype,
            "ms": round(self.entry.ms, 3),
            "plan": prepared.plan.as_json(),
            "plan_words": prepared.plan.in_words(),
            "readout": readouts.readout(loaded, trace),
            "notices": self.notices,
        }

    @property
    def model(self) -> dict[str, object]:
        """The model, as answers name it."""
        name = self.prepared.name
        return {
            "id": self.prepared.model_id,
            "title": name.title,
            "revision": name.revision,
            "family": self.entry.loaded.family,
        }

    @property
    def notices(self) -> list[str]:
        """What checkpoint, tokenizer, plan or arithmetic did that the user would not see otherwise."""
        trace = self.entry.trace
        reading = self.prepared.reading
        source = [] if reading.source is None else reading.source.notices
        of_text = [*reading.notices, *source, *reading.encoded.notices]
        of_plan = self.prepared.plan.notices(self.entry.loaded.config)
        return [*self.entry.loaded.notices, *of_text, *of_plan, *_numeric_notices(trace)]


def _token(token: Token) -> dict[str, object]:
    return {
        "id": token.id,
        "text": token.text,
        "span": None if token.span is None else list(token.span),
        "words": list(token.words),
        "special": token.special,
        "segment": token.segment,
    }


def _site(site: SiteTrace, *, beside: bool) -> dict[str, object]:
    """A site; `beside` a decoder, an encoder's tokens are the source's."""
    stack, kind, layer = site.site.split(".")
    shared, scale = site.rule.shared_mask, site.rule.shared_scale
    width = site.q.shape[-1]
    return {
        "site": site.site,
        "stack": stack,
        "kind": kind,
        "layer": int(layer),
        "heads": site.heads,
        "kv_heads": site.k.shape[0],
        "d_k": width,
        "scale": scale,
        "scale_words": "differs by head" if scale is None else scale_in_words(scale, width),
        "mask": "differs by head" if shared is None else mask_in_words(shared),
        "mask_by_head": shared is None,
        "queries": site.queries,
        "keys": site.keys,
        "query_tokens": "source_tokens" if beside and stack == "encoder" else "tokens",
        "key_tokens": "source_tokens" if beside and (stack == "encoder" or kind == "cross") else "tokens",
    }


def _numeric_notices(trace: Trace) -> list[str]:
    return [] if trace.finite else [_NOT_FINITE]
