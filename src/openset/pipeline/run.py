"""``openset.run``: from two files to an answer; ``openset.load_run``: the answer again."""

from __future__ import annotations

import math
import os
import platform
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.hashing import path_sha256
from openset._utils.typed import plain
from openset._version import __version__
from openset.data.readers.records import Records
from openset.errors import FitWarning, Parameter, ParameterError
from openset.features.base import Encoder
from openset.features.maker import FeatureMaker
from openset.pipeline.explain import Explanation, explain
from openset.pipeline.gate import run_gate
from openset.pipeline.load import RunData, read_data
from openset.pipeline.result import Result, load_model, read_summary
from openset.pipeline.scored_table import (
    ScoredTable,
    assumed_ratio,
    fit_p_values,
    predictions,
    rows_at_fdr,
    scored_table,
)
from openset.pipeline.settings import RunSettings
from openset.pipeline.summary import (
    Check,
    Data,
    EncodedColumn,
    Environment,
    Head,
    ListedRows,
    NovelFraction,
    NoveltyCounts,
    NoveltyTest,
    Origin,
    ResultSummary,
)
from openset.pipeline.verdict import diagnose, give_verdict
from openset.problem import Predictions
from openset.registry import get_method
from openset.stats.p_values import smallest_fdr
from openset.stats.shares import NOT_IDENTIFIED

TOP_ROWS = 20


def run(
    source: Any,
    target: Any,
    *,
    label: str | None = None,
    features: str | Sequence[str] | None = None,
    drop: str | Sequence[str] | None = None,
    text: str | None = None,
    image: str | None = None,
    id: str | None = None,
    encoder: str | None = None,
    method: str = "color",
    fpr: float = 0.01,
    fdr: float | None = None,
    max_density_ratio: float | None = None,
    seed: int = 0,
    skip_bad: bool = False,
    ignore_target_labels: bool = False,
    parameters: Mapping[str, Any] | None = None,
    progress: bool = False,
) -> Result:
    """Fit a method on labelled source rows and an unlabelled target, and score the target.

    Parameters
    ----------
    source, target : paths of tables, arrays or image folders, or data frames (pandas, polars, pyarrow)
    label : the source's column of known classes
    features, text, image : where features come from, one of them: columns of numbers (or one of vectors), a
        column of text, a column of image paths. None of them: all numbers but ``label`` and ``id``
    drop : columns that are no features, such as dates and counters
    id : a column that tells rows apart; without it rows are numbered from 0
    encoder : for text and images, as :func:`openset.features.load_encoder` takes it
    method, parameters : a name that ``openset methods`` lists, and its parameters beside those here
    fpr : share of source rows that may be called novel
    fdr : mark the rows of :meth:`Result.novel_rows` at this false discovery rate in a column ``novel_at_fdr``
    max_density_ratio : B, how many times as common a known kind of row may be in target as in source, for
        methods that test for a new class and for ``fdr``. None: CoLOR reads it off the rows, PaperCoLOR assumes
        12, other methods 1
    skip_bad : skip rows with missing or unusable values, instead of an error that names them
    ignore_target_labels : accept a target that has the label column too, and ignore its labels

    >>> import pandas as pd
    >>> from openset import make_background_shift
    >>> data = make_background_shift(n_source=300, n_target=300, n_features=4, random_state=0)
    >>> known = pd.DataFrame(data.X).add_prefix("x").assign(kind=data.y)
    >>> result = run(known, pd.DataFrame(data.X_target).add_prefix("x"), label="kind", method="mahalanobis")
    >>> result.to_frame().columns.tolist()[:4], len(result.scored)
    (['id', 'predicted', 'novelty_score', 'p_value'], 300)
    """
    settings = RunSettings(
        label=label,
        features=None if features is None else (features,) if isinstance(features, str) else tuple(features),
        drop=None if drop is None else (drop,) if isinstance(drop, str) else tuple(drop),
        text=text,
        image=image,
        id=id,
        encoder=encoder,
        method=method,
        fpr=fpr,
        fdr=fdr,
        max_density_ratio=max_density_ratio,
        seed=seed,
        skip_bad=skip_bad,
        ignore_target_labels=ignore_target_labels,
        parameters=dict(parameters or {}),
    )
    return run_with(settings, source, target, progress=progress)


