from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from openset.review.queues import Suggestion
from openset.review.views import Views


@pytest.fixture
def views(session):
    return Views(session)


def test_a_row_of_a_table_shows_its_unusual_columns_and_its_neighbours(views, truth):
    row = int(np.flatnonzero(truth == "new")[0])
    shown = views.row(Suggestion(row, "because"), "explore")
    assert shown["kind"] == "table" and shown["reason"] == "because"
    assert shown["columns"][0]["unusual"] > 1
    assert {column["name"] for column in shown["columns"]} == {"width", "height", "weight", "town"}
    assert len(shown["neighbours"]) == 3 and {n["label"] for n in shown["neighbours"]} <= {"cat", "dog"}
    assert shown["keys"] == ["cat", "dog"] and shown["suggested"] in shown["keys"]
    json.dumps(shown, allow_nan=False)


def test_the_rank_follows_the_ranking(views, session):
    best = int(session.ranking.argmax())
    assert views.row(Suggestion(best, ""), "explore")["rank"] == 1


def test_the_overview_is_plain(views, session):
    session.new(3, "kettle")
    session.skip(4)
    found = views.overview()
    json.dumps(found, allow_nan=False)
    assert found["names"] == [{"name": "kettle", "rows": 1}] and found["skipped"] == 1
    assert found["people"] == ["me"] and found["rows"] == 500


def test_a_group_shows_the_rows_of_its_audit_first(views, session):
    found = views.group(0)
    assert [tile["row"] for tile in found["members"][: len(found["open"])]] == found["open"]
    session.new(found["open"][0], queue="audit")
    again = views.group(0)
    assert again["audited"] == 1 and again["answered"] == 1 and not again["ready"]


def test_of_many_classes_the_most_probable_have_keys(views, session):
    session.classes = [f"c{i}" for i in range(12)]
    wide = np.random.default_rng(0).random((500, 13))
    session.result = replace(session.result, scored=replace(session.result.scored, probabilities=wide))
    keys = views._keys(7)
    assert len(keys) == 9 and keys[0] == f"c{wide[7, :-1].argmax()}"
