"""One batch: counts that match the scores by hand, and what a review confirmed left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from openset.data.readers.open import open_source
from openset.watch.fits import WatchedRun
from openset.watch.labels import NO_LABELS, Labels
from openset.watch.look import KEPT_ROWS, look_at


@pytest.fixture(scope="module")
def watched_run(run):
    return WatchedRun(run)


@pytest.fixture(scope="module")
def model(watched_run):
    return watched_run.fit(watched_run.target(), number=0, after=0, names=["target"])


def look(watched_run, path, models, labels=NO_LABELS, earlier=None, alone=False):
    return look_at(
        watched_run, open_source(path), models, number=1, name="b", path=str(path), sha256="0", labels=labels,
        earlier=earlier or {}, alone=alone,
    )  # fmt: skip


def test_counts_are_of_scores_above_the_thresholds(watched_run, model, weeks):
    looked = look(watched_run, weeks[5], [model])
    rows = pd.read_parquet(weeks[5])[["width", "height", "weight"]].to_numpy()
    scores = model.model.novelty_score(rows)
    assert looked.record.counts[0].above == [int((scores > t).sum()) for t in model.record.thresholds]
    assert looked.record.called_novel == int((scores > model.model.threshold_).sum())
    assert looked.record.rows == len(rows) <= KEPT_ROWS and len(looked.sample) == len(rows)
    assert looked.record.model == 0 and looked.record.path == str(weeks[5])


def test_a_batch_read_in_parts_is_the_same(watched_run, model, weeks, monkeypatch):
    points = look(watched_run, weeks[6], [model]).groups[1].astype(np.float64)[:5]
    labels = Labels(points, ("odd cat",), (False,), np.zeros(len(points), np.intp))
    whole = look(watched_run, weeks[6], [model], labels)
    monkeypatch.setattr("openset.watch.look.BATCH_ROWS", 64)
    parts = look(watched_run, weeks[6], [model], labels)
    assert replace(parts.record, time="") == replace(whole.record, time="") and whole.record.confirmed_known
    assert np.array_equal(parts.sample, whole.sample) and np.array_equal(parts.groups[1], whole.groups[1])


def test_a_batch_with_nothing_left_after_a_review_is_not_fitted_alone(watched_run, model, weeks):
    X = pd.read_parquet(weeks[0])[["width", "height", "weight"]].to_numpy()
    points = watched_run.profile.scaled(X).astype(np.float64)
    labels = Labels(points, ("cat",), (False,), np.zeros(len(points), np.intp))
    looked = look(watched_run, weeks[0], [model], labels, alone=True)
    assert looked.record.own_fit is None and looked.record.called_share.value <= 0.1


def test_every_model_in_use_counts(watched_run, model, weeks):
    second = watched_run.fit(watched_run.target()[:200], number=1, after=1, names=["x"])
    looked = look(watched_run, weeks[0], [model, second])
    assert [count.model for count in looked.record.counts] == [0, 1] and looked.record.model == 1


def test_rows_like_those_confirmed_as_known_do_not_count(watched_run, model, weeks):
    points = look(watched_run, weeks[6], [model]).groups[1].astype(np.float64)
    codes = np.zeros(len(points), np.intp)
    known = look(watched_run, weeks[6], [model], Labels(points, ("odd cat",), (False,), codes))
    new = look(watched_run, weeks[6], [model], Labels(points, ("bird",), (True,), codes))
    assert known.record.confirmed_known >= 30 and new.record.confirmed_known == 0
    assert known.record.counts[0].above[0] <= new.record.counts[0].above[0] - 30


def test_a_batch_that_moved_is_neither_counted_nor_fitted_on(watched_run, model, weeks):
    looked = look(watched_run, weeks[7], [model])
    assert looked.record.counts == [] and len(looked.sample) == 0 and looked.groups == {}


def test_a_model_that_can_prove_nothing_counts_nothing(watched_run, model, weeks):
    from dataclasses import replace

    limited = replace(model, record=replace(model.record, limit="unmixed"))
    record = look(watched_run, weeks[0], [limited]).record
    assert record.counts == [] and "do not mix with source" in record.cannot_tell and record.moved == "no"


def test_a_batch_with_no_row_above_anything(watched_run, model, weeks, tmp_path):
    frame = pd.read_parquet(weeks[0])
    centre = 4.0 * (frame["width"] > 2)
    near = {
        "width": centre + 0.6 * (frame["width"] - centre),
        **{n: 0.6 * frame[n] for n in ("height", "weight")},
    }
    frame = frame.assign(**near)
    frame.to_parquet(tmp_path / "plain.parquet")
    record = look(watched_run, tmp_path / "plain.parquet", [model]).record
    assert record.called_novel == 0 and record.counts[0].above == [0] * len(model.record.thresholds)
    assert record.called_share.low == 0 < record.called_share.high and record.groups == []
