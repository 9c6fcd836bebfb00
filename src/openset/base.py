"""The contract that every open-set method keeps.

A method subclasses :class:`OpenSetClassifier` and brings two things: ``_fit(problem)``, which learns from checked
and encoded data, and ``_outputs(rows)``, which gives class logits and a novelty score (higher = more novel).
Everything a user touches (labels, thresholds, probabilities, persistence, errors) lives here, once.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from openset._utils.arrays import FLOAT_TYPES, as_labels, as_rows, resolve_novel_label, with_novel
from openset._utils.params import check_choice, check_number, fitted_attributes
from openset.assessment import Assessment
from openset.errors import FitWarning
from openset.stats.folds import Fold, keep_one_of_each, make_folds, spread_positions, window
from openset.stats.proportions import ProportionEstimate, anchored_fraction
from openset.stats.scaling import Moments, incompatible_features, moments
from openset.stats.scores import msp_score
from openset.stats.thresholds import SourceThreshold, conformal_threshold

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Problem:
    """What a method learns from: checked arrays, class indices, and the rows held out for each member."""

    X: NDArray[np.floating]
    y: NDArray[np.intp]
    X_target: NDArray[np.floating] | None
    n_classes: int
    seed: np.random.SeedSequence
    folds: list[Fold]
    """Source rows of each member: to train on, and held out for choosing."""
    target_folds: list[Fold]
    """Target rows of each member; empty without a target."""
    calibration: Rows
    """Source rows that no member trains or chooses on, for the threshold."""
    source_moments: Moments
    target_moments: Moments | None


class OpenSetClassifier(ClassifierMixin, BaseEstimator):
    """Base of all methods: known labels or "novel" for every row, with one meaning of every attribute.

    Fitted with ``X_target`` it is an open-set classifier over k + 1 labels; without, a closed-set classifier over
    the k known ones.

    Parameters
    ----------
    fpr : share of source rows that may be called novel (the paper's β)
    validation_fraction : share of rows held out, stratified, for choosing and for the threshold
    novel_label : label of the new class; None for -1 (numbers) or "novel" (strings)
    random_state : seed; equal seeds give equal results on one machine

    Attributes
    ----------
    classes_ : the known classes, sorted
    novel_label_ : the label of the new class
    threshold_ : a row is called novel exactly where its score is above this
    novel_fraction_ : a :class:`~openset.stats.proportions.ProportionEstimate`, None without a target
    target_novelty_score_ : scores of the target rows by members that did not train on them, NaN elsewhere
    calibration_scores_ : sorted scores of source rows held out, which p-values are ranks among; empty without a
        target
    n_source_, n_target_ : numbers of rows fitted on
    """

    threshold_: float
    novel_fraction_: ProportionEstimate | None
    target_novelty_score_: NDArray[np.float64]
    calibration_scores_: NDArray[np.float64]

    _chooses_on_held_out: ClassVar[bool] = False
    """Whether fitting chooses a head or a checkpoint on held-out source rows."""
    _presets: ClassVar[dict[str, dict[str, Any]]] = {}

    def __init__(
        self,
        *,
        fpr: float = 0.01,
        validation_fraction: float = 0.2,
        novel_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.fpr = fpr
        self.validation_fraction = validation_fraction
        self.novel_label = novel_label
        self.random_state = random_state

    @classmethod
    def preset(cls, name: str, **overrides: Any) -> Self:
        """An estimator with the paper's hyper-parameters for one of its data sets.

        >>> from openset import CoLOR
        >>> CoLOR.preset("amazon_reviews").dual_learning_rate
        0.06
        """
        check_choice("preset", name, cls._presets)
        return cls(**{**cls._presets[name], **overrides})

    # ------------------------------------------------------------------ what a method brings

    @abstractmethod
    def _fit(self, problem: Problem) -> None:
        """Learn from a problem and store what ``_outputs`` needs."""

    @abstractmethod
    def _outputs(self, rows: NDArray[np.floating]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Class logits (n, k) and novelty scores (n,) of checked rows."""

    def _check_parameters(self) -> None:
        """Raise a ValueError that names the parameter, what was received and what is expected."""
        check_number("fpr", self.fpr, high=1, open_low=True, open_high=True)
        check_number("validation_fraction", self.validation_fraction, high=1, open_low=True, open_high=True)

    def _n_members(self) -> int:
        return 1

    def _accepts_nd(self) -> bool:
        """Whether rows may be arrays of more than one axis (images for a backbone), also of bytes."""
        return False

    def _held_out_target_scores(self, problem: Problem) -> NDArray[np.float64]:
        """A score for every target row that some member did not train on, NaN for the others."""
        assert problem.X_target is not None
        return self._outputs(problem.X_target)[1]

    def _decide(self, problem: Problem) -> None:
        """Set ``threshold_`` and ``novel_fraction_`` from rows that chose nothing."""
        source = self._outputs(problem.X[problem.calibration])[1]
        self.calibration_scores_ = np.sort(source)
        threshold = conformal_threshold(source, self.fpr)
        self._warn_unless_met(threshold)
        self.threshold_ = threshold.value
        held = self.target_novelty_score_[~np.isnan(self.target_novelty_score_)]
        self.novel_fraction_ = anchored_fraction(source, held, threshold.value)

    def _after_deciding(self, problem: Problem) -> None:
        """Learn what needs to know which target rows are called novel."""

    def _warn_unless_met(self, threshold: SourceThreshold) -> None:
        if not threshold.is_met:
            warnings.warn(
                f"fpr={self.fpr:g} cannot be promised from {threshold.n_rows} held-out source rows: "
                f"threshold_ is their largest score, which keeps {threshold.kept:.3g}. "
                "It takes more source rows, a larger validation_fraction, or a larger fpr.",
                FitWarning,
                stacklevel=5,
            )

    # ------------------------------------------------------------------ fitting

    def fit(self, X: Any, y: Any, X_target: Any = None) -> Self:
        """Fit on labelled source rows and, for open-set use, an unlabelled target batch.

        Parameters
        ----------
        X : source rows: numpy, pandas, polars, pyarrow or torch, (n, features)
        y : the known class of every source row: strings, numbers or booleans
        X_target : unlabelled target rows with the same columns; None fits a closed-set classifier
        """
        self._check_parameters()
        for name in fitted_attributes(self):
            delattr(self, name)  # nothing of an earlier fit may linger
        problem = self._validate(X, y, X_target)
        self._fit(problem)
        self.threshold_, self.novel_fraction_ = np.inf, None
        self.target_novelty_score_ = self.calibration_scores_ = np.empty(0)
        if problem.X_target is not None:
            self.target_novelty_score_ = self._held_out_target_scores(problem)
            self._decide(problem)
        self._after_deciding(problem)
        return self

    def _validate(self, X: Any, y: Any, X_target: Any) -> Problem:
        labels = as_labels(y)
        source = self._check_rows(X, "X", reset=True)
        if len(source) != len(labels):
            raise ValueError(
                f"X has {len(source)} rows but y has {len(labels)} labels: inconsistent numbers of samples."
            )
        target = None if X_target is None else self._check_rows(X_target, "X_target", reset=False)
        self.classes_, encoded = np.unique(labels, return_inverse=True)
        chosen = resolve_novel_label(self.novel_label, self.classes_)
        self.novel_label_ = with_novel(self.classes_, chosen).tolist()[-1]  # as predict gives it
        self.n_source_, self.n_target_ = len(source), 0 if target is None else len(target)
        if target is None and len(self.classes_) == 1:
            raise ValueError(
                f"y has one class only ({self.classes_.tolist()[0]!r}) and there is no X_target: nothing can be "
                "learned. Pass X_target to tell rows of that one class from new ones (PU learning)."
            )
        if target is not None and self.novel_label_ in self.classes_.tolist():
            raise ValueError(
                f"y contains the label {self.novel_label_!r}, which is to mark novel rows: "
                "pass another novel_label=..., or remove those rows from the source."
            )
        seed = self._seed()
        calibration, folds, target_folds = self._hold_out(encoded, self.n_target_, seed)
        source_moments = moments(source)
        target_moments = None if target is None else moments(target)
        self._check_scales(source_moments, target_moments)
        return Problem(
            X=source,
            y=encoded,
            X_target=target,
            n_classes=len(self.classes_),
            seed=seed,
            folds=folds,
            target_folds=target_folds,
            calibration=calibration,
            source_moments=source_moments,
            target_moments=target_moments,
        )

    def _seed(self) -> np.random.SeedSequence:
        return np.random.SeedSequence(int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)))

    def held_out_rows(self, y: Any, n_target: int) -> tuple[Rows, list[Fold], list[Fold]]:
        """What ``fit`` holds out of such rows, given an integer ``random_state``: see :class:`Problem`."""
        return self._hold_out(np.unique(as_labels(y), return_inverse=True)[1], n_target, self._seed())

    def _hold_out(
        self, y: NDArray[np.intp], n_target: int, seed: np.random.SeedSequence
    ) -> tuple[Rows, list[Fold], list[Fold]]:
        """Split source into calibration rows and the members' folds, and target into the members' folds."""
        random = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(0,)))
        members = self._n_members()
        # Rows that set the threshold choose nothing, so a method that chooses gets half of them for that.
        choosing = self._chooses_on_held_out
        calibrating = n_target > 0 and self._calibrates()
        fraction = self.validation_fraction / 2 if choosing and calibrating else self.validation_fraction
        reserved = np.zeros(len(y), bool)
        if calibrating:
            reserved = keep_one_of_each(window(spread_positions(y, random), 0.0, fraction), y)
        free = np.flatnonzero(~reserved)
        folds = [
            _never_empty(Fold(free[fold.train], free[fold.held]))
            for fold in make_folds(
                y[free], members=members, fraction=fraction if choosing else 0.0, random=random
            )
        ]
        target_folds = [
            _never_empty(fold)
            for fold in make_folds(
                np.zeros(n_target, np.intp),
                members=members if n_target else 0,
                fraction=self.validation_fraction,
                random=random,
            )
        ]
        calibration = np.flatnonzero(reserved)
        return (calibration if len(calibration) else folds[0].held), folds, target_folds

    def _calibrates(self) -> bool:
        """Whether the threshold needs source rows of its own."""
        return True

    def _check_rows(self, X: Any, name: str, *, reset: bool) -> NDArray[np.floating]:
        rows = as_rows(X, name)
        shape: tuple[int, ...] = getattr(rows, "shape", ())
        if name == "X_target" and len(shape) > 1 and shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {self.n_features_in_} features but X_target has {shape[1]}: "
                "source and target need the same columns."
            )
        try:
            checked: NDArray[np.floating] = validate_data(
                self,
                rows,
                reset=reset,
                dtype=[*FLOAT_TYPES, np.uint8] if self._accepts_nd() else list(FLOAT_TYPES),
                allow_nd=self._accepts_nd(),
            )
        except ValueError as error:
            if name != "X_target":
                raise
            if "feature names" in str(error):
                raise ValueError(f"X and X_target have different columns. {_one_line(error)}") from None
            message = _one_line(error).replace("Input X ", "Input X_target ")
            raise ValueError(f"X_target is not valid. {message}") from None
        return checked

    def _check_scales(self, source: Moments, target: Moments | None) -> None:
        for name, part in (("X", source), ("X_target", target)):
            if part is not None and not (np.isfinite(part.mean).all() and np.isfinite(part.sd).all()):
                raise ValueError(
                    f"{name} has values up to {part.largest:.3g}, too large to compute with: "
                    "bring its columns to a usual scale."
                )
        if target is None:
            return
        odd = incompatible_features(source, target)
        if len(odd):
            first = int(odd.flat[0])
            names = getattr(self, "feature_names_in_", None)
            label = f"column {names[first]!r}" if names is not None else f"feature {first}"
            warnings.warn(
                f"{len(odd)} features are on incompatible scales in X and X_target: {label} has mean "
                f"{source.mean.flat[first]:.3g} ± {source.sd.flat[first]:.3g} in source but "
                f"{target.mean.flat[first]:.3g} ± {target.sd.flat[first]:.3g} in target. Check that both went "
                "through the same preprocessing (in a Pipeline: transform_input=['X_target']).",
                FitWarning,
                stacklevel=4,
            )

    # ------------------------------------------------------------------ predicting

    def predict(self, X: Any) -> NDArray[Any]:
        """The known class of every row, or ``novel_label_`` where its score is above ``threshold_``."""
        return self.assess(X).predicted

    def predict_known(self, X: Any) -> NDArray[Any]:
        """The most likely known class of every row, novel or not."""
        logits, _ = self._outputs(self._scoring_rows(X))
        return self.classes_[logits.argmax(axis=1)]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the known classes and, fitted with a target, of "novel" in the last column.

        The novel column is σ(score − threshold_), so it is above one half exactly where a row is called novel;
        the rest is shared among the known classes by the softmax of their logits.
        """
        return self._probabilities(*self._outputs(self._scoring_rows(X)))

    def assess(self, X: Any) -> Assessment:
        """All that the other methods say of every row, from one pass over the rows."""
        logits, score = self._outputs(self._scoring_rows(X))
        known = logits.argmax(axis=1)
        probabilities = self._probabilities(logits, score)
        if not self.n_target_:
            return Assessment(self.classes_, known, known, score, probabilities)
        labels = with_novel(self.classes_, self.novel_label_)
        called = np.where(score > self.threshold_, len(self.classes_), known)
        return Assessment(labels, called, known, score, probabilities)

    def _probabilities(self, logits: NDArray[np.float64], score: NDArray[np.float64]) -> NDArray[np.float64]:
        known = softmax(logits, axis=1)
        if not self.n_target_:
            return known
        novel = expit(score - self.threshold_)
        above = score > self.threshold_
        # in floating point σ of a tiny margin is ½: keep the promise that novel means above it
        novel = np.where(above, np.maximum(novel, np.nextafter(0.5, 1)), np.minimum(novel, 0.5))
        return np.column_stack([known * (1 - novel)[:, None], novel])

    def novelty_score(self, X: Any) -> NDArray[np.float64]:
        """How novel every row looks: higher is more novel, on the scale of ``threshold_``."""
        return self._outputs(self._scoring_rows(X))[1]

    def _scoring_rows(self, X: Any) -> NDArray[np.floating]:
        check_is_fitted(self)
        return self._check_rows(X, "X", reset=False)

    # ------------------------------------------------------------------ persistence and scikit-learn

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a folder: safetensors and JSON, never pickle. See :func:`openset.load`."""
        from openset.persistence.model import save

        save(self, path)

    def to_onnx(self, path: str | PathLike[str]) -> None:
        """Write the fitted network as one ONNX graph, for any number of rows (extra ``onnx``).

        Input ``x``: rows of float32, as they were given to ``fit``; scaling is part of the graph. Outputs
        ``novelty_score`` (n,), ``probabilities`` (n, k + 1) and ``label`` (n,), the place of a row's label in
        the list that the file's metadata holds as ``labels`` in JSON, the novel label last. Scores agree with
        ``novelty_score`` to single precision. Methods that train no network, and models with a backbone or
        a ``classifier`` of their own, are refused.
        """
        from openset.persistence.onnx import to_onnx

        to_onnx(self, path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "threshold_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


doubt = msp_score
"""1 − max softmax probability over the last axis, exact near 0: novelty to one who knows only source."""


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _never_empty(fold: Fold) -> Fold:
    """Where no row could be held out, judge on the training rows rather than on nothing."""
    return fold if len(fold.held) else Fold(fold.train, fold.train)
