"""What a run stores of the rows that it was fitted on, so that later batches can be compared with them.

The file ``profile.safetensors`` holds the ranges of the features, some hundred rows of source and of target, and,
as JSON in its header, the columns that the data had.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as dump_tensors

from openset._utils.files import write_atomically
from openset._utils.typed import read_as
from openset._version import __version__
from openset.data.readers.records import Records
from openset.features.maker import MadeFeatures
from openset.stats.ranges import Ranges, find_ranges
from openset.stats.row_sample import draw_sample
from openset.stats.scaling import Scaling, fit_scaling, moments

FORMAT_VERSION = 1
SAMPLE_ROWS = 500
"""Rows of each domain that are stored, and rows of a batch that are compared with them."""
_MOST_VALUES = 2**20
"""Values of a stored sample: rows of more than 2000 features are fewer."""
_FEWEST_ROWS = 100
_FARTHEST = 1e4
"""Scaled values are cut off here, so that a single wild value does not decide how rows are compared."""
_ABOUT = "openset_profile"


@dataclass(frozen=True)
class Columns:
    """The columns of the data: names of features, and what the columns of the target held (``number``, …).

    ``features`` has the name of every column of numbers, or of the one that holds vectors; none where rows were
    encoded. ``of_source`` names the columns of the source. ``typed`` is False where the target was a CSV file.
    """

    features: list[str] = field(default_factory=list)
    of_source: list[str] = field(default_factory=list)
    of_target: dict[str, str] = field(default_factory=dict)
    typed: bool = True

    def new_in(self, kinds: Mapping[str, str]) -> list[str]:
        """The columns that neither source nor target had."""
        known = {*self.of_source, *self.of_target}
        return [name for name in kinds if name not in known] if known else []

    def changed_in(self, kinds: Mapping[str, str], typed: bool) -> dict[str, tuple[str, str]]:
        """What columns held in the target and hold now, where that differs.

        A CSV file and one with types are not compared: of the same values, they may not tell the same.
        """
        then = self.of_target if typed == self.typed else {}
        return {name: (then[name], kind) for name, kind in kinds.items() if then.get(name, kind) != kind}


@dataclass(frozen=True, eq=False)
class FitProfile:
    """What later batches are compared with.

    ``ranges`` are those of source and target together, None for embeddings and other rows without named
    features. ``source_rows`` and ``target_rows`` are samples, scaled by ``scaling``, in float32.
    """

    columns: Columns
    ranges: Ranges | None
    scaling: Scaling
    source_rows: NDArray[np.float32]
    target_rows: NDArray[np.float32]

    @property
    def feature_names(self) -> list[str]:
        """A name for every feature, ``column[index]`` in a column of vectors; none where there are no ranges."""
        names = self.columns.features
        if self.ranges is None or len(names) == len(self.ranges.low):
            return [] if self.ranges is None else names
        return [f"{names[0]}[{index}]" for index in range(len(self.ranges.low))]

    def scaled(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Rows as ``source_rows`` and ``target_rows`` are."""
        return _scaled(self.scaling, rows)


