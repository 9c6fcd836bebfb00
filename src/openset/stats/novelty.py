"""Is there a new class, and how large is it? One set of held-out scores answers both, with one stated assumption.

The (head, threshold) that judges a part of the rows is chosen on the other parts, so that counts above it can be
tested as if it had been fixed beforehand; see :mod:`openset.stats.bounded_shift` for what they prove.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from openset._utils.params import check_number
from openset.stats.bounded_shift import (
    Counts,
    Cut,
    count_above,
    cross_fitted_cuts,
    dense_cut,
    fraction_lower_bound,
    novelty_p_value,
)
from openset.stats.held_out import HeldOutScores
from openset.stats.proportions import ProportionEstimate, binomial_interval

MAX_DENSITY_RATIO = 12.0
"""The default bound on the background shift: about .92/.08, as in the paper's shifts."""
PROFILE = (1.0, 3.0, 12.0, 30.0)
CLEAR, LIKELY = 0.01, 0.05
SEPARABLE_RECALL = 0.95
"""What share of the new class must lie above the threshold for the upper end to hold."""


@dataclass(frozen=True)
class NoveltyTest:
    """The test of "there is no new class" for known rows that shift by at most ``max_density_ratio``."""

    p_value: float
    max_density_ratio: float
    counts: Counts

    @property
    def word(self) -> str:
        """``clear`` for p ≤ .01, ``likely`` for p ≤ .05, else ``none found``."""
        return "clear" if self.p_value <= CLEAR else "likely" if self.p_value <= LIKELY else "none found"


@dataclass(frozen=True)
class NoveltyEvidence:
    """The novel fraction, the test, and the (head, threshold) that judged every part of the rows."""

    fraction: ProportionEstimate
    test: NoveltyTest
    cuts: tuple[Cut, ...]


def assess_novelty(
    held_out: HeldOutScores,
    *,
    max_density_ratio: float = MAX_DENSITY_RATIO,
    confidence: float = 0.95,
    seed: int = 0,
) -> NoveltyEvidence:
    """The novel fraction and the test of a new class, from scores of rows that trained nothing.

    Parameters
    ----------
    held_out : scores of every member's held-out rows. One member's rows are split at random into five parts
    max_density_ratio : B, how much denser known rows may be in the target than in the source. 1: no shift
    confidence : of each end of the interval, by itself
    seed : for splitting one member's rows

    ``fraction.low`` holds for whatever scores; ``fraction.high`` if nearly all of the new class scores where
    target rows are more than B times as dense as source rows, and only where a new class was found at all.
    ``fraction.value`` takes known target rows to pass √B times as often as source rows.

    >>> random = np.random.default_rng(0)
    >>> known, new = random.normal(size=2000), random.normal(8, 1, size=100)
    >>> evidence = assess_novelty(HeldOutScores.of_one_score(known, [*random.normal(size=900), *new]))
    >>> evidence.test.word, str(evidence.fraction)
    ('clear', '0.099 [0.078, 0.123]')
    """
    check_number("max_density_ratio", max_density_ratio, low=1)
    check_number("confidence", confidence, low=0.5, high=1, open_high=True)
    parts = held_out.in_parts(seed)
    ratio = float(max_density_ratio)
    lows: dict[float, float] = {}
    for other in sorted({*PROFILE, ratio}):
        cuts = cross_fitted_cuts(parts, other)
        counts = count_above(parts, cuts)
        # what is proved for a weaker shift only cannot be less than what is proved for a stronger one
        lows[other] = min(fraction_lower_bound(counts, other, confidence), *lows.values(), 1.0)
        if other == ratio:
            chosen, judged = cuts, counts
    test = NoveltyTest(novelty_p_value(judged, ratio), ratio, judged)
    low = lows[ratio]
    identified = low > 0
    high = max(low, _upper_end(parts, ratio, confidence)) if identified else 1.0
    fraction = ProportionEstimate(
        value=float(np.clip(_unmixed(judged, np.sqrt(ratio)), low, high)),
        low=low,
        high=high,
        confidence=confidence,
        method=f"bounded shift, B = {ratio:g}",
        max_density_ratio=ratio,
        profile={f"{other:g}": bound for other, bound in lows.items()},
        assumptions=_assumptions(ratio, identified),
        high_identified=identified,
    )
    return NoveltyEvidence(fraction, test, chosen)


def assess_score(source: ArrayLike, target: ArrayLike, *, seed: int = 0, **options: float) -> NoveltyEvidence:
    """:func:`assess_novelty` for a method with one score."""
    return assess_novelty(HeldOutScores.of_one_score(source, target), seed=seed, **options)


def _upper_end(parts: HeldOutScores, ratio: float, confidence: float) -> float:
    """All target rows where the target is that much denser than source, as if they were 95 % of the new class."""
    above = count_above(parts, cross_fitted_cuts(parts, ratio, dense_cut))
    # the one-sided limit is the upper end of a two-sided interval of twice the error
    most = binomial_interval(above.target_above, above.n_target, 1 - 2 * (1 - confidence))[1]
    return min(1.0, most / SEPARABLE_RECALL)


def _unmixed(counts: Counts, ratio: float) -> float:
    """α for known target rows that pass ``ratio`` times as often as source rows, if all new rows pass."""
    known = ratio * counts.source_above / max(counts.n_source, 1)
    return (counts.target_above / max(counts.n_target, 1) - known) / (1 - known) if known < 1 else 0.0


def _assumptions(ratio: float, identified: bool) -> str:
    low = (
        f"The lower end assumes that no kind of known row is more than {ratio:g} times as common in the target "
        "as in the source."
    )
    if not identified:
        return f"{low} The upper end is not identified: no rows were told apart from known ones with confidence."
    return (
        f"{low} The upper end assumes that at least {100 * SEPARABLE_RECALL:.0f} % of the new class lies where "
        f"target rows are more than {ratio:g} times as dense as source rows."
    )
