"""Offsets of clusters: each part of target moves to the same part of source."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.align.base import MAX_GATE_COMPONENTS, Offsets, Rows, check_rows
from openset.stats.components import Components, find_components


@dataclass(frozen=True)
class ClusterOffsets:
    """Move each cluster of target rows to the source rows of the same cluster. No labels are needed.

    Both domains are clustered together by k-means, the target rows as moved so far. A cluster is shared if the
    rarer domain has at least ``min_ratio`` times the share of rows of the other. A cluster of one domain alone,
    such as a new class, has no offset of its own: its rows follow the nearest shared clusters.

    Parameters
    ----------
    n_clusters : at most this many clusters; fewer for small data.
    n_iterations : how often rows are moved and clustered again.
    min_ratio : between 0 and 1; below it a cluster belongs to one domain alone.
    seed : of the principal components in which rows are clustered, and of k-means.
    """

    n_clusters: int = 20
    n_iterations: int = 3
    min_ratio: float = 0.15
    seed: int = 0
    name = "clusters"

    def fit(self, X: Any, X_target: Any, y: Any = None) -> Offsets:
        """Return one offset for each shared cluster; the overall offset if no cluster is shared."""
        X, X_target = check_rows(X, X_target)
        components = find_components(X, X_target, MAX_GATE_COMPONENTS, seed=self.seed)
        everywhere = np.zeros(len(X_target), np.intp)
        found = self._offsets(X, X_target, components, np.zeros(len(X), np.intp), everywhere, np.array([0]))
        for _ in range(self.n_iterations):
            moved = found.transform_target(X_target)
            source, target = self._cluster(components.of(X), components.of(moved))
            shared = self._shared(source, target)
            if len(shared) == 0:
                break
            found = self._offsets(X, X_target, components, source, target, shared)
        return found

    def _cluster(self, source: Rows, target: Rows) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        from sklearn.cluster import KMeans
        from sklearn.exceptions import ConvergenceWarning

        k = min(self.n_clusters, len(source) // 20 + 2, len(source) + len(target))
        means = KMeans(k, n_init=1, random_state=self.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different rows than clusters is no fault
            labels = means.fit_predict(np.concatenate([source, target]))
        return labels[: len(source)], labels[len(source) :]

    def _shared(self, source: NDArray[np.intp], target: NDArray[np.intp]) -> NDArray[np.intp]:
        k = 1 + max(source.max(), target.max())
        counts = np.stack([np.bincount(labels, minlength=k) for labels in (source, target)])
        shares = counts / counts.sum(axis=1, keepdims=True)
        is_shared = (shares.min(axis=0) > self.min_ratio * shares.max(axis=0)) & (counts.min(axis=0) >= 5)
        return np.flatnonzero(is_shared)

    def _offsets(
        self,
        X: Rows,
        X_target: Rows,
        components: Components,
        source: NDArray[np.intp],
        target: NDArray[np.intp],
        shared: NDArray[np.intp],
    ) -> Offsets:
        """Rows near the target mean of a cluster get its offset: softmax of −|x − mean|² / typical distance²."""
        means = np.stack([X_target[target == c].mean(axis=0) for c in shared])
        offsets = np.stack([X[source == c].mean(axis=0) for c in shared]) - means
        points, centres = components.of(X_target), components.of(means)
        squared = ((points[:, None] - centres) ** 2).sum(axis=2)
        width = float(np.median(squared.min(axis=1))) or 1.0
        # |x|² is the same for all clusters, so it cancels in the softmax, and what is left is linear in x
        weights = components.axes @ (2 * centres.T / width)
        return Offsets(self.name, components.centre, weights, -(centres**2).sum(axis=1) / width, offsets, False)
