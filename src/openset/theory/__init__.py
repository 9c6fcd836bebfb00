"""The linear-Gaussian problem of the paper, solved exactly, and its theorem tested. No torch here.

The names below load on first use, so that the command line can show its help without scipy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openset.theory.bounds import (
        Complexity,
        FprBound,
        fpr_budget_bound,
        linear_complexity,
        linear_complexity_of_rows,
    )
    from openset.theory.certificate import Certificate, Infeasibility
    from openset.theory.conditions import Condition, TheoremReport, gap_upper_bound, theorem_conditions
    from openset.theory.lemma import FiniteProblem, Impossibility, impossibility
    from openset.theory.limit import GroupLimit, Window, corrected_window, group_limit
    from openset.theory.logistic import Descent, logistic_descent
    from openset.theory.margin import (
        MaxMargin,
        NotSolvedError,
        max_margin,
        max_margin_color,
        max_margin_dd,
    )
    from openset.theory.problem import LinearGaussianProblem, Sample

_HOME = {
    "Certificate": "openset.theory.certificate",
    "Complexity": "openset.theory.bounds",
    "Condition": "openset.theory.conditions",
    "Descent": "openset.theory.logistic",
    "FiniteProblem": "openset.theory.lemma",
    "FprBound": "openset.theory.bounds",
    "GroupLimit": "openset.theory.limit",
    "Impossibility": "openset.theory.lemma",
    "Infeasibility": "openset.theory.certificate",
    "LinearGaussianProblem": "openset.theory.problem",
    "MaxMargin": "openset.theory.margin",
    "NotSolvedError": "openset.theory.margin",
    "Sample": "openset.theory.problem",
    "TheoremReport": "openset.theory.conditions",
    "Window": "openset.theory.limit",
    "corrected_window": "openset.theory.limit",
    "fpr_budget_bound": "openset.theory.bounds",
    "gap_upper_bound": "openset.theory.conditions",
    "group_limit": "openset.theory.limit",
    "impossibility": "openset.theory.lemma",
    "linear_complexity": "openset.theory.bounds",
    "linear_complexity_of_rows": "openset.theory.bounds",
    "logistic_descent": "openset.theory.logistic",
    "max_margin": "openset.theory.margin",
    "max_margin_color": "openset.theory.margin",
    "max_margin_dd": "openset.theory.margin",
    "theorem_conditions": "openset.theory.conditions",
}

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
    "Sample",
    "TheoremReport",
    "Window",
    "corrected_window",
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
    "theorem_conditions",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'openset.theory' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
