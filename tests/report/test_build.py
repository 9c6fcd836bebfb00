from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.data.readers.records import Records
from openset.features.maker import MadeFeatures
from openset.pipeline.summary import Group, Groups, Share
from openset.report import build
from openset.report.build import lay_out, stratified_sample, top_rows


def test_the_table_has_the_highest_scores_in_order(synthetic, data):
    scores = synthetic.scored.novelty_score
    assert len(data.rows) == 500
    assert [row.score for row in data.rows] == np.sort(scores)[::-1][:500].tolist()
    first = int(np.argmax(scores))
    assert data.rows[0].id == str(first)
    assert data.rows[0].p_value == synthetic.scored.p_value[first]
    assert data.rows[0].predicted == "-1" and data.rows[0].nearest_known in {"0", "1", "2"}


def test_scores_without_a_number_stay_out():
    assert top_rows(np.array([np.nan, 1.0]), 5).tolist() == [1]


def test_the_map_is_the_plane_of_largest_variance(synthetic, data):
    X = np.asarray(synthetic.features_target, np.float64)
    centred = X - X.mean(axis=0)
    _, values, directions = np.linalg.svd(centred, full_matrices=False)
    expected = centred @ directions[:2].T
    assert np.abs(data.map.xy) == pytest.approx(np.abs(expected), abs=1e-6)
    assert data.map.variance_kept == pytest.approx((values[:2] ** 2).sum() / (values**2).sum())
    in_table = [data.rows[place].score for place in data.map.table_rows if place >= 0]
    assert in_table == [s for s, place in zip(data.map.scores, data.map.table_rows, strict=True) if place >= 0]


@pytest.mark.parametrize("features", [np.zeros((9, 5)), np.ones((9, 1)), np.full((9, 5), np.nan)])
def test_no_plane_no_map(features):
    nothing = np.arange(0)
    assert lay_out(features, np.arange(9), np.zeros(9), np.zeros(9), table=nothing) is None


@given(
    counts=st.lists(st.integers(1, 400), min_size=1, max_size=8),
    limit=st.integers(10, 500),
    at_least=st.integers(0, 60),
)
def test_a_stratified_sample_keeps_to_its_limit_and_loses_no_class(counts, limit, at_least):
    labels = np.repeat(np.arange(len(counts)), counts)
    rows = stratified_sample(labels, limit, at_least=at_least)
    assert len(rows) == len(np.unique(rows)) <= limit
    assert (np.diff(rows) > 0).all()
    drawn = np.bincount(labels[rows], minlength=len(counts))
    assert (drawn >= np.minimum(counts, min(at_least, limit // len(counts)))).all()
    if len(labels) <= limit:
        assert len(rows) == len(labels)
    assert rows.tolist() == stratified_sample(labels, limit, at_least=at_least).tolist()


def test_texts_are_excerpts(synthetic):
    texts = np.array([f"row {row} " + "long " * 200 for row in range(700)], object)
    shown = build(SimpleNamespace(**{**vars(synthetic), "target": Records(np.arange(700), texts=texts)})).rows
    assert shown[0].text.startswith(f"row {shown[0].id} long") and len(shown[0].text) == 300
    assert shown[0].text.endswith("…")


def test_named_columns_are_told_by_how_far_they_are_from_source(synthetic):
    names = tuple(f"column {j}" for j in range(synthetic.features_target.shape[1]))
    values = [1000 * X + 7 for X in (synthetic.features_source, synthetic.features_target)]
    made = [
        MadeFeatures(X, own, names)
        for X, own in zip((synthetic.features_source, synthetic.features_target), values, strict=True)
    ]
    own = {"target": Records(np.arange(700)), "made_source": made[0], "made_target": made[1]}
    row = build(SimpleNamespace(**{**vars(synthetic), **own})).rows[0]
    source, X = values[0], values[1][int(row.id)]
    farthest = int(np.argmax(np.abs(X - source.mean(axis=0)) / source.std(axis=0)))
    assert row.text.startswith(f"column {farthest} = {X[farthest]:.3g} (source")
    assert row.text.count("source") == 3


def test_groups_of_the_summary_get_their_examples(synthetic):
    share = Share(0.1, 0.08, 0.12, 0.95)
    groups = [Group(40, share, 0.9, 5, [5, 6, 7], [5, 6, 7]), Group(30, share, 0.8, 2, [2], [2])]
    target = Records(np.arange(700), texts=np.array([f"text {row}" for row in range(700)], object))

    def built(found):
        summary = replace(synthetic.summary, groups=Groups("…", found))
        return build(SimpleNamespace(**{**vars(synthetic), "summary": summary, "target": target})).groups

    first, second = built(groups)
    assert [row.text for row in first.examples] == ["text 5", "text 6", "text 7"]
    assert [row.id for row in second.examples] == ["2"] and (first.name, second.size) == ("Group 1", 30)
    assert first.sentence.startswith(
        "10.0% of the target. Found again in random parts of the rows with a mean overlap of 90"
    )
    (only,) = built(groups[:1])
    assert only.name == "All rows called new" and "overlap" not in only.sentence
    assert built([]) == ()
