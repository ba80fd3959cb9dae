"""The linear layer, by the faster one of torch's two CPU libraries."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# From so many multiplications on oneDNN is faster than MKL, which torch takes for float32; by a small weight
# it takes more of them.
PRODUCTS = 8_000_000
SMALL_WEIGHT, PRODUCTS_BY_SMALL = 1 << 17, 30_000_000
# What torch's own compiler calls. Where a torch lacks it, MKL does.
_ONEDNN = getattr(torch.ops.mkldnn, "_linear_pointwise", None)


class Linear(nn.Linear):
    """x Wᵀ + b."""

    def forward(self, x: Tensor) -> Tensor:
        """Maps x [..., D] to [..., F]."""
        if _ONEDNN is not None and self._suits(x):
            out: Tensor = _ONEDNN(x, self.weight, self.bias, "none", [], "")  # [..., F]
            return out
        return F.linear(x, self.weight, self.bias)  # [..., F]

    def _suits(self, x: Tensor) -> bool:
        # oneDNN's routine knows no gradients.
        plain = x.device.type == "cpu" and x.dtype == torch.float32 and not torch.is_grad_enabled()
        least = PRODUCTS if self.weight.numel() > SMALL_WEIGHT else PRODUCTS_BY_SMALL
        return plain and x.numel() * self.out_features >= least
