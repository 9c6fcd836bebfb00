"""A classifier of the user's choice for the known classes, next to a network that finds the new class.

Domain adaptation can improve the class boundaries under shift, but novel rows must not take part in it. The
network finds these rows, and the classifier adapts to the others.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils.metadata_routing import get_routing_for_object

from openset._utils.params import check_choice, takes_parameters_of
from openset.learn.batches import ScaledRows, head_outputs
from openset.methods._network import NetworkBase
from openset.problem import FitScores, Floats, Problem, State, unseen_classes

INPUTS = ("representation", "features")
SOURCE, TARGET, MASKED = 1, -2, -1
"""skada's convention: positive domains are source, negative ones are target, and target labels are masked."""

_SMALLEST = np.finfo(np.float64).tiny
"""Used instead of a probability of 0, whose logarithm would be infinite."""


class WithKnownClassifier(NetworkBase):
    """A network that may leave the known classes to another estimator.

    Parameters
    ----------
    classifier : a scikit-learn or skada estimator; None for the network's own class head. A clone of it is fitted
        after the network, on class indices in the order of ``classes_``. An estimator that takes
        ``sample_domain``, as skada's do, also gets the target rows that are not called novel, without labels;
        others get source rows only. The logits of the known classes are its log-probabilities or, without
        ``predict_proba``, its decision function; without that, all weight goes to the predicted class
    classifier_input : "representation", the output of the body with the class head, of all members concatenated;
        or "features", the rows as passed to ``fit``, or as aligned where ``CoLOR`` aligned the batch

    Novelty scores and ``threshold_`` are always the network's.

    Attributes
    ----------
    classifier_ : the fitted clone; absent with ``classifier=None`` and with one known class only
    """

    classifier_: Any

    @takes_parameters_of(NetworkBase)
    def __init__(
        self, *, classifier: Any = None, classifier_input: str = "representation", **shared: Any
    ) -> None:
        super().__init__(**shared)
        self.classifier = classifier
        self.classifier_input = classifier_input

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("classifier_input", self.classifier_input, INPUTS)
        given = self.classifier
        if given is None:
            return
        if isinstance(given, type) or not all(hasattr(given, name) for name in ("fit", "get_params")):
            raise ValueError(
                f"classifier={given!r} is not valid: expected an estimator of scikit-learn or skada, such as "
                "LogisticRegression(), or None."
            )
        if self.classifier_input == "features" and self._accepts_nd():
            raise ValueError(
                "classifier_input='features' is not valid with a backbone, because rows may not be vectors: "
                "expected 'representation'."
            )

    def _finish(self, problem: Problem, scores: FitScores) -> tuple[State, FitScores]:
        """Fit the classifier, also on known target rows if it adapts, and classify the rows of the fit."""
        if self.classifier is None or problem.n_classes == 1:
            return super()._finish(problem, scores)
        rows, known, target = self._classifier_rows(problem.X), None, None
        if problem.X_target is not None:
            target = self._classifier_rows(problem.X_target)
            known = target[scores.target_score <= self.threshold_]
        if not takes_domains(self.classifier):
            known = None
        classifier = fit_classifier(clone(self.classifier), rows, problem.y, known)
        if target is not None:
            logits = class_logits(classifier, target, problem.n_classes)
            own = class_logits(classifier, rows[problem.split.calibration], problem.n_classes)
            validation = unseen_classes(problem, own, logits) or scores.validation_classes
            scores = replace(scores, target_logits=logits, validation_classes=validation)
        return {"classifier_": classifier}, scores

    def _outputs(self, rows: NDArray[np.floating]) -> tuple[Floats, Floats]:
        logits, score = super()._outputs(rows)
        if hasattr(self, "classifier_"):
            logits = class_logits(self.classifier_, self._classifier_rows(rows), len(self.classes_))
        return logits, score

    def _classifier_rows(self, rows: NDArray[np.floating]) -> Floats:
        if self.classifier_input == "features":
            return rows.astype(np.float64)
        body = next(name for name, heads in self.architecture_.bodies.items() if "classes" in heads)
        by_member = head_outputs(self._network(), ScaledRows(rows, self.scaling_), representation=True)[body]
        return np.concatenate(list(by_member), axis=1, dtype=np.float64)


def takes_domains(estimator: Any) -> bool:
    """Whether an estimator adapts: its ``fit``, or that of one of its steps, takes ``sample_domain``.

    >>> from sklearn.linear_model import LogisticRegression
    >>> takes_domains(LogisticRegression())
    False
    """
    if "sample_domain" in inspect.signature(estimator.fit).parameters:
        return True
    return bool(get_routing_for_object(estimator).consumes("fit", {"sample_domain"}))


def fit_classifier(
    estimator: Any, X: NDArray[np.float64], y: NDArray[np.intp], X_target: NDArray[np.float64] | None
) -> Any:
    """Fit on source rows and, if the estimator adapts, on unlabelled target rows."""
    if not takes_domains(estimator):
        return estimator.fit(X, y)
    if X_target is None or not len(X_target):
        reason = "there is no X_target" if X_target is None else "every target row is called novel"
        raise ValueError(f"classifier={estimator!r} adapts to known target rows, but {reason}.")
    sizes = [len(X), len(X_target)]
    with _routing():
        return estimator.fit(
            np.concatenate([X, X_target]),
            np.concatenate([y, np.full(len(X_target), MASKED)]),
            sample_domain=np.repeat([SOURCE, TARGET], sizes),
        )


def class_logits(estimator: Any, X: NDArray[np.float64], n_classes: int) -> NDArray[np.float64]:
    """Return logits (rows, classes) of a fitted classifier of class indices.

    >>> from sklearn.svm import LinearSVC
    >>> X = np.array([[-1.0], [1.0]])
    >>> class_logits(LinearSVC().fit(X, [0, 1]), X, 2).argmax(axis=1).tolist()
    [0, 1]
    """
    if not len(X):
        return np.zeros((0, n_classes))
    with _routing():
        if hasattr(estimator, "predict_proba"):
            logits = np.log(np.maximum(estimator.predict_proba(X), _SMALLEST))
        elif hasattr(estimator, "decision_function"):
            logits = np.asarray(estimator.decision_function(X), dtype=np.float64)
            if logits.ndim == 1:  # of two classes: the softmax of these is σ(decision)
                logits = np.column_stack([-logits / 2, logits / 2])
        else:
            chosen = np.asarray(estimator.predict(X))[:, None] == np.arange(n_classes)
            logits = np.where(chosen, 0.0, np.log(_SMALLEST))
    if logits.shape != (len(X), n_classes):
        raise ValueError(
            f"classifier={estimator!r} returned shape {logits.shape} for {len(X)} rows and {n_classes} classes: "
            "expected one value for each row and class."
        )
    return logits


def _routing() -> Any:
    """Switch on scikit-learn's metadata routing, by which skada passes ``sample_domain`` through pipelines."""
    return config_context(enable_metadata_routing=True)
