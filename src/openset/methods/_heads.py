"""Values that network methods share: outputs of heads on the rows of a fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openset.learn.batches import ScaledRows, head_outputs
from openset.learn.network import Network
from openset.problem import Rows

HeadOutputs = dict[str, NDArray[np.float32]]
"""Outputs of every head, (members, rows, width)."""
References = list[NDArray[np.floating]]
"""For each member the scores of its source validation rows, which several members' scores are ranked among."""


@dataclass(frozen=True, eq=False)
class RowOutputs:
    """Head outputs of some rows, found again by row number."""

    rows: Rows
    outputs: HeadOutputs

    def of(self, wanted: Rows) -> HeadOutputs:
        """The outputs of the wanted rows, in their order."""
        found = np.searchsorted(self.rows, wanted)
        return {name: values[:, found] for name, values in self.outputs.items()}


@dataclass(frozen=True, eq=False)
class FitHeads:
    """Every head's outputs on the rows of a fit: source validation rows, and all target rows."""

    source: RowOutputs
    target: HeadOutputs


@dataclass(frozen=True, eq=False)
class FittedNetwork:
    """A trained network and the source rows it was trained on, before the estimator holds them."""

    network: Network
    source: ScaledRows

    def source_outputs(self, rows: Rows) -> HeadOutputs:
        """Head outputs of some source rows."""
        return head_outputs(self.network, self.source, rows)
