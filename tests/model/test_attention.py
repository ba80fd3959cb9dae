from pathlib import Path

import numpy as np
import pytest
import torch

from model.attention import Attention, SiteRun
from model.config import AttentionConfig
from model.inputs import Inputs
from model.recorder import Recorder
from model.rules import Causal, ScoreRule
from tests import numpy_attention, tiny

N, D, K = 7, 10, 4


def _built(heads: int, kv_heads: int, *, bias: bool) -> Attention:
    config = AttentionConfig(heads, kv_heads, K, 0.3, qkv_bias=bias, out_bias=bias)
    built = Attention(D, config).double()
    random = torch.Generator().manual_seed(0)
    for parameter in built.parameters():
        parameter.data = torch.randn(parameter.shape, generator=random, dtype=torch.float64)
    return built.requires_grad_(requires_grad=False)


@pytest.mark.parametrize(("heads", "kv_heads"), [(3, 3), (6, 2), (5, 1)])
@pytest.mark.parametrize("bias", [True, False])
def test_it_is_the_formula(heads: int, kv_heads: int, bias: bool) -> None:
    built, x = _built(heads, kv_heads, bias=bias), torch.randn(1, N, D, dtype=torch.float64)
    rule = ScoreRule((0.3,) * heads, (Causal(),) * heads)
    recorder = Recorder()
    result = built(x, SiteRun("decoder.self.0", rule, recorder=recorder))[0].numpy()
    flat = {name: part(x)[0].numpy() for name, part in (("q", built.q), ("k", built.k), ("v", built.v))}
    q, k, v = (part.reshape(N, -1, K).swapaxes(0, 1) for part in flat.values())
    weights = numpy_attention.stages(q, k, rule.scales, [lambda i, j: j <= i] * heads)["weights"]
    mixed = np.concatenate([weights[head] @ v[head * kv_heads // heads] for head in range(heads)], axis=1)
    expected = mixed @ built.o.weight.numpy().T + (built.o.bias.numpy() if bias else 0)
    assert abs(result - expected).max() < 1e-12
    assert abs(recorder.sites["decoder.self.0"].q.numpy() - q).max() == 0


def test_heads_contributions_add_up_to_the_output(tmp_path: Path) -> None:
    loaded = tiny.llama(tmp_path, dtype="float64", attention_bias=False)
    block = loaded.transformer.stack.blocks[0]
    trace = loaded.transformer.trace(Inputs.of(tiny.ids(N)))
    site = trace.sites["decoder.self.0"]
    weights = site.attention(site.all_heads, range(N))
    parts = [
        weights[head] @ block.attention.contribution(head, site.v[site.key_head(head)]) for head in range(6)
    ]
    seen: list[torch.Tensor] = []
    hook = block.attention.register_forward_hook(lambda *call: seen.append(call[-1][0]))
    loaded.transformer(Inputs.of(tiny.ids(N)))
    hook.remove()
    assert (torch.stack(parts).sum(0) - seen[0]).abs().max() < 1e-12
