"""How far several people agree beyond chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations


def mean_kappa(answers: Mapping[int, Mapping[str, bool]]) -> tuple[float | None, int]:
    """Cohen's κ on new or known, averaged over pairs of people by their common rows; and how many those are.

    ``answers`` has, for each row, what each person said. None where no two people answered for the same row.

    >>> mean_kappa({0: {"a": True, "b": True}, 1: {"a": False, "b": False}, 2: {"a": True}})
    (1.0, 2)
    """
    people = sorted({person for row in answers.values() for person in row})
    total, weight = 0.0, 0
    for one, other in combinations(people, 2):
        both = [(row[one], row[other]) for row in answers.values() if one in row and other in row]
        if both:
            total += len(both) * kappa(both)
            weight += len(both)
    common = sum(len(row) > 1 for row in answers.values())
    return (total / weight if weight else None), common


def kappa(pairs: Sequence[tuple[bool, bool]]) -> float:
    """Cohen's κ of two people; 1 where both gave one and the same answer throughout.

    >>> kappa([(True, True), (True, False), (False, False), (False, True)])
    0.0
    """
    n = len(pairs)
    agree = sum(a == b for a, b in pairs) / n
    first, second = (sum(pair[i] for pair in pairs) / n for i in (0, 1))
    chance = first * second + (1 - first) * (1 - second)
    return 1.0 if chance == 1 else (agree - chance) / (1 - chance)
