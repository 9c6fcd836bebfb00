"""Figures of an experiment: bars over novel classes, or lines over a swept value. Needs the extra ``plot``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from openset._utils.extras import require
from openset._utils.files import replacing
from openset.bench.results import Block, Results, Row
from openset.bench.spec import METRICS, FigureSpec

FORMATS = (".svg", ".png")


def draw(results: Results, path: Path) -> None:
    """Draw the figure of an experiment's spec; bars over novel classes if the spec has none."""
    if path.suffix not in FORMATS:
        raise ValueError(f"cannot draw to {str(path)!r}: the name must end in {' or '.join(FORMATS)}.")
    spec = results.spec.figure or FigureSpec("bars", results.spec.metrics, "novel class")
    mpl = require("matplotlib", "drawing figures", "plot")
    from matplotlib.figure import Figure

    series = _series(results.blocks) if spec.kind == "lines" else None
    if series is not None and not series:
        raise ValueError(f"{results.spec.name} sweeps nothing: lines need `sweep` or `x` in the spec.")
    titles = list(series) if series is not None else [block.title for block in results.blocks]
    figure = Figure(figsize=(3.6 * len(spec.metrics), 2.9 * len(titles) + 0.8), layout="constrained")
    axes = figure.subplots(len(titles), len(spec.metrics), squeeze=False)
    for i, title in enumerate(titles):
        for j, metric in enumerate(spec.metrics):
            ax = axes[i, j]
            if series is not None:
                _lines(ax, series[title], metric)
            else:
                _bars(ax, results.blocks[i], metric)
            ax.set_xlabel(spec.x_label)
            ax.set_ylabel(METRICS[metric])
        axes[i, 0].set_title(title, loc="left", fontsize="small")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        title="mean ± sd over splits",
        title_fontsize="small",
        loc="outside lower center",
        ncols=6,
        frameon=False,
        fontsize="small",
    )
    same = {"Date": None} if path.suffix == ".svg" else None  # the same figure gives the same file
    with mpl.rc_context({"svg.hashsalt": "openset"}), replacing(path) as temporary:
        figure.savefig(temporary, dpi=130, metadata=same)


def _series(blocks: Sequence[Block]) -> dict[str, dict[str, list[Row]]]:
    """Rows with a value on the horizontal axis, by panel and then by label without that value."""
    found: dict[str, dict[str, list[Row]]] = {}
    for block in blocks:
        for row in block.rows:
            if row.x is not None:
                name = row.label.removesuffix(f" {row.x:g}")
                found.setdefault(block.panel, {}).setdefault(name, []).append(row)
    return found


def _lines(ax: Any, series: dict[str, list[Row]], metric: str) -> None:
    for name, rows in series.items():
        ordered = sorted(rows, key=lambda row: row.x or 0.0)
        x = np.array([row.x for row in ordered], dtype=float)
        mean = np.array([row.averages[metric].mean for row in ordered])
        sd = np.nan_to_num([row.averages[metric].sd for row in ordered])
        (line,) = ax.plot(x, mean, "-o", markersize=3.5, label=name)
        low, high = np.clip([mean - sd, mean + sd], 0, 1)  # metrics are within 0 and 1
        ax.fill_between(x, low, high, color=line.get_color(), alpha=0.15, linewidth=0)


def _bars(ax: Any, block: Block, metric: str) -> None:
    from matplotlib import colormaps

    classes = list(dict.fromkeys(novel for novel, _ in block.splits))
    of_class = {novel: [i for i, split in enumerate(block.splits) if split[0] == novel] for novel in classes}
    width = 0.8 / len(block.rows)
    colours = colormaps["tab10" if len(block.rows) <= 10 else "tab20"].colors  # type: ignore[attr-defined]
    for k, row in enumerate(block.rows):
        values = [row.values[metric][of_class[novel]] for novel in classes]
        kept = [v[~np.isnan(v)] for v in values]
        mean = [v.mean() if len(v) else np.nan for v in kept]
        sd = [v.std(ddof=1) if len(v) > 1 else 0.0 for v in kept]
        x = np.arange(len(classes)) + (k - (len(block.rows) - 1) / 2) * width
        ax.bar(x, mean, width, yerr=sd, label=row.label, color=colours[k % len(colours)], capsize=1.5)
    ax.set_xticks(range(len(classes)), classes)
    ax.set_ylim(0, 1.05)
