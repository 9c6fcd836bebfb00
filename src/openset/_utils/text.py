"""Text for messages: short lists and short values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def listed(items: Iterable[Any], limit: int = 5) -> str:
    """The first few items, and how many more there are.

    >>> listed(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    names = [str(item) for item in items]
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def shortened(text: str, limit: int) -> str:
    """The text, cut to ``limit`` characters if it is longer.

    >>> shortened("open-set", 8), shortened("open-set", 5)
    ('open-set', 'open…')
    """
    return text if len(text) <= limit else text[: limit - 1] + "…"
