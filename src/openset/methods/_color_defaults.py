"""What CoLOR's "auto" becomes: its grid, and its groups of networks."""

from __future__ import annotations

from openset.methods._presets import Group

LOW_GRID = (0.002, 0.005, 0.01, 0.02, 0.04, 0.06, 0.09, 0.13, 0.18, 0.25)

NARROW_GROUPS = (Group(0.1), Group(0.3), Group(1.0))
"""CoLOR's groups on tables. With sharpness 1 heads end by calling nothing novel; see docs/decisions/0016."""
WIDE_GROUPS = (Group(0.1, 0.0, 1.0), Group(0.3, 0.2, 0.6), Group(0.1, 0.2, 1.0))
BACKBONE_GROUPS = (Group(1.0, 0.0, 1.0),)
"""One group, because training a backbone for every group is too slow; see docs/decisions/0033 for the bound."""
FAST_GROUPS = {False: (Group(0.1),), True: (Group(0.1, 0.2, 1.0),)}
"""For ``effort="fast"``, on narrow (False) and wide (True) tables; see docs/decisions/0022."""
PATIENCE, FAST_PATIENCE = 4, 3
"""Training stops after this many evaluation points without a better choice."""
FAST_ROWS = 500
"""Rows of each domain in which ``effort="fast"`` looks for a move of the whole batch."""
