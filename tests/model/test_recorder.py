import torch

from model.recorder import Recorder
from model.rules import Causal, ScoreRule

RULE = ScoreRule((1.0, 1.0), (Causal(), Causal()))


def test_causes_are_kept_always_and_the_stream_on_request() -> None:
    q, k, v, x = (
        torch.randn(1, 2, 3, 4),
        torch.randn(1, 1, 3, 4),
        torch.randn(1, 1, 3, 4),
        torch.randn(1, 3, 8),
    )
    for record, kept in ((frozenset[str](), []), (frozenset({"resid"}), [("decoder", 2)])):
        recorder = Recorder(record)  # type: ignore[arg-type]
        recorder.keep_attention("decoder.self.2", q, k, v, RULE)
        recorder.keep("resid", ("decoder", 2), x)
        site = recorder.sites["decoder.self.2"]
        assert (site.site, site.rule) == ("decoder.self.2", RULE)
        assert torch.equal(site.q, q[0])
        assert torch.equal(site.k, k[0])
        assert torch.equal(site.v, v[0])
        assert list(recorder.kept.get("resid", {})) == kept
    assert torch.equal(recorder.kept["resid"]["decoder", 2], x[0])


def test_recorders_share_nothing() -> None:
    first, second = Recorder(), Recorder()
    first.keep_attention("encoder.self.0", *torch.randn(3, 1, 2, 3, 4), RULE)
    assert second.sites == {}
