"""Figures of the synthetic experiment. Needs the extra ``plot``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from openset._utils.extras import require
from openset._utils.files import replacing
from openset.theory._quadratic_program import FloatArray
from openset.theory.conditions import STATEMENTS, theorem_conditions
from openset.theory.problem import RULES, Rule
from openset.theory.sweep import PAPER_R_ETA, PAPER_THETA, Outcome, RuleMap, Summary, summarise

NAMES: dict[Rule, str] = {"dd": "domain discriminator", "color": "CoLOR"}
_COLOURS: dict[Rule, str] = {"dd": "#b2182b", "color": "#2166ac"}


def _figure(width: float, height: float) -> Any:
    """A figure without pyplot, which would choose a backend for the caller."""
    figure = require("matplotlib.figure", "drawing figures", "plot")
    return figure.Figure(figsize=(width, height), layout="constrained")


def draw_sweeps(r_eta: Sequence[Outcome], theta: Sequence[Outcome], path: Path, *, novel_share: float) -> None:
    """Draw AUROC and AUPRC of both rules in both sweeps, mean ± sd over seeds, and the paper's AUROC."""
    figure = _figure(9.5, 7.0)
    axes = figure.subplots(2, 2, sharey="col")
    for row, outcomes, paper in ((0, r_eta, PAPER_R_ETA), (1, theta, PAPER_THETA)):
        for column, metric in enumerate(("auroc", "auprc")):
            ax = axes[row, column]
            for rule in RULES:
                _draw_line(ax, [s for s in summarise(outcomes) if s.rule == rule], metric, rule)
                if metric == "auroc":
                    published = [values[2 * RULES.index(rule)] for values in paper.values()]
                    label = f"{NAMES[rule]}, printed in the paper"
                    ax.plot(list(paper), published, "x", color=_COLOURS[rule], alpha=0.6, label=label)
            chance = 0.5 if metric == "auroc" else novel_share
            ax.axhline(chance, color="0.6", linewidth=0.8, linestyle=":", label="chance", zorder=0)
            ax.set_ylabel(metric.upper())
            ax.set_ylim(-0.03, 1.03)
            _label_x(ax, "r_eta" if row == 0 else "theta")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize="small")
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=130)


def _draw_line(ax: Any, points: Sequence[Summary], metric: str, rule: Rule) -> None:
    x = np.array([p.value for p in points])
    mean = np.array([getattr(p, metric) for p in points])
    sd = np.array([getattr(p, f"{metric}_sd") for p in points])
    ax.fill_between(x, mean - sd, mean + sd, color=_COLOURS[rule], alpha=0.2, linewidth=0)
    ax.plot(x, mean, "-o", color=_COLOURS[rule], markersize=3.5, label=f"{NAMES[rule]}, mean ± sd")


def _label_x(ax: Any, parameter: str) -> None:
    if parameter == "r_eta":
        ax.set_xlabel(r"length of the novel mean, $r_\eta$")
        return
    ax.set_xscale("log", base=2)
    ticks = list(PAPER_THETA)
    ax.set_xticks(ticks, [rf"$\pi/{round(math.pi / tick)}$" for tick in ticks])
    ax.set_xlabel(r"angle between $\mu$ and $\eta$, $\theta$")


def draw_map(result: RuleMap, path: Path) -> None:
    """Draw the AUROC of both rules over the grid, the window of the limit and the regions of the propositions."""
    figure = _figure(10.0, 5.2)
    axes = figure.subplots(1, 2, sharey=True)
    mesh, regions = None, _regions(result)
    for ax, rule in zip(axes, RULES, strict=True):
        mesh = ax.pcolormesh(
            result.r_mu, result.values, result.auroc[rule], cmap="RdBu", vmin=0, vmax=1, shading="nearest"
        )
        _draw_window(ax, result)
        _draw_region(ax, regions["proposition 1 (DD)"], "gold", "//", "Prop. 1: says DD < .5")
        _draw_region(ax, regions["proposition 2 (CoLOR)"], "white", "..", "Prop. 2: says CoLOR ≥ .9")
        ax.set_xscale("log")
        if result.parameter == "r_eta":
            ax.set_yscale("log")
        ax.set_xlim(result.r_mu[0], result.r_mu[-1])
        ax.set_ylim(result.values[0], result.values[-1])
        ax.set_title(NAMES[rule])
        ax.set_xlabel(r"half the background shift, $r_\mu$")
    axes[0].set_ylabel(
        r"length of the novel mean, $r_\eta$" if result.parameter == "r_eta" else r"novel share, $\alpha$"
    )
    figure.colorbar(mesh, ax=axes, label="AUROC, novel above known", shrink=0.9)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=130)


def _draw_window(ax: Any, result: RuleMap) -> None:
    """Draw where N_T1·r_η² equals N_T0·r_μ² and (N_S + N_T0)·r_μ², with N_T1 = αN_T not rounded."""
    p = result.problem
    x = np.geomspace(result.r_mu[0], result.r_mu[-1], 400)
    for style, sources, text in (
        ("-", 0, r"$N_{T1} r_\eta^2 = N_{T0} r_\mu^2$: above it CoLOR is right"),
        ("--", p.n_source, r"$N_{T1} r_\eta^2 = (N_S + N_{T0}) r_\mu^2$: above it DD is right"),
    ):
        if result.parameter == "r_eta":
            y = x * math.sqrt((sources + p.n_known) / p.n_novel)
        else:
            # α·N_T·r_η² = (N_S + (1 − α)·N_T)·r_μ², solved for α
            y = (sources + p.n_target) * x**2 / (p.n_target * (p.r_eta**2 + x**2))
        ax.plot(x, y, style, color="black", linewidth=1.6, label=text)


@dataclass(frozen=True)
class _Region:
    x: FloatArray
    y: FloatArray
    inside: FloatArray


def _regions(result: RuleMap) -> dict[str, _Region]:
    """Where all checkable conditions of a statement hold, for every statement, on a finer grid than the map's."""
    scale = np.geomspace if result.parameter == "r_eta" else np.linspace
    x = np.geomspace(result.r_mu[0], result.r_mu[-1], 90)
    y = scale(result.values[0], result.values[-1], 90)
    inside = {statement: np.zeros((len(y), len(x))) for statement in STATEMENTS}
    for i, value in enumerate(y):
        for j, r_mu in enumerate(x):
            point = result.problem.with_(**{"r_mu": float(r_mu), result.parameter: float(value)})
            report = theorem_conditions(point)
            for statement in STATEMENTS:
                inside[statement][i, j] = report.applies(statement) is not False
    return {statement: _Region(x, y, mask) for statement, mask in inside.items()}


def _draw_region(ax: Any, region: _Region, colour: str, hatch: str, text: str) -> None:
    if not region.inside.any():
        text += " (nowhere here)"
    else:
        filled = ax.contourf(region.x, region.y, region.inside, levels=[0.5, 1.5], colors="none", hatches=[hatch])
        filled.set_edgecolor(colour)
        filled.set_linewidth(0)
        ax.contour(region.x, region.y, region.inside, levels=[0.5], colors=[colour], linewidths=0.8)
    # the regions lie where the map is dark red: the legend's patch has that colour
    ax.fill_between([], [], [], facecolor="#67001f", edgecolor=colour, hatch=hatch, label=text)
