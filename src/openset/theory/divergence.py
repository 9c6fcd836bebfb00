"""d_{H,β}: how probable an event that is rare in source can become in target.

The paper's finite-sample statement (Wald and Saria, 2023) has an error that grows with

    d_{H,β}(P_S ‖ P_T) = sup { P_T(h) : h in H, P_S(h) ≤ β },

taken over the *known* part of the target: it is the largest share of known target rows that a head within its
false-positive budget β can call novel by mistake. Without shift it is at most β. With a density ratio of at most
B it is at most β·B, however large other divergences between the two are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from openset._utils.params import check_number


@dataclass(frozen=True)
class RareEvent:
    """The event that attains the divergence."""

    value: float
    """Its probability in target: the divergence."""
    source: float
    """Its probability in source, at most β."""
    head: int = 0
    """The column of scores that it belongs to."""
    threshold: float = np.inf
    """It is the event that the score is above this."""


def rare_event_divergence(source_scores: ArrayLike, target_scores: ArrayLike, beta: float) -> RareEvent:
    """d_{H,β} of samples for H = {score > t}, any t, of one score or of any column of several.

    Pass scores of source rows and of known target rows. Rows with equal scores are in an event together or not at
    all.

    >>> rare_event_divergence([0.0, 1.0, 2.0, 3.0], [2.5, 3.5, 0.0, 4.0], beta=0.25)
    RareEvent(value=0.75, source=0.25, head=0, threshold=2.0)
    """
    check_number("beta", beta, high=1)
    source, target = _columns("source_scores", source_scores), _columns("target_scores", target_scores)
    if source.shape[1] != target.shape[1]:
        raise ValueError(
            f"source_scores has {source.shape[1]} columns and target_scores {target.shape[1]}: expected the same."
        )
    pairs = zip(source.T, target.T, strict=True)
    found = [_best_threshold(of_source, of_target, beta) for of_source, of_target in pairs]
    head = max(range(len(found)), key=lambda index: found[index].value)
    return replace(found[head], head=head)


def _columns(name: str, scores: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(scores, dtype=np.float64)
    columns = values[:, None] if values.ndim == 1 else values
    if columns.ndim != 2 or not columns.size or not np.isfinite(columns).all():
        raise ValueError(f"{name} has shape {values.shape}: expected finite scores, one row at least.")
    return columns


def _best_threshold(source: NDArray[np.float64], target: NDArray[np.float64], beta: float) -> RareEvent:
    """The lowest threshold with a share of at most β of source above it: lower ones hold more of target."""
    allowed = int(np.floor(beta * len(source) + 1e-9))
    if allowed >= len(source):
        return RareEvent(1.0, 1.0, threshold=-np.inf)
    threshold = float(np.sort(source)[::-1][allowed])  # at most `allowed` rows are above it
    value, share = float((target > threshold).mean()), float((source > threshold).mean())
    return RareEvent(value, share, threshold=threshold)


def divergence_of_all_events(source: ArrayLike, target: ArrayLike, beta: float) -> float:
    """d_{H,β} of two distributions on the same points for the largest H: all events, also random ones.

    No smaller class has a larger one. By the lemma of Neyman and Pearson the best event takes points in the order
    of target over source, the last of them with a probability.

    >>> divergence_of_all_events([0.5, 0.4, 0.1], [0.2, 0.4, 0.4], beta=0.1)
    0.4
    """
    check_number("beta", beta, high=1)
    p, q = (np.asarray(values, dtype=np.float64) for values in (source, target))
    for name, values in (("source", p), ("target", q)):
        if values.ndim != 1 or (values < 0).any() or not np.isclose(values.sum(), 1):
            raise ValueError(f"{name} is not a distribution: expected one probability a point, with sum 1.")
    if p.shape != q.shape:
        raise ValueError(f"source has {len(p)} points and target {len(q)}: expected the same points.")
    ratio = np.divide(q, p, out=np.full(len(p), np.inf), where=p > 0)
    order = np.argsort(-ratio, kind="stable")
    before = np.concatenate([[0.0], np.cumsum(p[order])[:-1]])
    taken = np.clip(np.divide(beta - before, p[order], out=np.ones(len(p)), where=p[order] > 0), 0, 1)
    return float(min(1.0, (q[order] * taken).sum()))
