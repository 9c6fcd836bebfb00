"""CoLOR's decision: what limits the verdict, the threshold of rows called novel, and diagnostics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from openset._utils.text import listed
from openset.align.auto import Chosen
from openset.methods._scores_to_test import ScoresToTest
from openset.methods._voices import MIXED, Trust
from openset.problem import Floats, Problem
from openset.stats.column_checks import OddColumn, odd_columns
from openset.stats.diagnostics import Diagnostic, score_diagnostics, support_of_known
from openset.stats.neighbours import evenly_spaced
from openset.stats.novelty import MOST_NOVEL, NoveltyTest, NoveltyVerdict
from openset.stats.thresholds import SourceThreshold

_MOST_ROWS = 1000
"""Distances are computed to at most this many source rows."""


def limited(
    found: NoveltyVerdict,
    alignment: Chosen | None,
    trust: Trust | None,
    *,
    n_source: int,
    separating: Sequence[OddColumn] = (),
) -> NoveltyVerdict:
    """Return the verdict with what limits it; where something does, it proves no share."""
    limit = _limit_of(found, alignment, trust, n_source, separating)
    if not limit:
        return found
    fraction = replace(found.fraction, low=0.0, profile={}, assumptions="")
    return replace(found, fraction=fraction, test=replace(found.test, limit=limit))


def _limit_of(
    found: NoveltyVerdict,
    alignment: Chosen | None,
    trust: Trust | None,
    n_source: int,
    separating: Sequence[OddColumn],
) -> str:
    """Return the strongest limit: first those after which nothing can be told."""
    is_moved = alignment is not None and alignment.before.is_moved
    if alignment is not None and (alignment.after or alignment.before).is_moved:
        return "moved"
    if separating and not is_moved:  # of a batch that moved, many features lie elsewhere
        return "column"
    if found.test.counts.n_source > n_source:  # classes of one row are in every training set
        return "seen"
    if found.fraction.low > MOST_NOVEL:
        return "half"
    if is_moved:
        return "aligned"
    return "unmixed" if trust is not None and not trust.is_mixed else ""


def separating_features(problem: Problem) -> list[OddColumn]:
    """Return the features that alone tell source from target, or differ by a power of ten, by their index."""
    if problem.X.ndim != 2:
        return []
    return odd_columns(problem.X, problem.target, [str(index) for index in range(problem.X.shape[1])])


def called_threshold(threshold: SourceThreshold, source_scores: Floats, test: NoveltyTest) -> float:
    """Return the threshold of rows called novel: where evidence is strongest, within the budget of source rows.

    If nothing stands out, it is where the budget is used up.
    """
    if test.code == "nothing":
        return threshold.value
    highest = np.sort(source_scores)[::-1][test.counts.source_above]
    return max(threshold.value, float(highest))


def verdict_diagnostics(
    tested: ScoresToTest,
    verdict: NoveltyVerdict,
    problem: Problem,
    *,
    called_novel: NDArray[np.bool_],
    fpr: float,
) -> list[Diagnostic]:
    """Return the diagnostics of a verdict that need no heads; ``called_novel`` is of the target rows."""
    found = score_diagnostics(tested.source, tested.target, verdict, fpr=fpr)
    if problem.X.ndim == 2:
        known = problem.target[~called_novel]
        found.append(support_of_known(_some(problem.X), _some(known)))
    return found


def feature_diagnostics(test: NoveltyTest, separating: Sequence[OddColumn]) -> list[Diagnostic]:
    """Return which features alone tell source from target, if that limits the verdict."""
    if test.limit != "column":
        return []
    named = listed([feature.name for feature in separating], 5)
    words = (
        f"By themselves these features (counted from 0) tell source from target, or differ by a power of ten: "
        f"{named}. Ids, dates and other units do so: leave them out, or correct them."
    )
    return [Diagnostic("separating features", len(separating), 0, False, words)]


def move_diagnostic(alignment: Chosen) -> Diagnostic:
    """Return whether the batch moved as a whole."""
    before, after, limit = alignment.before, alignment.after, alignment.before.limit
    left = before if after is None else after
    words = (
        f"Among the rows around half of the target rows, at most {100 * before.overlap:.0f} % are source rows; "
        f"below {100 * limit:.0f} % the whole batch moved."
    )
    if before.is_moved:
        if after is None:
            done = "It was not aligned"
        else:
            done = "Aligning it did not undo this" if left.is_moved else "It was aligned with source"
        words += f" {done}: shares and tests that assume an unmoved batch cannot tell. Look at the rows."
    return Diagnostic("batch that moved", before.overlap, limit, not before.is_moved, words)


def voice_diagnostics(trust: Trust, proved_by_heads: bool, *, moved: bool) -> list[Diagnostic]:
    """Return whether the domains mix, and whether the score follows heads or distances."""
    lead = "distances to source" if trust.distances_lead else "the novelty heads"
    words = (
        f"The score follows {lead}, {trust.reason(moved=moved)}. {100 * trust.agreement:.0f} % of the "
        f"highest rows of both agree. The test is by {'the heads' if proved_by_heads else 'distances'}."
    )
    mixed = (
        f"The nearest rows of a row are of the other domain {trust.mixing:.2f} times as often as those a little "
        "farther away; about 1 where both domains have the same kinds of rows."
    )
    if not trust.is_mixed:
        mixed += (
            " Each domain seems to have kinds of its own, as other people, machines or months do: a group that "
            "stands out may be one of those, inside a known class."
        )
    return [
        Diagnostic("mixing of the domains", trust.mixing, sum(MIXED) / 2, trust.is_mixed, mixed),
        Diagnostic("voices", trust.coherence, None, True, words),
    ]


def _some(rows: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return all rows or, if they are many, evenly spaced ones."""
    return rows[evenly_spaced(len(rows), _MOST_ROWS)].astype(np.float64)
