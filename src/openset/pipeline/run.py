"""``openset.run``: from two files to an answer; ``openset.load_run``: the answer again."""

from __future__ import annotations

import os
import platform
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.files import expanded
from openset._utils.typed import plain
from openset._version import __version__
from openset.data.readers.parts import part_paths
from openset.data.readers.records import Records
from openset.errors import FitWarning, Parameter, ParameterError
from openset.features.fitted import FittedFeatures, read_features
from openset.features.maker import FeatureMaker, MadeFeatures
from openset.pipeline.batch_facts import BatchFacts, FactCounter
from openset.pipeline.check_columns import NamedColumns
from openset.pipeline.data_used import Data, Origin
from openset.pipeline.describe_data import describe_data, digest_of
from openset.pipeline.explain import Explanation, explain, find_groups
from openset.pipeline.fit_notes import fit_notes
from openset.pipeline.gate import run_gate
from openset.pipeline.list_rows import CANNOT_TELL, listed_rows
from openset.pipeline.load import RunData, read_data, read_fitted
from openset.pipeline.result import FEATURES, SCORED, Result, load_model, read_summary
from openset.pipeline.scored_batches import BATCH_ROWS, scored_batches, scoring_threads
from openset.pipeline.scored_file import AllRows, ScoredFile, write_all
from openset.pipeline.scored_table import (
    ScoredTable,
    assumed_ratio,
    fit_p_values,
    predictions,
    ranks,
    rows_at_fdr,
    scored_table,
)
from openset.pipeline.settings import ALL_ROWS, FIT_ROWS, RunSettings
from openset.pipeline.summary import (
    Check,
    Environment,
    Head,
    ListedRows,
    NovelFraction,
    NoveltyCounts,
    NoveltyTest,
    ResultSummary,
)
from openset.pipeline.verdict import cannot_tell, diagnose, give_verdict
from openset.problem import Predictions
from openset.registry import get_method
from openset.stats.shares import NOT_IDENTIFIED, ShareEstimate

TOP_ROWS = 20


