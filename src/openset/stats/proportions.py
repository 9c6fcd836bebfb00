"""Estimates of the novel fraction, the share of target rows that are of a class nobody labelled."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta


@dataclass(frozen=True)
class ProportionEstimate:
    """A proportion with an interval, how sure it is, and how it was obtained.

    Where a bound on the background shift was assumed, ``max_density_ratio`` is that bound, ``profile`` the lower
    end for other bounds (as text, for JSON), and ``assumptions`` says in words what either end rests on. An upper
    end that nothing supports is 1, with ``high_identified`` false.
    """

    value: float
    low: float
    high: float
    confidence: float
    method: str
    max_density_ratio: float | None = None
    profile: dict[str, float] = field(default_factory=dict)
    assumptions: str = ""
    high_identified: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.value <= self.high <= 1:
            raise ValueError(f"need 0 <= low <= value <= high <= 1, got {self}")

    def __str__(self) -> str:
        high = f"{self.high:.3f}" if self.high_identified else "not identified"
        return f"{self.value:.3f} [{self.low:.3f}, {high}]"


NOT_IDENTIFIED = ProportionEstimate(0.0, 0.0, 1.0, 1.0, "not identified", high_identified=False)


def binomial_interval(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper–Pearson: the exact two-sided interval for a binomial proportion.

    >>> low, high = binomial_interval(0, 10)
    >>> round(low, 4), round(high, 4)
    (0.0, 0.3085)
    """
    if trials <= 0:
        return 0.0, 1.0
    tail = (1 - confidence) / 2
    low = 0.0 if successes == 0 else float(beta.ppf(tail, successes, trials - successes + 1))
    high = 1.0 if successes == trials else float(beta.ppf(1 - tail, successes + 1, trials - successes))
    return low, high


def anchored_fraction(
    source_scores: ArrayLike, target_scores: ArrayLike, threshold: float, *, confidence: float = 0.95
) -> ProportionEstimate:
    """Novel fraction anchored at the source's false-positive rate.

    With R the share of held-out target rows above the threshold and F that of held-out source rows,
    R = α·P(novel above) + (1 − α)·P(known above). If novel rows lie above and *target-known rows exceed the
    threshold as rarely as source rows do*, α = (R − F) / (1 − F). The interval combines the two
    Clopper–Pearson intervals (each at half the error) and so covers sampling error only: a background
    shift that moves known rows above the threshold is not in it.
    """
    source, target = np.asarray(source_scores), np.asarray(target_scores)
    if not len(source) or not len(target):
        return NOT_IDENTIFIED
    each = 1 - (1 - confidence) / 2
    false, called = int((source > threshold).sum()), int((target > threshold).sum())
    f_low, f_high = binomial_interval(false, len(source), each)
    r_low, r_high = binomial_interval(called, len(target), each)
    value = _unmix(called / len(target), false / len(source))
    low, high = _unmix(r_low, f_high), _unmix(r_high, f_low)
    return ProportionEstimate(value, min(low, value), max(high, value), confidence, "anchored at source FPR")


def _unmix(above: float, false_positive: float) -> float:
    if false_positive >= 1:
        return 0.0
    return float(np.clip((above - false_positive) / (1 - false_positive), 0, 1))
