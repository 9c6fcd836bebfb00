"""What a review of the run says: rows that are known after all, and rows of new classes with their names."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from openset.pipeline.run import load_run
from openset.review.session import batch_of
from openset.review.state import reduce_events
from openset.review.store import NAME, Store
from openset.stats.group_matching import like_labelled
from openset.watch.fits import WatchedRun


@dataclass(frozen=True, eq=False)
class Labels:
    """Answered rows of the run's target, scaled as groups are compared; ``note`` says why there are none."""

    points: NDArray[np.float64]
    names: tuple[str, ...] = ()
    is_new: tuple[bool, ...] = ()
    codes: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))
    note: str = ""

    def of(self, points: NDArray[np.float64]) -> NDArray[np.intp]:
        """For each row the index of the name that rows like it were given, −1 for none."""
        return like_labelled(points, self.points, self.codes)

    def is_known(self, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which rows are like rows that a person confirmed as known."""
        codes = self.of(points)
        return (codes >= 0) & ~np.array([*self.is_new, False])[codes]

    def name_of(self, points: NDArray[np.float64]) -> tuple[str, bool] | None:
        """The name of a group, and whether it is new: that of most of its rows; None if most have none."""
        codes = self.of(points)
        counts = np.bincount(codes[codes >= 0], minlength=len(self.names))
        if not len(counts) or 2 * counts.max() < len(points):
            return None
        best = int(counts.argmax())
        return self.names[best], self.is_new[best]


NO_LABELS = Labels(np.empty((0, 0)))


def read_labels(run: WatchedRun) -> Labels:
    """The answers in the review's log of a run; none if there is no review, or its rows cannot be read again."""
    path = run.folder / NAME
    if not path.exists():
        return NO_LABELS
    try:
        result = load_run(run.folder)
        store = Store(path)
    except (ValueError, FileNotFoundError) as error:
        return Labels(np.empty((0, 0)), note=f"The review's answers are not used: {error}")
    try:
        state = reduce_events(store.events(batch_of(result)))
    finally:
        store.close()
    clear = [a for a in state.rows.values() if a.is_new is not None and a.label is not None]
    if not clear:
        return NO_LABELS
    kinds = list(dict.fromkeys((str(answer.label), bool(answer.is_new)) for answer in clear))
    codes = np.array([kinds.index((str(answer.label), bool(answer.is_new))) for answer in clear], dtype=np.intp)
    rows = np.asarray(result.features_target)[[answer.row for answer in clear]]
    points = run.profile.scaled(rows).astype(np.float64)
    return Labels(points, tuple(name for name, _ in kinds), tuple(new for _, new in kinds), codes)
