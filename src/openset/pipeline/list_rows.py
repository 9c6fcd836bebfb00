"""Rows to act on: which are listed at a false discovery rate, how many, and what is said where none is."""

from __future__ import annotations

import math
from collections.abc import Mapping

from openset.pipeline.summary import ListedRows
from openset.stats.p_values import largest_p_value, smallest_fdr

CANNOT_TELL = 'the verdict is "cannot tell", so nothing can be promised of a list'
"""Why no row of a fit is listed whose verdict is that."""
LARGEST_FDR = 0.5
"""The largest rate that is suggested: a list with more known rows than new ones is of no use."""


def largest_listed(seen: Mapping[float, int], fdr: float, ratio: float, why_none: str = "") -> float:
    """The largest p-value of a listed row; below all where none may be listed. ``seen`` counts p-values."""
    limit = largest_p_value(list(seen), list(seen.values()), fdr, max_density_ratio=ratio)
    return 0.0 if why_none else limit


def listed_rows(
    seen: Mapping[float, int], fdr: float, ratio: float, *, n_source: int, n_called: int, why_none: str = ""
) -> ListedRows:
    """How many rows are listed at ``fdr`` or, if none is, what would make it some.

    ``seen`` counts the p-values of all rows; ``n_source`` rows were fitted on, and ``n_called`` rows are called
    new. ``why_none`` says why nothing may be listed, whatever the p-values are.

    >>> listed_rows({0.001: 5, 0.9: 95}, 0.1, 1.0, n_source=1000, n_called=5).rows
    5
    >>> listed_rows({0.01: 5, 0.9: 95}, 0.1, 1.0, n_source=400, n_called=5).source_rows_needed
    800
    """
    limit = largest_listed(seen, fdr, ratio, why_none)
    rows = sum(number for value, number in seen.items() if value <= limit)
    if rows or why_none:
        return ListedRows(fdr, ratio, rows, called=n_called, why_none=why_none)
    smallest = smallest_fdr(list(seen), list(seen.values()), max_density_ratio=ratio)
    is_useful = smallest is not None and smallest <= LARGEST_FDR
    needed = math.ceil(n_source * smallest / fdr) if smallest is not None and is_useful else None
    return ListedRows(fdr, ratio, 0, smallest if is_useful else None, needed, called=n_called)
