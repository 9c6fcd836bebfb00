"""Outputs of heads on the rows of a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.learn.batches import ScaledRows, head_outputs
from openset.learn.network import Network
from openset.problem import Rows

HeadOutputs = dict[str, NDArray[np.float32]]
"""Outputs of every head, (members, rows, width)."""
References = list[NDArray[np.floating]]
"""For each member, the scores of its source validation rows; members' scores become ranks among these."""


@dataclass(frozen=True, eq=False)
class RowOutputs:
    """Head outputs of some rows, looked up by row number."""

    rows: Rows
    outputs: HeadOutputs

    def of(self, wanted: Rows) -> HeadOutputs:
        """Return the outputs of the wanted rows, in their order."""
        found = np.searchsorted(self.rows, wanted)
        return {name: values[:, found] for name, values in self.outputs.items()}


@dataclass(frozen=True, eq=False)
class FitHeads:
    """Outputs of every head on source validation rows and on all target rows."""

    source: RowOutputs
    target: HeadOutputs
    to_test: Any = None
    """CoLOR's scores for its test of a new class, where they are not those of the chosen head alone."""


@dataclass(frozen=True, eq=False)
class FittedNetwork:
    """A trained network with its source rows, before the estimator stores it."""

    network: Network
    source: ScaledRows

    def source_outputs(self, rows: Rows) -> HeadOutputs:
        """Return head outputs of some source rows."""
        return head_outputs(self.network, self.source, rows)
