"""Exact open-set metrics on labelled target rows, all from one sweep over thresholds.

``novel`` marks the target rows that truly belong to the new class, which is the positive class everywhere.
``score`` is a novelty score, higher = more novel. Ties are exact: rows with equal scores enter the sweep
together, so no metric depends on the order of rows (except OSCR with ``legacy=True``). All are O(n log n).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Sweep:
    """Counts of rows scoring at or above each distinct score, from the highest score down."""

    novel: IntArray
    known: IntArray
    correct: IntArray
    """Known rows at or above the threshold whose class was predicted correctly."""

    @property
    def n_novel(self) -> int:
        """Number of novel rows."""
        return int(self.novel[-1])

    @property
    def n_known(self) -> int:
        """Number of known rows."""
        return int(self.known[-1])


def _sweep(novel: ArrayLike, score: ArrayLike, correct: ArrayLike | None = None) -> Sweep:
    """Sort once, group ties and count. Scores are compared here only."""
    is_novel = _as_mask("novel", novel)
    s = np.asarray(score, dtype=np.float64)
    if s.shape != is_novel.shape:
        raise ValueError(
            f"score has shape {s.shape} but novel has shape {is_novel.shape}: expected one score per row."
        )
    if np.isnan(s).any():
        raise ValueError(f"score contains {int(np.isnan(s).sum())} NaN: every row needs a score.")
    if is_novel.all() or not is_novel.any():
        kind = "novel" if is_novel.size and is_novel.all() else "known"
        raise ValueError(
            f"all {is_novel.size} rows are {kind}: ranking metrics need both known and novel target rows."
        )
    is_correct = np.ones(s.shape, bool) if correct is None else _as_mask("correct", correct)
    if is_correct.shape != s.shape:
        raise ValueError(f"correct has shape {is_correct.shape} but score has shape {s.shape}.")
    order = np.argsort(-s, kind="stable")
    ordered = s[order]
    last_of_ties = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
    novel_sorted = is_novel[order]
    count = np.cumsum(novel_sorted, dtype=np.int64)[last_of_ties]
    right = np.cumsum(is_correct[order] & ~novel_sorted, dtype=np.int64)[last_of_ties]
    return Sweep(novel=count, known=last_of_ties + 1 - count, correct=right)


def _as_mask(name: str, values: ArrayLike) -> BoolArray:
    mask = np.asarray(values)
    if mask.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {mask.shape}.")
    if mask.dtype != bool:
        if not np.isin(mask, (0, 1)).all():
            raise ValueError(f"{name} must hold booleans (or 0/1), got {mask.dtype} values.")
        mask = mask.astype(bool)
    return mask


def _steps(counts: IntArray) -> IntArray:
    return np.diff(counts, prepend=0)


def auroc(novel: ArrayLike, score: ArrayLike) -> float:
    """Probability that a random novel row scores above a random known row; ties count one half.

    >>> auroc([1, 0, 0], [0.9, 0.9, 0.1])
    0.75
    """
    return _area_above(_sweep(novel, score))


def _area_above(sweep: Sweep) -> float:
    known_below = sweep.n_known - sweep.known
    twice = (_steps(sweep.novel) * (2 * known_below + _steps(sweep.known))).sum()
    return float(twice / (2 * sweep.n_novel * sweep.n_known))


def auprc(novel: ArrayLike, score: ArrayLike) -> float:
    """Average precision: the precision at the score of each novel row, averaged over novel rows.

    >>> auprc([1, 0, 1], [0.9, 0.5, 0.1])  # (1/1 + 2/3) / 2
    0.8333333333333333
    """
    return _average_precision(_sweep(novel, score))


def _average_precision(sweep: Sweep) -> float:
    precision = sweep.novel / (sweep.novel + sweep.known)
    return float((_steps(sweep.novel) * precision).sum() / sweep.n_novel)


def fpr_at_tpr(novel: ArrayLike, score: ArrayLike, tpr: float = 0.95) -> float:
    """Share of known rows called novel at the highest threshold that finds at least ``tpr`` of the novel rows."""
    if not 0 < tpr <= 1:
        raise ValueError(f"tpr={tpr} is not valid: expected a number in (0, 1].")
    return _fpr_at(_sweep(novel, score), tpr)


def _fpr_at(sweep: Sweep, tpr: float) -> float:
    enough = np.argmax(sweep.novel >= tpr * sweep.n_novel)
    return float(sweep.known[enough] / sweep.n_known)


def oscr(novel: ArrayLike, score: ArrayLike, correct: ArrayLike, *, legacy: bool = False) -> float:
    """Area under the open-set classification rate curve, exact under ties.

    The mean over known rows i and novel rows j of ``correct_i · ([s_i < s_j] + ½ [s_i = s_j])``, where
    ``correct`` says whether the known class of row i was predicted correctly (it is ignored for novel rows).

    ``legacy=True`` gives the number in published tables: correct known rows are counted one row later than
    novel ones, and ties are in row order, known before novel.

    >>> oscr([0, 0, 1], [1.0, 1.0, 1.0], [1, 0, 0])  # a constant score gives half the accuracy
    0.25
    """
    sweep = _sweep(novel, score, correct)
    if legacy:
        return _legacy_oscr(_as_mask("novel", novel), np.asarray(score, float), _as_mask("correct", correct))
    return _exact_oscr(sweep)


def _exact_oscr(sweep: Sweep) -> float:
    correct_below = int(sweep.correct[-1]) - sweep.correct
    twice = (_steps(sweep.novel) * (2 * correct_below + _steps(sweep.correct))).sum()
    return float(twice / (2 * sweep.n_novel * sweep.n_known))


def _legacy_oscr(novel: BoolArray, score: FloatArray, correct: BoolArray) -> float:
    knownness = np.concatenate([-score[~novel], -score[novel]])
    is_correct = np.concatenate([correct[~novel], np.zeros(novel.sum(), bool)])
    is_novel = np.arange(len(novel)) >= (~novel).sum()
    order = np.argsort(knownness, kind="stable")
    # point k of the curve: novel rows from k on, correct known rows from k + 1 on
    from_k = np.cumsum(is_novel[order][::-1])[::-1]
    from_next = np.append(np.cumsum(is_correct[order][::-1])[::-1][1:], 0)
    fpr = np.concatenate([from_k[:-1] / novel.sum(), [0.0, 0.0, 1.0]])
    ccr = np.concatenate([from_next[:-1] / (~novel).sum(), [0.0, 0.0, 1.0]])
    curve = np.lexsort((ccr, fpr))
    return float(np.trapezoid(ccr[curve], fpr[curve]))


def top1(novel: ArrayLike, correct: ArrayLike) -> float:
    """Accuracy of the closed-set prediction on known target rows."""
    known = ~_as_mask("novel", novel)
    if not known.any():
        raise ValueError("no known target rows: top-1 accuracy is the accuracy on known rows.")
    return float(_as_mask("correct", correct)[known].mean())


@dataclass(frozen=True)
class OpenSetRates:
    """Accuracies of the predicted labels (a known class or novel), averaged over classes.

    ``os_star`` is the mean accuracy over the known classes, ``unk`` the share of novel rows called novel,
    ``os`` the mean over all k + 1 classes, and ``hos`` the harmonic mean of ``os_star`` and ``unk``.
    """

    os: float
    os_star: float
    unk: float
    hos: float


def open_set_rates(y_true: ArrayLike, y_pred: ArrayLike, novel_label: object) -> OpenSetRates:
    """OS, OS*, UNK and HOS; a known row called novel counts as wrong.

    >>> open_set_rates(["a", "b", "novel"], ["a", "novel", "novel"], "novel")
    OpenSetRates(os=0.666..., os_star=0.5, unk=1.0, hos=0.666...)
    """
    truth, guess = np.asarray(y_true, dtype=object), np.asarray(y_pred, dtype=object)
    if truth.shape != guess.shape or truth.ndim != 1:
        raise ValueError(
            f"y_true has shape {truth.shape} and y_pred {guess.shape}: expected one label per row in each."
        )
    right = truth == guess
    classes = sorted({label for label in truth.tolist() if label != novel_label}, key=str)
    novel = truth == novel_label
    if not classes or not novel.any():
        raise ValueError(
            f"y_true needs rows of known classes and rows labelled {novel_label!r}; "
            f"got {len(classes)} known classes and {int(novel.sum())} novel rows."
        )
    per_class = [float(right[truth == label].mean()) for label in classes]
    os_star, unk = float(np.mean(per_class)), float(right[novel].mean())
    hos = 2 * os_star * unk / (os_star + unk) if os_star + unk > 0 else 0.0
    return OpenSetRates(os=float(np.mean([*per_class, unk])), os_star=os_star, unk=unk, hos=hos)


@dataclass(frozen=True)
class OpenSetMetrics:
    """All metrics of one model on one set of labelled target rows."""

    auroc: float
    auprc: float
    oscr: float
    top1: float
    fpr_at_95_tpr: float
    os: float
    os_star: float
    unk: float
    hos: float
    n_known: int
    n_novel: int

    def to_dict(self) -> dict[str, float]:
        """The metrics as a plain dictionary."""
        return asdict(self)


def evaluate(model: Any, X: Any, y: ArrayLike, *, legacy_oscr: bool = False) -> OpenSetMetrics:
    """All metrics of a model on labelled target rows; every label not in ``model.classes_`` counts as novel."""
    truth = np.asarray(y, dtype=object)
    classes = set(np.asarray(model.classes_, dtype=object).tolist())
    known = np.array([label in classes for label in truth.tolist()], dtype=bool)
    score = model.novelty_score(X)
    correct = np.asarray(model.predict_known(X), dtype=object) == truth
    decided = np.asarray(model.predict(X), dtype=object)
    rates = open_set_rates(np.where(known, truth, model.novel_label_), decided, model.novel_label_)
    sweep = _sweep(~known, score, correct)
    return OpenSetMetrics(
        auroc=_area_above(sweep),
        auprc=_average_precision(sweep),
        oscr=oscr(~known, score, correct, legacy=True) if legacy_oscr else _exact_oscr(sweep),
        top1=top1(~known, correct),
        fpr_at_95_tpr=_fpr_at(sweep, 0.95),
        n_known=sweep.n_known,
        n_novel=sweep.n_novel,
        **asdict(rates),
    )
