"""Is there a new class, and how large is it? Both answers come from validation scores and one stated assumption.

The head and threshold that are applied to a part of the rows are chosen on the other parts. The counts above the
threshold can then be tested as if it had been fixed in advance; :mod:`openset.stats.bounded_shift` says what
they prove.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openset._utils.params import check_number
from openset.stats.bounded_shift import (
    Counts,
    Cut,
    count_above,
    cross_fitted_cuts,
    dense_cut,
    novelty_p_value,
    share_lower_bound,
)
from openset.stats.shares import ShareEstimate, binomial_interval, unmixed_share
from openset.stats.validation_scores import ValidationScores

MAX_DENSITY_RATIO = 12.0
"""The default bound on the background shift: about .92/.08, as in the paper's shifts."""
PROFILE = (1.0, 3.0, 12.0, 30.0)
CLEAR, LIKELY = 0.01, 0.05
SEPARABLE_RECALL = 0.95
"""The share of the new class that must lie above the threshold for the upper end to hold."""


@dataclass(frozen=True)
class NoveltyTest:
    """The test of "there is no new class", for known rows that shift by at most ``max_density_ratio``."""

    p_value: float
    max_density_ratio: float
    counts: Counts

    @property
    def word(self) -> str:
        """``clear`` for p ≤ .01, ``likely`` for p ≤ .05, else ``none found``."""
        return "clear" if self.p_value <= CLEAR else "likely" if self.p_value <= LIKELY else "none found"


@dataclass(frozen=True)
class NoveltyVerdict:
    """The verdict in numbers: the novel share, the test, and the head and threshold applied to each part."""

    fraction: ShareEstimate
    test: NoveltyTest
    cuts: tuple[Cut, ...]


def novelty_verdict(
    scores: ValidationScores,
    *,
    max_density_ratio: float = MAX_DENSITY_RATIO,
    confidence: float = 0.95,
    seed: int = 0,
) -> NoveltyVerdict:
    """The novel share and the test for a new class.

    Parameters
    ----------
    scores : scores of every member's validation rows; those of a single member are split into five random parts
    max_density_ratio : B, how many times as common a known kind may be in target; 1 means no shift
    confidence : confidence of each end of the interval separately
    seed : seed for splitting the rows of a single member

    ``fraction.low`` holds for any scores. ``fraction.high`` holds if nearly all of the new class scores where
    target rows are more than B times as dense as source rows; it is given only if a new class was found.
    ``fraction.value`` assumes that known target rows exceed the threshold √B times as often as source rows.

    >>> random = np.random.default_rng(0)
    >>> known, new = random.normal(size=2000), random.normal(8, 1, size=100)
    >>> target = [*random.normal(size=900), *new]
    >>> verdict = novelty_verdict(ValidationScores.of_one_score(known, target))
    >>> verdict.test.word, str(verdict.fraction)
    ('clear', '0.099 [0.078, 0.123]')
    """
    check_number("max_density_ratio", max_density_ratio, low=1)
    check_number("confidence", confidence, low=0.5, high=1, open_high=True)
    parts = scores.in_parts(seed)
    ratio = float(max_density_ratio)
    cuts = cross_fitted_cuts(parts, ratio)
    counts = count_above(parts, cuts)
    profile = _lower_ends(parts, ratio, counts, confidence)
    low = profile[ratio]
    identified = low > 0
    high = max(low, _upper_end(parts, ratio, confidence)) if identified else 1.0
    fraction = ShareEstimate(
        value=float(np.clip(_middle(counts, ratio), low, high)),
        low=low,
        high=high,
        confidence=confidence,
        method=f"bounded shift, B = {ratio:g}",
        max_density_ratio=ratio,
        profile={f"{other:g}": bound for other, bound in profile.items()},
        assumptions=_assumptions(ratio, identified),
        high_identified=identified,
    )
    return NoveltyVerdict(fraction, NoveltyTest(novelty_p_value(counts, ratio), ratio, counts), cuts)


def _lower_ends(parts: ValidationScores, ratio: float, counts: Counts, confidence: float) -> dict[float, float]:
    """The lower end for every bound in ``PROFILE`` and for ``ratio``, whose counts are given."""
    lows: dict[float, float] = {}
    for other in sorted({*PROFILE, ratio}):
        above = counts if other == ratio else count_above(parts, cross_fitted_cuts(parts, other))
        # allowing a stronger shift cannot prove more
        lows[other] = min(share_lower_bound(above, other, confidence), *lows.values(), 1.0)
    return lows


def _upper_end(parts: ValidationScores, ratio: float, confidence: float) -> float:
    """The upper limit of the share of rows in the dense region, taken to be 95 % of the new class."""
    above = count_above(parts, cross_fitted_cuts(parts, ratio, dense_cut))
    # the one-sided limit is the upper end of a two-sided interval of twice the error
    most = binomial_interval(above.target_above, above.n_target, 1 - 2 * (1 - confidence))[1]
    return min(1.0, most / SEPARABLE_RECALL)


def _middle(counts: Counts, ratio: float) -> float:
    """The novel share if known target rows lie above the threshold √ratio times as often as source rows."""
    known_above = np.sqrt(ratio) * counts.source_above / max(counts.n_source, 1)
    return unmixed_share(counts.target_above / max(counts.n_target, 1), known_above)


def _assumptions(ratio: float, identified: bool) -> str:
    low = (
        f"The lower end assumes that no kind of known row is more than {ratio:g} times as common in the target "
        "as in the source."
    )
    if not identified:
        return (
            f"{low} The upper end is not identified: no rows could be told apart from known ones with confidence."
        )
    return (
        f"{low} The upper end assumes that at least {100 * SEPARABLE_RECALL:.0f} % of the new class lies where "
        f"target rows are more than {ratio:g} times as dense as source rows."
    )