def make_profile(
    made: MadeFeatures, made_target: MadeFeatures, source: Records, target: Records, *, seed: int = 0
) -> FitProfile:
    """The profile of a fit on these features, which were made of these records."""
    X, X_target, names = _flat(made.X), _flat(made_target.X), list(made_target.names)
    values, values_target = made.values, made_target.values
    columns = Columns(names, list(source.kinds), dict(target.kinds), target.typed)
    with np.errstate(over="ignore", invalid="ignore"):
        # columns of a table have their own units; the features of a vector have one
        scaling = fit_scaling(moments(X), moments(X_target), "feature" if len(names) > 1 else "auto")
    size = min(SAMPLE_ROWS, max(_FEWEST_ROWS, _MOST_VALUES // X.shape[1]))
    samples = [draw_sample(rows, np.arange(len(rows)), size, seed=seed).rows for rows in (X, X_target)]
    return FitProfile(
        columns=columns,
        ranges=None
        if values is None or values_target is None or values.ndim != 2
        else find_ranges(values).joined(find_ranges(values_target)),
        scaling=scaling,
        source_rows=_scaled(scaling, samples[0]),
        target_rows=_scaled(scaling, samples[1]),
    )


@dataclass(frozen=True)
class _About:
    """The header of the file."""

    openset_version: str
    format_version: int
    columns: Columns
    scaling: str
    n_rows: int
    precision: str


def write_profile(profile: FitProfile, path: Path) -> None:
    """Write a profile to a file of safetensors."""
    ranges, scaling = profile.ranges, profile.scaling
    about = _About(
        openset_version=__version__,
        format_version=FORMAT_VERSION,
        columns=profile.columns,
        scaling=scaling.rule,
        n_rows=0 if ranges is None else ranges.n_rows,
        precision="float64" if ranges is None else ranges.precision.name,
    )
    tensors: dict[str, NDArray[Any]] = {
        "mean": scaling.mean,
        "factor": scaling.factor,
        "source_rows": profile.source_rows,
        "target_rows": profile.target_rows,
    }
    if ranges is not None:
        tensors |= {"low": ranges.low, "high": ranges.high}
    header = {_ABOUT: json.dumps(asdict(about), ensure_ascii=False)}
    contiguous = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    write_atomically(path, dump_tensors(contiguous, metadata=header))


def read_profile(path: Path) -> FitProfile | None:
    """The profile in a file; None if there is no file, as in the run of an earlier openset."""
    if not path.exists():
        return None
    try:
        with safe_open(path, "numpy") as file:
            header = (file.metadata() or {}).get(_ABOUT, "")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
        about = read_as(_About, _parsed(header), "its header")
        return _restored(about, tensors)
    except (SafetensorError, ValueError, TypeError, KeyError) as error:
        reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error).rstrip(".")
        raise ValueError(
            f"{path} is damaged: {reason}. Fit again, or delete it to score without a comparison with the fit."
        ) from None


def _parsed(header: str) -> Any:
    try:
        return json.loads(header)
    except ValueError:
        raise ValueError("it has no header of openset") from None


def _restored(about: _About, tensors: Mapping[str, NDArray[Any]]) -> FitProfile:
    if about.format_version > FORMAT_VERSION:
        raise ValueError(f"openset {about.openset_version} wrote it in a later format: upgrade openset")
    source, target = (tensors[name].astype(np.float32, copy=False) for name in ("source_rows", "target_rows"))
    scaling = Scaling(tensors["mean"], tensors["factor"], about.scaling)
    per_feature = [scaling.mean, scaling.factor]
    ranges = None
    if "low" in tensors:
        ranges = Ranges(tensors["low"], tensors["high"], about.n_rows, _float_type(about.precision))
        per_feature += [ranges.low, ranges.high]
    shapes = {source.shape[1:], target.shape[1:], *(tensor.shape for tensor in per_feature)}
    if len(shapes) > 1 or source.ndim != 2 or not len(source) or not len(target):
        raise ValueError("its arrays are not of the same features")
    if ranges is not None and len(about.columns.features) not in (1, len(ranges.low)):
        raise ValueError(f"it names {len(about.columns.features)} features and has {len(ranges.low)}")
    if not all(np.isfinite(tensors[name]).all() for name in tensors):
        raise ValueError("it holds NaN or infinity")
    return FitProfile(about.columns, ranges, scaling, source, target)


def _float_type(name: str) -> np.dtype[Any]:
    if name not in ("float16", "float32", "float64"):
        raise ValueError(f"{name!r} is no type of features")
    return np.dtype(name)


def _flat(rows: NDArray[Any]) -> NDArray[Any]:
    """Rows of more than one axis, such as images, as rows of numbers."""
    return rows.reshape(len(rows), math.prod(rows.shape[1:]))  # also of no rows


def _scaled(scaling: Scaling, rows: NDArray[Any]) -> NDArray[np.float32]:
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.asarray(scaling.apply(_flat(rows).astype(np.float64)))
    near = np.clip(np.nan_to_num(scaled, nan=0.0), -_FARTHEST, _FARTHEST)
    return near.astype(np.float32)
