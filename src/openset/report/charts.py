"""The numbers of each chart on the page, few and ready for JSON."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.pipeline.summary import ClassShares, Head
from openset.report.content import label_text, novel_name
from openset.report.data import ReportData, TargetMap
from openset.report.formats import finite

BINS = 60
MAX_MIX_CLASSES = 30
MAX_COLOURED_CLASSES = 5
MAX_CURVE_POINTS = 400
OTHER = "other known classes"
_NOT_A_METRIC = frozenset({"step", "member", "head", "epoch"})


def chart_data(data: ReportData) -> dict[str, Any]:
    """The data of all charts by name; None for a chart that has no data."""
    summary = data.summary
    return {
        "scores": score_histogram(data.source_scores, data.target_scores, finite(summary.threshold)),
        "mix": class_mix(summary.class_mix),
        "map": map_points(data.map, summary.novel_label),
        "heads": head_choices(summary.heads, finite(summary.fpr)),
        "curves": training_curves(summary.history),
    }


def score_histogram(
    source: NDArray[np.floating], target: NDArray[np.floating], threshold: float | None
) -> dict[str, Any] | None:
    """Shares of source and target rows in common bins; the outermost bins also contain the rows beyond them.

    >>> histogram = score_histogram(np.array([0.0, 1.0]), np.array([1.0, 2.0]), 1.5)
    >>> sum(histogram["source"]), sum(histogram["target"]), histogram["threshold"]
    (1.0, 1.0, 1.5)
    """
    source, target = source[np.isfinite(source)], target[np.isfinite(target)]
    if not len(source) or not len(target):
        return None
    parts = [np.quantile(part, (0.002, 0.998)) for part in (source, target)]
    low, high = min(part[0] for part in parts), max(part[1] for part in parts)
    if threshold is not None:
        low, high = min(low, threshold), max(high, threshold)
    margin = 0.02 * (high - low) or max(abs(low), 1.0) * 0.05
    edges = np.linspace(low - margin, high + margin, BINS + 1)

    def shares(scores: NDArray[np.floating]) -> list[float]:
        counts = np.histogram(np.clip(scores, edges[0], edges[-1]), edges)[0]
        return [round(float(share), 6) for share in counts / len(scores)]

    return {
        "edges": [short(edge) for edge in edges],
        "source": shares(source),
        "target": shares(target),
        "threshold": threshold,
    }


def class_mix(mix: Mapping[str, ClassShares]) -> dict[str, Any]:
    """Shares of the known classes in source and target, from the largest in source.

    >>> class_mix({"a": ClassShares(0.2, 0.7), "b": ClassShares(0.8, 0.3)})
    {'labels': ['b', 'a'], 'source': [0.8, 0.2], 'target': [0.3, 0.7], 'counted': [None, None], 'left_out': 0}
    """
    by_size = sorted(mix.items(), key=lambda item: -item[1].source)
    shown = by_size[:MAX_MIX_CLASSES]
    return {
        "labels": [label_text(label) for label, _ in shown],
        "source": [shares.source for _, shares in shown],
        "target": [shares.target for _, shares in shown],
        "counted": [shares.counted for _, shares in shown],
        "left_out": len(mix) - len(shown),
    }


def map_points(target_map: TargetMap | None, novel_label: Any) -> dict[str, Any] | None:
    """The map as columns: position, class, score and id of each point, and its row in the table (-1 for none).

    The largest known classes have their own colours; all others share one.
    """
    if target_map is None:
        return None
    novel = label_text(novel_label)
    names, counts = np.unique(np.array(target_map.predicted), return_counts=True)
    known = [str(name) for name in names[np.argsort(-counts, kind="stable")] if name != novel]
    own = known[:MAX_COLOURED_CLASSES] if len(known) > MAX_COLOURED_CLASSES + 1 else known
    classes = [novel, *own] + ([OTHER] if len(own) < len(known) else [])
    code = {name: classes.index(name) if name in classes else len(classes) - 1 for name in map(str, names)}
    return {
        "classes": [novel_name(novel_label), *classes[1:]],
        "x": [short(x) for x in target_map.xy[:, 0]],
        "y": [short(y) for y in target_map.xy[:, 1]],
        "class": [code[label] for label in target_map.predicted],
        "score": [short(score) for score in target_map.scores],
        "id": list(target_map.ids),
        "row": list(target_map.table_rows),
    }


def head_choices(heads: Sequence[Head] | None, budget: float | None) -> dict[str, Any] | None:
    """Every head at every evaluation point: the chosen ones, and the latest of the others."""
    if not heads:
        return None
    others = [head for head in heads if not head.selected][-MAX_CURVE_POINTS:]
    chosen = [head for head in heads if head.selected]
    steps = {head.step for head in chosen}

    def points(part: Iterable[Head]) -> list[list[float | None]]:
        return [[head.fpr, head.recall, head.candidate_recall, float(head.step)] for head in part]

    return {
        "earlier": points(head for head in others if head.step not in steps),
        "same_step": points(head for head in others if head.step in steps),
        "chosen": points(chosen),
        "budget": budget,
    }


def training_curves(history: Iterable[Mapping[str, Any]] | None) -> dict[str, Any] | None:
    """Losses and rates at the training steps, averaged over the members."""
    sums: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in history or ():
        if record.get("step") is None:
            continue
        for name, value in record.items():
            number = finite(value)
            if name not in _NOT_A_METRIC and number is not None and not isinstance(value, (bool, str)):
                sums[int(record["step"])][name].append(number)
    if not sums:
        return None
    steps = sorted(sums)
    steps = steps[:: math.ceil(len(steps) / MAX_CURVE_POINTS)]
    names = list(dict.fromkeys(name for step in steps for name in sums[step]))
    curves = {name: [short(np.mean(sums[s][name])) if sums[s][name] else None for s in steps] for name in names}
    losses = {name: values for name, values in curves.items() if "loss" in name}
    rates = {
        name: values
        for name, values in curves.items()
        if name not in losses and all(value is None or 0 <= value <= 1 for value in values)
    }
    return {"steps": steps, "losses": losses, "rates": rates}


def short(value: Any) -> float:
    """A number with four significant digits: enough for a chart, and a third of the bytes.

    >>> short(0.123456)
    0.1235
    """
    return float(f"{float(value):.4g}")
