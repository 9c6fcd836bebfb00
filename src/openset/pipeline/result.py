"""The result of a run, and the folder that it is written to and read from."""

from __future__ import annotations

import html
import json
import os
import shutil
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openset._utils.files import (
    check_folder_replaceable,
    check_not_input,
    recover,
    replacing_folder,
    write_atomically,
)
from openset._utils.text import listed
from openset._utils.typed import read_as, read_json
from openset.errors import Parameter, ParameterError
from openset.pipeline.settings import settings_of, to_toml
from openset.pipeline.summary import MOST_CLASSES, MOST_ROWS, ResultSummary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from openset.data.readers.records import Records
    from openset.features.fitted import FittedFeatures
    from openset.features.maker import MadeFeatures
    from openset.pipeline.scored_file import ScoredFile
    from openset.pipeline.scored_table import ScoredTable
    from openset.stats.groups import NovelGroups

MODEL, SCORED, RESULT = "model", "scored_target.parquet", "result.json"
SETTINGS, REPORT, PROFILE = "settings.toml", "report.html", "profile.safetensors"
FEATURES = "features.json"


@dataclass(frozen=True, eq=False)
class Result:
    """A fitted model, the scored target and what they say.

    ``result.summary`` has the numbers and ``result.summary()`` says them in words. ``source`` and ``target`` are
    the records as read, ``made_source`` and ``made_target`` their features. ``fitted_features`` makes those of
    further rows; it is None in the run of an earlier openset.

    Where the fit was on a sample of the target, ``scored``, ``target`` and ``made_target`` have the rows of the
    sample, and ``scored_file`` has all target rows. :meth:`to_frame` and :meth:`novel_rows` are about all rows.
    """

    model: Any
    summary: ResultSummary
    scored: ScoredTable
    source: Records
    target: Records
    made_source: MadeFeatures
    made_target: MadeFeatures
    fitted_features: FittedFeatures | None = None
    scored_file: ScoredFile | None = None

    @property
    def features_source(self) -> NDArray[np.floating]:
        """What the model was fitted on, of source."""
        return self.made_source.X

    @property
    def features_target(self) -> NDArray[np.floating]:
        """What the model was fitted on, of target."""
        return self.made_target.X

    @property
    def source_scores(self) -> NDArray[np.float64]:
        """Novelty scores of the source's validation rows; a p-value is a rank among them."""
        scores: NDArray[np.float64] = self.model.calibration_scores_
        return scores

    def to_frame(self, backend: str = "pandas") -> Any:
        """The scored target rows as a data frame of pandas, polars or pyarrow."""
        return (self.scored if self.scored_file is None else self.scored_file).to_frame(backend)

    def novel_rows(
        self, fdr: float = 0.1, *, max_density_ratio: float | None = None, backend: str = "pandas"
    ) -> Any:
        """The scored rows to act on, surest first: at most a share ``fdr`` of them is known, on average.

        That is guaranteed for one score if no known kind of row is more than ``max_density_ratio`` times as
        common in the target as in the source; None for what the fit assumed, else 1, no shift. A larger one
        gives a shorter list; under a shift larger than assumed most listed rows can be known. A method that
        chose its score on the same validation rows, as CoLOR does, is not corrected for that choice. Where the
        verdict is "cannot tell", nothing can be promised, and no row is returned.
        """
        import numpy as np

        from openset.pipeline.list_rows import CANNOT_TELL
        from openset.pipeline.scored_table import rows_at_fdr

        why_none = CANNOT_TELL if self.summary.verdict.code == "cannot_tell" else ""
        if self.scored_file is not None:
            return self.scored_file.listed(self.model, fdr, max_density_ratio, backend, why_none)
        listed = rows_at_fdr(self.model, self.scored, fdr, max_density_ratio=max_density_ratio)
        if why_none:
            listed = np.zeros_like(listed)
        order = (-self.scored.novelty_score).argsort(kind="stable")
        return self.scored.take(order[listed[order]]).to_frame(backend)

    def novel_groups(self) -> NovelGroups:
        """The groups among the rows called novel, with the group of every row of ``scored`` (−1 for none)."""
        from openset.pipeline.explain import find_groups

        scores = self.scored.novelty_score
        called = scores > self.model.threshold_
        return find_groups(self.model, self.features_source, self.features_target, scores, called)

    def save(self, folder: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write model, scored target, ``result.json``, settings, profile and report to a folder, or nothing."""
        from openset.data.writer import writing_table
        from openset.features.fitted import write_features
        from openset.pipeline.fit_profile import make_profile, write_profile

        path = Path(folder)
        check_free(path, self.summary.settings.source, self.summary.settings.target, overwrite=overwrite)
        with replacing_folder(path, overwrite=overwrite) as temporary:
            self.model.save(temporary / MODEL)
            if self.scored_file is not None:
                shutil.copyfile(self.scored_file.path, temporary / SCORED)
            else:
                with writing_table(temporary / SCORED) as write:
                    write(self.scored.columns())
            content = json.dumps(self.summary.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
            write_atomically(temporary / RESULT, content.encode())
            write_atomically(temporary / SETTINGS, to_toml(self.summary.settings).encode())
            if self.fitted_features is not None:
                write_features(self.fitted_features, temporary / FEATURES)
            profile = make_profile(self.made_source, self.made_target, self.source, self.target)
            write_profile(profile, temporary / PROFILE)
            self.report(temporary / REPORT)

    def report(self, path: str | PathLike[str], *, examples: bool = True) -> None:
        """Write one self-contained HTML page; ``examples=False`` leaves the rows' content out."""
        from openset.report.build import build
        from openset.report.page import write_report

        check_not_input(Path(path), self.summary.settings.source, self.summary.settings.target)
        write_report(build(self), path, examples=examples)

    def _repr_html_(self) -> str:
        summary = self.summary
        mix = "".join(
            f"<tr><td>{_escaped(name)}</td><td>{shares.source:.1%}</td><td>{shares.target:.1%}</td></tr>"
            for name, shares in list(summary.class_mix.items())[:MOST_CLASSES]
        )
        top = ", ".join(_escaped(row) for row in summary.top_rows[:MOST_ROWS])
        return (
            f"<div><p><b>{_escaped(summary.verdict.word)}</b>: {_escaped(summary.verdict.sentence)}</p>"
            f"<p>{summary.called_novel} of {summary.data.target.rows} target rows called new by "
            f"{_escaped(summary.method)}. Share: {_escaped(summary.novel_fraction.text)}.</p>"
            "<table><thead><tr><th>known class</th><th>source</th><th>target</th>"
            f"</tr></thead><tbody>{mix}</tbody></table><p>{_escaped(summary.groups.sentence)}</p>"
            f"<p>Top novel rows: {top}</p>"
            f"<p><small>{_escaped(summary.verdict.caveat)}</small></p></div>"
        )


def check_free(folder: Path, *inputs: Any, overwrite: bool) -> None:
    """Raise an error unless a run can be written there: the folder is empty, absent, or a run to replace.

    ``inputs`` are what the run is made of: they must not be in the folder.
    """
    recover(folder)
    check_not_input(folder, *inputs)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: a run is written to a folder.")
    check_folder_replaceable(folder)
    there = set(os.listdir(folder)) if folder.exists() else set()
    if not there:
        return
    others = there - {MODEL, SCORED, RESULT, SETTINGS, REPORT, PROFILE, FEATURES}
    if RESULT not in there or others:
        what = f"other files ({listed(sorted(others))})" if RESULT in there else "other files and no run"
        raise ValueError(f"{folder} holds {what}, so it is not replaced: choose another folder.")
    read_summary(folder)  # a result.json of somebody else is no run
    if not overwrite:
        what = f"{folder} holds a run already: choose another folder, or replace it with "
        raise ParameterError(what, Parameter("overwrite", True), ".")


def read_summary(folder: str | PathLike[str]) -> ResultSummary:
    """The summary of a run that was saved."""
    path = Path(folder) / RESULT
    recover(Path(folder))
    try:
        content = read_json(path)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(
            f"{folder} is no run: there is no {RESULT} in it. Runs are written by 'openset fit' or Result.save."
        ) from None
    if not isinstance(content, dict) or "openset_version" not in content:
        raise ValueError(f"{path} was not written by openset: openset_version is missing.")
    if "settings" in content:  # a setting that this version does not know must not be ignored
        content["settings"] = settings_of(content["settings"], str(path), at="settings")
    return read_as(ResultSummary, content, str(path))


def load_model(folder: str | PathLike[str]) -> Any:
    """The model of a run that was saved."""
    from openset.persistence.model import load

    return load(Path(folder) / MODEL)


def _escaped(value: Any) -> str:
    return html.escape(str(value))
