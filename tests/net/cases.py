"""What the net holds fast: every registered method on fixed problems and seeds, as arrays by name.

Cases are small and their new class stands well apart, so that no choice of a head is close: another kind of
processor then rounds sums differently, and chooses alike.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from openset.errors import FitWarning
from openset.shift.synthetic import BackgroundShift, make_background_shift, make_feature_maps

STEPS = 60
HEAD_COLUMNS = ("candidate_recall", "fpr", "recall", "multiplier")


@cache
def table(n_features: int = 8) -> BackgroundShift:
    """Three known classes of two subtypes each, shifted, and a new class that stands apart."""
    return make_background_shift(
        n_source=400, n_target=300, n_test=60, n_features=n_features, rare=0.3, class_distance=6,
        subtype_distance=4, novel_distance=10, novel_fraction=0.15, random_state=5,
    )  # fmt: skip


@cache
def maps() -> BackgroundShift:
    """The same with three cells a row."""
    return make_feature_maps(table(), n_cells=3, n_background=1, random_state=5)


@cache
def images() -> BackgroundShift:
    """Pictures of 8 × 8 bytes whose brightness and pattern tell the classes."""
    data = table(64)

    def as_pictures(X: np.ndarray) -> np.ndarray:
        return np.clip(X.reshape(len(X), 1, 8, 8) * 12 + 128, 0, 255).astype(np.uint8)

    parts = {name: as_pictures(getattr(data, name)) for name in ("X", "X_target", "X_test")}
    return replace(data, **parts)


def candidate_names() -> np.ndarray:
    """Embeddings of names that rows may have beside the known ones."""
    data = table()
    return np.concatenate([data.novel_centre[None], -data.centres.mean(axis=1)])


def _openset(name: str, **parameters: Any) -> Callable[[], Any]:
    def make() -> Any:
        import openset

        return getattr(openset, name)(random_state=0, **parameters)

    return make


def _with_classifier() -> Any:
    from sklearn.linear_model import LogisticRegression

    return _openset("CoLOR", max_steps=STEPS, classifier=LogisticRegression())()


_COLOR: dict[str, tuple[Callable[[], Any], Callable[[], BackgroundShift]]] = {
    "color": (_openset("CoLOR", max_steps=STEPS), table),
    "color/defaults": (_openset("CoLOR"), table),
    "color/wide": (_openset("CoLOR", max_steps=STEPS), lambda: table(260)),
    "color/two groups": (
        _openset("CoLOR", max_steps=STEPS, groups=[(0.2, 0.0, 0.6), (0.5, 0.1, 0.8)]),
        table,
    ),
    "color/classifier": (_with_classifier, table),
    "color/backbone": (
        _openset(
            "CoLOR", max_steps=4, evaluate_every=2, backbone="resnet18(width=4, channels=1)", groups=[(0.2, 0, 1)]
        ),
        images,
    ),
    "color_paper": (_openset("PaperCoLOR", max_steps=STEPS), table),
    "color_paper/defaults": (_openset("PaperCoLOR"), table),
    "color_paper/wide": (_openset("PaperCoLOR", max_steps=30), lambda: table(260)),
    "color_paper/members": (_openset("PaperCoLOR", max_steps=STEPS, members=3), table),
    "conop": (_openset("ConOp", max_steps=STEPS), table),
}
_TABLE_STEPS = {"sar_em": 10}
_OTHERS = {
    "dd": "DomainDiscriminator",
    "source_only": "SourceOnly",
    "msp": "MSP",
    "entropy": "Entropy",
    "mls": "MLS",
    "deep_knn": "DeepKNN",
    "energy": "Energy",
    "upu": "UPU",
    "nnpu": "NNPU",
    "pulse": "PULSE",
    "sar_em": "SAREM",
    "boda": "BODA",
    "arpl": "ARPL",
    "cac": "CAC",
    "shot": "SHOT",
}
CASES: dict[str, tuple[Callable[[], Any], Callable[[], BackgroundShift]]] = {
    **_COLOR,
    **{name: (_openset(cls, max_steps=_TABLE_STEPS.get(name, STEPS)), table) for name, cls in _OTHERS.items()},
    "pulse/wide, members": (_openset("PULSE", max_steps=STEPS, members=2), lambda: table(260)),
    "knn": (_openset("KNN"), table),
    "mahalanobis": (_openset("Mahalanobis"), table),
    "mcm": (_openset("MCM"), table),
    "zoc": (lambda: _openset("ZOC", candidate_embeddings=candidate_names())(), table),
    "anna": (_openset("ANNA", max_steps=STEPS), maps),
}
"""How each estimator is made, and the problem it is fitted on; every registered method by its own name."""

LONG = ("color/defaults", "color_paper/defaults")
"""Cases of thousands of steps, over which another processor's rounding adds up."""

