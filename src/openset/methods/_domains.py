"""Several target domains in one fit of CoLOR: shared networks, and for each domain a model of its own."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.base import clone

from openset._utils.arrays import as_labels
from openset.methods._voices import FEWEST_ROWS
from openset.problem import Rows

if TYPE_CHECKING:
    from openset.methods.color import CoLOR

Model = TypeVar("Model", bound="CoLOR")


def fit_domains(estimator: Model, X: Any, y: Any, X_target: Any, sample_domain: Any) -> dict[Any, Model]:
    """Return a fitted model for each domain; see :meth:`~openset.methods.color.CoLOR.fit_domains`."""
    if X_target is None:
        raise ValueError("fit_domains got no X_target: pass the rows of all domains. Without a target use fit.")
    shared: Model = clone(estimator)
    shared._check_parameters()
    problem = shared._validate(X, y, X_target)
    rows_of = rows_of_domains(sample_domain, len(problem.target))
    prepared = {name: shared._prepare(problem.of_target_rows(rows)) for name, rows in rows_of.items()}
    aligned = np.empty_like(problem.target)
    for name, rows in rows_of.items():
        aligned[rows] = prepared[name][0].target
    shared._learn(replace(problem, X_target=aligned))
    models = {}
    for name, (own, state) in prepared.items():
        model = copy.copy(shared)
        resolved = {**state["resolved_parameters_"], **shared.resolved_parameters_}
        model._store({**state, "resolved_parameters_": resolved, "n_target_": len(own.target)})
        model._conclude(own)
        models[name] = model
    return models


def rows_of_domains(sample_domain: Any, n_target: int) -> dict[Any, Rows]:
    """Return the target rows of each domain, which must be enough for a verdict of its own.

    >>> {name: len(rows) for name, rows in rows_of_domains(["b"] * 40 + ["a"] * 50, 90).items()}
    {'a': 50, 'b': 40}
    """
    domain = as_labels(sample_domain)
    if len(domain) != n_target:
        raise ValueError(
            f"sample_domain has {len(domain)} entries but X_target has {n_target} rows: expected one entry per "
            "target row. (Data in skada's convention: split_by_domain returns X_target, and its domains are "
            "sample_domain[sample_domain < 0].)"
        )
    names, index = np.unique(domain, return_inverse=True)
    found = {name: np.flatnonzero(index == number) for number, name in enumerate(names.tolist())}
    small = {name: len(rows) for name, rows in found.items() if len(rows) < FEWEST_ROWS}
    if small:
        listed = ", ".join(f"{name!r} has {n} rows" for name, n in small.items())
        raise ValueError(
            f"sample_domain: {listed}, but a domain needs {FEWEST_ROWS} for a verdict of its own: give it the "
            "name of a domain that is like it, or leave its rows out."
        )
    return found
