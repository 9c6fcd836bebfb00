"""A saved run that is loaded to score rows: its model, its features, and what batches are compared with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from openset.data.readers.records import Records
from openset.data.readers.source import Source
from openset.data.writer import as_arrow
from openset.features.fitted import FittedFeatures, read_features
from openset.features.maker import FeatureMaker
from openset.pipeline.batch_facts import FactCounter
from openset.pipeline.choose_columns import carried_columns
from openset.pipeline.fit_profile import FitProfile, read_profile
from openset.pipeline.load import stream
from openset.pipeline.result import FEATURES, PROFILE, load_model, read_summary
from openset.pipeline.scored_batches import scored_batches, scoring_threads
from openset.pipeline.scored_table import ScoredTable, predictions, scored_table
from openset.pipeline.settings import RunSettings
from openset.pipeline.summary import ResultSummary


@dataclass(frozen=True, eq=False)
class LoadedRun:
    """What scoring needs of a run; ``settings`` name the id column and the columns to carry."""

    summary: ResultSummary
    settings: RunSettings
    profile: FitProfile | None
    fitted: FittedFeatures | None
    model: Any
    maker: FeatureMaker

    @classmethod
    def load(
        cls,
        run: str | PathLike[str],
        *,
        id: str | None = None,
        carry: str | Sequence[str] | None = None,
        fdr: float | None = None,
        max_density_ratio: float | None = None,
    ) -> LoadedRun:
        """Load a folder that ``openset fit`` wrote; ``id`` and ``max_density_ratio`` replace the run's own."""
        summary, profile = read_summary(run), read_profile(Path(run) / PROFILE)
        own = summary.settings
        carried = (carry,) if isinstance(carry, str) else None if carry is None else tuple(carry)
        ratio = own.max_density_ratio if max_density_ratio is None else max_density_ratio
        id = own.id if id is None else id
        settings = replace(own, fdr=fdr, max_density_ratio=ratio, id=id, carry=carried)
        fitted = read_features(Path(run) / FEATURES)
        maker = FeatureMaker(settings.encoder, fitted=fitted)
        return cls(summary, settings, profile, fitted, load_model(run), maker)

    @property
    def encodes(self) -> bool:
        """Whether text or images are encoded."""
        return self.settings.text is not None or self.settings.image is not None

    def threads(self) -> AbstractContextManager[int]:
        """The context to score in, and how many batches to score at the same time."""
        return scoring_threads(self.model, self.settings)

    def batches(self, source: Source, batch_rows: int) -> Iterator[Records]:
        """The rows of ``source``; a column that is missing is an error at once."""
        return stream(self.settings, source, batch_rows, self.fitted)

    def tables(self, batches: Iterator[Records], workers: int, counter: FactCounter) -> Iterator[ScoredTable]:
        """Every batch scored, in order; the facts of its rows are added to ``counter``."""
        return scored_batches(self.model, self.maker, batches, workers, counter, self.settings.id)

    def no_rows(self, source: Source, schema: Any) -> Any:
        """What is scored of a source with columns and no rows: an Arrow table with the columns of any other.

        ``schema`` is that of the source in Arrow; a column that it lacks, from the name of a folder, is text.
        """
        import pyarrow as pa

        self.batches(source, 1)  # a column that is missing is an error here too
        types = {name: schema.field(name).type for name in schema.names}
        id_type = types.get(self.settings.id, pa.string())
        is_number = pa.types.is_integer(id_type) or pa.types.is_floating(id_type)
        ids = np.zeros(1, id_type.to_pandas_dtype()) if is_number else np.array([""], object)
        carried = {
            name: pa.nulls(1, types.get(name, pa.string())) for name in carried_columns(self.settings, source)
        }
        records = Records(np.arange(1), ids=None if self.settings.id is None else ids, carried=carried)
        found = predictions(self.model, np.zeros((1, self.model.n_features_in_), np.float32))
        one = scored_table(self.model, found, records, self.settings.id)
        return pa.table({name: as_arrow(column) for name, column in one.columns().items()}).slice(0, 0)