RUNS: dict[str, dict[str, Any]] = {
    "run/color": {"method": "color", "parameters": {"max_steps": STEPS}, "fdr": 0.2, "max_density_ratio": 4.0},
    "run/pulse": {"method": "pulse", "parameters": {"max_steps": STEPS}},
    "run/knn": {"method": "knn", "fdr": 0.2},
}
"""Settings of runs on the table's problem as data frames."""

Arrays = dict[str, np.ndarray]


def computed(name: str) -> Arrays:
    """All that a case computes, with and without a target."""
    if name in RUNS:
        return _of_run(name)
    make, problem = CASES[name]
    data = problem()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        opened = make().fit(data.X, data.y, data.X_target)
        closed = make().fit(data.X, data.y)
    return {**_of_model(opened, data, "target"), **_of_model(closed, data, "no target")}


def _of_model(model: Any, data: BackgroundShift, prefix: str) -> Arrays:
    found: dict[str, Any] = {
        "novelty_score": model.novelty_score(data.X_test),
        "probabilities": model.predict_proba(data.X_test),
        "predicted": model.predict(data.X_test),
        "threshold": [model.threshold_],
    }
    if model.n_target_:
        fraction = model.novel_fraction_
        found |= {
            "fraction": [fraction.value, fraction.low, fraction.high],
            "target_novelty_score": model.target_novelty_score_,
            "calibration_scores": model.calibration_scores_,
        }
        if hasattr(model, "heads_"):
            found |= {f"heads {column}": model.heads_[column] for column in HEAD_COLUMNS}
            found["selected"] = np.atleast_1d(model.selected_["head"])
            found["head_scores"] = model.head_scores(data.X_test)
        if hasattr(model, "novelty_test_"):
            found["p_value"] = [model.novelty_test_.p_value]
    return {f"{prefix}: {key}": np.asarray(value, dtype=np.float64) for key, value in found.items()}


def _of_run(name: str) -> Arrays:
    import pandas as pd

    import openset

    data = table()
    known = pd.DataFrame(data.X).add_prefix("x").assign(kind=np.array(["ant", "bee", "cat"])[data.y])
    target = pd.DataFrame(data.X_target).add_prefix("x")
    result = openset.run(known, target, label="kind", **RUNS[name])
    scored, summary = result.scored, result.summary
    groups = summary.to_dict()["groups"]["groups"]
    mix = summary.to_dict()["class_mix"]
    accuracy = summary.to_dict()["known_classes"]["accuracy"]
    found: dict[str, Any] = {
        "novelty_score": scored.novelty_score,
        "p_value": scored.p_value,
        "probabilities": scored.probabilities,
        "groups": [[group["size"], group["share"]["value"], group["stability"]] for group in groups],
        "mix": [[shares["source"], shares["target"], shares["counted"]] for shares in mix.values()],
        "accuracy": [] if accuracy is None else [accuracy["value"], accuracy["low"], accuracy["high"]],
        "top rows": summary.top_rows,
        "listed": [] if scored.novel_at_fdr is None else scored.novel_at_fdr,
        "diagnostics": [
            np.nan if entry["value"] is None else entry["value"] for entry in summary.to_dict()["diagnostics"]
        ],
    }
    return {key: np.asarray(value, dtype=np.float64) for key, value in found.items()}
