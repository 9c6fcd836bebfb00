"""``openset.Watch``: batches in order of time against one labelled source."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from openset._utils.files import check_not_input, expanded
from openset._utils.hashing import path_sha256
from openset._utils.params import check_choice, check_number
from openset.data.readers.open import open_source
from openset.pipeline.describe_data import digest_of
from openset.pipeline.result import RESULT, SETTINGS
from openset.stats.e_process import ERROR, LIMIT, Tally, log_evidence, weight
from openset.watch.answer import Advice, Batch, WatchAnswer, evidence_text, groups_over_time
from openset.watch.fits import FittedModel, WatchedRun, pack_model, unpack_model
from openset.watch.labels import Labels, read_labels
from openset.watch.look import look_at
from openset.watch.page import PAGE, write_page
from openset.watch.policy import KEPT_MODELS, POLICIES, model_is_due
from openset.watch.records import BatchRecord, ModelRecord
from openset.watch.store import NAME, WatchStore


class Watch:
    """Later batches of a run, in order of time: did they move, what is new in them, and since when?

    Parameters
    ----------
    run : the folder of a run
    state : file that everything is stored in; None for ``watch.sqlite`` in the run's folder
    refit : what is fitted. "auto" and "each" fit every batch alone, if the run's method has a test. For evidence
        that adds up over batches, "auto" fits a new model on source and the last three batches when more rows are
        called new than at the model's fit, beyond chance, or when it was used for four batches; "each" after
        every batch. "never" fits one model, on the run's target
    max_density_ratio : B, how many times as common a known kind of row may be as in source; None for what the run
        and the batches' own fits read off the rows
    progress : show progress bars of encoders

    ``watch.add("monday.parquet")`` counts a batch. What is found is stored before it returns; a batch that was
    counted before is known by its content and not counted again. ``watch.answer()`` says what all batches show.
    The chance that it ever notices a new class where there is none is at most 5 %, however many batches there are
    and however often one looks, if no known kind is more than B times as common as in source and no batch moved.

    The models that count over several batches are fitted on one half of the source; the other half tells what is
    usual. So a watch begins with a fit of its own.
    """

    def __init__(
        self,
        run: str | PathLike[str],
        *,
        state: str | PathLike[str] | None = None,
        refit: str = "auto",
        max_density_ratio: float | None = None,
        progress: bool = False,
    ) -> None:
        check_choice("refit", refit, POLICIES)
        check_number("max_density_ratio", max_density_ratio, low=1, optional=True)
        self.folder, self.refit = Path(run), refit
        self.run = WatchedRun(self.folder, progress=progress)
        self._ratio = max_density_ratio
        path = self.folder / NAME if state is None else Path(state)
        self.store = WatchStore(path, path_sha256(self.folder / RESULT))
        self._loaded: dict[int, FittedModel] = {}
        self._notes: list[str] = []

    @property
    def max_density_ratio(self) -> float:
        """How many times as common a known kind may be as in source."""
        return self.run.max_density_ratio if self._ratio is None else float(self._ratio)

    @cached_property
    def labels(self) -> Labels:
        """What a review of the run confirmed."""
        return read_labels(self.run)

    # --- batches

    def add(self, batch: Any, *, name: str | None = None) -> BatchRecord:
        """Look at a batch, a path or a data frame, and store what was found; once, however often it is given."""
        is_path = isinstance(batch, (str, PathLike))
        sha256 = digest_of(str(batch)) if is_path else None
        before = self.store.batches()
        counted = next((record for record in before if record.sha256 == sha256), None)
        if counted is not None:
            if counted.name != Path(batch).name:
                self._notes.append(
                    f"{Path(batch).name} has the content of {counted.name}, batch {counted.number}, and is not "
                    "counted again. Was the right file written?"
                )
            return counted
        path = os.path.realpath(expanded(batch)) if is_path else ""
        models = self._models_in_use(before)
        number = len(before) + 1
        looked = look_at(
            self.run,
            open_source(batch),
            models,
            number=number,
            name=name or (Path(batch).name if is_path else f"batch {number}"),
            path=path,
            sha256=sha256,
            labels=self.labels,
            earlier=self.store.groups(),
            alone=self.run.has_test and self.refit != "never",
            max_density_ratio=self._ratio,
        )
        counted = next((record for record in before if record.sha256 == looked.record.sha256), None)
        if counted is None:
            record = replace(looked.record, notes=[*looked.record.notes, *_same_file(path, before)])
            self.store.add_batch(record, looked.sample, looked.groups)
        return counted or record

    def add_all(self, batches: Sequence[str | PathLike[str]]) -> list[BatchRecord]:
        """Several files in order of time, those counted before among them; another order is an error."""
        check_order([str(path) for path in batches], self.store.batches())
        return [self.add(batch) for batch in batches]

    # --- what they say

    def answer(self) -> WatchAnswer:
        """What all batches show until now."""
        records, models = self.store.batches(), self.store.models()
        evidence = evidence_by_batch(
            records, self.max_density_ratio, own_fits=self.run.has_test, least_ratio=self._ratio or 1.0
        )
        batches = [Batch(record, value) for record, value in zip(records, evidence, strict=True)]
        noticed = next((batch.record for batch in batches if batch.evidence >= LIMIT), None)
        ratio = self.max_density_ratio if noticed is None else self._noticed_under(records[: noticed.number])
        names = {n: self.labels.name_of(rows.astype(np.float64)) for n, rows in self.store.groups().items()}
        groups = groups_over_time(records, {n: name for n, name in names.items() if name is not None})
        code = "noticed" if noticed else "cannot_tell" if not records or records[-1].cannot_tell else "nothing"
        notes = [note for record in records[-1:] for note in record.notes]
        return WatchAnswer(
            run=str(self.folder),
            code=code,
            sentence=_sentence(code, batches, noticed, ratio),
            max_density_ratio=ratio,
            evidence=max(evidence, default=0.0),
            limit=LIMIT,
            error=ERROR,
            noticed_at=None if noticed is None else noticed.number,
            batches=batches,
            groups=groups,
            models=models,
            advice=self._advice(code, records, models),
            notes=list(dict.fromkeys([*self._notes, *notes])),
        )

    def write_page(self, path: str | PathLike[str] | None = None) -> Path:
        """Write the timeline as one self-contained HTML page; None for ``watch.html`` in the run's folder."""
        page = self.folder / PAGE if path is None else Path(path)
        if path is not None:
            check_not_input(page, self.folder)
        return write_page(self.answer(), page)

    # --- inside

    def _noticed_under(self, records: Sequence[BatchRecord]) -> float:
        """The ratio under which a new class was noticed in the last of some batches: of series or its own fit."""
        own = records[-1].own_fit
        series = [replace(record, own_fit=None) for record in records]
        by_series = evidence_by_batch(series, self.max_density_ratio, own_fits=self.run.has_test)[-1]
        return self.max_density_ratio if own is None or by_series >= LIMIT else own.max_density_ratio

    def _models_in_use(self, before: Sequence[BatchRecord]) -> list[FittedModel]:
        """The models that score the next batch, the newest last; one that is due is fitted first.

        What is due follows from what is stored, so a watch that was killed while it fitted goes on with that.
        """
        models = self.store.models()
        if not models:
            models = [self._fit(self.run.target(), 0, 0, ["the run's target"])]
        if before and self._is_due(before, models[-1]):
            rows = self.store.rows_to_fit()
            names = [record.name for record in before if record.number in rows]
            target = np.concatenate(list(rows.values()))
            models.append(self._fit(target, models[-1].number + 1, len(before), names))
        return [self._load(record) for record in models[-KEPT_MODELS:]]

    def _is_due(self, before: Sequence[BatchRecord], model: ModelRecord) -> bool:
        last = before[-1]
        if last.moved != "no" or model.after == len(before):
            return False
        age = len(before) - model.after
        called = next((count.called for count in last.counts if count.model == model.number), 0)
        return model_is_due(self.refit, called, last.rows, model.called_share, age)

    def _fit(self, target: Any, number: int, after: int, names: list[str]) -> ModelRecord:
        fitted = self.run.fit(target, number=number, after=after, names=names)
        self.store.add_model(fitted.record, pack_model(fitted.model))
        return fitted.record

    def _load(self, record: ModelRecord) -> FittedModel:
        if record.number not in self._loaded:
            model = unpack_model(self.store.content_of(record.number))
            self._loaded = {n: fitted for n, fitted in self._loaded.items() if n > record.number - KEPT_MODELS}
            self._loaded[record.number] = FittedModel(model, record)
        return self._loaded[record.number]

    def _advice(self, code: str, records: Sequence[BatchRecord], models: Sequence[ModelRecord]) -> Advice:
        if not records:
            return Advice("No batch was counted yet: give the first one.")
        fit = self._fit_command(records[-1])
        if records[-1].moved == "yes":
            return Advice(
                f"{records[-1].name} moved. Find out why; if its rows are right, fit a run with it as target, "
                "and watch that run.",
                fit,
            )
        if code == "noticed":
            return Advice(
                "Fit a run with the last batch as target, confirm and name the new class in it (openset review), "
                "and fit with it as a class of its own (openset promote). Then watch that run.",
                fit,
            )
        if records[-1].cannot_tell:
            return Advice("Give larger batches, or fit a run on rows that lie with the source.")
        if self.refit != "never" and self._is_due(records, models[-1]):
            return Advice("A new model is due. The next call fits it on source and the last batches by itself.")
        return Advice("Nothing needs to be fitted now.")

    def _fit_command(self, last: BatchRecord) -> str:
        """The command that fits a run like this one with the last batch as target; none without files."""
        source = self.run.summary.data.source.path
        if source is None or not last.path:
            return ""
        run = self.folder.resolve()
        files = [
            source,
            last.path,
            "--settings",
            str(run / SETTINGS),
            "--out",
            str(run.with_name(f"{run.name}-next")),
        ]
        return f"openset fit {shlex.join(files)}"


