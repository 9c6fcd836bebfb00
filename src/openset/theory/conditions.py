"""Evaluate every condition of the paper's Theorem 1, of its two restatements and of its two propositions."""

from __future__ import annotations

import math
from dataclasses import dataclass

from openset._utils.params import check_number
from openset.theory.problem import LinearGaussianProblem

STATEMENTS = ("theorem 1", "restatement 2", "restatement 3", "proposition 1 (DD)", "proposition 2 (CoLOR)")


@dataclass(frozen=True)
class Condition:
    """One inequality ``left ≤ right`` (or ``<``) of one statement, with its numbers."""

    statement: str
    text: str
    left: float | None
    right: float | None
    strict: bool = False

    @property
    def holds(self) -> bool | None:
        """Whether it holds; None where it depends on a constant that was not given."""
        if self.left is None or self.right is None:
            return None
        return self.left < self.right if self.strict else self.left <= self.right


@dataclass(frozen=True)
class TheoremReport:
    """All conditions of all statements on one problem."""

    conditions: tuple[Condition, ...]

    def of(self, statement: str) -> tuple[Condition, ...]:
        """The conditions of one statement."""
        found = tuple(c for c in self.conditions if c.statement == statement)
        if not found:
            raise ValueError(f"statement={statement!r} is not valid: expected one of {', '.join(STATEMENTS)}.")
        return found

    def applies(self, statement: str) -> bool | None:
        """True if all hold, False if one fails, None if it depends on constants that were not given."""
        found = [c.holds for c in self.of(statement)]
        if False in found:
            return False
        return None if None in found else True

    def failures(self, statement: str) -> tuple[Condition, ...]:
        """The conditions that fail."""
        return tuple(c for c in self.of(statement) if c.holds is False)


def theorem_conditions(
    problem: LinearGaussianProblem,
    *,
    delta: float = 0.05,
    c1: float | None = None,
    c2: float | None = None,
    C_d: float | None = None,
    c_d: float | None = None,
    tau: float = 0.1,
) -> TheoremReport:
    """Evaluate every condition of every statement of the paper on a problem.

    Parameters
    ----------
    problem : LinearGaussianProblem
    delta : float
        Failure probability.
    c1, c2 : float, optional
        Constants of Theorem 1 and its restatements. The paper states only that they exist; without them their
        condition is reported as not checkable.
    C_d, c_d : float, optional
        Constants of the propositions, likewise.
    tau : float
        Score gap of Proposition 2 (0.1 in the paper).

    Examples
    --------
    >>> report = theorem_conditions(LinearGaussianProblem(d=3000, r_mu=0.1, r_eta=1.0))
    >>> report.applies("theorem 1"), len(report.failures("theorem 1"))
    (False, 3)
    """
    check_number("delta", delta, high=1.0, open_low=True, open_high=True)
    check_number("tau", tau, high=0.2, open_low=True)
    for name, value in (("c1", c1), ("c2", c2), ("C_d", C_d), ("c_d", c_d)):
        check_number(name, value, open_low=True, optional=True)
    log_c = None if c1 is None or c2 is None else c1 * math.log(c2 / delta)
    log_d = None if C_d is None or c_d is None else C_d * math.log(c_d / delta)
    return TheoremReport(
        (
            *_theorem_1(problem, log_c),
            *_restatement_2(problem, log_c),
            *_restatement_3(problem, log_c),
            *_proposition_1(problem, log_d),
            *_proposition_2(problem, log_d, tau),
        )
    )


def _shared(name: str, p: LinearGaussianProblem, log_c: float | None) -> tuple[Condition, ...]:
    """The conditions that Theorem 1 and its restatements have in common."""
    n, share = p.n_total, p.n_novel / p.n_target
    room = min(math.sqrt(n), math.sqrt(p.d / n))
    return (
        Condition(name, "300 < d", 300, p.d, strict=True),
        Condition(name, "10 < N_T", 10, p.n_target, strict=True),
        Condition(name, "alpha < N / (1024 N_T)", share, n / (1024 * p.n_target), strict=True),
        Condition(name, "c1 log(c2/delta) <= min(sqrt N, sqrt(d/N))", log_c, room),
    )


