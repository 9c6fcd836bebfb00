"""What a stored model may set on an estimator: listed names, checked values, and one row scored as a trial.

A checksum tells an accident, not an intent: whoever changes a manifest can mend it. So nothing that is read can
take the place of a method, and what is not fit for scoring is refused when it is loaded.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

FITTED = frozenset(
    {
        "alignment_", "anchors_", "architecture_", "calibration_scores_", "candidates_", "class_shares_",
        "class_shift_", "class_weights_", "classes_", "classifier_", "diagnostics_", "entropy_split_",
        "estimated_fraction_", "feature_names_in_", "heads_", "history_", "known_", "means_", "n_features_in_",
        "n_source_", "n_steps_", "n_target_", "names_", "novel_fraction_", "novel_label_", "novelty_test_",
        "pool_references_", "prior_", "propensity_", "resolved_parameters_", "row_classes_", "row_kind_", "rows_",
        "scaling_", "selected_", "shrinkage_", "stop_reason_", "target_novelty_score_", "threshold_", "voices_",
        "weights_", "whitening_",
    }
)  # fmt: skip
"""The fitted attributes of openset's methods, beside those that a class annotates.

Those of other packages may have any name that ends with ``_``.
"""
_COUNTS = ("n_features_in_", "n_source_", "n_target_")
_ROWS_OF_NUMBERS = ("calibration_scores_", "target_novelty_score_")


def check_fitted(model: Any, fitted: Mapping[str, Any]) -> None:
    """Raise unless every name may be set on this model, and what all models have is as it should be."""
    is_ours = type(model).__module__.startswith("openset.")
    listed = FITTED.union(*(vars(cls).get("__annotations__", {}) for cls in type(model).__mro__))
    for name in fitted:
        is_fitted_name = name.isidentifier() and name[0] != "_" and name[-1] == "_"
        if name not in listed and (is_ours or not is_fitted_name):
            raise ValueError(f"{name!r} is no fitted attribute of {type(model).__name__}")
        if hasattr(type(model), name):
            raise ValueError(f"{name!r} would replace a part of {type(model).__name__}")
    for name in _COUNTS:
        if not isinstance(fitted[name], int) or isinstance(fitted[name], bool) or fitted[name] < 0:
            raise ValueError(f"{name} is no whole number from 0 on")
    for name in _ROWS_OF_NUMBERS:
        _check_array(fitted[name], name, "f")
    _check_array(fitted["classes_"], "classes_", "biufUO")
    classes = fitted["classes_"].tolist()
    if len({type(label) for label in classes}) != 1 or not isinstance(classes[0], (str, bool, int, float)):
        raise ValueError("classes_ is not a list of texts or of numbers")
    if len(set(classes)) < len(classes):
        raise ValueError("classes_ has a class twice")
    if isinstance(fitted["novel_label_"], (dict, list, tuple, np.ndarray)):
        raise ValueError("novel_label_ is no single value")
    if not isinstance(fitted["threshold_"], (int, float, np.floating)) or np.isnan(fitted["threshold_"]):
        raise ValueError("threshold_ is no number")


def _check_array(value: Any, name: str, kinds: str) -> None:
    if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype.kind not in kinds:
        raise ValueError(f"{name} is not a row of values")


def try_out(model: Any) -> None:
    """Score one row, so that a model that cannot is found when it is loaded. Anything may be raised.

    Not tried: a backbone, which may be large, and a device that may be absent here.
    """
    if getattr(model, "backbone", None) is not None or getattr(model, "device", None) not in (
        None,
        "auto",
        "cpu",
    ):
        return
    shape = getattr(model, "row_kind_", {"shape": [model.n_features_in_]})["shape"]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        logits, score = model._outputs(np.zeros((1, *shape), dtype=np.float32))
        model._predictions(logits, score)
    if logits.shape != (1, len(model.classes_)) or score.shape != (1,):
        raise ValueError("it does not give one score, and one logit for each class, for one row")
