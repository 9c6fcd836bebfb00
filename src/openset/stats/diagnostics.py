"""What limits an answer: each a number, the threshold it is held against, and what to do about it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, isotonic_regression

from openset.stats.bounded_shift import novelty_p_value
from openset.stats.held_out import HeldOutScores
from openset.stats.neighbours import share_outside
from openset.stats.novelty import LIKELY, NoveltyEvidence
from openset.stats.thresholds import conformal_threshold, share_above

PROVED_SHARE = 0.5
EFFECTIVE_SHARE = 0.2
OUTSIDE_SHARE = 0.05
AGREEMENT = 0.5
KEPT_RECALL = 0.5
BUDGET_FACTOR = 2.0
RATIO_MARGIN = 2.5
_LARGEST_RATIO = 1000.0


@dataclass(frozen=True)
class Diagnostic:
    """One check: ``ok`` says whether ``value`` is on the good side of ``threshold``, the sentence what to do."""

    name: str
    value: float | None
    threshold: float | None
    ok: bool
    sentence: str


def diagnose_scores(held_out: HeldOutScores, evidence: NoveltyEvidence, *, fpr: float) -> list[Diagnostic]:
    """All checks that held-out scores allow; the others need rows, members on common rows, or constraints."""
    head = Counter(cut.head for cut in evidence.cuts).most_common(1)[0][0]
    source = np.concatenate([part[:, head] for part in held_out.source])
    target = np.concatenate([part[:, head] for part in held_out.target])
    if not len(source) or not len(target):
        return []
    return [
        separability_achieved(evidence),
        dependence_on_ratio(evidence),
        dependence_on_budget(source, target, fpr),
        evenness_of_shift(source, target),
    ]


def separability_achieved(evidence: NoveltyEvidence) -> Diagnostic:
    """Of the target rows above the threshold, the share that known rows cannot explain."""
    counts = evidence.test.counts
    above = counts.target_above / max(counts.n_target, 1)
    value = min(1.0, evidence.fraction.low / above) if above else 0.0
    ok = value >= PROVED_SHARE
    words = (
        f"Of the target rows that stand out, {100 * value:.0f} % cannot be known rows that became more common."
    )
    advice = " A new class that resembles known ones is not seen: bring more source rows or better features."
    return Diagnostic("separability achieved", value, PROVED_SHARE, ok, words + ("" if ok else advice))


def dependence_on_ratio(evidence: NoveltyEvidence) -> Diagnostic:
    """The largest shift up to which a new class is still proved, held against the one assumed."""
    counts, assumed = evidence.test.counts, evidence.test.max_density_ratio

    def beyond(ratio: float) -> float:
        return novelty_p_value(counts, ratio) - LIKELY

    if beyond(1.0) > 0:
        largest = 0.0
    elif beyond(_LARGEST_RATIO) <= 0:
        largest = _LARGEST_RATIO
    else:
        largest = float(brentq(beyond, 1.0, _LARGEST_RATIO, xtol=0.01))
    ok = not assumed / RATIO_MARGIN <= largest < assumed * RATIO_MARGIN
    if not largest:
        words = "No new class would be found even if the known rows had not shifted at all."
    else:
        words = f"A new class is proved if no kind of known row became more than {largest:.3g} times as common."
    advice = f" That is close to the {assumed:g} times assumed: ask how strong a shift is plausible here."
    return Diagnostic("shift that the answer bears", largest, assumed, ok, words + ("" if ok else advice))


def dependence_on_budget(source: ArrayLike, target: ArrayLike, fpr: float) -> Diagnostic:
    """How many times as many target rows are called novel at twice the budget as at half of it."""
    few, many = (share_above(target, conformal_threshold(source, fpr * f).value) for f in (0.5, 2.0))
    value = many / few if few else (1.0 if not many else float("inf"))
    ok = value <= BUDGET_FACTOR
    words = (
        f"At half the false-positive budget {100 * few:.2g} % of target rows are called novel, at twice the "
        f"budget {100 * many:.2g} %."
    )
    advice = " What is called novel depends on the budget: read the list from the top, not the count."
    return Diagnostic("dependence on the budget", value, BUDGET_FACTOR, ok, words + ("" if ok else advice))


def evenness_of_shift(source: ArrayLike, target: ArrayLike) -> Diagnostic:
    """Effective share of source rows, weighted as the score says they would have to be to look like target.

    The score sees a part of the shift only, so that the true share is smaller.
    """
    value = effective_sample_size(score_weights(source, target)) / max(len(np.asarray(source)), 1)
    ok = value >= EFFECTIVE_SHARE
    words = f"Weighted to look like the target, the source rows are worth {100 * value:.0f} % of their number."
    advice = " Few source rows resemble the target: label more rows of the kinds that are common there."
    return Diagnostic("effective source rows", value, EFFECTIVE_SHARE, ok, words + ("" if ok else advice))


def support_of_known(source_rows: ArrayLike, known_target_rows: ArrayLike) -> Diagnostic:
    """How many target rows that keep a known label lie where source has none; 1 % is what to expect."""
    source, target = (np.asarray(rows, dtype=np.float64) for rows in (source_rows, known_target_rows))
    neighbours = min(5, len(source) - 1)
    value = share_outside(source, target, n_neighbours=neighbours) if neighbours > 0 and len(target) else 0.0
    ok = value <= OUTSIDE_SHARE
    words = f"Of the target rows that keep a known label, {100 * value:.1f} % lie far from any source row."
    advice = " They may be of kinds that nobody labelled: look at some of them."
    return Diagnostic("known rows without source rows", value, OUTSIDE_SHARE, ok, words + ("" if ok else advice))


def agreement_of_members(member_scores: ArrayLike, share: float) -> Diagnostic:
    """How far members agree on which rows are the highest ``share``: the mean overlap of two members' sets.

    ``member_scores`` is (members, rows) on rows that none of them, or all but one, trained on.
    """
    scores = np.asarray(member_scores, dtype=np.float64)
    if scores.ndim != 2 or len(scores) < 2:
        raise ValueError(
            f"scores have shape {scores.shape}: agreement needs (members, rows), two members or more."
        )
    number = max(1, round(share * scores.shape[1]))
    tops = [set(np.argsort(-row, kind="stable")[:number].tolist()) for row in scores]
    value = float(np.mean([len(a & b) / number for a, b in combinations(tops, 2)]))
    ok = value >= AGREEMENT
    words = f"Two members agree on {100 * value:.0f} % of their {number} highest target rows."
    advice = " The list is unstable: more rows, more training steps or more members would settle it."
    return Diagnostic("agreement of members", value, AGREEMENT, ok, words + ("" if ok else advice))


def constraint_kept(recall: float, candidate_recall: float) -> Diagnostic:
    """Whether the chosen head reaches, on held-out target rows, the recall it was trained to reach."""
    value = recall / candidate_recall
    ok = value >= KEPT_RECALL
    asked = f"{100 * candidate_recall:.2g} %"
    words = f"The chosen head calls {100 * recall:.2g} % of held-out target rows novel; it was to reach {asked}."
    advice = " Heads may stop short, but not by so much: few rows stand out, or training was too short."
    return Diagnostic("constraint kept", value, KEPT_RECALL, ok, words + ("" if ok else advice))


def effective_sample_size(weights: ArrayLike) -> float:
    """How many equally weighted rows say as much: (Σw)² / Σw².

    >>> effective_sample_size([1.0, 1.0, 0.0, 0.0])
    2.0
    """
    w = np.asarray(weights, dtype=np.float64)
    squares = float((w**2).sum())
    return float(w.sum() ** 2 / squares) if squares else 0.0


def score_weights(source: ArrayLike, target: ArrayLike) -> NDArray[np.float64]:
    """How much denser the target is at every source row's score, the ratio taken to rise with the score.

    >>> score_weights([0.0, 1.0], [0.0, 1.0]).tolist()
    [1.0, 1.0]
    """
    s, t = np.asarray(source, dtype=np.float64), np.asarray(target, dtype=np.float64)
    values, place = np.unique(np.concatenate([s, t]), return_inverse=True)
    of_source = np.bincount(place[: len(s)], minlength=len(values))
    of_target = np.bincount(place[len(s) :], minlength=len(values))
    rows = of_source + of_target
    share = np.asarray(isotonic_regression(of_target / rows, weights=rows).x)[place[: len(s)]]
    # a block that holds a source row has a share below one
    return share / (1 - share) * (len(s) / max(len(t), 1))
