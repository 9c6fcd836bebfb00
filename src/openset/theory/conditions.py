"""Every condition of the paper's Theorem 1, its two restatements and its two propositions, evaluated."""

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
        """Whether it holds; None where the paper names no constant and none was given."""
        if self.left is None or self.right is None:
            return None
        return self.left < self.right if self.strict else self.left <= self.right

    @property
    def short_by(self) -> float | None:
        """How much the left side is too large (0 where the condition holds, None where not checkable)."""
        if self.left is None or self.right is None:
            return None
        return 0.0 if self.holds else self.left - self.right


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
        """True if all hold, False if one fails, None if the rest hangs on constants that were not given."""
        verdicts = [c.holds for c in self.of(statement)]
        if False in verdicts:
            return False
        return None if None in verdicts else True

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
    """Hold a problem against every statement of the paper.

    Parameters ---------- delta : failure probability. c1, c2 : constants of Theorem 1 and its restatements;
    C_d, c_d : of the propositions. The paper says only that they
        exist: without them their condition is reported as not checkable.
    tau : score gap of Proposition 2 (the paper takes 0.1).

    >>> report = theorem_conditions(LinearGaussianProblem(d=3000, r_mu=0.1, r_eta=1.0))
    >>> report.applies("theorem 1"), len(report.failures("theorem 1"))
    (False, 3)
    """
    check_number("delta", delta, high=1.0, open_low=True, open_high=True)
    check_number("tau", tau, high=0.2, open_low=True)
    for name, value in (("c1", c1), ("c2", c2), ("C_d", C_d), ("c_d", c_d)):
        check_number(name, value, open_low=True, optional=True)
    n_target, n, k = problem.n_target, problem.n_total, problem.n_novel
    log_c = None if c1 is None or c2 is None else c1 * math.log(c2 / delta)
    log_d = None if C_d is None or c_d is None else C_d * math.log(c_d / delta)
    room = min(math.sqrt(n), math.sqrt(problem.d / n))
    r_mu, r_eta = problem.r_mu, problem.r_eta
    floor = 16 / math.sqrt(n_target)
    share, share_limit = k / n_target, n / (1024 * n_target)
    half_root = 0.5 * math.sqrt(problem.n_known)
    first, second, third, dd, color = STATEMENTS

    def shared(name: str) -> list[Condition]:
        return [
            Condition(name, "300 < d", 300, problem.d, strict=True),
            Condition(name, "10 < N_T", 10, n_target, strict=True),
            Condition(name, "alpha < N / (1024 N_T)", share, share_limit, strict=True),
            Condition(name, "c1 log(c2/delta) <= min(sqrt N, sqrt(d/N))", log_c, room),
        ]

    spread = math.sqrt(problem.d) / (4 * math.sqrt(n))
    root_k = math.sqrt(k)
    return TheoremReport(
        (
            *shared(first),
            Condition(first, "N_T <= N_S", n_target, problem.n_source),
            Condition(first, "1/N_T <= alpha", 1 / n_target, share),
            Condition(first, "16/sqrt(N_T) <= min(r_eta, r_mu)", floor, min(r_eta, r_mu)),
            Condition(first, "r_mu <= sqrt(N_T0)/2", r_mu, half_root),
            Condition(
                first,
                "r_eta/r_mu <= 1/(8 (1 + sqrt(N_T N_T1)))",
                r_eta / r_mu,
                1 / (8 * (1 + math.sqrt(n_target * k))),
            ),
            *shared(second),
            Condition(second, "16/sqrt(N_T) <= r_eta", floor, r_eta),
            Condition(second, "r_eta <= 3/(8 sqrt(N_T1))", r_eta, 3 / (8 * root_k)),
            Condition(second, "1/sqrt(N_T1) <= r_mu", 1 / root_k, r_mu),
            Condition(second, "r_mu <= sqrt(N_T0)/2", r_mu, half_root),
            *shared(third),
            Condition(third, "16/sqrt(N_T) <= min(r_eta, r_mu)", floor, min(r_eta, r_mu)),
            Condition(third, "r_mu <= sqrt(N_T0)/(2 N_T1)", r_mu, half_root / k),
            Condition(third, "r_eta/r_mu <= sqrt(N_T1/N_T0)", r_eta / r_mu, math.sqrt(k / problem.n_known)),
            Condition(dd, "C_d log(c_d/delta) <= sqrt(d)/(4 sqrt N)", log_d, spread),
            Condition(dd, "1/(2 sqrt N) <= r_mu", 0.5 / math.sqrt(n), r_mu),
            Condition(
                dd,
                "r_eta <= r_mu/(4 + 8 r_mu sqrt(N_T1)) - 1/sqrt N",
                r_eta,
                r_mu / (4 + 8 * r_mu * root_k) - 1 / math.sqrt(n),
            ),
            Condition(color, "C_d log(c_d/delta) <= sqrt(d)/(4 sqrt N)", log_d, spread),
            Condition(color, "1/(2 sqrt(N_T)) <= r_mu", 0.5 / math.sqrt(n_target), r_mu),
            Condition(color, "r_mu <= sqrt(N N_T0)", r_mu, math.sqrt(n * problem.n_known)),
            Condition(color, "1/(2 sqrt(N_T)) <= r_eta", 0.5 / math.sqrt(n_target), r_eta),
            Condition(
                color,
                "3/r_eta + (3-5tau)/r_mu <= .375(1-tau)sqrt(N_T) - 2",
                3 / r_eta + (3 - 5 * tau) / r_mu,
                0.375 * (1 - tau) * math.sqrt(n_target) - 2,
            ),
        )
    )


def gap_upper_bound(problem: LinearGaussianProblem, norm: float, known_noise_norm: float) -> float:
    """No w of this norm that scores all known training rows at 1 or above has a larger novel-minus-known gap.

    The mean of those scores is ⟨w, −μ⟩ + ⟨w, mean noise⟩ ≥ 1, so ⟨w, −μ⟩ ≥ 1 − ‖w‖·‖mean noise‖, and
    ⟨w, s·η⟩ ≤ r_η·‖w‖. Where this is negative the AUROC is below ½, whatever else w does: both rules fail
    there. ``docs/theory.md`` applies it to the region of Theorem 1.
    """
    check_number("norm", norm)
    check_number("known_noise_norm", known_noise_norm)
    return problem.r_eta * norm - (1 - norm * known_noise_norm)