def run(
    source: Any,
    target: Any,
    *,
    label: str | None = None,
    features: str | Sequence[str] | None = None,
    drop: str | Sequence[str] | None = None,
    kinds: Mapping[str, str] | None = None,
    text: str | None = None,
    image: str | None = None,
    id: str | None = None,
    carry: str | Sequence[str] | None = None,
    encoder: str | None = None,
    method: str = "color",
    fpr: float = 0.01,
    fdr: float | None = None,
    max_density_ratio: float | None = None,
    seed: int = 0,
    fit_rows: int | str = FIT_ROWS,
    skip_bad: bool = False,
    ignore_target_labels: bool = False,
    parameters: Mapping[str, Any] | None = None,
    progress: bool = False,
) -> Result:
    """Fit a method on labelled source rows and an unlabelled target, and score the target.

    Parameters
    ----------
    source, target : paths of tables, arrays or image folders, patterns such as ``data/*.parquet``, or data frames
        (pandas, polars, pyarrow)
    label : the source's column of known classes; rows without a label are left out and counted
    text, image : a column of text, and one of image paths, to be encoded
    features : the columns that are features beside them: numbers, categories, dates, or one of vectors. None for
        all columns but ``label`` and ``id``
    drop : columns that are no features, such as counters; ``*`` stands for any text
    kinds : what columns hold where that is not to be guessed: ``{"zip": "category"}``; or "number", "date",
        "text" or "id"
    id : a column that tells rows apart; without it rows are numbered from 0
    carry : columns of the target that the scored table has too, or "all"
    encoder : for text and images, as :func:`openset.features.load_encoder` takes it
    method, parameters : a name that ``openset methods`` lists, and its parameters beside those here
    fpr : share of source rows that may be called novel
    fdr : mark the rows of :meth:`Result.novel_rows` at this false discovery rate in a column ``novel_at_fdr``
    max_density_ratio : B, how many times as common a known kind of row may be in target as in source, for
        methods that test for a new class and for ``fdr``. None: CoLOR reads it off the rows, PaperCoLOR assumes
        12, other methods 1
    fit_rows : where source or target has more rows, fit on a sample of so many, drawn by a hash of the id (of the
        row number without ids), with at least some of every class; "all" for every row. All target rows are
        scored either way
    skip_bad : skip rows that cannot be read, or with an id that came before, instead of an error that names them;
        a missing value is no reason to skip a row
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
        features=_names(features),
        drop=_names(drop),
        kinds=dict(kinds or {}),
        text=text,
        image=image,
        id=id,
        carry=_names(carry),
        encoder=encoder,
        method=method,
        fpr=fpr,
        fdr=fdr,
        max_density_ratio=max_density_ratio,
        seed=seed,
        fit_rows=fit_rows,
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
    maker, settings = FeatureMaker(data.settings.encoder, progress), data.settings
    with _timed(timings, "encode"):
        made, made_target, fitted = maker.fit(
            data.source, data.target, text=settings.text, image=settings.image, kinds=settings.kinds
        )
    keep_scales(model, settings, fitted)
    y = np.asarray(data.source.y)
    with _timed(timings, "fit"):
        warned = _fit(model, made.X, data.source.y, made_target.X)
    with _timed(timings, "score"):
        scored = score_target(model, model.target_predictions(), data.target, settings)
    with _timed(timings, "describe"):
        explanation, groups = explain(model, scored, made.X, y, made_target.X)
        explanation = _of_all_source(explanation, data.source)
        scored = replace(scored, group=groups + 1)
    with _timed(timings, "check"):
        called = scored.novelty_score > model.threshold_
        checks = run_gate(
            model, made.X, y, made_target.X, columns=_columns_to_check(made, made_target, fitted),
            nearest_known=scored.nearest_known, called=called, groups=groups,
        )  # fmt: skip
    why_none = CANNOT_TELL if cannot_tell(getattr(model, "novelty_test_", None), checks) else ""
    scored = mark_listed(model, scored, settings, why_none)
    notes_of_cells, every = made_target.notes, None
    if data.target.drawn is not None:
        with _timed(timings, "score all rows"):
            facts, every = _score_all(model, maker, data, scored, why_none, progress)
            scored = _in_file(scored, every)
            explanation = _of_all_target(explanation, facts)
            notes_of_cells = facts.notes
    checks += [Check("cells", "caution", sentence) for sentence in notes_of_cells.sentences()]
    encoded = (settings.text, settings.image)
    settings = replace(settings, features=tuple(name for name in fitted.columns if name not in encoded) or None)
    described = describe_data(replace(data, settings=settings), fitted, maker.encoders)
    notes = fit_notes(warned, _columns_to_check(made, made_target, fitted))
    summary = summarise(model, scored, explanation, settings, described, timings, notes, checks, every)
    return Result(
        model, summary, scored, data.source, data.target, made, made_target, fitted,
        None if every is None else every.file,
    )  # fmt: skip


def _score_all(
    model: Any, maker: FeatureMaker, data: RunData, scored: ScoredTable, why_none: str, progress: bool
) -> tuple[BatchFacts, AllRows]:
    """Score every target row of data whose target is a sample, into a file; none is listed with ``why_none``."""
    settings, drawn, counter = data.settings, data.target.drawn, FactCounter(None)
    assert drawn is not None and data.target_batches is not None and scored.group is not None
    with scoring_threads(model, settings) as workers:
        batches = data.target_batches(BATCH_ROWS)
        tables = scored_batches(model, maker, batches, workers, counter, settings.id)
        every = write_all(
            tables, model, settings, drawn.index, scored.group, why_none=why_none, progress=progress
        )
    return counter.facts, every


def _in_file(scored: ScoredTable, every: AllRows) -> ScoredTable:
    """The rows of the fit with their ranks among all rows, and marked where they are listed among all."""
    scored = replace(scored, rank=every.rank[every.file.index])
    if every.limit is None:
        return scored
    return replace(scored, novel_at_fdr=every.file.take("novel_at_fdr", every.file.index))


def _of_all_target(explanation: Explanation, facts: BatchFacts) -> Explanation:
    """How many of all target rows are called novel; groups are those of the sample."""
    sentence = explanation.groups.sentence
    groups = replace(explanation.groups, sentence=f"In the sample, {sentence[0].lower()}{sentence[1:]}")
    return replace(explanation, called_novel=facts.called_novel, groups=groups)


def _of_all_source(explanation: Explanation, source: Records) -> Explanation:
    """The shares of known classes in source, of all its rows where the fit was on a sample."""
    if source.drawn is None:
        return explanation
    counts = {str(label): number for label, number in source.drawn.classes.items()}
    mix = {
        name: replace(shares, source=counts[name] / source.drawn.n_rows)
        for name, shares in explanation.class_mix.items()
    }
    return replace(explanation, class_mix=mix)


def keep_scales(model: Any, settings: RunSettings, fitted: FittedFeatures) -> None:
    """Let the method leave the scales of features that have them: unit variance would lift rare levels."""
    if fitted.is_scaled and "standardize" in model.get_params() and "standardize" not in settings.parameters:
        model.set_params(standardize="global")


def _columns_to_check(made: MadeFeatures, target: MadeFeatures, fitted: FittedFeatures) -> NamedColumns | None:
    """The columns of the table, without encoded ones; those of one column of vectors by its name."""
    if made.values is None or target.values is None or len(made.names) != made.values.shape[-1]:
        return None
    columns = [] if fitted.table is None else fitted.table.feature_columns
    number = len(columns) if columns else len(made.names)
    return NamedColumns(made.values[:, :number], target.values[:, :number], made.names[:number], columns)


def load_run(folder: str | os.PathLike[str], *, progress: bool = False) -> Result:
    """A result that was saved, its data read again from where it was; data that changed since is an error."""
    summary = read_summary(folder)
    settings = summary.settings
    check_unchanged("source", summary.data.source)
    check_unchanged("target", summary.data.target)
    fitted = read_features(Path(folder) / FEATURES)
    if not summary.data.is_sample:  # an earlier openset fitted on all rows, however many
        settings = replace(settings, fit_rows=ALL_ROWS)
    data = read_fitted(settings, settings.source, settings.target, fitted)
    maker = FeatureMaker(settings.encoder, progress, fitted)
    model, made, made_target = load_model(folder), maker(data.source), maker(data.target)
    scored = score_target(model, predictions(model, made_target.X), data.target, settings)
    why_none = CANNOT_TELL if summary.verdict.code == "cannot_tell" else ""
    scored = mark_listed(model, scored, settings, why_none)
    found = find_groups(
        model, made.X, made_target.X, scored.novelty_score, scored.novelty_score > model.threshold_
    )
    scored = replace(scored, group=found.labels + 1)
    every = None if data.target.drawn is None else ScoredFile(Path(folder) / SCORED, data.target.drawn.index)
    if every is not None:
        marked = None if settings.fdr is None else every.take("novel_at_fdr", every.index)
        scored = replace(scored, rank=every.take("rank", every.index), novel_at_fdr=marked)
    return Result(model, summary, scored, data.source, data.target, made, made_target, fitted, every)


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
    """The target's rows with what the model says of them, ranked."""
    scored = scored_table(model, found, target, settings.id)
    return replace(scored, rank=ranks(scored.novelty_score))


