"""Answers of a review: names of groups, and rows that are known after all."""

from __future__ import annotations

import shutil

import numpy as np
import pandas as pd
import pytest

from openset.review.session import Session
from openset.watch import Watch
from openset.watch.fits import WatchedRun
from openset.watch.labels import NO_LABELS, Labels, read_labels


@pytest.fixture
def reviewed(weeks_folder, tmp_path):
    """A copy of the run whose new rows a person answers with ``answer``."""

    def make(answer):
        folder = tmp_path / "run"
        shutil.copytree(weeks_folder / "run", folder)
        session = Session(folder, seed=0)
        for row in np.flatnonzero(pd.read_parquet(weeks_folder / "target.parquet")["height"] > 5):
            answer(session, int(row))
        session.close()
        return folder

    return make


def test_a_confirmed_new_class_names_its_group(reviewed, weeks):
    folder = reviewed(lambda session, row: session.new(row, "bird"))
    labels = read_labels(WatchedRun(folder))
    assert labels.names == ("bird",) and labels.is_new == (True,) and len(labels.points) == 5
    watch = Watch(folder)
    watch.add_all(weeks[4:7])
    answer = watch.answer()
    assert answer.code == "noticed" and [(g.name, g.confirmed) for g in answer.groups] == [("bird", "new")]
    assert "bird, confirmed as new" in answer() and "bird" in answer.table()


def test_a_group_confirmed_as_known_is_named_and_not_noticed(reviewed, weeks):
    folder = reviewed(lambda session, row: session.known(row, "cat"))
    watch = Watch(folder, refit="never")
    watch.add_all(weeks[4:7])
    answer = watch.answer()
    counted = [batch.record.rows * batch.record.called_share.value for batch in answer.batches]
    assert all(batch.record.confirmed_known > 0 for batch in answer.batches) and max(counted) > 30
    assert [(group.name, group.confirmed) for group in answer.groups] == [("cat", "known")]
    shutil.move(folder / "review.sqlite", folder / "other.sqlite")
    without = Watch(folder, state=folder / "without.sqlite", refit="never")
    without.add_all(weeks[4:7])
    assert without.answer().evidence > 100 * answer.evidence


def test_no_review_and_rows_that_are_gone(run, reviewed, tmp_path):
    assert read_labels(WatchedRun(run)) is NO_LABELS
    folder = reviewed(lambda session, row: session.skip(row))
    assert read_labels(WatchedRun(folder)) is NO_LABELS, "a row that was skipped has no answer"
    (folder / "result.json").write_text(
        (folder / "result.json").read_text("utf-8").replace("target.parquet", "gone.parquet"), encoding="utf-8"
    )
    assert "The review's answers are not used: the target was read from" in read_labels(WatchedRun(folder)).note


def test_a_group_has_the_name_of_most_of_its_rows():
    points = np.concatenate([np.random.default_rng(0).normal(size=(20, 2)), np.full((3, 2), 50.0)])
    labels = Labels(points[:20], ("bird",), (True,), np.zeros(20, np.intp))
    assert labels.name_of(points[:20]) == ("bird", True) and labels.name_of(points[18:]) is None
    assert labels.is_known(points).sum() == 0 and NO_LABELS.name_of(points) is None
    assert NO_LABELS.is_known(points).tolist() == [False] * 23
