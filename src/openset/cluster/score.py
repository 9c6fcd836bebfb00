"""``openset score`` into a folder: a part for each part of the data, each scored once, in any number of runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from openset._utils.hashing import path_sha256
from openset._utils.params import check_choice, check_integer
from openset._utils.progress import progress_bar
from openset._utils.text import counted, listed
from openset.cluster.folders import Folder, Found, LocalFolder, is_remote, local_path, open_folder
from openset.cluster.part_scorer import Options, PartScorer
from openset.cluster.plan import Part, Plan, Shard, is_hidden, make_plan
from openset.cluster.ray_score import score_on_ray
from openset.cluster.records import SUCCESS, Record, joined_facts, record_name
from openset.cluster.runs import run_digest, run_here
from openset.errors import Parameter, ParameterError
from openset.pipeline.batch_answer import BatchAnswer, answer_of
from openset.pipeline.fit_profile import read_profile
from openset.pipeline.result import PROFILE, read_summary
from openset.pipeline.scored_batches import BATCH_ROWS

_READERS = 16
"""Records read at the same time: a request to an object store mostly waits."""


@dataclass(frozen=True)
class PartsAnswer:
    """What is in the folder now: the answer for all parts that are there, whoever scored them.

    Of ``parts`` parts ``there`` are there, ``scored`` of them by this call, which found ``skipped`` of its own
    ones done. ``answer`` is None while no part with rows is there.
    """

    answer: BatchAnswer | None
    parts: int
    there: int
    scored: int
    skipped: int

    @property
    def is_complete(self) -> bool:
        """Whether all parts are there, and ``_SUCCESS`` with them."""
        return self.there == self.parts

    def __call__(self) -> str:
        """The answer in words, and which parts are there."""
        end = "_SUCCESS is written" if self.is_complete else "other shards or another run score the rest"
        state = (
            f"{self.there} of {counted(self.parts, 'part')} are there: {self.scored} scored now, "
            f"{self.skipped} found done; {end}."
        )
        return state if self.answer is None else f"{self.answer()}\n\n{state}"

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values; the counts of parts under ``parts``."""
        counts = {"all": self.parts, "there": self.there, "scored": self.scored, "skipped": self.skipped}
        answer = {} if self.answer is None else self.answer.to_dict()
        return {**answer, "parts": {**counts, "complete": self.is_complete}}


def score_parts(
    run: str | PathLike[str],
    data: str | PathLike[str],
    out: str | PathLike[str],
    *,
    shard: str | None = None,
    format: str | None = None,
    id: str | None = None,
    carry: str | Sequence[str] | None = None,
    csv_safe: bool = False,
    on: str = "local",
    batch_rows: int = BATCH_ROWS,
    progress: bool = False,
) -> PartsAnswer:
    """Score every part of ``data`` into a part of the same name in the folder ``out``.

    ``data`` is a file, a folder or a pattern; it, ``run`` and ``out`` may be URLs such as ``s3://bucket/in``. A
    part appears when all of it is written. Parts that are there are skipped, if they came from this run, this
    input and these options: else an error says what differs. So a killed call is continued by the same call.
    ``_SUCCESS`` is written when all parts are there.

    ``shard="i/n"`` scores every n-th part from the i-th on, counted from 0; the shards may run at the same time.
    ``on="ray"`` lets the workers of a Ray cluster score the parts. The bytes are the same in every case.
    ``format`` is an extension for the parts, such as "parquet"; None for that of the data. The other options are
    those of :func:`openset.score`. Ids are checked within a part; :func:`~openset.cluster.ids.check_ids` checks
    them across parts. Rows without ids are numbered from 0 in every part.
    """
    check_choice("on", on, ("local", "ray"))
    check_integer("batch_rows", batch_rows)
    mine = Shard.parsed(shard)
    plan, folder = make_plan(data, format), open_folder(out)
    _refuse_input(plan, folder, str(data))
    if csv_safe and not plan.parts[0].out.endswith((".csv", ".tsv", ".csv.gz", ".tsv.gz")):
        raise ParameterError(Parameter("csv_safe", True), " is for CSV files, and the parts are none.")
    options = Options(
        id, (carry,) if isinstance(carry, str) else None if carry is None else tuple(carry), csv_safe
    )
    with run_here(run) as here:
        summary, profile, digest = read_summary(here), read_profile(here / PROFILE), run_digest(here)
    existing = _Existing(plan, folder, digest, options)
    own, records = mine.of(plan.parts), existing.records()
    missing = [part for part in own if part.out not in records]
    if len(records) < len(plan.parts):
        folder.delete(SUCCESS)  # if another shard wrote it just now, this call writes it again at its end
        if missing:
            arguments = (str(run), plan.data.url, folder.url, options, batch_rows)
            scoring = score_on_ray(arguments, missing) if on == "ray" else _score_here(arguments, missing)
            with progress_bar("scoring", enabled=progress) as update:
                for done, _ in enumerate(scoring, 1):
                    update(len(own) - len(missing) + done, len(own), "parts")
        records = existing.records()
    answer, with_rows = None, [record for record in records.values() if record.facts.rows]
    if with_rows:
        answer = answer_of(joined_facts(with_rows), profile, summary, with_rows[0], with_rows[0].id)
    found = PartsAnswer(answer, len(plan.parts), len(records), len(missing), len(own) - len(missing))
    if found.is_complete:
        _write_success(folder, found, digest)
    return found