def evidence_by_batch(
    records: Sequence[BatchRecord], max_density_ratio: float, *, own_fits: bool = False, least_ratio: float = 1.0
) -> list[float]:
    """The strongest evidence up to each batch: by series of batches, and by the batches' own fits.

    A series begins at every batch, with the model that was newest then, and lasts while that model is in use.
    Where batches have fits of their own, half of the error is for these. Such a fit counts by the weight of its
    batch over its p-value, unless it assumed a smaller ratio than ``least_ratio``.
    """
    series: list[tuple[int, int, list[Tally]]] = []
    found, best = [], -np.inf
    half = np.log(0.5) if own_fits else 0.0
    counted = 0
    for record in records:
        if record.counts:
            counted += 1
            by_model = {count.model: count.tally(record.rows) for count in record.counts}
            series = [each for each in series if each[1] in by_model] + [(counted, record.model, [])]
            for _, model, tallies in series:
                tallies.append(by_model[model])
            value = log_evidence([(first, tallies) for first, _, tallies in series], max_density_ratio)
            own = record.own_fit
            if own is not None and not own.limit and own.max_density_ratio >= least_ratio:
                value = max(value, float(np.log(weight(counted)) - np.log(own.p_value)))
            best = max(best, value + half)
        found.append(float(np.exp(min(best, 700.0))))
    return found


