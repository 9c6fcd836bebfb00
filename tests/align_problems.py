"""Generated source and target rows for the tests of ``openset.align``."""

from __future__ import annotations

import numpy as np


def make_classes(n=600, *, n_classes=3, n_columns=12, shares=None, seed=0):
    """Rows of well separated classes with unit noise, and their classes."""
    rng = np.random.default_rng(seed)
    y = rng.choice(n_classes, size=n, p=shares)
    return 8 * np.eye(n_classes, n_columns)[y] + rng.normal(size=(n, n_columns)), y


def random_offsets(n_classes=3, n_columns=12, *, size=2.0, seed=1):
    """One offset for each class; ``size`` is the standard deviation in a column."""
    return size * np.random.default_rng(seed).normal(size=(n_classes, n_columns))
