"""Words that speak for "new": common in the texts ranked highest, rare in the others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

FEWEST = 3
"""Texts of the highest that a word must be in."""
TELLING = 1.0
"""The least logarithm of the ratio of shares: e times as common."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_MOST_LETTERS = 4000
_MOST_PIECES = 600


def telling_words(highest: Iterable[str], others: Iterable[str]) -> dict[str, float]:
    """How many times as common a word is in the highest texts as in the others, as a logarithm; those that tell.

    >>> found = telling_words(["the toy box", "a toy car", "toy"], ["the car", "a box", "the mill"])
    >>> sorted(found)
    ['toy']
    """
    inside, n_inside = _counts(highest)
    outside, n_outside = _counts(others)
    found = {
        word: float(np.log((count + 0.5) / (n_inside + 1)) - np.log((outside[word] + 0.5) / (n_outside + 1)))
        for word, count in inside.items()
        if count >= FEWEST
    }
    return {word: weight for word, weight in found.items() if weight >= TELLING}


def marked(text: str, words: Mapping[str, float]) -> list[tuple[str, int]]:
    """A text in pieces, each with how strongly it speaks for "new": 0 for not at all, to 3.

    >>> marked("A toy car", {"toy": 1.2})
    [('A ', 0), ('toy', 1), (' car', 0)]
    """
    pieces: list[tuple[str, int]] = []
    end = 0
    for match in _WORD.finditer(text):
        weight = words.get(match.group().lower())
        if weight is None or len(pieces) >= _MOST_PIECES:
            continue
        if match.start() > end:
            pieces.append((text[end : match.start()], 0))
        pieces.append((match.group(), min(3, int(weight))))
        end = match.end()
    return [*pieces, (text[end:], 0)] if end < len(text) else pieces


def _counts(texts: Iterable[str]) -> tuple[Counter[str], int]:
    """In how many texts each word is, and how many texts there are."""
    counts: Counter[str] = Counter()
    n = 0
    for text in texts:
        counts.update({word.lower() for word in _WORD.findall(text[:_MOST_LETTERS])})
        n += 1
    return counts, n
