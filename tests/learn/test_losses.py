from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from openset.learn.losses import (
    ConstrainedLoss,
    class_loss,
    hard_rate,
    known_loss,
    novel_loss,
    reverse_gradient,
    soft_rate,
)

RANDOM = torch.Generator().manual_seed(0)
NOVELTY = torch.randn(3, 10, 4, generator=RANDOM)
CLASSES = torch.randn(3, 10, 5, generator=RANDOM)
Y = torch.randint(0, 5, (3, 6), generator=RANDOM)


def test_losses_are_their_formulas_for_each_member():
    p = CLASSES[1, :6].softmax(dim=-1)
    assert class_loss(CLASSES[:, :6], Y)[1].item() == pytest.approx(
        -p[range(6), Y[1]].log().mean().item(), rel=1e-5
    )
    np.testing.assert_allclose(known_loss(NOVELTY), -F.logsigmoid(-NOVELTY).mean(dim=1), atol=1e-6)
    np.testing.assert_allclose(novel_loss(NOVELTY), -F.logsigmoid(NOVELTY).mean(dim=1), atol=1e-6)
    np.testing.assert_allclose(soft_rate(NOVELTY, 1.2), (1 / (1 + (-1.2 * NOVELTY).exp())).mean(dim=1), atol=1e-6)
    np.testing.assert_allclose(hard_rate(NOVELTY), (NOVELTY.numpy() > 0).mean(axis=1), atol=1e-12)


def test_the_fused_loss_and_its_gradient_are_those_of_the_plain_ones():
    weight = torch.tensor([[0.3, 1.0, 2.0, 0.0]] * 3) * torch.tensor([[1.0], [2.0], [0.5]])
    scale = torch.tensor([1.0, 0.5, 3.0])
    results = []
    for fused in (True, False):
        classes, novelty = CLASSES.clone().requires_grad_(), NOVELTY.clone().requires_grad_()
        if fused:
            objective, recall = ConstrainedLoss.apply(classes, novelty, Y, 1.7, 1.2)
        else:
            objective = 1.7 * class_loss(classes[:, :6], Y) + known_loss(novelty[:, :6]).sum(dim=1)
            recall = soft_rate(novelty[:, 6:], 1.2)
        ((scale * objective).sum() - (weight * recall).sum()).backward()
        results.append([t.detach().numpy() for t in (objective, recall, classes.grad, novelty.grad)])
    for ours, plain in zip(*results, strict=True):
        np.testing.assert_allclose(ours, plain, atol=1e-6)


def test_reversal_passes_values_and_changes_the_sign_of_the_gradient():
    x = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    weight = torch.arange(30.0).view(2, 5, 3)
    assert torch.equal(reverse_gradient(x), x)
    (plain,) = torch.autograd.grad((x.sin() * weight).sum(), x)
    (turned,) = torch.autograd.grad((reverse_gradient(x).sin() * weight).sum(), x)
    (half,) = torch.autograd.grad((reverse_gradient(x, 0.5).sin() * weight).sum(), x)
    assert torch.equal(turned, -plain)
    np.testing.assert_allclose(half, -plain / 2)
