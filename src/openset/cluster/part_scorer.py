"""Scoring one part: from its file to its scores and its record, the same bytes on any machine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openset._utils.files import extension
from openset._utils.hashing import path_sha256, sha256
from openset.cluster.folders import open_folder
from openset.cluster.plan import Part
from openset.cluster.records import File, Record, record_name
from openset.cluster.runs import one_thread_each, run_digest, run_here
from openset.data.readers.open import open_file
from openset.data.readers.parts import open_parts
from openset.data.writer import table_writer
from openset.pipeline.batch_facts import BatchFacts, FactCounter
from openset.pipeline.fit_profile import SAMPLE_ROWS
from openset.pipeline.loaded_run import LoadedRun

_SPARE_ROWS = 30
"""Rows of a part's sample beyond twice its share: no sample of all parts then has too few rows."""


@dataclass(frozen=True)
class Options:
    """What changes the scores that are written, beside the run."""

    id: str | None = None
    carry: tuple[str, ...] | None = None
    csv_safe: bool = False

    def text(self) -> str:
        """The options as a record has them."""
        carried = "none" if self.carry is None else ", ".join(self.carry)
        return f"id {self.id or 'of the run'}; carried columns: {carried}; csv-safe: {self.csv_safe}"


class PartScorer:
    """Loads a run once, and scores parts; the folders may be on any file system."""

    def __init__(self, run: str, data: str, out: str, options: Options, batch_rows: int) -> None:
        with run_here(run) as folder:
            self._loaded = LoadedRun.load(folder, id=options.id, carry=options.carry)
            self._run = run_digest(folder)
        self._data, self._out = open_folder(data), open_folder(out)
        self._options, self._batch_rows = options, batch_rows

    def __call__(self, part: Part) -> Record:
        """Score a part, write its record, and then the part."""
        with self._data.fetched(part.name) as root:
            path, given = root / part.name, f"{self._data.url}/{part.name}"
            try:
                return self._scored(part, root, path)
            except ValueError as error:
                if str(path) == given or str(path) not in str(error):
                    raise
                raise ValueError(str(error).replace(str(path), given)) from None  # not the name of a copy

    def _scored(self, part: Part, root: Path, path: Path) -> Record:
        source = open_parts(root, f"{self._data.url}/{part.name}", [path], open_file)
        loaded = self._loaded
        # other formats cannot hold columns without rows
        is_empty = source.n_rows == 0 and extension(path) == extension(Path(part.out)) == ".parquet"
        counter = FactCounter(loaded.profile, sample_rows=sample_rows(part.share), seed=_seed(part))
        with self._out.writing(part.out) as temporary:
            with (
                one_thread_each(loaded) as workers,
                table_writer(Path(part.out), temporary, csv_safe=self._options.csv_safe) as write,
            ):
                if is_empty:
                    nothing = loaded.no_rows(source, _parquet_schema(path))
                    write({name: nothing[name].combine_chunks() for name in nothing.column_names})
                else:
                    for table in loaded.tables(loaded.batches(source, self._batch_rows), workers, counter):
                        write(table.columns())
            record = Record(
                run=self._run,
                options=self._options.text(),
                id=loaded.settings.id,
                kinds=source.kinds,
                typed=source.typed,
                input=File(part.size, path_sha256(path), part.modified),
                output=File(temporary.stat().st_size, path_sha256(temporary)),
                facts=BatchFacts(0, 0) if is_empty else counter.facts,
            )
            self._refuse_changed(part)
            self._out.write(record_name(part.out), record.to_bytes())
        return record

    def _refuse_changed(self, part: Part) -> None:
        now = self._data.found(part.name)
        if now is None or (now.size, now.modified) != (part.size, part.modified):
            raise ValueError(
                f"{self._data.url}/{part.name} changed while it was scored: its scores are not kept. Run again."
            )


def _parquet_schema(path: Path) -> Any:
    import pyarrow.parquet as pq

    return pq.read_schema(path)


def sample_rows(share: float) -> int:
    """How many rows of a part with this share of all bytes are stored, to be compared with the fit's.

    All parts together have about twice the rows of one sample, and some more each.

    >>> sample_rows(1.0), sample_rows(0.05), sample_rows(0.0001)
    (500, 80, 31)
    """
    return min(SAMPLE_ROWS, math.ceil(2 * SAMPLE_ROWS * share) + _SPARE_ROWS)


def _seed(part: Part) -> int:
    """Rows of every part are numbered from 0, so each part has its own keys, the same wherever it is scored."""
    return int(sha256(part.name)[:12], 16)