def _score_here(arguments: tuple[Any, ...], parts: Sequence[Part]) -> Iterator[None]:
    """Score the parts on this machine, one after the other, each batch of a part on its own core."""
    scorer = PartScorer(*arguments)
    for part in parts:
        scorer(part)
        yield


def _write_success(folder: Folder, found: PartsAnswer, digest: str) -> None:
    """Write the last file; shards that end at the same time write the same bytes."""
    rows, called = (0, 0) if found.answer is None else (found.answer.rows, found.answer.called_novel)
    content = {"parts": found.parts, "rows": rows, "called_novel": called, "run": digest}
    if folder.found(SUCCESS) is None:
        folder.write(SUCCESS, json.dumps(content).encode() + b"\n")


def _refuse_input(plan: Plan, out: Folder, data: str) -> None:
    """Raise an error if scores would be written among the data, or into a file."""
    inside, where = f"{_place(out.url)}/", _place(plan.data.url)
    is_same = any(f"{where}/{part.name}".startswith(inside) for part in plan.parts)
    if is_same or (inside.startswith(f"{where}/") and _place(data) == where):
        raise ValueError(f"{out.url} holds data that is read, or is a part of it: write to another folder.")
    if isinstance(out, LocalFolder) and out.path.exists() and not out.path.is_dir():
        raise ValueError(f"{out.url} is a file: parts are written to a folder.")


def _place(path: str) -> str:
    """A path under its one name: absolute and without links, if it is on this machine."""
    return path.rstrip("/") if is_remote(path) else os.path.realpath(local_path(path))


@dataclass(frozen=True)
class _Existing:
    """The parts that are in the output folder, and whether they are ours."""

    plan: Plan
    folder: Folder
    run: str
    options: Options

    def records(self) -> dict[str, Record]:
        """The records of all parts that are done, of any shard, by the part's name and in the order of the parts.

        A file that is not ours, or that this call would have written otherwise, is an error: _SUCCESS stands for
        parts that belong together.
        """
        there = self.folder.files()
        wanted = {part.out for part in self.plan.parts}
        others = [name for name in there if name not in wanted and not is_hidden(name)]
        if others:
            raise ValueError(
                f"{self.folder.url} holds files that are no parts of the data: {listed(others)}. Choose another "
                "folder, or delete them; were inputs taken away since?"
            )
        with ThreadPoolExecutor(_READERS) as threads:
            found = threads.map(lambda part: self._done(part, there), self.plan.parts)
            return {part.out: record for part, record in zip(self.plan.parts, found, strict=True) if record}

    def _record(self, part: Part) -> Record:
        name = record_name(part.out)
        return Record.from_bytes(self.folder.read(name), f"{self.folder.url}/{name}")

    def _done(self, part: Part, there: dict[str, Found]) -> Record | None:
        """The record of a part, None if it is not there as a whole."""
        if part.out not in there:
            return None
        place = f"{self.folder.url}/{part.out}"
        again = "Choose another folder, or delete the part to score it again."
        if record_name(part.out) not in there:
            raise ValueError(f"{place} was not written by openset score into a folder. {again}")
        record = self._record(part)
        if record.run != self.run:
            raise ValueError(f"{place} was scored by another run. {again}")
        if record.options != self.options.text():
            raise ValueError(
                f"{place} was scored with other options ({record.options}; now {self.options.text()}). {again}"
            )
        if not self._is_same(part, record):
            raise ValueError(
                f"{self.plan.data.url}/{part.name} changed since it was scored into {place}. {again}"
            )
        return record if there[part.out].size == record.output.size else None

    def _is_same(self, part: Part, record: Record) -> bool:
        """Whether the input is the one that was scored; a copy with another time is compared by its bytes."""
        if part.size != record.input.size:
            return False
        if part.modified == record.input.modified:
            return True
        with self.plan.data.fetched(part.name) as root:
            return path_sha256(Path(root) / part.name) == record.input.sha256
