"""Distances of a row to source, in several spaces: voices that hear what density ratios do not.

Each voice is the distance to the fifth nearest source row in one space: the rows, columns of unit variance,
principal components, and the hidden layer of classifiers of the known classes. Source rows are scored without the
rows of their own fold, so that their scores are those of rows that the voice has not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from openset.learn.architecture import Architecture
from openset.learn.batches import ScaledRows, head_outputs
from openset.learn.network import Network
from openset.learn.seeds import child_seed
from openset.learn.train import MemberPlan, Settings, train
from openset.methods._known_classes import ClassObjective
from openset.problem import Floats, Rows
from openset.stats.components import find_components
from openset.stats.folds import Fold, make_folds
from openset.stats.neighbours import evenly_spaced, kth_distance
from openset.stats.scaling import Scaling

NEIGHBOUR = 5
FOLDS = 3
MOST_ROWS = 5000
"""Rows of each domain that voices are fitted on and distances are measured to; more are thinned evenly."""
COMPONENTS = (15, 30)
_BLOCK = 8192
"""Rows that are measured at a time, which bounds memory."""
_LIMIT = 5.0
"""Standardised columns are cut off here, so that one wild column does not decide."""
_HIDDEN, _EPOCHS, _BATCH, _MOST_STEPS = 128, 40, 128, 1000


@dataclass(frozen=True, eq=False)
class Views:
    """The same rows as they are and after alignment; source rows, and rows that did not move, are not aligned."""

    rows: NDArray[np.floating]
    aligned: NDArray[np.floating]

    @property
    def is_aligned(self) -> bool:
        """Whether the two differ."""
        return self.aligned is not self.rows

    def take(self, wanted: Rows | slice) -> Views:
        """Return some of the rows."""
        rows = self.rows[wanted]
        return Views(rows, self.aligned[wanted] if self.is_aligned else rows)

    def in_blocks(self, function: Callable[[Views], NDArray[Any]]) -> NDArray[Any]:
        """Return the values of a function of rows, computed for some rows at a time."""
        starts = range(0, max(len(self.rows), 1), _BLOCK)
        return np.concatenate([function(self.take(slice(start, start + _BLOCK))) for start in starts])


@dataclass(frozen=True, eq=False)
class Space:
    """Where distances are measured: (x − centre) · factor, cut off at ± limit, along some axes."""

    centre: Floats
    factor: Floats
    limit: float
    axes: Floats | None
    takes_aligned: bool

    @classmethod
    def of(cls, scaling: Scaling, n_features: int, *, takes_aligned: bool = False) -> Space:
        """Return the space of scaled rows."""
        centre, factor = (
            np.broadcast_to(np.asarray(part, dtype=np.float64), n_features).copy()
            for part in (scaling.mean, scaling.factor)
        )
        return cls(centre, factor, np.inf, None, takes_aligned)

    def along_components(self, source: Views, target: Views, number: int) -> Space:
        """Return this space along the first principal components of both domains; all of it if it has no more."""
        first, second = self.apply(source), self.apply(target)
        if number >= min(first.shape[1], 2 * len(first), 2 * len(second)):
            return self
        return replace(self, axes=find_components(first, second, number, seed=0).axes)

    def apply(self, views: Views) -> Floats:
        """Return the rows in this space."""
        rows = views.aligned if self.takes_aligned else views.rows
        scaled = (rows.astype(np.float64) - self.centre) * self.factor
        if np.isfinite(self.limit):
            np.clip(scaled, -self.limit, self.limit, out=scaled)
        return scaled if self.axes is None else scaled @ self.axes


@dataclass(frozen=True, eq=False)
class RowDistance:
    """Distance to the fifth nearest source row in a space."""

    name: str
    space: Space
    references: NDArray[np.float32]

    @property
    def takes_aligned(self) -> bool:
        """Whether it hears rows after alignment."""
        return self.space.takes_aligned

    def apply(self, views: Views) -> Floats:
        """Return the distance of each row."""
        return views.in_blocks(lambda part: kth_distance(self.references, self.space.apply(part), NEIGHBOUR))


@dataclass(frozen=True, eq=False)
class HiddenDistance:
    """Mean distance over classifiers to the fifth nearest source row in their length-normalised hidden layers.

    Each member's distance is centred and scaled by those of the source rows that it did not train on.
    """

    name: str
    architecture: Architecture
    weights: Mapping[str, NDArray[Any]]
    scaling: Scaling
    references: Sequence[NDArray[np.float32]]
    centres: Floats
    scales: Floats
    takes_aligned = False

    def apply(self, views: Views) -> Floats:
        """Return the distance of each row."""
        network = Network.from_arrays(self.architecture, self.weights, None, "cpu")

        def mean_distance(part: Views) -> Floats:
            layers = _unit_layers(network, ScaledRows(part.rows, self.scaling))
            by_member = [
                kth_distance(r, layer, NEIGHBOUR) for r, layer in zip(self.references, layers, strict=True)
            ]
            return np.asarray(((np.stack(by_member).T - self.centres) / self.scales).mean(axis=1))

        return views.in_blocks(mean_distance)


Distance = RowDistance | HiddenDistance


@dataclass(frozen=True, eq=False)
class Heard:
    """A voice with its scores of source rows, each without the row's own fold."""

    voice: Distance
    source: Floats


