"""How many times as common known kinds became, as far as clusters of source show it."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

MOST_CLUSTERS, ROWS_A_CLUSTER, FEWEST_ROWS = 40, 50, 10
_INNER = 0.9
"""Target rows count for a cluster if they are as near to its centre as this share of its source rows."""


def largest_growth(source: NDArray[np.float64], target: NDArray[np.float64], *, seed: int = 0) -> float:
    """The largest ratio, over clusters of source rows, of the share of target rows to that of source rows.

    Target rows that lie farther from a cluster's centre than nearly all of its source rows do not count, so that
    new rows far from source do not either. Clusters have fifty source rows on average, and forty are the most.

    >>> random = np.random.default_rng(0)
    >>> kinds = 9 * np.eye(3)
    >>> source = kinds[random.choice(3, size=900, p=[0.8, 0.1, 0.1])] + random.normal(size=(900, 3))
    >>> target = kinds[random.choice(3, size=900, p=[0.2, 0.7, 0.1])] + random.normal(size=(900, 3))
    >>> 5 < largest_growth(source, target) < 11
    True
    """
    number = int(np.clip(len(source) // ROWS_A_CLUSTER, 1, MOST_CLUSTERS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
        fitted = KMeans(number, n_init=1, random_state=seed).fit(source)
    (of_source, near), (of_target, away) = (
        (labels := fitted.predict(rows), np.linalg.norm(rows - fitted.cluster_centers_[labels], axis=1))
        for rows in (source, target)
    )
    largest = 1.0
    for cluster in range(number):
        own = near[of_source == cluster]
        if len(own) >= FEWEST_ROWS:
            limit = np.quantile(own, _INNER)
            known = (int((own <= limit).sum()) + 1) / len(source)
            largest = max(largest, int((away[of_target == cluster] <= limit).sum()) / len(target) / known)
    return float(largest)