def run_with(settings: RunSettings, source: Any, target: Any, *, progress: bool = False) -> Result:
    """:func:`run` with its settings in one value."""
    timings: dict[str, float] = {}
    model = make_estimator(settings, progress)
    with _timed(timings, "read"):
        data = read_data(replace(settings, source=_path(source), target=_path(target)), source, target)
    maker = FeatureMaker(data.settings.encoder, progress)
    with _timed(timings, "encode"):
        X, X_target = maker(data.source), maker(data.target)
    with _timed(timings, "fit"):
        notes = _fit(model, X, data.source.y, X_target)
    with _timed(timings, "score"):
        scored = score_target(model, model.target_predictions(), data.target, data.settings)
    with _timed(timings, "describe"):
        y = np.asarray(data.source.y)
        explanation = explain(model, scored, X, y, X_target)
    with _timed(timings, "check"):
        called = scored.novelty_score > model.threshold_
        names = data.target.feature_names if maker.encoder is None else None
        checks = run_gate(model, X, y, X_target, names=names, nearest_known=scored.nearest_known, called=called)
    described = _describe(data, maker.encoder)
    summary = summarise(model, scored, explanation, data.settings, described, timings, notes, checks)
    return Result(model, summary, scored, data.source, data.target, X, X_target)


def load_run(folder: str | os.PathLike[str], *, progress: bool = False) -> Result:
    """A result that was saved, its data read again from where it was; data that changed since is an error."""
    summary = read_summary(folder)
    settings = summary.settings
    _check_unchanged("source", summary.data.source)
    _check_unchanged("target", summary.data.target)
    data = read_data(settings, settings.source, settings.target)
    maker = FeatureMaker(settings.encoder, progress)
    model, X_target = load_model(folder), maker(data.target)
    scored = score_target(model, predictions(model, X_target), data.target, settings)
    return Result(model, summary, scored, data.source, data.target, maker(data.source), X_target)


def make_estimator(settings: RunSettings, progress: bool) -> Any:
    """The estimator that settings ask for, not fitted; ``progress`` lets it show a bar of its own."""
    method = get_method(settings.method)
    if method.input == "names":
        raise ValueError(
            f"{method.name} needs embeddings of names beside the rows: use openset.{method.class_name} in Python."
        )
    given = {**settings.parameters, "fpr": settings.fpr, "random_state": settings.seed}
    try:
        model = method.make(**given)
    except TypeError as error:  # an unknown parameter, with the nearest name
        raise ValueError(str(error)) from None
    if settings.max_density_ratio is not None:
        if "max_density_ratio" in model.get_params():
            model.set_params(max_density_ratio=settings.max_density_ratio)
        elif settings.fdr is None:
            raise ParameterError(
                f"{method.name} makes no use of ",
                Parameter("max_density_ratio"),
                ": leave it out, list rows with ",
                Parameter("fdr", 0.1),
                ", or use a method that tests for a new class under it, such as color.",
            )
    if progress and "verbose" in model.get_params():
        model.set_params(verbose=True)
    return model


def _fit(model: Any, X: NDArray[Any], y: Any, X_target: NDArray[Any]) -> list[str]:
    """Fit, and return what was warned of; warnings that are not of the fit are passed on."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, X_target)
    for warning in caught:
        if not issubclass(warning.category, FitWarning):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return [str(warning.message) for warning in caught if issubclass(warning.category, FitWarning)]


def score_target(model: Any, found: Predictions, target: Records, settings: RunSettings) -> ScoredTable:
    """The target's rows with what the model says of them, those to list marked where settings ask for it."""
    scored = scored_table(model, found, target.rows if target.ids is None else target.ids)
    if settings.fdr is None:
        return scored
    ratio = settings.max_density_ratio
    return replace(scored, novel_at_fdr=rows_at_fdr(model, scored, settings.fdr, max_density_ratio=ratio))


