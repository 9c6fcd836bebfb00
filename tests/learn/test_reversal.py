from __future__ import annotations

import numpy as np
import torch

from openset.learn.reversal import reverse_gradient


def test_values_pass_and_the_gradient_changes_its_sign():
    x = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    weight = torch.arange(30.0).view(2, 5, 3)
    assert torch.equal(reverse_gradient(x), x)
    (plain,) = torch.autograd.grad((x.sin() * weight).sum(), x)
    (turned,) = torch.autograd.grad((reverse_gradient(x).sin() * weight).sum(), x)
    (half,) = torch.autograd.grad((reverse_gradient(x, 0.5).sin() * weight).sum(), x)
    assert torch.equal(turned, -plain)
    np.testing.assert_allclose(half, -plain / 2)
