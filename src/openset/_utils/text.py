"""Words and lists for messages and tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def listed(items: Iterable[Any], limit: int = 5) -> str:
    """A few of many, for a message.

    >>> listed(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    names = [str(item) for item in items]
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
