"""The models of a watch: fitted on one half of the source, so that the other half tells what is usual.

The reference rows, that other half, are never trained on, chosen on or calibrated on. A model that was fitted
after some batch is therefore fixed before its next batch and before the reference rows, and both can be compared.
"""

from __future__ import annotations

import io
import tempfile
import warnings
import zipfile
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.data.readers.open import open_source
from openset.errors import FitWarning
from openset.features.fitted import read_features
from openset.features.maker import FeatureMaker
from openset.pipeline.fit_profile import read_profile
from openset.pipeline.load import columns_of, read_source, read_target
from openset.pipeline.result import FEATURES, PROFILE, load_model, read_summary
from openset.pipeline.run import check_unchanged, keep_scales, make_estimator
from openset.pipeline.scored_table import assumed_ratio, predictions
from openset.stats.e_process import FEWEST_ROWS, References
from openset.stats.folds import keep_one_of_each, spread_positions, window
from openset.watch.records import ModelRecord

REFERENCE = 0.5
"""The share of source rows that no model of a watch is fitted on."""


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A model and what is stored of it."""

    model: Any
    record: ModelRecord


class WatchedRun:
    """A run whose later batches are watched: its settings, its profile, and its source read again when needed."""

    def __init__(self, folder: Path, *, progress: bool = False) -> None:
        self.folder = folder
        self.summary = read_summary(folder)
        self.settings = self.summary.settings
        self.fitted = read_features(folder / FEATURES)
        profile = read_profile(folder / PROFILE)
        if profile is None:
            raise ValueError(
                f"{folder} has no profile of its rows: an earlier openset wrote it. Fit again to watch batches."
            )
        self.profile = profile
        self.maker = FeatureMaker(self.settings.encoder, progress, self.fitted)

    @cached_property
    def max_density_ratio(self) -> float:
        """How many times as common the run assumes that a known kind may become."""
        return assumed_ratio(load_model(self.folder), self.settings.max_density_ratio)

    @cached_property
    def source(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Features and labels of the source, read again; an error if its file changed."""
        origin = self.summary.data.source
        check_unchanged("source", origin)
        records = read_source(self.settings, open_source(origin.path), columns_of(self.settings, self.fitted))
        return self.maker(records).X, np.asarray(records.y)

    def target(self) -> NDArray[Any]:
        """Features of the run's own target, read again; an error if its file changed."""
        origin = self.summary.data.target
        check_unchanged("target", origin)
        records = read_target(self.settings, open_source(origin.path), columns_of(self.settings, self.fitted))
        return self.maker(records).X

    @property
    def has_test(self) -> bool:
        """Whether the run's method tests for a new class, so that a batch can be fitted alone."""
        return self.summary.novelty_test is not None

    def fit_alone(self, rows: NDArray[Any], max_density_ratio: float | None) -> Any:
        """The run's method fitted on the whole source and these rows, as a run with them as target would be."""
        settings = self.settings
        if max_density_ratio is not None:
            settings = replace(settings, max_density_ratio=max_density_ratio)
        model = make_estimator(settings, progress=False)
        if self.fitted is not None:
            keep_scales(model, settings, self.fitted)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)
            return model.fit(*self.source, rows)

    def fit(self, target: NDArray[Any], *, number: int, after: int, names: list[str]) -> FittedModel:
        """Fit the run's method on one half of the source and these target rows."""
        model = make_estimator(self.settings, progress=False)
        if self.fitted is not None:
            keep_scales(model, self.settings, self.fitted)
        X, y = self.source
        references = fit_model(model, X, y, target, seed=int(self.settings.seed))
        record = ModelRecord(
            number=number,
            after=after,
            target=names,
            target_rows=len(target),
            thresholds=list(references.thresholds),
            n_reference=references.n_rows,
            called_share=float((model.target_predictions().novelty_score > model.threshold_).mean()),
            limit=_limit(model),
        )
        return FittedModel(model, record)


def fit_model(model: Any, X: NDArray[Any], y: NDArray[Any], target: NDArray[Any], *, seed: int = 0) -> References:
    """Fit a model on target rows and one half of the source; the thresholds come from the other half."""
    is_reference = reference_rows(y, seed)
    if int(is_reference.sum()) < FEWEST_ROWS:
        raise ValueError(
            f"the source has {len(y)} rows, and half of them are set aside to tell what is usual: a watch "
            f"needs at least {2 * FEWEST_ROWS + 1}."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # of the run's own fit, which said it
        model.fit(X[~is_reference], y[~is_reference], target)
    return References.of(predictions(model, X[is_reference]).novelty_score)


def reference_rows(y: NDArray[Any], seed: int = 0) -> NDArray[np.bool_]:
    """Which source rows are set aside: a random half of each class, of an only row none.

    >>> int(reference_rows(np.repeat(["a", "b"], [100, 41])).sum()) in (70, 71)
    True
    """
    groups = np.unique(y.astype(str), return_inverse=True)[1].astype(np.intp)
    random = np.random.default_rng([seed, len(y)])
    return keep_one_of_each(window(spread_positions(groups, random), 0.0, REFERENCE), groups)


def _limit(model: Any) -> str:
    """Why a model can prove nothing: its own target moved, or differs from source as a whole."""
    test = getattr(model, "novelty_test_", None)
    return test.limit if test is not None and test.limit in ("moved", "aligned", "column", "unmixed") else ""


def pack_model(model: Any) -> bytes:
    """A model's folder as one archive."""
    buffer = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(p for p in path.rglob("*") if p.is_file()):
                archive.write(file, file.relative_to(path).as_posix())
    return buffer.getvalue()


def unpack_model(content: bytes) -> Any:
    """The model in an archive that :func:`pack_model` made."""
    from openset.persistence.model import load

    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            archive.extractall(folder)
        return load(folder)
