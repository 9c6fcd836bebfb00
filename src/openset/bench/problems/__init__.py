"""The problems that methods are run on: a registry of sources that build them from plain values."""

from __future__ import annotations

from openset.bench.problems.sources import (
    SETTINGS,
    BenchProblem,
    ProblemSource,
    Setting,
    build_problem,
    get_source,
    has_source,
    problem_from_split,
    problem_of,
    problem_sources,
    register_source,
    source_for,
)

__all__ = [
    "SETTINGS",
    "BenchProblem",
    "ProblemSource",
    "Setting",
    "build_problem",
    "get_source",
    "has_source",
    "problem_from_split",
    "problem_of",
    "problem_sources",
    "register_source",
    "source_for",
]
