"""Synthetic feature maps: rows of a table as foreground cells among background cells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.params import check_integer
from openset.shift.synthetic import BackgroundShift


def make_feature_maps(
    data: BackgroundShift,
    *,
    n_cells: int = 6,
    n_background: int = 2,
    backgrounds: Any = 3,
    random_state: Any = None,
) -> BackgroundShift:
    """The same problem on maps (n, cells, features), as a convolutional network would give them.

    Of each map's ``n_cells`` cells ``n_background`` are background, in random places; the others are the row
    itself, each with noise of half a unit. A background cell is drawn around one of the ``backgrounds``: an
    array of centres (m, features), or a number of centres to draw, as far from the origin as the rows are.

    >>> from openset import make_background_shift
    >>> table = make_background_shift(n_features=10, random_state=0)
    >>> make_feature_maps(table, random_state=0).X.shape
    (2000, 6, 10)
    """
    check_integer("n_cells", n_cells)
    check_integer("n_background", n_background, low=0)
    if n_background >= n_cells:
        raise ValueError(f"n_background={n_background} leaves no foreground among n_cells={n_cells} cells.")
    random = np.random.default_rng(random_state)
    width = data.X.shape[1]
    if np.ndim(backgrounds) == 0:
        check_integer("backgrounds", backgrounds)
        directions = random.standard_normal((backgrounds, width))
        lengths = np.linalg.norm(directions, axis=1, keepdims=True)
        centres = directions / lengths * np.median(np.linalg.norm(data.X, axis=1))
    else:
        centres = np.asarray(backgrounds, np.float64).reshape(-1, width)

    def maps(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        cells = np.repeat(rows[:, None, :], n_cells, axis=1)
        cells[:, :n_background] = centres[random.integers(len(centres), size=(len(rows), n_background))]
        cells += 0.5 * random.standard_normal(cells.shape)
        places = random.permuted(np.tile(np.arange(n_cells), (len(rows), 1)), axis=1)
        return np.take_along_axis(cells, places[:, :, None], axis=1)

    return replace(data, X=maps(data.X), X_target=maps(data.X_target), X_test=maps(data.X_test))
