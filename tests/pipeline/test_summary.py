"""The summary of a run: typed, the same plain content as ``result.json``, and the answer in words."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import openset
from net.fixture import FOLDERS
from openset.pipeline.data_used import EncodedColumn
from openset.pipeline.result import read_summary
from openset.pipeline.summary import Check, ClassShares, Diagnostic, Group, Groups, Head, ListedRows, Share
from product_files import frame, make_rows


def test_the_summary_holds_the_answer(result):
    summary = result.summary
    # mahalanobis has no test of its own, and an interval of sampling error alone proves nothing
    assert summary.verdict.code == "stands_out" and summary.novelty_test is None
    assert 0.05 < summary.novel_fraction.low < 0.1
    assert summary.called_novel == (result.scored.predicted == "novel").sum()
    assert summary.class_mix["dog"].source == 0.5
    assert summary.class_mix["dog"].target == pytest.approx(2 / 3, abs=0.02)
    assert len(summary.top_rows) == 20 and all(row.startswith("t") for row in summary.top_rows)
    assert summary.data.source.rows == 600 and len(summary.data.source.sha256) == 64
    assert json.loads(json.dumps(summary.to_dict(), allow_nan=False)) == summary.to_dict()
    text = result.summary()
    assert max(map(len, text.splitlines())) <= 80
    assert "Known classes" in text


def test_color_proves_a_clear_class_and_says_under_which_assumption(color):
    summary, text = color.summary, " ".join(color.summary().split())
    assert summary.verdict.code == summary.novelty_test.code == "probable", "forty rows: not for 16"
    assert summary.novelty_test.p_value <= 0.01 and summary.novelty_test.max_density_ratio == 8
    assert summary.parameters["max_density_ratio"] == 8 and summary.novel_fraction.max_density_ratio == 8
    assert list(summary.novel_fraction.profile) == ["1", "3", "8", "12", "30"]
    stored = summary.to_dict()["novel_fraction"]
    assert stored["low"] > 0 and stored["value"] is None and stored["high"] is None, "only the lower end is known"
    assert f"p = {summary.novelty_test.p_value:.2g}" in text
    assert "no kind of known row is more than 8 times as common" in text
    assert f"at least {100 * summary.novel_fraction.low:.1f} %" in text
    assert {check.state for check in summary.checks} == {"passed"} and "Check failed" not in text
    assert all(f"{100 * low:.1f} % for {ratio}" in text for ratio, low in summary.novel_fraction.profile.items())
    for entry in summary.diagnostics:
        assert entry.ok or entry.sentence in text
    assert {"separability achieved", "constraint kept"} <= {entry.name for entry in summary.diagnostics}
    assert max(map(len, color.summary().splitlines())) <= 80


def test_color_brings_its_heads_and_history(color):
    heads = color.summary.heads
    assert len(heads) == 4 and sum(head.selected for head in heads) == 1
    assert [(head.step, head.head, head.candidate_recall) for head in heads] == [
        (100, 0, 0.05), (100, 1, 0.1), (200, 0, 0.05), (200, 1, 0.1),
    ]  # fmt: skip
    assert all(0 <= head.fpr <= 1 and 0 <= head.recall <= 1 and head.value is not None for head in heads)
    assert [entry["step"] for entry in color.summary.history] == [100] * 5 + [200] * 5  # a record of each member
    assert len(color.source_scores) and (np.diff(color.source_scores) >= 0).all()


def test_known_classes_under_shift(color, result):
    for found in (color, result):
        mix, about = found.summary.class_mix, found.summary.known_classes
        assert about.corrected and mix["dog"].target == pytest.approx(2 / 3, abs=0.02)
        assert sum(shares.target for shares in mix.values()) == pytest.approx(1)
        kept = found.scored.predicted != "novel"
        counted = (found.scored.nearest_known[kept] == "dog").mean()
        assert mix["dog"].counted == pytest.approx(counted)
        assert about.accuracy.value > 0.95 and about.accuracy.source_accuracy > 0.95
        assert "corrected by EM" in about.sentence
        assert "0.02 too high on average" in " ".join(found.summary().split())


def test_the_groups_of_novel_rows_are_told(color):
    about = color.summary.groups
    (group,) = about.groups
    assert group.size == color.summary.called_novel and group.medoid == group.examples[0]
    assert group.share.low < 0.1 < group.share.high
    assert color.scored.id[group.rows].tolist() == group.examples
    assert (color.scored.predicted[group.rows] == "novel").all()
    assert "form one group" in about.sentence and "form one group" in color.summary()
    assert ((color.novel_groups().labels == 0) == (color.scored.predicted == "novel")).all()


def test_several_groups_have_a_line_each():
    random = np.random.default_rng(1)
    X, y = make_rows(random, {"cat": 200, "dog": 200})
    target, _ = make_rows(random, {"cat": 100, "dog": 100, "new": 40})
    other = random.normal((0, -9, 9), 0.5, size=(30, 3))
    found = openset.run(
        frame(X, kind=y), frame(np.concatenate([target, other])), label="kind", method="mahalanobis", fpr=0.02
    )
    groups = found.summary.groups.groups
    assert len(groups) == 2 and all(group.stability > 0.75 for group in groups)
    assert all(row >= 240 for row in groups[1].rows) and all(row < 240 for row in groups[0].rows)
    lines = found.summary().splitlines()
    assert [line[:4] for line in lines if "of the target, such as" in line] == ["  1 ", "  2 "]
    assert "form 2 stable groups" in found._repr_html_()


@pytest.mark.parametrize("name", ["color", "color-paper"])
def test_the_plain_content_is_that_of_files_written_before_there_were_types(name):
    folder = FOLDERS / "runs" / name
    written = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    again = read_summary(folder).to_dict()
    assert kept(again, written) == written  # every key and every number as it was written
    assert again["verdict"]["code"] == {"clear": "found", "likely": "probable"}.get(
        written["verdict"]["word"], "nothing"
    )


def kept(again, written):
    """The keys of an earlier file; fields that were added since are left out."""
    if isinstance(written, dict):
        return {name: kept(again[name], value) for name, value in written.items()}
    if isinstance(written, list):
        return [kept(*pair) for pair in zip(again, written, strict=True)]
    return again


def test_heads_have_the_columns_of_their_kind(color):
    plain = Head(0, 10, 1, 0.1, 0.0, 0.2, 1.0, True, selected=True)
    shown = replace(color.summary, heads=[plain, replace(plain, value=0.3)]).to_dict()["heads"]
    assert "value" not in shown[0] and "bound" not in shown[0]
    assert list(shown[1])[-3:] == ["feasible", "value", "selected"]


def test_reading_a_summary_imports_nothing_heavy():
    code = (
        "import sys; from openset.pipeline.result import read_summary; text = read_summary(sys.argv[1])();"
        "print([m for m in ('numpy', 'scipy', 'sklearn', 'torch') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code, str(FOLDERS / "runs" / "color")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_features_that_a_failed_check_names_by_column_are_not_told_again_by_number(color):
    numbered = Diagnostic("separating features", 1.0, 0.0, False, "Feature 64 alone tells source from target.")
    told = replace(color.summary, diagnostics=[*color.summary.diagnostics, numbered])
    assert "Feature 64" in told()
    named = replace(told, checks=[Check("separating column", "failed", "Column 'ticket' alone separates.")])
    assert "Feature 64" not in named() and "'ticket'" in named()


def test_many_classes_rows_and_long_names_are_cut(color):
    encoded = EncodedColumn("text", "review", "minilm", "c0ffee")
    group = Group(40, Share(0.1, 0.072, 0.134, 0.95), 0.9, "a", ["a" * 99, 7], [0, 1])
    summary = replace(
        color.summary,
        class_mix={f"class {'x' * c}": ClassShares(1 / 40, 1 / 40) for c in range(40)},
        groups=Groups("They form 2 stable groups.", [group, group]),
        top_rows=list(range(20)),
        listed=ListedRows(0.1, 12.0, 0),
        data=replace(color.summary.data, features=["review"], columns=[], encoded=[encoded]),
    )
    text = summary()
    assert max(map(len, text.splitlines())) <= 80
    assert "  and 28 more" in text and f"{'a' * 29}…, 7" in text
    assert "1  40 rows, 10.0 % of the target, such as" in text
    assert "Top novel rows  0, 1, 2, 3, 4, 5, 6, 7, 8, 9\n" in text + "\n"
    assert "Features        text column 'review' through minilm" in text
    assert "no row can be listed, assuming only that no known kind became" in " ".join(text.split())
