"""The linear-Gaussian problem of the paper, solved exactly, and the paper's theorem tested on it. No torch."""

from __future__ import annotations

from openset.theory.bounds import (
    Complexity,
    FprBound,
    budget_by_bound,
    fpr_budget_bound,
    linear_complexity,
    linear_complexity_of_rows,
)
from openset.theory.certificate import Certificate, Infeasibility
from openset.theory.conditions import Condition, TheoremReport, gap_upper_bound, theorem_conditions
from openset.theory.divergence import RareEvent, divergence_of_all_events, rare_event_divergence
from openset.theory.impossibility_lemma import FiniteProblem, Impossibility, impossibility
from openset.theory.limit import GroupLimit, Window, corrected_window, group_limit
from openset.theory.logistic import Descent, logistic_descent
from openset.theory.margin import MaxMargin, NotSolvedError, max_margin, max_margin_color, max_margin_dd
from openset.theory.problem import LinearGaussianProblem, Sample

__all__ = [
    "Certificate",
    "Complexity",
    "Condition",
    "Descent",
    "FiniteProblem",
    "FprBound",
    "GroupLimit",
    "Impossibility",
    "Infeasibility",
    "LinearGaussianProblem",
    "MaxMargin",
    "NotSolvedError",
    "RareEvent",
    "Sample",
    "TheoremReport",
    "Window",
    "budget_by_bound",
    "corrected_window",
    "divergence_of_all_events",
    "fpr_budget_bound",
    "gap_upper_bound",
    "group_limit",
    "impossibility",
    "linear_complexity",
    "linear_complexity_of_rows",
    "logistic_descent",
    "max_margin",
    "max_margin_color",
    "max_margin_dd",
    "rare_event_divergence",
    "theorem_conditions",
]
