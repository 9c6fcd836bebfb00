"""Several target domains in one fit of CoLOR: shared networks, and for each domain a model of its own."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import narwhals as nw
import numpy as np
from sklearn.base import clone

from openset._utils.arrays import is_missing, is_torch_tensor
from openset._utils.text import counted, listed
from openset.methods._color_decision import separating_features
from openset.methods._voices import FEWEST_ROWS
from openset.problem import Problem, Rows, State

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
    alike = [rows for name, rows in rows_of.items() if not _lies_elsewhere(*prepared[name])]
    trained = np.sort(np.concatenate(alike or list(rows_of.values())))
    shared._learn(replace(problem, X_target=aligned).of_target_rows(trained))
    models = {}
    for name, (own, state) in prepared.items():
        model = copy.copy(shared)
        resolved = {**state["resolved_parameters_"], **shared.resolved_parameters_}
        model._store({**state, "resolved_parameters_": resolved, "n_target_": len(own.target)})
        model._conclude(own)
        models[name] = model
    return models


def _lies_elsewhere(domain: Problem, state: State) -> bool:
    """Whether all rows of a domain can be told from source: aligned or not, they would lead the shared heads."""
    chosen = state["alignment_"]
    return (chosen is not None and chosen.before.is_moved) or bool(separating_features(domain))


def rows_of_domains(sample_domain: Any, n_target: int) -> dict[Any, Rows]:
    """Return the target rows of each domain, which must be enough for a verdict of its own.

    >>> {name: len(rows) for name, rows in rows_of_domains(["b"] * 40 + ["a"] * 50, 90).items()}
    {'a': 50, 'b': 40}
    """
    values = _values_of(sample_domain)
    if len(values) != n_target:
        raise ValueError(
            f"sample_domain has {len(values)} entries but X_target has {n_target} rows: expected one entry per "
            "target row. (Data in skada's convention: split_by_domain returns X_target, and its domains are "
            "sample_domain[sample_domain < 0].)"
        )
    missing = sum(map(is_missing, values))
    if missing:
        raise ValueError(
            f"sample_domain has {counted(missing, 'missing entry', 'missing entries')}: give those rows a "
            "domain, or leave them out."
        )
    kinds = {type(value).__name__ for value in values}
    if len(kinds) > 1 and not kinds <= {"int", "float"}:
        raise ValueError(f"sample_domain mixes types ({', '.join(sorted(kinds))}): use one type for all entries.")
    try:
        names = sorted(set(values))
    except TypeError:
        (kind,) = kinds
        raise ValueError(
            f"sample_domain has entries of type {kind}: expected strings, numbers or dates."
        ) from None
    number_of = {name: number for number, name in enumerate(names)}
    numbers = np.array([number_of[value] for value in values])
    found = {name: np.flatnonzero(numbers == number) for number, name in enumerate(names)}
    small = {name: len(rows) for name, rows in found.items() if len(rows) < FEWEST_ROWS}
    if small:
        sizes = listed(f"{name!r} has {counted(n, 'row')}" for name, n in small.items())
        raise ValueError(
            f"sample_domain: {sizes}, but a domain needs {FEWEST_ROWS} for a verdict of its own: give it the "
            "name of a domain that is like it, or leave its rows out."
        )
    return found


def _values_of(sample_domain: Any) -> list[Any]:
    """Return the entries as Python values, so that they are the keys a user expects: 1 for numpy's 1.

    >>> _values_of(np.array(["2026-03"], "datetime64[M]"))
    [datetime.datetime(2026, 3, 1, 0, 0)]
    """
    if sample_domain is None:
        raise ValueError(
            "fit_domains got no sample_domain: give the domain of each target row, such as its site."
        )
    if is_torch_tensor(sample_domain):
        sample_domain = sample_domain.detach().cpu().numpy()
    elif nw.dependencies.is_into_series(sample_domain):
        return list(nw.from_native(sample_domain, series_only=True).to_list())
    if isinstance(sample_domain, (list, tuple)):
        return [value.item() if isinstance(value, np.generic) else value for value in sample_domain]
    values = np.asarray(sample_domain)
    if values.ndim != 1:
        raise ValueError(f"sample_domain has shape {values.shape}: expected one entry per target row.")
    if values.dtype.kind == "M":
        values = values.astype("datetime64[us]")  # numpy returns finer times as integers
    return list(values.tolist())
