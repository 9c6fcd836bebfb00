"""A saved run that is loaded to score rows: its model, its features, and what batches are compared with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from openset.data.readers.records import Records
from openset.data.readers.source import Source
from openset.features.fitted import FittedFeatures, read_features
from openset.features.maker import FeatureMaker
from openset.pipeline.batch_facts import FactCounter
from openset.pipeline.fit_profile import FitProfile, read_profile
from openset.pipeline.load import stream
from openset.pipeline.result import FEATURES, PROFILE, load_model, read_summary
from openset.pipeline.scored_batches import scored_batches, scoring_threads
from openset.pipeline.scored_table import ScoredTable
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
