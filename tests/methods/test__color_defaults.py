from __future__ import annotations

import math

from openset import CoLOR
from openset.methods._color_defaults import (
    BACKBONE_GROUPS,
    FAST_GROUPS,
    FAST_PATIENCE,
    LOW_GRID,
    NARROW_GROUPS,
    PATIENCE,
    WIDE_GROUPS,
)
from openset.methods._presets import PAPER_GRID, WIDE, Group


def test_the_grid_is_lower_than_the_papers():
    assert len(LOW_GRID) == len(PAPER_GRID) == 10 and list(LOW_GRID) == sorted(LOW_GRID)
    assert LOW_GRID[0] == 0.002 and LOW_GRID[-1] == 0.25 and CoLOR().grid == LOW_GRID


def test_groups_are_those_of_decision_16():
    assert Group() == (math.inf, 0.0, 0.6)
    assert NARROW_GROUPS == ((0.1, 0, 0.6), (0.3, 0, 0.6), (1.0, 0, 0.6)) and WIDE == 256
    assert WIDE_GROUPS == ((0.1, 0, 1), (0.3, 0.2, 0.6), (0.1, 0.2, 1)) and BACKBONE_GROUPS == ((1, 0, 1),)
    assert FAST_GROUPS == {False: ((0.1, 0, 0.6),), True: ((0.1, 0.2, 1),)}


def test_a_fast_fit_waits_for_fewer_evaluation_points():
    assert (PATIENCE, FAST_PATIENCE) == (4, 3)
