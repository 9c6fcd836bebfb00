"""The contract that every open-set method keeps.

A method subclasses :class:`OpenSetClassifier` and defines two functions. ``_fit(problem)`` learns from checked
and encoded data, and returns the fitted attributes. ``_outputs(rows)`` returns class logits and a novelty score
(higher = more novel). Labels, thresholds, probabilities, saving and errors are handled here.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import replace
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
from openset.errors import FitWarning, Parameter, ParameterError
from openset.problem import (
    Decision,
    FitScores,
    Floats,
    Predictions,
    Problem,
    State,
    check_sizes,
    draw_split,
    other_scales,
    unseen_classes,
)
from openset.stats.scaling import Scaling, moments
from openset.stats.shares import ShareEstimate, anchored_share
from openset.stats.thresholds import SourceThreshold, conformal_threshold


class OpenSetClassifier(ClassifierMixin, BaseEstimator):
    """Base of all methods: a known label or "novel" for every row.

    Fitted with ``X_target`` it is an open-set classifier over k + 1 labels. Fitted without, it is a closed-set
    classifier over the k known ones.

    Parameters
    ----------
    fpr : share of source rows that may be called novel (the paper's β)
    validation_fraction : share of rows that are not trained on, but used to choose and to set the threshold
    novel_label : label of the new class; None for -1 (numbers) or "novel" (strings)
    random_state : seed; equal seeds give equal results on one machine

    Attributes
    ----------
    classes_ : the known classes, sorted
    novel_label_ : the label of the new class
    threshold_ : a row is called novel exactly where its score is above this
    novel_fraction_ : a :class:`~openset.stats.shares.ShareEstimate`, None without a target
    target_novelty_score_ : scores of the target rows by members that did not train on them; NaN where all did
    calibration_scores_ : sorted scores of source validation rows, for p-values; empty without a target
    n_source_, n_target_ : numbers of source and target rows
    resolved_parameters_ : the value of each parameter that was given as "auto"
    fit_scores_ : scores of the fit's own rows (:class:`~openset.problem.FitScores`); not part of a saved model
    """

    threshold_: float
    novel_fraction_: ShareEstimate | None
    target_novelty_score_: Floats
    calibration_scores_: Floats
    fit_scores_: FitScores
    resolved_parameters_: dict[str, Any]
    scaling_: Scaling

    _chooses_on_validation: ClassVar[bool] = False
    """Whether fitting chooses a head or a checkpoint on source validation rows."""
    _calibrates: ClassVar[bool] = True
    """Whether the threshold is set on source rows that are used for nothing else."""
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
        """Return an estimator with the paper's hyper-parameters for one of its data sets.

        >>> from openset import PaperCoLOR
        >>> PaperCoLOR.preset("amazon_reviews").dual_learning_rate
        0.06
        """
        if not cls._presets:
            raise ValueError(f"{cls.__name__} has no presets: use its defaults.")
        check_choice("preset", name, cls._presets)
        return cls(**{**cls._presets[name], **overrides})

    # ------------------------------------------------------------------ what a method defines

    @abstractmethod
    def _fit(self, problem: Problem) -> State:
        """Learn from a problem, and return the fitted attributes that ``_outputs`` needs."""

    @abstractmethod
    def _outputs(self, rows: NDArray[np.floating]) -> tuple[Floats, Floats]:
        """Return class logits (n, k) and novelty scores (n,) of checked rows."""

    def _check_parameters(self) -> None:
        """Raise a ValueError that names the parameter, what was received and what is expected."""
        check_number("fpr", self.fpr, high=1, open_low=True, open_high=True)
        check_number("validation_fraction", self.validation_fraction, high=1, open_low=True, open_high=True)

    def _n_members(self) -> int:
        return 1

    def _accepts_nd(self) -> bool:
        """Whether a row may be an array of several axes (an image for a backbone), also of uint8."""
        return False

    def _resolve(self, n_features: int) -> dict[str, Any]:
        """Return the value of each parameter given as "auto", for rows of ``n_features`` numbers."""
        return {}

    def _prepare(self, problem: Problem) -> tuple[Problem, State]:
        """Return the problem to learn from, and fitted attributes; CoLOR aligns a target that moved."""
        return problem, {}

    def _score_fit(self, problem: Problem) -> FitScores:
        """Score each row of the fit once."""
        if problem.X_target is None:
            return FitScores(problem.split)
        calibration = problem.split.calibration
        logits, score = self._outputs(problem.X_target)
        source_logits, source_score = self._outputs(problem.X[calibration])
        return FitScores(
            problem.split,
            target_logits=logits,
            target_score=score,
            target_validation_score=score,
            calibration_score=source_score,
            validation_classes=unseen_classes(problem, source_logits, logits),
        )

    def _decide(self, problem: Problem, scores: FitScores) -> Decision:
        """Set the threshold and estimate the novel share, on rows that were not used to choose."""
        threshold = conformal_threshold(scores.calibration_score, self.fpr)
        own = scores.target_validation_score
        fraction = anchored_share(scores.calibration_score, own[~np.isnan(own)], threshold.value)
        return Decision(threshold.value, fraction, warnings=self._unmet(threshold))

    def _finish(self, problem: Problem, scores: FitScores) -> tuple[State, FitScores]:
        """Learn what depends on the target rows called novel; most methods add nothing."""
        return {}, scores

    def _unmet(self, threshold: SourceThreshold) -> tuple[str, ...]:
        if threshold.is_met:
            return ()
        return (
            f"fpr={self.fpr:g} cannot be promised from {threshold.n_rows} source validation rows: "
            f"threshold_ is their largest score, which keeps {threshold.kept:.3g}. "
            "Use more source rows, a larger validation_fraction, or a larger fpr.",
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
            delattr(self, name)  # a second fit keeps nothing of the first
        problem, state = self._prepare(self._validate(X, y, X_target))
        self._store(state)
        self._learn(problem)
        self._conclude(problem)
        return self

    def _learn(self, problem: Problem) -> None:
        """Store what ``_fit`` learns."""
        self._store(self._fit(problem))
        if getattr(self, "standardize", None) == "auto":
            self.resolved_parameters_["standardize"] = self.scaling_.rule

    def _conclude(self, problem: Problem) -> None:
        """Score the rows of the fit, decide, and warn."""
        scores = self._score_fit(problem)
        self._store(scores.state)
        messages = other_scales(problem, getattr(self, "feature_names_in_", None))
        self.threshold_, self.novel_fraction_ = np.inf, None
        if problem.X_target is not None:
            decision = self._decide(problem, scores)
            self._store(decision.state())
            messages += decision.warnings
        self.target_novelty_score_ = scores.target_validation_score
        self.calibration_scores_ = np.sort(scores.calibration_score)
        state, scores = self._finish(problem, replace(scores, heads=None, state={}))
        self._store(state)
        self.fit_scores_ = scores
        for message in messages:
            warnings.warn(message, FitWarning, stacklevel=3)

    def _store(self, state: State) -> None:
        """Set fitted attributes; ``_fit`` and its helpers only return them."""
        for name, value in state.items():
            setattr(self, name, value)

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
        self.novel_label_ = with_novel(self.classes_, chosen).tolist()[-1]  # of the type that predict returns
        self.n_source_, self.n_target_ = len(source), 0 if target is None else len(target)
        self._check_classes(has_target=target is not None)
        self.resolved_parameters_ = self._resolve(self._n_features())
        seed = np.random.SeedSequence(int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)))
        problem = Problem(
            X=source,
            y=encoded,
            X_target=target,
            n_classes=len(self.classes_),
            seed=seed,
            split=draw_split(
                encoded,
                self.n_target_,
                seed,
                members=self._n_members(),
                fraction=self.validation_fraction,
                choosing=self._chooses_on_validation,
                calibrating=self._calibrates,
            ),
            source_moments=moments(source),
            target_moments=None if target is None else moments(target),
        )
        check_sizes(problem)
        return problem

    def _n_features(self) -> int:
        """Number of features of a row, or of each of its cells."""
        return int(self.n_features_in_)

    def _check_classes(self, *, has_target: bool) -> None:
        known = self.classes_.tolist()
        if not has_target and len(known) == 1:
            raise ValueError(
                f"y has one class only ({known[0]!r}) and there is no X_target, so there is nothing to learn. "
                "Pass X_target to separate rows of that class from new ones (PU learning)."
            )
        if has_target and self.novel_label_ in known:
            raise ParameterError(
                f"y contains the label {self.novel_label_!r}, which marks novel rows: pass another ",
                Parameter("novel_label", ...),
                ", or remove those rows from the source.",
            )

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
            text = " ".join(str(error).split())
            if "feature names" in text:
                raise ValueError(f"X and X_target have different columns. {text}") from None
            raise ValueError(f"X_target is not valid. {text.replace('Input X ', 'Input X_target ')}") from None
        return checked

    # ------------------------------------------------------------------ predicting

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the known class of every row, or ``novel_label_`` where its score is above ``threshold_``."""
        return self.predictions(X).predicted

    def predict_known(self, X: Any) -> NDArray[Any]:
        """Return the most likely known class of every row, also of novel ones."""
        logits, _ = self._outputs(self._scoring_rows(X))
        return self.classes_[logits.argmax(axis=1)]

    def predict_proba(self, X: Any) -> Floats:
        """Return probabilities of the known classes and, if fitted with a target, of "novel" in the last column.

        The novel column is σ(score − threshold_), so it is above one half exactly where a row is called novel.
        The known classes share the rest in proportion to the softmax of their logits.
        """
        return self._probabilities(*self._outputs(self._scoring_rows(X)))

    def novelty_score(self, X: Any) -> Floats:
        """Return the novelty score of every row: higher is more novel, on the scale of ``threshold_``."""
        return self._outputs(self._scoring_rows(X))[1]

    def predictions(self, X: Any) -> Predictions:
        """Return labels, known classes, scores and probabilities from one pass over the rows."""
        return self._predictions(*self._outputs(self._scoring_rows(X)))

    def target_predictions(self) -> Predictions:
        """Return the :meth:`predictions` of the target rows, which ``fit`` stored; a saved model has none."""
        check_is_fitted(self, "fit_scores_")
        return self._predictions(self.fit_scores_.target_logits, self.fit_scores_.target_score)

    def _predictions(self, logits: Floats, score: Floats) -> Predictions:
        known = logits.argmax(axis=1)
        probabilities = self._probabilities(logits, score)
        if not self.n_target_:
            return Predictions(self.classes_, known, known, score, probabilities)
        labels = with_novel(self.classes_, self.novel_label_)
        called = np.where(score > self.threshold_, len(self.classes_), known)
        return Predictions(labels, called, known, score, probabilities)

    def _probabilities(self, logits: Floats, score: Floats) -> Floats:
        known = softmax(logits, axis=1)
        if not self.n_target_:
            return known
        novel = expit(score - self.threshold_)
        above = score > self.threshold_
        # in floating point σ of a tiny margin is ½, but a novel row must be above it
        novel = np.where(above, np.maximum(novel, np.nextafter(0.5, 1)), np.minimum(novel, 0.5))
        return np.column_stack([known * (1 - novel)[:, None], novel])

    def _scoring_rows(self, X: Any) -> NDArray[np.floating]:
        check_is_fitted(self)
        return self._check_rows(X, "X", reset=False)

    # ------------------------------------------------------------------ persistence and scikit-learn

    def save(self, path: str | PathLike[str]) -> None:
        """Save the fitted model to a folder as safetensors and JSON, never pickle. See :func:`openset.load`."""
        from openset.persistence.model import save

        save(self, path)

    def to_onnx(self, path: str | PathLike[str]) -> None:
        """Write the fitted network as one ONNX graph, for any number of rows (extra ``onnx``).

        Input ``x``: rows of float32, not scaled; scaling is part of the graph. Outputs: ``novelty_score`` (n,),
        ``probabilities`` (n, k + 1) and ``label`` (n,). A label is an index into the JSON list ``labels`` of the
        file's metadata, where the novel label is last. Scores agree with ``novelty_score`` to single precision.
        It is an error for a method without a network, and for a model with a backbone or a ``classifier``.
        """
        from openset.persistence.onnx import to_onnx

        to_onnx(self, path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "threshold_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags
