from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

from openset.learn.primal_dual import Multipliers, ParameterGroup, PrimalDual, Terms, make_optimizer


def stepper(parameter, *, rate=0.05, multipliers=None, **options):
    return PrimalDual(
        [ParameterGroup([parameter])], make_optimizer("sgd", [parameter], rate), multipliers, **options
    )


def test_the_engine_finds_a_multiplier_known_in_closed_form():
    """min ½‖x − a‖² s.t. w·x ≥ b has λ* = (b − w·a) / ‖w‖² and x* = a + λ* w, where that is positive."""
    a, w, b = torch.tensor([1.0, -2.0]), torch.tensor([0.6, 0.8]), torch.tensor([[2.0], [-5.0]])
    x = nn.Parameter(torch.zeros(2, 2))  # two members: one constraint binds, the other does not
    multipliers = Multipliers([math.inf] * 2, 1, "sgd", 0.05)
    engine = stepper(x, multipliers=multipliers)

    def terms():
        violation = b - (x * w).sum(dim=1, keepdim=True)
        return Terms(0.5 * ((x - a) ** 2).sum(dim=1), violation)

    for _ in range(3000):
        engine.step(terms)
    expected = [(2 - float(w @ a)) / float(w @ w), 0.0]
    assert multipliers.values[:, 0].tolist() == pytest.approx(expected, abs=1e-3)
    assert x[0].tolist() == pytest.approx((a + expected[0] * w).tolist(), abs=1e-3)
    assert x[1].tolist() == pytest.approx(a.tolist(), abs=1e-3)


@pytest.mark.parametrize("violation", [0.13, -0.0004])
def test_plain_ascent_adds_up_exactly(violation):
    """After n steps with constant violation c, λ = 1 + n·lr·c."""
    x, rate, n = nn.Parameter(torch.zeros(1, 3)), 0.02, 500
    multipliers = Multipliers([math.inf] * 1, 1, "sgd", rate)
    engine = stepper(x, multipliers=multipliers)
    constant = torch.full((1, 1), violation, dtype=torch.float64)
    for _ in range(n):
        engine.step(lambda: Terms(x.sum(dim=1), constant * x.sum() * 0 + constant, constant))
    assert multipliers.values.item() == pytest.approx(1 + n * rate * violation, abs=1e-12)


def test_multipliers_never_become_negative():
    multipliers = Multipliers([math.inf] * 1, 2, "sgd", 1.0)
    multipliers.ascend(torch.tensor([[-5.0, 0.5]]))
    assert multipliers.values.tolist() == [[0.0, 1.5]]


def test_adam_of_the_multipliers_is_torchs_adam():
    multipliers = Multipliers([math.inf] * 2, 3, "adam", 0.02)
    reference = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([reference], lr=0.02, maximize=True)
    random = torch.Generator().manual_seed(0)
    for _ in range(200):
        violation = torch.randn(2, 3, generator=random, dtype=torch.float64) * 0.1 + 0.05
        multipliers.ascend(violation)
        reference.grad = violation.clone()
        adam.step()
        with torch.no_grad():
            reference.clamp_(min=0)
    np.testing.assert_allclose(multipliers.values, reference.detach(), atol=1e-12)


def test_two_equal_steps_from_one_state_give_equal_updates():
    """The public code never zeroes its gradients, so its second step is twice its first; ours is not."""
    x = nn.Parameter(torch.randn(1, 4, generator=torch.Generator().manual_seed(0)))
    engine = stepper(x, multipliers=Multipliers([math.inf] * 1, 1, "sgd", 0.1))
    weights = torch.tensor([1.0, 2.0, -1.0, 0.5])
    moves = []
    for _ in range(3):
        before = x.detach().clone()
        engine.step(lambda: Terms((x * weights).sum(dim=1)))  # linear: the gradient is the same everywhere
        moves.append((x.detach() - before).numpy())
    np.testing.assert_allclose(moves[1], moves[0], atol=1e-7)
    np.testing.assert_allclose(moves[2], moves[0], atol=1e-7)


def test_the_primal_update_is_a_fresh_autograd_step_with_l2_and_clipping():
    random = torch.Generator().manual_seed(1)
    x = nn.Parameter(torch.randn(3, 5, generator=random))
    data = torch.randn(3, 5, generator=random) * 4
    multipliers = Multipliers([math.inf] * 3, 2, "sgd", 0.1)
    multipliers.values.copy_(torch.tensor([[0.5, 1.0], [2.0, 0.0], [1.0, 1.0]]))
    weights = multipliers.values.clone()
    engine = stepper(x, rate=0.1, multipliers=multipliers, l2=0.3, clip=2.0)

    def problem(z):
        return ((z - data) ** 2).sum(dim=1), torch.stack([z.sin().sum(dim=1), z.exp().mean(dim=1)], dim=1)

    for _ in range(5):
        reference = copy.deepcopy(x)
        objective, violation = problem(reference)
        (objective.sum() + (weights * violation).sum() + 0.3 * (reference**2).sum()).backward()
        gradient = reference.grad
        norm = gradient.norm(dim=1, keepdim=True)
        expected = reference.detach() - 0.1 * gradient * (2.0 / (norm + 1e-6)).clamp(max=1)
        terms = engine.step(lambda: Terms(*problem(x)))
        weights = (weights + 0.1 * terms.proxy_violation.detach()).clamp(min=0)
        np.testing.assert_allclose(x.detach(), expected, atol=1e-6)
        np.testing.assert_allclose(multipliers.values, weights, atol=1e-6)


def test_clipping_is_per_member():
    x = nn.Parameter(torch.zeros(2, 1))
    own = [[nn.Parameter(torch.zeros(1))], [nn.Parameter(torch.zeros(1))]]
    everything = [x, *own[0], *own[1]]
    engine = PrimalDual([ParameterGroup([x], own)], make_optimizer("sgd", everything, 1.0), clip=1.0)
    engine.step(
        lambda: Terms(torch.stack([30 * x[0, 0] + 40 * own[0][0][0], 0.3 * x[1, 0] + 0.4 * own[1][0][0]]))
    )
    assert [p.item() for p in (x[0], own[0][0])] == pytest.approx([-0.6, -0.8], abs=1e-5)
    assert [p.item() for p in (x[1], own[1][0])] == pytest.approx([-0.3, -0.4], abs=1e-5)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_parameter_may_get_its_first_gradient_late(momentum):
    """As in ANNA after its warm-up; by hand, momentum starts at the first gradient."""
    early, late = nn.Parameter(torch.zeros(1, 2)), nn.Parameter(torch.zeros(1, 2))
    optimizer = make_optimizer("sgd", [early, late], 0.1, momentum)
    engine = PrimalDual([ParameterGroup([early, late])], optimizer)
    for step in range(4):
        used = (early, late) if step > 1 else (early,)
        engine.step(lambda used=used: Terms(sum(p.sum(dim=1) for p in used)))
    speeds = np.cumsum(momentum ** np.arange(4))  # the gradient is 1 in every step
    np.testing.assert_allclose(early.detach(), np.full((1, 2), -0.1 * speeds.sum()), rtol=1e-5)
    np.testing.assert_allclose(late.detach(), np.full((1, 2), -0.1 * speeds[:2].sum()), rtol=1e-5)
