"""Compare runs with each other, and a run with labels that arrived later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.arrays import as_objects
from openset._utils.text import listed
from openset.data.readers.tables import read_table
from openset.features.fitted import read_features
from openset.features.maker import FeatureMaker
from openset.pipeline.load import read_labelled
from openset.pipeline.result import FEATURES, SCORED, load_model, read_summary
from openset.pipeline.summary import ResultSummary

Path_ = str | PathLike[str]


@dataclass(frozen=True)
class ComparedRun:
    """A run's method and answer, and how far it agrees with the first run on the same target.

    ``overlap`` is the number of rows that both call novel by that of rows that either does, None where neither
    calls any; ``rank_correlation`` is Spearman's, of the novelty scores. Both are None for another target.
    """

    run: str
    method: str
    verdict: str
    low: float
    called_novel: int
    rows: int
    overlap: float | None
    rank_correlation: float | None


def compare_runs(folders: Sequence[Path_]) -> list[ComparedRun]:
    """Compare each run with the first."""
    if len(folders) < 2:
        raise ValueError(f"{len(folders)} run is given: name at least two to compare.")
    summaries = [read_summary(folder) for folder in folders]
    first = summaries[0]
    compared = []
    for folder, summary in zip(folders, summaries, strict=True):
        target = summary.data.target
        same = (target.sha256, target.rows) == (first.data.target.sha256, first.data.target.rows)
        comparable = same and target.sha256 is not None
        overlap, correlation = _agreement(folders[0], folder, first, summary) if comparable else (None, None)
        compared.append(
            ComparedRun(
                run=str(folder),
                method=summary.method,
                verdict=summary.verdict.word,
                low=summary.novel_fraction.low,
                called_novel=summary.called_novel,
                rows=target.rows,
                overlap=overlap,
                rank_correlation=correlation,
            )
        )
    return compared


def evaluate_run(
    folder: Path_,
    labelled: Any,
    *,
    label: str | None = None,
    skip_bad: bool | None = None,
    progress: bool = False,
) -> dict[str, float]:
    """All metrics of :func:`openset.evaluate`; every label that the run does not know counts as novel.

    ``skip_bad`` skips rows that cannot be used, such as those without a label; None for the setting of the run.
    """
    from openset.stats.metrics import evaluate

    settings, fitted = read_summary(folder).settings, read_features(Path(folder) / FEATURES)
    settings = settings if skip_bad is None else replace(settings, skip_bad=skip_bad)
    records = read_labelled(settings, labelled, label, fitted)
    model = load_model(folder)
    given = np.asarray(records.y).tolist()
    known = {_spelt(label): label for label in model.classes_.tolist()}
    if not any(_spelt(label) in known for label in given):
        raise ValueError(
            f"none of the labels ({listed(sorted(set(map(str, given))))}) is a class that the run knows "
            f"({listed(model.classes_)}): is it the right label column?"
        )
    labels = as_objects([known.get(_spelt(label), model.novel_label_) for label in given])
    return evaluate(model, FeatureMaker(settings.encoder, progress, fitted)(records).X, labels).to_dict()


def _spelt(label: Any) -> str:
    """A label as text: files may hold 1, 1.0 or "1" for one class."""
    return str(int(label) if isinstance(label, float) and label.is_integer() else label)


def _agreement(
    one: Path_, other: Path_, about_one: ResultSummary, about_other: ResultSummary
) -> tuple[float | None, float | None]:
    from scipy.stats import spearmanr

    (called, scores), (called_too, scores_too) = _called(one, about_one), _called(other, about_other)
    either = int((called | called_too).sum())
    overlap = float((called & called_too).sum() / either) if either else None
    if np.ptp(scores) == 0 or np.ptp(scores_too) == 0:
        return overlap, None
    return overlap, float(spearmanr(scores, scores_too).statistic)


def _called(folder: Path_, summary: ResultSummary) -> tuple[NDArray[np.bool_], NDArray[np.floating]]:
    scored = read_table(Path(folder) / SCORED, label="predicted", features="novelty_score")
    assert scored.y is not None and scored.X is not None
    return scored.y.astype(str) == str(summary.novel_label), scored.X[:, 0]
