from __future__ import annotations

import pandas as pd
import pytest

import openset
from openset.review.promote import promote
from openset.review.session import Session


def answered(session, truth, n=60):
    for i in range(n):
        row = session.next("explore" if i % 2 else "estimate").row
        session.new(row, "kettle") if truth[row] == "new" else session.known(row, truth[row])
    return session


def test_a_promoted_class_is_known_and_the_target_is_open_again(run_folder, truth, tmp_path):
    session = answered(Session(run_folder, annotator="ann", seed=0), truth)
    found = promote(session, tmp_path / "out")
    assert found.promoted["kettle"] >= 20 and found.left_out == {}
    labelled = pd.read_parquet(tmp_path / "out" / "labelled.parquet")
    target = pd.read_parquet(tmp_path / "out" / "target.parquet")
    assert len(labelled) + len(target) == 600 + 500
    assert len(target) == 500 - (60 - found.check_rows)
    added = labelled[labelled["review_origin"] == "target"]
    assert set(added["review_annotators"]) == {"ann"} and set(added["review_by"]) == {"hand"}
    for row, label in zip(added["review_row"], added["kind"], strict=True):
        assert label == ("kettle" if truth[row] == "new" else truth[row])
    again = openset.load_run(tmp_path / "out" / "run")
    assert sorted(again.model.classes_) == ["cat", "dog", "kettle"]
    assert (again.scored.nearest_known == "kettle").sum() > 20
    assert found.check_rows == 12 and found.after.right >= 11
    assert (found.before.classes, found.after.classes) == (2, 3)
    assert found.after.called_novel < found.before.called_novel


def test_without_enough_answers_nothing_is_promoted(run_folder, truth, tmp_path):
    session = Session(run_folder, seed=0)
    with pytest.raises(ValueError, match="no new class has 10 answered rows yet .none was answered"):
        promote(session, tmp_path / "out")
    session.new(1, "kettle")
    with pytest.raises(ValueError, match="kettle: 1"):
        promote(session, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_holds_something_is_left_alone(run_folder, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="is not empty"):
        promote(run_folder, tmp_path / "out")
