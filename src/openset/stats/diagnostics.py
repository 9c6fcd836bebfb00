"""Diagnostics: what limits a verdict. Each is a number, its limit, and a sentence that says what to do."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression

from openset.stats.neighbours import share_outside
from openset.stats.novelty import NoveltyTest, NoveltyVerdict
from openset.stats.thresholds import conformal_threshold, share_above

PROVED_SHARE = 0.5
EFFECTIVE_SHARE = 0.2
OUTSIDE_SHARE = 0.05
AGREEMENT = 0.5
KEPT_RECALL = 0.5
BUDGET_FACTOR = 2.0
RATIO_MARGIN = 2.0


@dataclass(frozen=True)
class Diagnostic:
    """One check: ``ok`` says whether ``value`` is on the good side of ``threshold``, the sentence what to do."""

    name: str
    value: float | None
    threshold: float | None
    ok: bool
    sentence: str


def score_diagnostics(
    source: ArrayLike, target: ArrayLike, verdict: NoveltyVerdict, *, fpr: float
) -> list[Diagnostic]:
    """The diagnostics that need only the scores of validation rows that were tested."""
    if not len(np.asarray(source)) or not len(np.asarray(target)):
        return []
    return [
        separability_achieved(verdict),
        tolerated_shift(verdict.test),
        dependence_on_budget(source, target, fpr),
        evenness_of_shift(source, target),
    ]


def separability_achieved(verdict: NoveltyVerdict) -> Diagnostic:
    """Of the target rows above the threshold, the share that known rows cannot explain."""
    counts = verdict.test.counts
    above = counts.target_above / max(counts.n_target, 1)
    value = min(1.0, verdict.fraction.low / above) if above else 0.0
    if value:
        words = (
            f"{100 * value:.0f} % of the target rows that stand out cannot be known rows that became more common."
        )
    else:
        words = "All rows that stand out could be known rows that became more common."
    advice = "A new class that resembles known ones is not found: bring more source rows or better features."
    return _diagnostic("separability achieved", value, PROVED_SHARE, value >= PROVED_SHARE, words, advice)


def tolerated_shift(test: NoveltyTest) -> Diagnostic:
    """The largest shift at which a new class is still proved, compared with the shift that is allowed."""
    allowed, largest = test.max_density_ratio, test.tolerated_ratio
    times = f"{round(largest, 1):g} times as common; {allowed:g} is assumed"
    if not largest:
        words = "No new class would be proved even if the known rows had not shifted at all."
    elif largest < allowed:
        words = f"Proved only if no known kind became more than {times}. Not proved."
    else:
        words = f"Proved as long as no known kind became more than {times}."
    ok = not allowed / RATIO_MARGIN <= largest < allowed * RATIO_MARGIN
    advice = "The two are close: ask how strong a shift is plausible here."
    return _diagnostic("tolerated shift", largest, allowed, ok, words, advice)


def dependence_on_budget(source: ArrayLike, target: ArrayLike, fpr: float) -> Diagnostic:
    """How many times as many target rows are called novel at twice the budget as at half of it."""
    few, many = (share_above(target, conformal_threshold(source, fpr * f).value) for f in (0.5, 2.0))
    value = many / few if few else (1.0 if not many else float("inf"))
    words = (
        f"At half the false-positive budget {100 * few:.2g} % of target rows are called new, at twice the "
        f"budget {100 * many:.2g} %."
    )
    advice = "The number of rows called new depends on the budget: read the list from the top, ignore the count."
    return _diagnostic("dependence on the budget", value, BUDGET_FACTOR, value <= BUDGET_FACTOR, words, advice)


def evenness_of_shift(source: ArrayLike, target: ArrayLike) -> Diagnostic:
    """Effective share of source rows after weighting them by score to look like the target.

    The score shows only a part of the shift, so the true share is smaller.
    """
    value = effective_sample_size(score_weights(source, target)) / max(len(np.asarray(source)), 1)
    words = f"Weighted to look like the target, the source rows are worth {100 * value:.0f} % of their number."
    advice = "Few source rows resemble the target: label more rows of the kinds that are common there."
    return _diagnostic("effective source rows", value, EFFECTIVE_SHARE, value >= EFFECTIVE_SHARE, words, advice)


def support_of_known(source_rows: ArrayLike, known_target_rows: ArrayLike) -> Diagnostic:
    """The share of target rows with a known label that lie far from all source rows; 1 % is expected."""
    source, target = (np.asarray(rows, dtype=np.float64) for rows in (source_rows, known_target_rows))
    neighbours = min(5, len(source) - 1)
    value = share_outside(source, target, n_neighbours=neighbours) if neighbours > 0 and len(target) else 0.0
    words = f"Of the target rows called known, {100 * value:.1f} % lie far from any source row."
    advice = "They may be of kinds that nobody labelled: look at some of them."
    return _diagnostic("known rows far from source", value, OUTSIDE_SHARE, value <= OUTSIDE_SHARE, words, advice)


def agreement_of_members(member_scores: ArrayLike, share: float) -> Diagnostic:
    """How far members agree on the highest ``share`` of rows: the mean overlap between two members.

    ``member_scores`` is (members, rows).
    """
    scores = np.asarray(member_scores, dtype=np.float64)
    if scores.ndim != 2 or len(scores) < 2:
        raise ValueError(
            f"scores have shape {scores.shape}: agreement needs (members, rows), two members or more."
        )
    number = max(1, round(share * scores.shape[1]))
    tops = [set(np.argsort(-row, kind="stable")[:number].tolist()) for row in scores]
    value = float(np.mean([len(a & b) / number for a, b in combinations(tops, 2)]))
    words = f"Two members agree on {100 * value:.0f} % of their {number} highest target rows."
    advice = "The list is unstable: use more rows, more training steps or more members."
    return _diagnostic("agreement of members", value, AGREEMENT, value >= AGREEMENT, words, advice)


def constraint_kept(recall: float, candidate_recall: float) -> Diagnostic:
    """Whether the chosen head reaches its candidate recall on target validation rows."""
    value = recall / candidate_recall
    words = (
        f"The chosen head calls {100 * recall:.2g} % of target validation rows new; "
        f"its candidate recall is {100 * candidate_recall:.2g} %."
    )
    advice = "A head may miss its recall, but not by so much: few rows stand out, or training was too short."
    return _diagnostic("constraint kept", value, KEPT_RECALL, value >= KEPT_RECALL, words, advice)


def effective_sample_size(weights: ArrayLike) -> float:
    """The number of equally weighted rows that are worth as much: (Σw)² / Σw².

    >>> effective_sample_size([1.0, 1.0, 0.0, 0.0])
    2.0
    """
    w = np.asarray(weights, dtype=np.float64)
    squares = float((w**2).sum())
    return float(w.sum() ** 2 / squares) if squares else 0.0


def score_weights(source: ArrayLike, target: ArrayLike) -> NDArray[np.float64]:
    """The density ratio of target to source at every source row's score, if it rises with the score.

    >>> score_weights([0.0, 1.0], [0.0, 1.0]).tolist()
    [1.0, 1.0]
    """
    s, t = np.asarray(source, dtype=np.float64), np.asarray(target, dtype=np.float64)
    values, index = np.unique(np.concatenate([s, t]), return_inverse=True)
    of_source = np.bincount(index[: len(s)], minlength=len(values))
    of_target = np.bincount(index[len(s) :], minlength=len(values))
    rows = of_source + of_target
    share = np.asarray(isotonic_regression(of_target / rows, weights=rows).x)[index[: len(s)]]
    # a block with a source row has a share below one
    return share / (1 - share) * (len(s) / max(len(t), 1))


def _diagnostic(name: str, value: float, threshold: float, ok: bool, words: str, advice: str) -> Diagnostic:
    """A diagnostic whose sentence ends with advice where the check fails."""
    return Diagnostic(name, value, threshold, ok, words if ok else f"{words} {advice}")
