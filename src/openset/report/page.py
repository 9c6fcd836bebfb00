"""The page itself: a template filled with escaped data, and nothing that reaches for the network."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from openset._utils.extras import require
from openset._utils.files import write_atomically
from openset.pipeline.data_used import ColumnUse
from openset.pipeline.summary import Head, ResultSummary
from openset.report.charts import chart_data
from openset.report.content import excerpt, label_text, novel_name
from openset.report.data import ReportData
from openset.report.formats import count, finite, fixed, level, moment, number, percent, unbroken

SCRIPTS = ("chart.umd.min.js", "chartjs-plugin-zoom.min.js", "table.js", "charts.js")
LICENCES = ("chart.LICENSE.md", "chartjs-plugin-zoom.LICENSE.md")
ROWS_AT_FIRST = 10
MAX_SETTING = 200
MAX_COLUMNS = 500
"""Columns of a table that the page lists."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def write_report(data: ReportData, path: str | PathLike[str], *, examples: bool = True) -> Path:
    """Write one self-contained HTML page, whole or not at all; ``examples=False`` leaves the rows' content out.

    Ids, scores and labels stay on the page either way; texts, pictures and column values do not.
    """
    page = render(data, examples=examples).encode()
    path = Path(path)
    write_atomically(path, page)
    return path


def render(data: ReportData, *, examples: bool = True) -> str:
    """The page as text."""
    from markupsafe import Markup

    style, scripts = asset("report.css"), [bundled_script(name) for name in SCRIPTS]
    charts = chart_data(data)
    # The bundled files are ours and may stand as they are. Everything else goes through the template's escaping.
    page: str = template("report.html").render(
        summary=data.summary,
        data=data,
        charts=charts,
        show_content=examples and any(row.text or row.image for row in data.rows),
        examples=examples,
        rows_at_first=ROWS_AT_FIRST,
        novel_label=label_text(data.summary.novel_label),
        novel_name=novel_name(data.summary.novel_label),
        quantiles=_quantiles(data),
        shares_above=_shares_above(data),
        columns=[_shown(use) for use in data.summary.data.columns[:MAX_COLUMNS]],
        details=details(data.summary),
        heads=chosen_heads(data.summary.heads or []),
        policy=content_policy(style, scripts),
        style=Markup(style),
        scripts=[Markup(script) for script in scripts],
        payload=Markup(embedded_json(charts)),
        licences=[asset(name) for name in LICENCES],
    )
    return page.lstrip()


def embedded_json(value: Any) -> str:
    """JSON that cannot end the script element it stands in.

    >>> embedded_json({"id": "</script>"})
    '{"id":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def content_policy(style: str, scripts: list[str]) -> str:
    """A policy that allows the bundled style and scripts by their hash, pictures in the page, nothing else."""

    def allowed(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    return (
        f"default-src 'none'; script-src {' '.join(map(allowed, scripts))}; style-src {allowed(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def chosen_heads(heads: Sequence[Head]) -> list[Head]:
    """All heads at the step of the chosen one; of several members, those of the first."""
    chosen = next((head for head in heads if head.selected), None)
    if chosen is None:
        return []
    return [head for head in heads if (head.step, head.member) == (chosen.step, chosen.member)]


def details(summary: ResultSummary) -> list[tuple[str, list[tuple[str, str]]]]:
    """What is needed to repeat the run, in titled lists of names and values."""
    content = summary.to_dict()
    parts = {
        "Run": {name: content[name] for name in ("method", "seed", "openset_version", "created")},
        "Data": {name: value for name, value in content["data"].items() if name != "columns"},
        "Settings": content["settings"],
        "Parameters of the method": content["parameters"],
        "Environment": content["environment"],
        "Seconds taken": content["timings"],
    }
    return [(title, list(_flat(part))) for title, part in parts.items() if part]


def _shown(use: ColumnUse) -> ColumnUse:
    return replace(use, name=excerpt(use.name, MAX_SETTING), became=excerpt(use.became))


def _flat(part: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in part.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name} · ")
        elif isinstance(value, (list, tuple)):
            yield f"{prefix}{name}", excerpt(", ".join(map(str, value)) or "—", MAX_SETTING)
        else:
            text = f"{value:.6g}" if isinstance(value, float) else str(value)
            yield f"{prefix}{name}", "—" if value is None else excerpt(text, MAX_SETTING)


def _quantiles(data: ReportData) -> list[tuple[str, list[float]]]:
    parts = {"source": data.source_scores, "target": data.target_scores}
    return [
        (name, np.quantile(scores[np.isfinite(scores)], QUANTILES).tolist())
        for name, scores in parts.items()
        if np.isfinite(scores).any()
    ]


def _shares_above(data: ReportData) -> dict[str, float] | None:
    threshold = finite(data.summary.threshold)
    if threshold is None or not len(data.source_scores) or not len(data.target_scores):
        return None
    return {
        "source": float((data.source_scores > threshold).mean()),
        "target": float((data.target_scores > threshold).mean()),
    }


@cache
def template(name: str) -> Any:
    """A bundled template, which escapes what it is filled with."""
    # torch brings it along, so that it is missing only where somebody took it out
    require("jinja2", "the report", "report")
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        count=count,
        fixed=fixed,
        label=label_text,
        level=level,
        moment=moment,
        number=number,
        percent=percent,
        unbroken=unbroken,
    )
    return environment.get_template(name)


@cache
def asset(name: str) -> str:
    """The content of a bundled file."""
    return files("openset.report").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def bundled_script(name: str) -> str:
    """A bundled script without its source map, which a browser's tools would try to fetch."""
    return re.sub(r"\n//# sourceMappingURL=.*", "", asset(name))
