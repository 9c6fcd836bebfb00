"""Problems for simulated reviews: the suite's real families and the natural suite, each fitted once."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from openset import CoLOR
from openset.bench.problems import build_problem

FAMILIES = (
    ("amazon-fdu-mtl", "software", 0.04),
    ("amazon-fdu-mtl", "toys_games", 0.09),
    ("clinc150", "credit_cards", 0.04),
    ("clinc150", "auto_and_commute", 0.09),
    ("sun", "windmill", 0.1),
    ("cifar100", "baby", 0.05),
    ("digits", "9", 0.05),
    ("digits", "9", 0.08),
    ("nsl-kdd", "r2l+u2r", 0.03),
    ("nsl-kdd", "r2l+u2r", 0.1),
    ("gas-sensors", "Toluene", 0.05),
    ("ifnb-cells", "NK", None),
    ("wisdm-activity", "Sitting", None),
    ("pbmc-chemistries", "NK", None),
    ("pbmc-chemistries", "DC", None),
)
"""Dataset, new class and its share; None where the share is the data's own."""


@dataclass(frozen=True)
class Case:
    """One problem, and how thoroughly it is fitted."""

    dataset: str
    novel: str
    share: float | None
    seed: int
    effort: str = "full"

    @property
    def name(self) -> str:
        share = "own share" if self.share is None else f"{self.share:g}"
        return f"{self.dataset}, {self.novel}, {share}"

    def path(self, folder: Path) -> Path:
        return folder / f"{self.dataset}-{self.novel}-{self.share}-{self.seed}-{self.effort}.npz"


@dataclass(frozen=True)
class Fitted:
    """A problem with what a fitted model says of its target."""

    case: Case
    X: np.ndarray
    y: np.ndarray
    X_target: np.ndarray
    y_target: np.ndarray
    is_new: np.ndarray
    score: np.ndarray
    threshold: float
    nearest_known: np.ndarray
    validation_score: np.ndarray
    low: float


def fitted(case: Case, data: Path, folder: Path) -> Fitted:
    """The problem and its fit, from the folder if it is stored there."""
    extra = {} if case.share is None else {"novel_fraction": case.share}
    problem = build_problem(case.dataset, "shift", case.novel, case.seed, data, **extra)
    path = case.path(folder)
    if not path.exists():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = CoLOR(random_state=case.seed, effort=case.effort).fit(problem.X, problem.y, problem.X_target)
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(
            path,
            score=model.novelty_score(problem.X_target),
            threshold=model.threshold_,
            nearest_known=model.predict_known(problem.X_target).astype(str),
            validation_score=model.calibration_scores_,
            low=model.novel_fraction_.low,
        )
    stored = np.load(path)
    return Fitted(
        case,
        problem.X,
        problem.y.astype(str),
        problem.X_target,
        problem.y_target.astype(str),
        np.asarray(problem.y_target == problem.novel_label),
        stored["score"],
        float(stored["threshold"]),
        stored["nearest_known"],
        stored["validation_score"],
        float(stored["low"]),
    )
