"""The paper's impossibility lemma as two finite problems, in exact rational arithmetic.

Four states, two known classes, α = ½. In the first problem known target rows are at state 3 and novel ones at
state 4; in the second it is the other way round. A learner observes the same in both.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from openset._utils.params import check_number

Distribution = tuple[Fraction, ...]
Rule = tuple[int, ...]
STATES = range(4)
NOVEL = 2  # labels 0 and 1 are the known classes


@dataclass(frozen=True)
class FiniteProblem:
    """An open-set problem on four states; known target rows are all of class 0."""

    source_given_class: tuple[Distribution, Distribution]
    source_class: Distribution
    target_known: Distribution
    target_novel: Distribution
    alpha: Fraction

    @property
    def source_joint(self) -> tuple[Distribution, ...]:
        """P_S(x, y), one row per class."""
        pairs = zip(self.source_class, self.source_given_class, strict=True)
        return tuple(tuple(weight * p for p in row) for weight, row in pairs)

    @property
    def source_states(self) -> Distribution:
        """P_S(x)."""
        return tuple(sum(column, Fraction(0)) for column in zip(*self.source_joint, strict=True))

    @property
    def target_states(self) -> Distribution:
        """P_T(x), known and novel rows mixed: all that a learner observes of the target."""
        pairs = zip(self.target_known, self.target_novel, strict=True)
        return tuple((1 - self.alpha) * known + self.alpha * novel for known, novel in pairs)

    @property
    def observed(self) -> tuple[tuple[Distribution, ...], Distribution]:
        """All that a learner observes: P_S(x, y) and P_T(x)."""
        return self.source_joint, self.target_states

    def novelty_risk(self, rule: Rule) -> Fraction:
        """Target risk of a rule that answers 1 for novel and 0 for known at each state."""
        wrong_known = sum((self.target_known[x] for x in STATES if rule[x] == 1), Fraction(0))
        wrong_novel = sum((self.target_novel[x] for x in STATES if rule[x] == 0), Fraction(0))
        return (1 - self.alpha) * wrong_known + self.alpha * wrong_novel

    def class_risk(self, rule: Rule) -> Fraction:
        """Target risk of a rule that answers one of the three classes at each state."""
        wrong_known = sum((self.target_known[x] for x in STATES if rule[x] != 0), Fraction(0))
        wrong_novel = sum((self.target_novel[x] for x in STATES if rule[x] != NOVEL), Fraction(0))
        return (1 - self.alpha) * wrong_known + self.alpha * wrong_novel

    @property
    def best_rule(self) -> Rule:
        """h*: novel exactly where novel rows are, class 0 elsewhere."""
        return tuple(NOVEL if self.target_novel[x] > 0 else 0 for x in STATES)

    @property
    def strong_positivity(self) -> bool:
        """On states 1 and 2: no novel mass, and [P_S(x | y)] diagonal with no zero there (full rank)."""
        block = [[self.source_given_class[y][x] for y in (0, 1)] for x in (0, 1)]
        diagonal = block[0][1] == block[1][0] == 0 and block[0][0] > 0 and block[1][1] > 0
        return diagonal and self.target_novel[0] == self.target_novel[1] == 0

    @property
    def support_inclusion(self) -> bool:
        """Known target rows occur only at states where source rows do."""
        return all(self.source_states[x] > 0 for x in STATES if self.target_known[x] > 0)

    @property
    def source_false_positives(self) -> Fraction:
        """P_S(h* answers novel): separability requires zero, and it is not zero here."""
        return sum((self.source_states[x] for x in STATES if self.best_rule[x] == NOVEL), Fraction(0))


@dataclass(frozen=True)
class Impossibility:
    """The two problems, and the mean risk over both of every possible rule."""

    first: FiniteProblem
    second: FiniteProblem
    novelty_risks: dict[Rule, Fraction]
    """Of the 16 known/novel rules; each has mean risk ½ exactly."""
    class_risks: dict[Rule, Fraction]
    """Of the 81 three-class rules; none has a mean risk below ½."""

    @property
    def same_observations(self) -> bool:
        """Whether a learner observes the same in both problems, at any sample size."""
        return self.first.observed == self.second.observed

    @property
    def opposite_answers(self) -> bool:
        """Whether the right answers differ at every state where target rows occur."""
        visited = [x for x in STATES if self.first.target_states[x] > 0]
        return all((self.first.best_rule[x] == NOVEL) != (self.second.best_rule[x] == NOVEL) for x in visited)


def impossibility(epsilon: float | Fraction = Fraction(1, 10)) -> Impossibility:
    """Build both problems of the lemma and enumerate all rules.

    >>> lemma = impossibility(0.1)
    >>> lemma.same_observations, lemma.opposite_answers
    (True, True)
    >>> set(lemma.novelty_risks.values()), min(lemma.class_risks.values())
    ({Fraction(1, 2)}, Fraction(1, 2))
    >>> lemma.first.source_false_positives, lemma.second.source_false_positives
    (Fraction(4, 45), Fraction(1, 90))
    """
    if not isinstance(epsilon, Fraction):
        check_number("epsilon", epsilon, high=0.5, open_low=True, open_high=True)
        # 0.1 means one tenth, not the nearest binary fraction
        epsilon = Fraction(str(float(epsilon)))
    if not 0 < epsilon < Fraction(1, 2):
        raise ValueError(f"epsilon={epsilon} is not valid: expected a number in (0, 0.5).")
    zero, one = Fraction(0), Fraction(1)
    source = ((1 - epsilon, zero, zero, epsilon), (zero, 1 - epsilon, epsilon, zero))
    classes = ((1 - 2 * epsilon) / (1 - epsilon), epsilon / (1 - epsilon))
    third, fourth = (zero, zero, one, zero), (zero, zero, zero, one)
    first = FiniteProblem(source, classes, third, fourth, Fraction(1, 2))
    second = FiniteProblem(source, classes, fourth, third, Fraction(1, 2))
    return Impossibility(
        first,
        second,
        {rule: (first.novelty_risk(rule) + second.novelty_risk(rule)) / 2 for rule in _rules(2)},
        {rule: (first.class_risk(rule) + second.class_risk(rule)) / 2 for rule in _rules(3)},
    )


def _rules(answers: int) -> Iterator[Rule]:
    return itertools.product(range(answers), repeat=len(STATES))
