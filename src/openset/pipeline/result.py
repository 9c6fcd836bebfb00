"""What a run found: kept in memory, told in words, written to a folder and read again."""

from __future__ import annotations

import html
import json
import os
import textwrap
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openset._utils.files import check_folder_replaceable, replacing_folder
from openset._utils.text import listed, shortened
from openset.pipeline.settings import RunSettings, known_settings, to_toml

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from openset.data.readers.records import Records
    from openset.pipeline.scored_table import ScoredTable
    from openset.stats.groups import NovelGroups

MODEL, SCORED, RESULT = "model", "scored_target.parquet", "result.json"
SETTINGS, REPORT = "settings.toml", "report.html"
_WIDTH = 78
_MOST_CLASSES, _MOST_ROWS = 12, 10


@dataclass(frozen=True)
class ResultSummary:
    """All of a run that is not a large array: the content of ``result.json``, as plain values.

    ``class_mix`` has for each known class its share of the source's labels and of the target rows that are not
    called novel, and among the latter its share of the predictions (``counted``); ``known_classes`` says how the
    former came about, and how right the classifier is estimated to be. ``groups`` has the groups among the rows
    called novel, ``listed`` how many rows are listed at a false discovery rate, ``novelty_test`` the test of a
    new class where the method has one. ``threshold`` is None where no score is high enough to be called novel.
    """

    openset_version: str
    created: str
    method: str
    parameters: dict[str, Any]
    seed: int
    data: dict[str, Any]
    classes: list[Any]
    novel_label: Any
    verdict: dict[str, str]
    novel_fraction: dict[str, Any]
    threshold: float | None
    fpr: float
    called_novel: int
    class_mix: dict[str, dict[str, float]]
    heads: list[dict[str, Any]] | None
    history: list[dict[str, Any]]
    diagnostics: list[dict[str, Any]]
    top_rows: list[Any]
    settings: dict[str, Any]
    timings: dict[str, float]
    environment: dict[str, Any]
    novelty_test: dict[str, Any] | None = None
    known_classes: dict[str, Any] = field(default_factory=dict)
    groups: dict[str, Any] = field(default_factory=dict)
    listed: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The same as a dictionary."""
        return asdict(self)

    def __call__(self) -> str:
        """The result in words, at most 80 columns wide."""
        share, target, source = self.novel_fraction, self.data["target"], self.data["source"]
        interval = interval_text(share)
        lines: list[str] = [
            f"Verdict: {self.verdict['word']}",
            *textwrap.wrap(self.verdict["sentence"], _WIDTH, initial_indent="  ", subsequent_indent="  "),
            *textwrap.wrap(self.verdict["caveat"], _WIDTH, initial_indent="  ", subsequent_indent="  "),
            "",
            f"Novel fraction  {interval}, {100 * share['confidence']:.0f} % interval, {share['method']}",
            f"Called novel    {self.called_novel} of {target['rows']} target rows, budget {self.fpr:g} of source",
            f"Fitted          {self.method}, seed {self.seed}, on {source['rows']} source rows",
            *_wrapped("Features        ", _features_text(self.data["features"])),
            *(
                _wrapped(f"{'At FDR ' + format(self.listed['fdr'], 'g'):<16}", listed_text(self.listed))
                if self.listed
                else ()
            ),
            "",
            f"{'Known classes':<32}{'source':>8}    {'target':>6}",
            *(
                f"  {_short(name, 28):<30}{mix['source']:>8.1%} -> {mix['target']:>6.1%}"
                for name, mix in list(self.class_mix.items())[:_MOST_CLASSES]
            ),
        ]
        if len(self.class_mix) > _MOST_CLASSES:
            lines.append(f"  and {len(self.class_mix) - _MOST_CLASSES} more")
        about = self.known_classes
        for sentence in (about.get("sentence"), about.get("accuracy_sentence")):
            lines += _wrapped("  ", sentence) if sentence else []
        lines += [
            "",
            *_wrapped("Groups          ", self.groups.get("sentence", "not looked for")),
            *(
                line
                for number, group in enumerate(self._several(), 1)
                for line in _wrapped(f"  {number}  ", group)
            ),
            *_wrapped("Top novel rows  ", ", ".join(_short(row, 30) for row in self.top_rows[:_MOST_ROWS])),
        ]
        doubts = [entry["sentence"] for entry in self.diagnostics if not entry["ok"]]
        if doubts:
            lines += ["", "To check", *(line for doubt in doubts for line in _wrapped("  - ", doubt))]
        return "\n".join(lines)

    def _several(self) -> list[str]:
        """A line for each group, where there are two or more."""
        found = self.groups.get("groups", [])
        return [
            f"{group_text(group)}, such as {', '.join(_short(row, 30) for row in group['examples'])}"
            for group in (found if len(found) > 1 else [])
        ]


@dataclass(frozen=True, eq=False)
class Result:
    """A fitted model, the scored target and what they say.

    ``result.summary`` has the numbers and ``result.summary()`` says them in words. ``source`` and ``target`` are
    the records as read, ``features_source`` and ``features_target`` what the model was fitted on.
    """

    model: Any
    summary: ResultSummary
    scored: ScoredTable
    source: Records
    target: Records
    features_source: NDArray[np.floating]
    features_target: NDArray[np.floating]

    @property
    def source_scores(self) -> NDArray[np.float64]:
        """Novelty scores of source rows that were held out, which p-values are ranks among."""
        scores: NDArray[np.float64] = self.model.calibration_scores_
        return scores

    def to_frame(self, backend: str = "pandas") -> Any:
        """The scored target rows as a data frame of pandas, polars or pyarrow."""
        return self.scored.to_frame(backend)

    def novel_rows(
        self, fdr: float = 0.1, *, max_density_ratio: float | None = None, backend: str = "pandas"
    ) -> Any:
        """The scored rows to act on, surest first: at most a share ``fdr`` of them is known, on average.

        That is guaranteed for one score if no known kind of row is more than ``max_density_ratio`` times as
        common in the target as in the source; None for what the method assumes (CoLOR 12), else 1, no shift. A
        larger one gives a shorter list; under a shift larger than told most listed rows can be known. A method
        that chose its score on the same held-out rows, as CoLOR does, is not corrected for that choice.
        """
        from openset.pipeline.scored_table import rows_at_fdr

        listed = rows_at_fdr(self.model, self.scored, fdr, max_density_ratio=max_density_ratio)
        order = (-self.scored.novelty_score).argsort(kind="stable")
        return self.scored.take(order[listed[order]]).to_frame(backend)

    def novel_groups(self) -> NovelGroups:
        """The groups among the rows called novel, with the group of every target row (−1 for none)."""
        from openset.pipeline.explain import find_groups

        scores = self.scored.novelty_score
        called = scores > self.model.threshold_
        return find_groups(self.model, self.features_source, self.features_target, scores, called)

    def save(self, folder: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write model, scored target, ``result.json``, settings and report to a folder, all or nothing."""
        from openset.data.writer import writing_table

        path = Path(folder)
        check_free(path, overwrite=overwrite)
        with replacing_folder(path) as temporary:
            self.model.save(temporary / MODEL)
            with writing_table(temporary / SCORED) as write:
                write(self.scored.columns())
            content = json.dumps(self.summary.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
            (temporary / RESULT).write_text(content, encoding="utf-8")
            (temporary / SETTINGS).write_text(to_toml(read_run_settings(self.summary)), encoding="utf-8")
            self.report(temporary / REPORT)

    def report(self, path: str | PathLike[str], *, examples: bool = True) -> None:
        """Write one self-contained HTML page; ``examples=False`` leaves the rows' content out."""
        from openset.report import build, write_report

        write_report(build(self), path, examples=examples)

    def _repr_html_(self) -> str:
        summary = self.summary
        mix = "".join(
            f"<tr><td>{_escaped(name)}</td><td>{shares['source']:.1%}</td><td>{shares['target']:.1%}</td></tr>"
            for name, shares in list(summary.class_mix.items())[:_MOST_CLASSES]
        )
        share = summary.novel_fraction
        top = ", ".join(_escaped(row) for row in summary.top_rows[:_MOST_ROWS])
        return (
            f"<div><p><b>{_escaped(summary.verdict['word'])}</b>: {_escaped(summary.verdict['sentence'])}</p>"
            f"<p>Novel fraction {interval_text(share)}, "
            f"{summary.called_novel} of {summary.data['target']['rows']} target rows called novel by "
            f"{_escaped(summary.method)}.</p><table><thead><tr><th>known class</th><th>source</th><th>target</th>"
            f"</tr></thead><tbody>{mix}</tbody></table><p>{_escaped(summary.groups.get('sentence', ''))}</p>"
            f"<p>Top novel rows: {top}</p>"
            f"<p><small>{_escaped(summary.verdict['caveat'])}</small></p></div>"
        )


def check_free(folder: Path, *, overwrite: bool) -> None:
    """Raise an error unless a run can be written there: there is nothing, or nothing but a run that may go."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: a run is written to a folder.")
    check_folder_replaceable(folder)
    there = set(os.listdir(folder)) if folder.exists() else set()
    if not there:
        return
    others = there - {MODEL, SCORED, RESULT, SETTINGS, REPORT}
    if RESULT not in there or others:
        what = f"other files ({listed(sorted(others))})" if RESULT in there else "other files and no run"
        raise ValueError(f"{folder} holds {what}, so it is not replaced: choose another folder.")
    read_summary(folder)  # a result.json of somebody else is no run
    if not overwrite:
        raise ValueError(f"{folder} holds a run already: choose another folder, or overwrite it.")


def read_summary(folder: str | PathLike[str]) -> ResultSummary:
    """The summary of a run that was saved."""
    path = Path(folder) / RESULT
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(
            f"{folder} is no run: there is no {RESULT} in it. Runs are written by 'openset fit' or Result.save."
        ) from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    names = {f.name for f in fields(ResultSummary)}
    needed = {f.name for f in fields(ResultSummary) if f.default is MISSING and f.default_factory is MISSING}
    missing = needed - content.keys() if isinstance(content, Mapping) else needed
    if missing:
        raise ValueError(f"{path} was written by no or another openset: it lacks {sorted(missing)[0]!r}.")
    return ResultSummary(**{name: content[name] for name in names & content.keys()})


def read_run_settings(summary: ResultSummary) -> RunSettings:
    """The settings of a run that was saved, with every column named."""
    return RunSettings(**known_settings(summary.settings, RESULT))


def load_model(folder: str | PathLike[str]) -> Any:
    """The model of a run that was saved."""
    from openset.persistence.model import load

    return load(Path(folder) / MODEL)


def interval_text(share: Mapping[str, Any]) -> str:
    """The novel fraction as a summary holds it, with its interval.

    >>> interval_text({"value": 0.1, "low": 0.08, "high": 1.0, "high_identified": False})
    '0.100 [0.080, not identified]'
    """
    # a run saved before there was a flag has an upper end
    high = f"{share['high']:.3f}" if share.get("high_identified", True) else "not identified"
    return f"{share['value']:.3f} [{share['low']:.3f}, {high}]"


def group_text(group: Mapping[str, Any]) -> str:
    """The size of a group among the novel rows.

    >>> group_text({"size": 40, "share": {"value": 0.1, "low": 0.072, "high": 0.134, "confidence": 0.95}})
    '40 rows, 10.0 % of the target [7.2, 13.4]'
    """
    share = group["share"]
    value, low, high = (100 * share[name] for name in ("value", "low", "high"))
    return f"{group['size']} rows, {value:.1f} % of the target [{low:.1f}, {high:.1f}]"


def listed_text(listed: Mapping[str, Any]) -> str:
    """What the list at a false discovery rate promises.

    >>> listed_text({"fdr": 0.1, "max_density_ratio": 1.0, "rows": 40})
    '40 rows are listed: at most 10 % of them known on average, if the known rows did not shift'
    """
    ratio = listed["max_density_ratio"]
    shift = (
        "the known rows did not shift"
        if ratio == 1
        else f"no known kind became more than {ratio:g} times as common"
    )
    if not listed["rows"]:
        wanted = "it takes more source rows, a larger fdr, or a smaller max_density_ratio where that is plausible"
        return f"no row can be listed, assuming only that {shift}: {wanted}"
    most = f"at most {100 * listed['fdr']:g} % of them known on average"
    return f"{listed['rows']} rows are listed: {most}, if {shift}"


def _escaped(value: Any) -> str:
    return html.escape(str(value))


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=head, subsequent_indent=" " * len(head)) or [head.rstrip()]


def _short(value: Any, most: int) -> str:
    return shortened(" ".join(str(value).split()), most)


def _features_text(features: Any) -> str:
    if isinstance(features, Mapping):
        return f"{features['kind']} column {features['column']!r} through {features['encoder']}"
    return f"{len(features)}: {listed(features, 8)}"
