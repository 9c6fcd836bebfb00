"""Find out whether a target batch moved as a whole, and undo it. No torch, no target labels.

A moved batch is one in which the known rows moved too: another laboratory, a drifting instrument, a treatment.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> y = rng.integers(0, 3, 900)
>>> rows = 4 * np.eye(3, 8)[y] + rng.normal(size=(900, 8))
>>> X, X_target = rows[:500], rows[500:] + 5
>>> chosen = choose_alignment(X, y[:500], X_target)
>>> chosen.name, chosen.before.is_moved, chosen.after.is_moved
('classes', True, False)
>>> later = chosen.alignment.transform_target(X_target[:2])
>>> bool(np.abs(later - rows[500:502]).max() < 0.5)
True
"""

from __future__ import annotations

from openset.align.auto import ALIGNERS, Chosen, check_align, choose_alignment, get_aligner
from openset.align.base import Affine, Aligner, Alignment, Offsets
from openset.align.classes import ClassOffsets
from openset.align.clusters import ClusterOffsets
from openset.align.coral import Coral
from openset.align.moved import Move, find_move
from openset.align.none import NoAlignment
from openset.align.standardize import Standardize
from openset.align.tent import Tent
from openset.align.transport import Transport

__all__ = [
    "ALIGNERS",
    "Affine",
    "Aligner",
    "Alignment",
    "Chosen",
    "ClassOffsets",
    "ClusterOffsets",
    "Coral",
    "Move",
    "NoAlignment",
    "Offsets",
    "Standardize",
    "Tent",
    "Transport",
    "check_align",
    "choose_alignment",
    "find_move",
    "get_aligner",
]