def _same_file(path: str, before: Sequence[BatchRecord]) -> list[str]:
    """A note if a file of this path was counted before: with other content, or it would not be counted again."""
    same = [record for record in before if path and record.path == path]
    if not same:
        return []
    return [
        f"{same[-1].name} was counted as batch {same[-1].number} too, with other content. Rows that are in both "
        "count twice, which the evidence does not allow for: if it has the same rows and more, begin anew with "
        "another file for the state."
    ]


def check_order(paths: Sequence[str], stored: Sequence[BatchRecord]) -> None:
    """Raise unless the batches that were counted come first, in the order in which they were counted."""
    numbers = {record.sha256: record.number for record in stored}
    last, new = 0, ""
    for path in paths:
        number = numbers.get(digest_of(path))
        if number is None:
            new = new or path
            continue
        if new:
            raise ValueError(
                f"{new} is new, but it is given before {path}, which was counted as batch {number}: batches are "
                "counted in order of time. Leave it out, or begin anew with another file for the state."
            )
        if number < last:
            raise ValueError(
                f"{path} was counted as batch {number}, before batch {last}, which is given before it: give "
                "batches in the order of time."
            )
        last = number


def _sentence(code: str, batches: Sequence[Batch], noticed: BatchRecord | None, ratio: float) -> str:
    more = "more common than" if ratio == 1 else f"more than {ratio:g} times as common as"
    sure = f"if no known kind is {more} in source"
    if noticed is not None:
        return (
            f"The evidence reached {LIMIT:g} at {noticed.name} (batch {noticed.number}). Without a new class "
            f"that ever happens with a chance of at most {100 * ERROR:g} %, {sure}."
        )
    if not batches:
        return "No batch was counted."
    if code == "cannot_tell":
        return f"{batches[-1].record.name}: {batches[-1].record.cannot_tell}."
    highest = evidence_text(max(batch.evidence for batch in batches))
    return f"The evidence of a new class is {highest}; it is noticed from {LIMIT:g} on, {sure}."
