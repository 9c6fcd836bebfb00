"""Batches over time as one self-contained HTML page, in the clothes of the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from openset._utils.files import write_atomically
from openset.report.charts import short
from openset.report.content import excerpt, label_text
from openset.report.page import LICENCES, asset, bundled_script, content_policy, embedded_json, template

SCRIPTS = ("chart.umd.min.js", "charts.js")
MOST_GROUPS = 6
"""Groups that have a line of their own: those with most rows."""
_LEAST = 1e-4
"""Evidence below this is drawn there: a logarithmic axis has no 0."""


@dataclass(frozen=True)
class TimelineBatch:
    """One batch as the page shows it; ``state`` is empty for one that counts, else says why it does not."""

    name: str
    rows: int
    called: int
    share: float
    low: float
    high: float
    moved: str
    moved_sentence: str
    evidence: float
    state: str
    model: int
    groups: str


@dataclass(frozen=True)
class TimelineGroup:
    """A group over the batches: its share of each, None where it was not seen, and ids of example rows."""

    name: str
    state: str
    shares: tuple[float | None, ...]
    rows: int
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Timeline:
    """All that the page shows."""

    mood: str
    """``found``, ``none`` or ``cannot``: the colour of the verdict."""
    word: str
    headline: str
    sentence: str
    advice: str
    command: str
    run: str
    max_density_ratio: float
    evidence: str
    limit: float
    error: float
    created: str
    version: str
    batches: tuple[TimelineBatch, ...]
    groups: tuple[TimelineGroup, ...]
    models: tuple[tuple[str, str], ...]
    """Each model: when it was fitted, and on what."""
    notes: tuple[str, ...] = ()


def write_timeline(data: Timeline, path: str | PathLike[str]) -> Path:
    """Write the page, whole or not at all."""
    page = Path(path)
    write_atomically(page, render_timeline(data).encode())
    return page


def render_timeline(data: Timeline) -> str:
    """The page as text."""
    from markupsafe import Markup

    style, scripts = asset("report.css"), [bundled_script(name) for name in SCRIPTS]
    charts = timeline_charts(data)
    page: str = template("timeline.html").render(
        data=data,
        charts=charts,
        policy=content_policy(style, scripts),
        style=Markup(style),
        scripts=[Markup(script) for script in scripts],
        payload=Markup(embedded_json(charts)),
        licences=[asset(LICENCES[0])],
    )
    return page.lstrip()


def timeline_charts(data: Timeline) -> dict[str, Any]:
    """The numbers of both charts; None for a chart that has no batch."""
    if not data.batches:
        return {"shares": None, "evidence": None}
    labels = batch_labels([batch.name for batch in data.batches])
    is_shown = [batch.moved != "yes" for batch in data.batches]
    largest = sorted(data.groups, key=lambda group: -group.rows)[:MOST_GROUPS]
    return {
        "shares": {
            "labels": labels,
            **{
                key: [
                    short(getattr(batch, name)) if shown else None
                    for batch, shown in zip(data.batches, is_shown, strict=True)
                ]
                for key, name in (("called", "share"), ("low", "low"), ("high", "high"))
            },
            "groups": [
                {"name": label_text(group.name), "shares": _shares(group.shares)}
                for group in data.groups
                if group in largest
            ],
        },
        "evidence": {
            "labels": labels,
            "evidence": [short(min(max(batch.evidence, _LEAST), 1e30)) for batch in data.batches],
            "counted": [not batch.state for batch in data.batches],
            "limit": data.limit,
        },
    }


def batch_labels(names: Sequence[str]) -> list[str]:
    """Names of batches for an axis; a file's extension that all have says nothing.

    >>> batch_labels(["week-1.csv", "week-2.csv"]), batch_labels(["a.csv", "b"])
    (['week-1', 'week-2'], ['a.csv', 'b'])
    """
    endings = {Path(name).suffix for name in names}
    same = endings.pop() if len(endings) == 1 else ""
    return [label_text(name.removesuffix(same)) for name in names]


def example_ids(ids: Sequence[Any]) -> tuple[str, ...]:
    """Ids as the page shows them."""
    return tuple(excerpt(one, 40) for one in ids)


def _shares(shares: Sequence[float | None]) -> list[float | None]:
    return [None if share is None else short(share) for share in shares]