def mark_listed(model: Any, scored: ScoredTable, settings: RunSettings, why_none: str = "") -> ScoredTable:
    """Mark the rows to list where settings ask for it; none if there is a reason not to."""
    if settings.fdr is None:
        return scored
    if why_none:
        return replace(scored, novel_at_fdr=np.zeros(len(scored), bool))
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
    every: AllRows | None = None,
) -> ResultSummary:
    """The summary of a run; ``notes`` are the warnings of its fit, ``checks`` those of the gate.

    ``every`` has all target rows where ``scored`` has a sample of them.
    """
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
        novel_fraction=_novel_fraction(fraction),
        threshold=plain(model.threshold_),
        fpr=stored.fpr,
        listed=_listed(model, scored, stored, every, explanation.called_novel, verdict.code),
        heads=[Head(**plain(record)) for record in model.head_records()] if hasattr(model, "heads_") else None,
        history=plain(getattr(model, "history_", [])),
        diagnostics=diagnose(model, notes),
        top_rows=plain(_top_ids(scored, every)),
        settings=stored,
        timings={name: round(seconds, 3) for name, seconds in timings.items()},
        environment=_environment(),
        **vars(explanation),
    )


def _novel_fraction(fraction: ShareEstimate) -> NovelFraction:
    """The share as it is stored: without an upper end and a value where only the lower end is known."""
    stored = NovelFraction(**plain(vars(fraction)))
    return stored if fraction.high_identified else replace(stored, value=None, high=None)


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


def _top_ids(scored: ScoredTable, every: AllRows | None) -> NDArray[Any]:
    """The ids of the most novel rows."""
    if every is None:
        top: NDArray[Any] = scored.id[np.argsort(-scored.novelty_score, kind="stable")[:TOP_ROWS]]
        return top
    rows = np.flatnonzero(every.rank <= TOP_ROWS)
    return every.file.take(next(iter(scored.columns())), rows[np.argsort(every.rank[rows])])


def _listed(
    model: Any, scored: ScoredTable, settings: RunSettings, every: AllRows | None, n_called: int, code: str
) -> ListedRows | None:
    if scored.novel_at_fdr is None or settings.fdr is None:
        return None
    seen = Counter(fit_p_values(model, scored).tolist()) if every is None else every.p_values
    ratio = assumed_ratio(model, settings.max_density_ratio)
    why_none = CANNOT_TELL if code == "cannot_tell" else ""
    counts = {"n_source": model.n_source_, "n_called": n_called}
    return listed_rows(seen, settings.fdr, ratio, **counts, why_none=why_none)


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
    return os.path.realpath(expanded(data)) if isinstance(data, (str, Path)) else None


def _names(given: str | Sequence[str] | None) -> tuple[str, ...] | None:
    return None if given is None else (given,) if isinstance(given, str) else tuple(given)


def check_unchanged(role: str, origin: Origin) -> None:
    """Raise an error unless the file of source or target is there as it was in the fit."""
    path = origin.path
    if path is None:
        raise ValueError(f"the {role} was a data frame, which the run's folder does not hold: fit from a file.")
    if not part_paths(Path(path)):
        raise FileNotFoundError(f"the {role} was read from {path}, which is gone: put it back, or fit again.")
    if digest_of(path) != origin.sha256:
        raise ValueError(f"the {role} {path} changed since the run was fitted: fit again.")


@contextmanager
def _timed(timings: dict[str, float], name: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    timings[name] = time.perf_counter() - start
