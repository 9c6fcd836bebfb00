"""Groups among the rows called novel, and the known classes under shift."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.typed import plain
from openset.pipeline.scored_table import ScoredTable
from openset.pipeline.summary import Accuracy, ClassShares, Group, Groups, KnownClasses, Share
from openset.problem import ValidationClasses
from openset.stats.groups import FEWEST_ROWS, NovelGroup, NovelGroups, discover_groups
from openset.stats.known_classes import AccuracyEstimate, estimate_target_accuracy, target_class_shares
from openset.stats.scaling import fit_scaling, moments

FEWEST_ROWS_TO_CORRECT = 30
"""Validation rows of the source from which on shares are corrected and an accuracy is estimated."""
_CALIBRATED = 0.05

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Explanation:
    """What the target rows called novel and the known ones are."""

    called_novel: int
    groups: Groups
    class_mix: dict[str, ClassShares]
    known_classes: KnownClasses


def explain(
    model: Any, scored: ScoredTable, X: NDArray[Any], y: NDArray[Any], X_target: NDArray[Any]
) -> tuple[Explanation, NDArray[np.intp]]:
    """Group the rows called novel, and compare the known classes; also the group of every target row, or −1."""
    called = scored.novelty_score > model.threshold_
    found = find_groups(model, X, X_target, scored.novelty_score, called)
    class_mix, known_classes = judge_known_classes(model, y, scored.nearest_known, called)
    n_called = int(called.sum())
    groups = Groups(describe_groups(found, n_called), [_with_ids(group, scored.id) for group in found.groups])
    return Explanation(n_called, groups, class_mix, known_classes), found.labels


def find_groups(
    model: Any, X: NDArray[Any], X_target: NDArray[Any], scores: Floats, called: NDArray[np.bool_]
) -> NovelGroups:
    """Groups among the target rows called novel; indices and labels are of target rows, −1 for rows of none.

    Rows are compared by the model's own representation or, where it has none, by their scaled features.
    """
    rows = np.flatnonzero(called)
    if not len(rows):
        return NovelGroups((), np.full(len(called), -1))
    found = discover_groups(_compared(model, X, X_target, rows), scores[rows], n_target=len(called))
    labels = np.full(len(called), -1)
    labels[rows] = found.labels
    return NovelGroups(tuple(_of_target(group, rows) for group in found.groups), labels)


def _compared(model: Any, X: NDArray[Any], X_target: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[Any]:
    if hasattr(model, "representation"):
        return np.asarray(model.representation(X_target[rows]))
    return np.asarray(fit_scaling(moments(X), moments(X_target), "auto").apply(X_target[rows]))


def _of_target(group: NovelGroup, rows: NDArray[np.intp]) -> NovelGroup:
    examples = tuple(rows[list(group.examples)].tolist())
    return replace(group, medoid=int(rows[group.medoid]), examples=examples)


def _with_ids(group: NovelGroup, ids: NDArray[Any]) -> Group:
    rows, share = list(group.examples), group.share
    return Group(
        size=group.size,
        share=Share(share.value, share.low, share.high, share.confidence),
        stability=group.stability,
        medoid=plain(ids[group.medoid]),
        examples=plain(ids[rows]),
        rows=rows,
    )


def describe_groups(found: NovelGroups, n_called: int) -> str:
    """One new class or several, in a sentence.

    >>> describe_groups(NovelGroups((), np.empty(0, int)), 0)
    'No row is called new, so there is nothing to group.'
    """
    if not len(found):
        return "No row is called new, so there is nothing to group."
    if n_called == 1:
        return "The row called new is alone."
    if len(found) == 1:
        few = f"two groups need at least {2 * FEWEST_ROWS} rows"
        reason = few if n_called < 2 * FEWEST_ROWS else "no stable subgroups"
        return f"The {n_called} rows called new form one group: {reason}."
    rest = n_called - sum(group.size for group in found.groups)
    words = f"The {n_called} rows called new form {len(found)} stable groups"
    return f"{words}; {rest} rows are in none of them." if rest else f"{words}."


def judge_known_classes(
    model: Any, y: NDArray[Any], nearest_known: NDArray[Any], called: NDArray[np.bool_]
) -> tuple[dict[str, ClassShares], KnownClasses]:
    """The class mix of the target rows not called novel, and the classifier's accuracy on them, without labels.

    ``model`` was fitted in this process: it has the probabilities of its validation rows. Shares are corrected by
    EM where there are enough: that was measured nearer to the truth than counting predictions wherever the mix of
    classes changed, and farther where only rows within classes did (decision 17).
    """
    kept = nearest_known[~called].astype(str)
    counted = np.array([(kept == str(label)).mean() if len(kept) else 0.0 for label in model.classes_.tolist()])
    validation = model.fit_scores_.validation_classes if len(kept) else None
    reason = _why_not(model, validation, called)
    if reason or validation is None:
        sentence = f"Target shares count predictions as they are, and no accuracy is estimated: {reason}."
        return _class_mix(model, y, counted, counted), KnownClasses(sentence=sentence)
    novel = called[validation.target_rows].astype(np.float64)
    shares = target_class_shares(validation.source, validation.y, validation.target, novel)
    sentence = (
        "Target shares are corrected by EM for how sure the classifier is on validation rows. In tests that was "
        "nearer than counting predictions where the mix of classes changed, farther where only rows within "
        "classes did."
    )
    accuracy = _accuracy(validation, novel)
    known = KnownClasses(
        corrected=True,
        sentence=sentence,
        accuracy=None if accuracy is None else Accuracy(**plain(vars(accuracy))),
        accuracy_sentence=describe_accuracy(accuracy),
    )
    return _class_mix(model, y, shares, counted), known


def _class_mix(model: Any, y: NDArray[Any], shares: Floats, counted: Floats) -> dict[str, ClassShares]:
    of_source = [float((y == label).mean()) for label in model.classes_.tolist()]
    names = map(str, model.classes_.tolist())
    return dict(zip(names, map(ClassShares, of_source, shares.tolist(), counted.tolist()), strict=True))


def _why_not(model: Any, validation: ValidationClasses | None, called: NDArray[np.bool_]) -> str:
    if called.all():
        return "every target row is called new"
    if validation is None or len(validation.y) < FEWEST_ROWS_TO_CORRECT:
        return f"the source has fewer than {FEWEST_ROWS_TO_CORRECT} validation rows"
    if called[validation.target_rows].all():
        return "every validation row of the target is called new"
    absent = np.flatnonzero(np.bincount(validation.y, minlength=len(model.classes_)) == 0)
    return f"class {str(model.classes_[absent[0]])!r} has no validation row" if len(absent) else ""


def _accuracy(validation: ValidationClasses, novel: Floats) -> AccuracyEstimate | None:
    """None where confidences are so often tied that they miss even the accuracy on the rows they are set on."""
    on_source = estimate_target_accuracy(validation.source, validation.y, validation.source)
    if abs(on_source.value - on_source.source_accuracy) > _CALIBRATED:
        return None
    return estimate_target_accuracy(validation.source, validation.y, validation.target, novel)


def describe_accuracy(accuracy: AccuracyEstimate | None) -> str:
    """The estimate in a sentence, with what was measured about it.

    >>> describe_accuracy(AccuracyEstimate(0.9, 0.85, 0.94, 0.95, 0.9))[:68]
    'Accuracy on known target rows, estimated without labels: 0.90 [0.85,'
    """
    if accuracy is None:
        return ""
    return (
        f"Accuracy on known target rows, estimated without labels: {accuracy.value:.2f} [{accuracy.low:.2f}, "
        f"{accuracy.high:.2f}] ({100 * accuracy.confidence:.0f} % interval); {accuracy.source_accuracy:.2f} on "
        "validation rows of source. Under background shift such estimates were about 0.02 too high on average."
    )