def _theorem_1(p: LinearGaussianProblem, log_c: float | None) -> tuple[Condition, ...]:
    name = STATEMENTS[0]
    ratio = 1 / (8 * (1 + math.sqrt(p.n_target * p.n_novel)))
    return (
        *_shared(name, p, log_c),
        Condition(name, "N_T <= N_S", p.n_target, p.n_source),
        Condition(name, "1/N_T <= alpha", 1 / p.n_target, p.n_novel / p.n_target),
        Condition(name, "16/sqrt(N_T) <= min(r_eta, r_mu)", 16 / math.sqrt(p.n_target), min(p.r_eta, p.r_mu)),
        Condition(name, "r_mu <= sqrt(N_T0)/2", p.r_mu, 0.5 * math.sqrt(p.n_known)),
        Condition(name, "r_eta/r_mu <= 1/(8 (1 + sqrt(N_T N_T1)))", p.r_eta / p.r_mu, ratio),
    )


def _restatement_2(p: LinearGaussianProblem, log_c: float | None) -> tuple[Condition, ...]:
    name, root = STATEMENTS[1], math.sqrt(p.n_novel)
    return (
        *_shared(name, p, log_c),
        Condition(name, "16/sqrt(N_T) <= r_eta", 16 / math.sqrt(p.n_target), p.r_eta),
        Condition(name, "r_eta <= 3/(8 sqrt(N_T1))", p.r_eta, 3 / (8 * root)),
        Condition(name, "1/sqrt(N_T1) <= r_mu", 1 / root, p.r_mu),
        Condition(name, "r_mu <= sqrt(N_T0)/2", p.r_mu, 0.5 * math.sqrt(p.n_known)),
    )


def _restatement_3(p: LinearGaussianProblem, log_c: float | None) -> tuple[Condition, ...]:
    name, ratio = STATEMENTS[2], math.sqrt(p.n_novel / p.n_known)
    return (
        *_shared(name, p, log_c),
        Condition(name, "16/sqrt(N_T) <= min(r_eta, r_mu)", 16 / math.sqrt(p.n_target), min(p.r_eta, p.r_mu)),
        Condition(name, "r_mu <= sqrt(N_T0)/(2 N_T1)", p.r_mu, 0.5 * math.sqrt(p.n_known) / p.n_novel),
        Condition(name, "r_eta/r_mu <= sqrt(N_T1/N_T0)", p.r_eta / p.r_mu, ratio),
    )


def _proposition_1(p: LinearGaussianProblem, log_d: float | None) -> tuple[Condition, ...]:
    name, root_n = STATEMENTS[3], math.sqrt(p.n_total)
    largest = p.r_mu / (4 + 8 * p.r_mu * math.sqrt(p.n_novel)) - 1 / root_n
    return (
        _spread(name, p, log_d),
        Condition(name, "1/(2 sqrt N) <= r_mu", 0.5 / root_n, p.r_mu),
        Condition(name, "r_eta <= r_mu/(4 + 8 r_mu sqrt(N_T1)) - 1/sqrt N", p.r_eta, largest),
    )


def _proposition_2(p: LinearGaussianProblem, log_d: float | None, tau: float) -> tuple[Condition, ...]:
    name, root = STATEMENTS[4], math.sqrt(p.n_target)
    return (
        _spread(name, p, log_d),
        Condition(name, "1/(2 sqrt(N_T)) <= r_mu", 0.5 / root, p.r_mu),
        Condition(name, "r_mu <= sqrt(N N_T0)", p.r_mu, math.sqrt(p.n_total * p.n_known)),
        Condition(name, "1/(2 sqrt(N_T)) <= r_eta", 0.5 / root, p.r_eta),
        Condition(
            name,
            "3/r_eta + (3-5tau)/r_mu <= .375(1-tau)sqrt(N_T) - 2",
            3 / p.r_eta + (3 - 5 * tau) / p.r_mu,
            0.375 * (1 - tau) * root - 2,
        ),
    )


def _spread(name: str, p: LinearGaussianProblem, log_d: float | None) -> Condition:
    """The condition that both propositions have in common."""
    right = math.sqrt(p.d) / (4 * math.sqrt(p.n_total))
    return Condition(name, "C_d log(c_d/delta) <= sqrt(d)/(4 sqrt N)", log_d, right)


def gap_upper_bound(problem: LinearGaussianProblem, norm: float, known_noise_norm: float) -> float:
    """Upper bound on the novel-minus-known gap of any w of this norm that scores all known training rows ≥ 1.

    The mean of those scores is ⟨w, −μ⟩ + ⟨w, mean noise⟩ ≥ 1, so ⟨w, −μ⟩ ≥ 1 − ‖w‖·‖mean noise‖, and
    ⟨w, s·η⟩ ≤ r_η·‖w‖. Where the bound is negative, the AUROC of every such w is below ½: both rules fail
    there. ``docs/theory.md`` applies it to the region of Theorem 1.
    """
    check_number("norm", norm)
    check_number("known_noise_norm", known_noise_norm)
    return problem.r_eta * norm - (1 - norm * known_noise_norm)
