"""The figures that the paper prints, from ``paper.toml`` and, for its synthetic tables, from the theory."""

from __future__ import annotations

import functools
import tomllib
from importlib import resources
from typing import Any

_SYNTHETIC = ("synthetic-r-eta", "synthetic-theta")


def paper_tables() -> tuple[str, ...]:
    """The names of the paper's tables.

    >>> "cifar100" in paper_tables(), "synthetic-theta" in paper_tables()
    (True, True)
    """
    return (*_printed(), *_SYNTHETIC)


def paper_figures(table: str | None, setting: str) -> dict[str, dict[str, str]]:
    """The figures of a table by metric and label: "mean±sd", or one per novel class; "?" if it cannot be right.

    >>> paper_figures("cifar100", "shift")["auroc"]["color_paper"]
    '0.77±0.09'
    """
    if table in _SYNTHETIC:
        return _synthetic_figures(table)
    figures: dict[str, dict[str, str]] = _printed().get(table or "", {}).get(setting, {})
    return figures


@functools.cache
def _printed() -> dict[str, Any]:
    return tomllib.loads((resources.files("openset.bench") / "paper.toml").read_text("utf-8"))


def _synthetic_figures(table: str) -> dict[str, dict[str, str]]:
    """The synthetic tables. None of their AUPRC can be right: some are below the smallest possible AUPRC."""
    from openset.theory.sweep import PAPER_R_ETA, PAPER_THETA

    figures: dict[str, dict[str, str]] = {"auroc": {}, "auprc": {}}
    for x, printed in (PAPER_R_ETA if table == "synthetic-r-eta" else PAPER_THETA).items():
        for label, (area, precision) in (("dd", printed[:2]), ("color", printed[2:])):
            figures["auroc"][f"{label} {x:g}"] = f"{area:.2f}"
            figures["auprc"][f"{label} {x:g}"] = f"{precision:.2f}?"
    return figures
