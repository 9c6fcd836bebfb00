"""Is there a new class, and how large is it at least? Both answers come from scores and one stated assumption.

The scores are of validation rows: no network trained on the row that it scores. What their order proves, if no
known kind became more than B times as common, is in :mod:`openset.stats.bounded_shift`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from openset._utils.params import check_number
from openset.stats.bounded_shift import (
    Counts,
    Ladder,
    novelty_p_value,
    share_lower_bound,
    tolerated_ratio,
)
from openset.stats.shares import ShareEstimate, unmixed_share

MAX_DENSITY_RATIO = 12.0
"""The bound on the background shift where none can be read off the rows: about .92/.08, as in the paper."""
PROFILE = (1.0, 3.0, 12.0, 30.0)
LIKELY = 0.05
"""The largest p-value of "probably a new class"."""
MOST_NOVEL = 0.5
"""A larger share is no new class but a batch that moved, or other data."""
FOUND, STANDS_OUT = 3.0, 0.4
"""A new class is found if proved at this many times the assumed ratio; a group stands out if at this part."""
_BULK = (0.2, 0.4)
"""Between these shares of the highest target rows the shift of known kinds is read: most new ones are above."""
_MARGIN, _MARGIN_BEYOND, _MARGIN_OF_CLUSTERS, _LARGEST_RATIO = 6.0, 1.25, 1.5, 100.0
_LEAST, _MANY_ROWS, _UNSEEN = 4.0, 2000, 0.79
"""Source rows from which on nothing is added for what cannot be seen, and the power by which it grows below."""
_FEWEST_ROWS = 200


@dataclass(frozen=True)
class NoveltyTest:
    """The test of "there is no new class", for known rows that shift by at most ``max_density_ratio``.

    ``tolerated_ratio`` is the largest bound at which p is still up to .05; 0 if there is none. ``limit`` says why
    the test cannot prove anything here: ``moved`` (the whole batch moved), ``aligned`` (it moved and was aligned,
    perhaps wrongly), ``column`` (a feature alone tells source from target, as ids, dates and other units do),
    ``seen`` (no rows could be kept from training), ``unmixed`` (the domains do not mix, as if each had kinds of
    its own) or ``half`` (more than half of the target would be new); empty if nothing speaks against it.
    """

    p_value: float
    max_density_ratio: float
    counts: Counts
    tolerated_ratio: float = 0.0
    limit: str = ""

    @property
    def code(self) -> str:
        """The answer: ``found``, ``probable``, ``stands_out``, ``nothing`` or ``cannot_tell``.

        ``probable`` if it is proved (p ≤ .05) for known kinds that became ``max_density_ratio`` times as common,
        ``found`` if for three times that ratio, ``stands_out`` if for .4 of it. The ratio is what is least sure,
        so each word is a factor of 2.5 or more wide. An aligned or unmixed batch is ``stands_out`` at most; the
        other limits are ``cannot_tell``.
        """
        if self.limit in ("moved", "column", "half", "seen"):
            return "cannot_tell"
        if self.p_value <= LIKELY and not self.limit:
            return "found" if self.tolerated_ratio >= FOUND * self.max_density_ratio else "probable"
        return "stands_out" if self.tolerated_ratio >= STANDS_OUT * self.max_density_ratio else "nothing"


@dataclass(frozen=True)
class NoveltyVerdict:
    """The test, the share that it proves, and the threshold at which the evidence is strongest."""

    fraction: ShareEstimate
    test: NoveltyTest
    threshold: float


def novelty_verdict(
    source: ArrayLike,
    target: ArrayLike,
    *,
    max_density_ratio: float | str = "auto",
    growth: float | None = None,
    confidence: float = 0.95,
) -> NoveltyVerdict:
    """The test for a new class, and the novel share that it proves.

    Parameters
    ----------
    source, target : scores of validation rows, higher = more novel
    max_density_ratio : B, how many times as common a known kind may be in target; 1 means no shift. "auto" reads
        it off the rows, see :func:`plausible_ratio`
    growth : how many times as common known kinds became, as far as clusters show it; only for "auto"
    confidence : confidence of the lower end

    ``fraction.low`` holds for any scores. ``fraction.value`` assumes that known target rows lie above the
    threshold √B times as often as source rows. There is no upper end: a part of the new class may look like known
    rows, and only labels can tell.

    >>> random = np.random.default_rng(0)
    >>> source, target = random.normal(size=2000), [*random.normal(size=900), *random.normal(8, 1, size=100)]
    >>> verdict = novelty_verdict(source, target, max_density_ratio=12)
    >>> verdict.test.code, round(verdict.fraction.low, 3)
    ('found', 0.071)
    """
    check_number("confidence", confidence, low=0.5, high=1, open_high=True)
    if not isinstance(max_density_ratio, str):
        check_number("max_density_ratio", max_density_ratio, low=1)
    ladder = Ladder.of(source, target)
    ratio = (
        plausible_ratio(source, target, growth)
        if isinstance(max_density_ratio, str)
        else float(max_density_ratio)
    )
    profile = _lower_ends(ladder, ratio, confidence)
    low = profile[ratio]
    test = NoveltyTest(novelty_p_value(ladder, ratio), ratio, ladder.counts, tolerated_ratio(ladder, LIKELY))
    fraction = ShareEstimate(
        value=float(np.clip(_middle(ladder.counts, ratio), low, 1.0)),
        low=low,
        high=1.0,
        confidence=confidence,
        method=f"bounded shift, B = {ratio:g}",
        max_density_ratio=ratio,
        profile={f"{other:g}": bound for other, bound in profile.items()},
        assumptions=(
            f"This assumes that no kind of known row is more than {ratio:g} times as common in the target as in "
            "the source."
        ),
        high_identified=False,
    )
    threshold = float(ladder.thresholds[ladder.best]) if len(ladder.rungs) else float("inf")
    return NoveltyVerdict(fraction, test, threshold)


def plausible_ratio(source: ArrayLike, target: ArrayLike, growth: float | None) -> float:
    """B as far as it can be read off the rows: how far known kinds can be seen to have moved, with a margin.

    The shift is seen in two ways. By scores: between the highest 20 and 40 % of target rows, below most new
    classes, the share of target rows over that of source rows; six times that is allowed, but not more than 12
    unless about 10 or more is seen. By clusters of source: one and a half times their largest ``growth`` is
    allowed. Of few rows little can be seen, so more is allowed with fewer than 1200 source rows, up to 12 with
    500 or fewer. Without a growth it is 12.

    >>> rows = np.random.default_rng(0).normal(size=4000)
    >>> [plausible_ratio(rows[:2000], rows[2000:], growth) for growth in (1.3, 6.0, None)]
    [6.0, 9.0, 12.0]
    >>> plausible_ratio(rows[:600], rows[2000:], growth=1.3)
    10.4
    """
    known, mixed = (np.asarray(scores, dtype=np.float64) for scores in (source, target))
    if growth is None or min(len(known), len(mixed)) < _FEWEST_ROWS:
        return MAX_DENSITY_RATIO
    cuts = np.quantile(mixed, [1 - share for share in _BULK])
    above = [[float((scores > cut).mean()) for cut in cuts] for scores in (known, mixed)]
    of_source, of_target = (high - low for low, high in above)
    seen = max(1.0, of_target / max(of_source, 1 / len(known)))
    by_scores = max(min(_MARGIN * seen, MAX_DENSITY_RATIO), _MARGIN_BEYOND * seen)
    unseen = min(_LEAST * (_MANY_ROWS / len(known)) ** _UNSEEN, MAX_DENSITY_RATIO)
    return round(min(max(by_scores, _MARGIN_OF_CLUSTERS * growth, unseen), _LARGEST_RATIO), 1)


def _lower_ends(ladder: Ladder, ratio: float, confidence: float) -> dict[float, float]:
    """The lower end for every bound in ``PROFILE`` and for ``ratio``."""
    return {other: share_lower_bound(ladder, other, confidence) for other in sorted({*PROFILE, ratio})}


def _middle(counts: Counts, ratio: float) -> float:
    """The novel share if known target rows lie above the threshold √ratio times as often as source rows."""
    known_above = np.sqrt(ratio) * counts.source_above / max(counts.n_source, 1)
    return unmixed_share(counts.target_above / max(counts.n_target, 1), known_above)
