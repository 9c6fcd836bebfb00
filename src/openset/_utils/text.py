"""Text for people: short lists, short values, readable names, and the name that was probably meant."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


def listed(items: Iterable[Any], limit: int = 5) -> str:
    """The first few items, and how many more there are.

    >>> listed(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    names = [str(item) for item in items]
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def counted(number: int, what: str, several: str = "") -> str:
    """A number of things; ``several`` is the plural where that is not an s.

    >>> counted(1, "row"), counted(3, "row"), counted(2, "batch", "batches")
    ('1 row', '3 rows', '2 batches')
    """
    return f"{number} {what if number == 1 else several or f'{what}s'}"


def readable(name: str) -> str:
    """The name of a class as a person would say it; single letters of a path, as SUN397 has them, are left out.

    >>> readable("/b/bakery/shop"), readable("fruit_and_vegetables"), readable("b")
    ('bakery shop', 'fruit and vegetables', 'b')
    """
    parts = [part for part in name.split("/") if len(part) > 1] or [name]
    return " ".join(parts).replace("_", " ")


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The most similar of the known names, as the end of a message; empty if none is similar.

    >>> did_you_mean("methd", ["method", "label"]), did_you_mean("x", ["label"])
    (" Did you mean 'method'?", '')
    """
    close = get_close_matches(name, list(names), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def shortened(text: str, limit: int) -> str:
    """The text, cut to ``limit`` characters if it is longer.

    >>> shortened("open-set", 8), shortened("open-set", 5)
    ('open-set', 'open…')
    """
    return text if len(text) <= limit else text[: limit - 1] + "…"


_WIDTH = 78


def wrapped(head: str, text: str) -> list[str]:
    """Lines of a text behind ``head``, indented alike."""
    return textwrap.wrap(text, _WIDTH, initial_indent=head, subsequent_indent=" " * len(head)) or [head.rstrip()]
