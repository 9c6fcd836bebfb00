"""What a fitted model says of some rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Assessment:
    """What a fitted model says of some rows: what its methods of like names return.

    Labels are kept as places in ``labels``, which has the known classes and, fitted with a target, the novel
    label last: a million rows need no million strings.
    """

    labels: NDArray[Any]
    predicted_place: NDArray[np.intp]
    known_place: NDArray[np.intp]
    novelty_score: NDArray[np.float64]
    probabilities: NDArray[np.float64]

    @property
    def predicted(self) -> NDArray[Any]:
        """What each row is called."""
        return self.labels[self.predicted_place]

    @property
    def known(self) -> NDArray[Any]:
        """The known class that each row resembles most."""
        return self.labels[self.known_place]
