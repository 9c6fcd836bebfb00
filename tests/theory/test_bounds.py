from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from openset.theory import budget_by_bound, fpr_budget_bound, linear_complexity, linear_complexity_of_rows


def test_complexity_of_rows_by_enumerating_all_signs():
    X = np.random.default_rng(0).standard_normal((8, 3))
    suprema = [np.linalg.norm(np.array(s) @ X) / 8 for s in itertools.product([-1, 1], repeat=8)]
    exact = 2.5 * float(np.mean(suprema))
    estimate = linear_complexity_of_rows(X, 2.5, draws=4000)
    assert abs(estimate.value - exact) <= 4 * estimate.standard_error
    assert exact <= linear_complexity_of_rows(X, 2.5).value  # Jensen's bound is above


def test_expected_complexity_is_above_that_of_typical_rows():
    X = np.random.default_rng(0).standard_normal((500, 20)) / math.sqrt(20)
    assert linear_complexity_of_rows(X, 1.0, draws=200).value <= linear_complexity(1.0, 1.05, 500).value


@pytest.mark.parametrize("kind", ["expected", "rows"])
def test_the_bound_covers_the_worst_head_that_the_rows_allow(kind):
    """Pick, after seeing the rows, the head whose true rate exceeds its observed rate the most."""
    rng = np.random.default_rng(0)
    norm, n, d, delta = 3.0, 400, 2, 0.1
    angles = np.linspace(0, 2 * np.pi, 72, endpoint=False)
    heads = norm * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    true_rate = 0.5  # a head through the origin, on a symmetric distribution
    failures = 0
    for _ in range(200):
        X = rng.standard_normal((n, d))
        scores = X @ heads.T
        pick = np.argmin((scores > 0).mean(axis=0))
        complexity = (
            linear_complexity(norm, math.sqrt(d), n) if kind == "expected" else linear_complexity_of_rows(X, norm)
        )
        failures += fpr_budget_bound(scores[:, pick], complexity, delta=delta).value < true_rate
    assert failures <= 200 * delta


def test_parts_by_hand():
    bound = fpr_budget_bound([-2.0, -0.5, 1.0, -3.0], linear_complexity(0.0, 1.0, 4), delta=0.5, margin=1.0)
    assert bound.fpr == 0.25
    assert bound.ramp == pytest.approx((0 + 0.5 + 1 + 0) / 4)
    assert bound.deviation == pytest.approx(math.sqrt(math.log(2) / 8))
    assert bound.complexity == 0
    assert bound.value == pytest.approx(bound.ramp + bound.deviation)
    rows = linear_complexity_of_rows(np.zeros((4, 1)), 1.0)
    wider = fpr_budget_bound([-2.0, -0.5, 1.0, -3.0], rows, delta=0.5)
    assert wider.deviation == pytest.approx(3 * math.sqrt(math.log(4) / 8))
    assert wider.value == 1.0  # capped


def test_a_smaller_margin_trades_ramp_for_complexity():
    scores = np.linspace(-3, 0.1, 1000)
    wide, narrow = (fpr_budget_bound(scores, linear_complexity(1, 1, 1000), margin=m) for m in (2.0, 0.5))
    assert narrow.ramp < wide.ramp
    assert narrow.complexity > wide.complexity
    assert wide.fpr <= narrow.ramp


def test_bad_arguments():
    ok = linear_complexity(1.0, 1.0, 3)
    with pytest.raises(ValueError, match="scores has shape"):
        fpr_budget_bound([], ok)
    with pytest.raises(ValueError, match="delta=1"):
        fpr_budget_bound([0.0], ok, delta=1)
    with pytest.raises(ValueError, match="1 values that are not finite"):
        fpr_budget_bound([0.0, -np.inf], ok)
    with pytest.raises(ValueError, match="features has shape"):
        linear_complexity_of_rows([1.0], 1.0)
    with pytest.raises(ValueError, match="features have NaN or infinite values"):
        linear_complexity_of_rows([[1.0], [np.nan]], 1.0)
    with pytest.raises(ValueError, match="draws=1"):
        linear_complexity_of_rows([[1.0]], 1.0, draws=1)


@pytest.mark.parametrize("margin", [0.5, 1.0, 2.0])
def test_the_budget_is_what_the_bound_leaves_at_no_false_positive(margin):
    n, norm, radius, delta = 4000, 1.5, 0.7, 0.1
    closed = 2 / margin * norm * radius / math.sqrt(n) + math.sqrt(math.log(1 / delta) / (2 * n))
    budget = budget_by_bound(linear_complexity(norm, radius, n), n, delta=delta, margin=margin)
    assert budget == pytest.approx(closed, rel=1e-12)
    assert budget_by_bound(linear_complexity(norm, radius, 4), 4) == 1


def test_no_head_without_false_positives_has_a_larger_rate_than_the_budget():
    """Brute force over thresholds of one feature: heads of norm 1, of which the worst counts."""
    random, n, delta = np.random.default_rng(0), 400, 0.1
    weights, offsets = np.array([-1.0, 1.0]), np.linspace(-2, 2, 81)
    broken = 0
    for _ in range(200):
        rows = random.uniform(-1, 1, n)
        scores = (weights[:, None, None] * rows + offsets[None, :, None]) / math.sqrt(5)  # of norm 1 on (x, 2)
        clean = scores.max(axis=2) <= -0.1
        true = np.clip((1 + offsets) / 2, 0, 1)  # P(x > -offset), the same for both signs
        worst = max((true[j] for _, j in zip(*np.nonzero(clean), strict=True)), default=0.0)
        complexity = linear_complexity(1.0, math.sqrt(1 / 3 + 4), n)
        broken += worst > budget_by_bound(complexity, n, delta=delta, margin=0.1)
    assert broken / 200 <= delta
