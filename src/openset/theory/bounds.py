"""A uniform-convergence bound on the false-positive rate of all heads of a class of functions.

The paper cites Wald and Saria (2023): Theorem 4.3 for its finite-sample statement, Theorem 1 for β. This is
neither, but the textbook bound: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, Theorem
3.3, with Talagrand's contraction lemma.

A head's false-positive rate is β(h) = P_source(h(x) > 0). With the ramp φ(s) = min(1, max(0, 1 + s/γ)) ≥
1[s > 0], which is 1/γ-Lipschitz, with probability at least 1 − δ over n independent source rows, for
**all** heads of the class at once,

    β(h) ≤ mean φ(h(x_i)) + (2/γ)·R + √(log(1/δ) / 2n)            R the expected Rademacher complexity
    β(h) ≤ mean φ(h(x_i)) + (2/γ)·R̂ + 3·√(log(2/δ) / 2n)          R̂ the complexity on these n rows

What is left where the ramp is 0, so where no source row comes nearer than γ to being called novel, is the
smallest budget β that such a bound supports (:func:`budget_by_bound`). The paper says that its .01 is "well
within" the bound that it cites.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from openset._utils.params import check_integer, check_number


@dataclass(frozen=True)
class Complexity:
    """A Rademacher complexity: the expected one, or that of given rows."""

    value: float
    of_rows: bool
    standard_error: float = 0.0
    """Of a Monte Carlo estimate; else zero."""


@dataclass(frozen=True)
class FprBound:
    """An upper bound on the false-positive rate on *source*, and its parts."""

    fpr: float
    """Share of the rows above 0."""
    ramp: float
    """The mean of the ramp, the first term of the bound."""
    complexity: float
    """(2/γ)·R; a Monte Carlo estimate of R is raised by three standard errors."""
    deviation: float
    confidence: float

    @property
    def value(self) -> float:
        """The bound, at most 1."""
        return min(1.0, self.ramp + self.complexity + self.deviation)


def linear_complexity(norm: float, radius: float, n: int) -> Complexity:
    """Expected complexity of {x → w·x : ‖w‖ ≤ norm} on rows with E‖x‖² ≤ radius²: at most norm·radius/√n.

    >>> linear_complexity(2.0, 1.0, 400).value
    0.1
    """
    check_number("norm", norm)
    check_number("radius", radius)
    check_integer("n", n)
    return Complexity(norm * radius / math.sqrt(n), of_rows=False)


def linear_complexity_of_rows(
    features: ArrayLike, norm: float, *, draws: int | None = None, random_state: int = 0
) -> Complexity:
    """Complexity of norm-bounded linear heads on given rows, for instance of a fitted representation.

    The supremum over heads is norm·‖Σ ε_i x_i‖/n for each sign vector ε. With ``draws`` its mean is
    estimated by Monte Carlo; without, Jensen's bound norm·√(Σ‖x_i‖²)/n is used. The representation must not
    have been trained on these rows.

    >>> linear_complexity_of_rows([[3.0, 4.0]], 2.0).value
    10.0
    """
    X = np.asarray(features, dtype=np.float64)
    if X.ndim != 2 or not len(X):
        raise ValueError(f"features has shape {X.shape}: expected rows × features with at least one row.")
    if not np.isfinite(X).all():
        raise ValueError("features have NaN or infinite values: expected finite numbers.")
    check_number("norm", norm)
    check_integer("draws", draws, low=2, optional=True)
    if draws is None:
        return Complexity(norm * float(np.linalg.norm(X)) / len(X), of_rows=True)
    signs = np.random.default_rng(random_state).choice([-1.0, 1.0], size=(draws, len(X)))
    suprema = norm * np.linalg.norm(signs @ X, axis=1) / len(X)
    return Complexity(float(suprema.mean()), True, float(suprema.std(ddof=1)) / math.sqrt(draws))


def budget_by_bound(complexity: Complexity, n: int, *, delta: float = 0.05, margin: float = 1.0) -> float:
    """The β of the bound: no head that calls no source row novel, by a margin, has a larger false-positive rate.

    ``n`` is the number of source rows, and ``complexity`` that of the heads' class on them. No smaller budget can
    be promised by this bound. It is 1 where the bound says nothing.

    >>> round(budget_by_bound(linear_complexity(1.0, 1.0, 10_000), 10_000), 4)
    0.0322
    """
    check_integer("n", n)
    return fpr_budget_bound(np.full(n, -margin), complexity, delta=delta, margin=margin).value


def fpr_budget_bound(
    scores: ArrayLike, complexity: Complexity, *, delta: float = 0.05, margin: float = 1.0
) -> FprBound:
    """Bound the false-positive rate on source of a head, from its scores of source rows (above 0 = novel).

    The bound holds for the source distribution, not for the shifted target, and for any head of the class,
    also one that was chosen by these rows.

    >>> import numpy as np
    >>> bound = fpr_budget_bound(np.full(10_000, -2.0), linear_complexity(1.0, 1.0, 10_000))
    >>> round(bound.value, 4)
    0.0322
    """
    s = np.asarray(scores, dtype=np.float64)
    if s.ndim != 1 or not len(s) or not np.isfinite(s).all():
        raise ValueError(
            f"scores has shape {s.shape} and {np.size(s) - np.isfinite(s).sum()} values that are not finite: "
            "expected one finite score per source row, at least one row."
        )
    check_number("delta", delta, high=1.0, open_low=True, open_high=True)
    check_number("margin", margin, open_low=True)
    if complexity.of_rows:
        deviation = 3 * math.sqrt(math.log(2 / delta) / (2 * len(s)))
    else:
        deviation = math.sqrt(math.log(1 / delta) / (2 * len(s)))
    return FprBound(
        fpr=float((s > 0).mean()),
        ramp=float(np.clip(1 + s / margin, 0.0, 1.0).mean()),
        complexity=2 / margin * (complexity.value + 3 * complexity.standard_error),
        deviation=deviation,
        confidence=1 - delta,
    )