def summarise(
    model: Any,
    scored: ScoredTable,
    explanation: Explanation,
    settings: RunSettings,
    data: Data,
    timings: dict[str, float],
    notes: Sequence[str],
    checks: Sequence[Check] = (),
) -> ResultSummary:
    """The summary of a run; ``notes`` are the warnings of its fit, ``checks`` those of the gate."""
    order = np.argsort(-scored.novelty_score, kind="stable")[:TOP_ROWS]
    groups = explanation.groups.groups
    parameters = {k: v for k, v in model.get_params(deep=False).items() if k not in ("verbose", "backbone")}
    test, fraction = getattr(model, "novelty_test_", None), model.novel_fraction_
    counts = {"n_called": explanation.called_novel, "n_groups": len(groups)}
    verdict = give_verdict(fraction, test, checks=checks, **counts)
    if verdict.code == "cannot_tell":  # nothing is stated of a share that something else explains
        fraction = NOT_IDENTIFIED
    stored = settings.as_stored()
    return ResultSummary(
        openset_version=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        method=stored.method,
        parameters=plain(parameters),
        seed=stored.seed,
        data=data,
        classes=plain(model.classes_),
        novel_label=plain(model.novel_label_),
        verdict=verdict,
        checks=list(checks),
        novelty_test=None if test is None else _novelty_test(test),
        novel_fraction=NovelFraction(**plain(vars(fraction))),
        threshold=plain(model.threshold_),
        fpr=stored.fpr,
        listed=_listed(model, scored, stored),
        heads=[Head(**plain(record)) for record in model.head_records()] if hasattr(model, "heads_") else None,
        history=plain(getattr(model, "history_", [])),
        diagnostics=diagnose(model, notes),
        top_rows=plain(scored.id[order]),
        settings=stored,
        timings={name: round(seconds, 3) for name, seconds in timings.items()},
        environment=_environment(),
        **vars(explanation),
    )


def _novelty_test(test: Any) -> NoveltyTest:
    counts = NoveltyCounts(**plain(vars(test.counts)))
    return NoveltyTest(
        plain(test.p_value),
        plain(test.max_density_ratio),
        counts,
        code=test.code,
        tolerated_ratio=plain(test.tolerated_ratio),
        limit=test.limit,
    )


def _listed(model: Any, scored: ScoredTable, settings: RunSettings) -> ListedRows | None:
    if scored.novel_at_fdr is None or settings.fdr is None:
        return None
    ratio, rows = assumed_ratio(model, settings.max_density_ratio), int(scored.novel_at_fdr.sum())
    if rows:
        return ListedRows(settings.fdr, ratio, rows)
    p = fit_p_values(model, scored)
    smallest = smallest_fdr(p, max_density_ratio=ratio)
    needed = math.ceil(len(model.calibration_scores_) * smallest / settings.fdr) if smallest is not None else None
    return ListedRows(settings.fdr, ratio, 0, smallest, needed)


def _environment() -> Environment:
    import torch

    return Environment(
        python=platform.python_version(),
        platform=platform.platform(),
        numpy=np.__version__,
        torch=str(torch.__version__),
        threads=torch.get_num_threads(),
    )


def _path(data: Any) -> str | None:
    return os.path.realpath(Path(data).expanduser()) if isinstance(data, (str, Path)) else None


def _describe(data: RunData, encoder: Encoder | None) -> Data:
    settings = data.settings
    features: list[str] | EncodedColumn = list(settings.features or ())
    if encoder is not None:
        kind = "text" if settings.text is not None else "image"
        features = EncodedColumn(kind, settings.text or settings.image, encoder.name, encoder.fingerprint)
    return Data(
        source=_origin(settings.source, data.source),
        target=_origin(settings.target, data.target),
        label=settings.label,
        id=settings.id,
        features=features,
        left_out=data.ignored,
    )


def _origin(path: str | None, records: Records) -> Origin:
    return Origin(path, len(records), records.n_skipped, None if path is None else path_sha256(Path(path)))


def _check_unchanged(role: str, origin: Origin) -> None:
    path = origin.path
    if path is None:
        raise ValueError(f"the {role} was a data frame, which the run's folder does not hold: fit from a file.")
    if not Path(path).exists():
        raise FileNotFoundError(f"the {role} was read from {path}, which is gone: put it back, or fit again.")
    if path_sha256(Path(path)) != origin.sha256:
        raise ValueError(f"the {role} {path} changed since the run was fitted: fit again.")


@contextmanager
def _timed(timings: dict[str, float], name: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    timings[name] = time.perf_counter() - start