def listen(
    source: Views,
    target: Views,
    y: NDArray[np.intp],
    scaling: Scaling,
    components: Space,
    seed: np.random.SeedSequence,
) -> list[Heard]:
    """Return every voice, fitted on source rows; target rows only decide which components there are.

    ``components`` is the space of the components of rows as they are.
    """
    folds = make_folds(y, members=FOLDS, share=1 / FOLDS, random=np.random.default_rng(child_seed(seed, 0)))
    heard = [
        _hear_rows(name, space, source, folds)
        for name, space in _spaces(source, target, scaling, components).items()
    ]
    # classes of one row are never held out, so a source of such classes teaches no layer
    if y.max() > 0 and min(len(fold.validation) for fold in folds) >= NEIGHBOUR:
        heard.append(_hear_hidden(source, y, scaling, folds, child_seed(seed, 1)))
    return heard


def _spaces(source: Views, target: Views, scaling: Scaling, components: Space) -> dict[str, Space]:
    rows = Space.of(scaling, source.rows.shape[1])
    variances = [views.rows.var(axis=0, dtype=np.float64) for views in (source, target)]
    spread = np.sqrt(np.mean(variances, axis=0))
    varying = spread > 1e-9 * np.maximum(1.0, np.abs(rows.centre))
    by_column = np.divide(1.0, spread, out=np.zeros_like(spread), where=varying)
    spaces = {"rows": rows, "columns": Space(rows.centre, by_column, _LIMIT, None, takes_aligned=False)}
    if target.is_aligned:  # a move is the first component of rows as they are
        whole = Space.of(scaling, source.rows.shape[1], takes_aligned=True)
        components = whole.along_components(source, target, max(COMPONENTS))
        if components.axes is None:  # few columns: some voice must hear the aligned rows
            spaces["aligned rows"] = whole
    if components.axes is not None:
        for number in COMPONENTS:
            spaces[f"{number} components"] = replace(components, axes=components.axes[:, :number])
    return spaces


def _hear_rows(name: str, space: Space, source: Views, folds: Sequence[Fold]) -> Heard:
    rows = space.apply(source)
    own = _without_itself(rows, _never_held_out(folds, len(rows)))
    for fold in folds:
        own[fold.validation] = kth_distance(rows[fold.train], rows[fold.validation], NEIGHBOUR)
    return Heard(RowDistance(name, space, rows.astype(np.float32)), own)


def _never_held_out(folds: Sequence[Fold], n_rows: int) -> Rows:
    """Rows that are in no fold's validation rows: those of classes with very few rows."""
    return np.setdiff1d(np.arange(n_rows), np.concatenate([fold.validation for fold in folds]))


def _without_itself(rows: Floats, wanted: Rows) -> Floats:
    """Distances of the wanted rows to their fifth nearest other row; 0 for the others."""
    found = np.zeros(len(rows))
    if len(wanted):  # the nearest row is the row itself
        found[wanted] = kth_distance(rows, rows[wanted], NEIGHBOUR + 1)
    return found


def _hear_hidden(
    source: Views,
    y: NDArray[np.intp],
    scaling: Scaling,
    folds: Sequence[Fold],
    seed: np.random.SeedSequence,
) -> Heard:
    rows = ScaledRows(source.rows, scaling)
    trained = _train_classifiers(rows, y, folds, seed)
    layers = _unit_layers(Network.from_arrays(trained.architecture, trained.weights, None, "cpu"), rows)
    never = _never_held_out(folds, len(y))
    own, kept, centres, scales = np.empty(len(y)), [], np.empty(len(folds)), np.empty(len(folds))
    for member, (fold, layer) in enumerate(zip(folds, layers, strict=True)):
        distance = kth_distance(layer[fold.train], layer[fold.validation], NEIGHBOUR)
        centres[member], high = np.quantile(distance, [0.5, 0.9])
        scales[member] = max(high - centres[member], 1e-9)
        own[fold.validation] = (distance - centres[member]) / scales[member]
        if member == 0:
            own[never] = (_without_itself(layer, never)[never] - centres[0]) / scales[0]
        kept.append(layer[fold.train].astype(np.float32))
    voice = HiddenDistance(
        "hidden layer", trained.architecture, dict(trained.weights), scaling, tuple(kept), centres, scales
    )
    return Heard(voice, own)


def _train_classifiers(
    rows: ScaledRows, y: NDArray[np.intp], folds: Sequence[Fold], seed: np.random.SeedSequence
) -> Any:
    """Train one small classifier of the known classes for each fold, for some epochs and without a choice."""
    none = np.empty(0, np.intp)
    plans = [
        MemberPlan(child_seed(seed, member), fold.train, fold.validation, none, none)
        for member, fold in enumerate(folds)
    ]
    steps = min(_MOST_STEPS, _EPOCHS * -(-len(folds[0].train) // _BATCH))
    settings = Settings(
        hidden=_HIDDEN,
        learning_rate=1e-3,
        l2=1e-4,
        clip=5.0,
        batch_size=_BATCH,
        max_steps=steps,
        evaluate_every=steps,
        device="cpu",
        tol=0.0,
    )
    return train(ClassObjective(int(y.max()) + 1), plans, rows, y, None, settings, identity="hidden layer voice")


def _unit_layers(network: Network, rows: ScaledRows) -> list[NDArray[np.float64]]:
    layers = head_outputs(network, rows, representation=True)["shared"]
    return [normalize(layer.astype(np.float64)) for layer in layers]


def thinned(n_rows: int) -> Rows:
    """Return all rows, or evenly spaced ones."""
    return evenly_spaced(n_rows, MOST_ROWS)
