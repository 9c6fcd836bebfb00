"""The scored table of all target rows, in a file, of runs that were fitted on a sample."""

from __future__ import annotations

import gc

import numpy as np
import pandas as pd
import pytest

import openset
from openset.stats.p_values import benjamini_hochberg, conformal_p_values
from product_files import SAMPLED


@pytest.fixture(scope="module")
def sampled(large_files):
    return openset.run(large_files / "source", large_files / "target", **SAMPLED, fdr=0.1, carry="note")


def test_every_target_row_is_scored_once_and_in_order(sampled, large_files, tmp_path):
    found = sampled.to_frame()
    assert found["rid"].tolist() == [f"t{i}" for i in range(2000)]
    assert found["note"].tolist() == [f"note {i}" for i in range(2000)]
    assert len(sampled.scored_file) == 2000
    # the same columns, from the saved run
    openset.score(large_files / "run", large_files / "target", tmp_path / "again.parquet", carry="note")
    again = pd.read_parquet(tmp_path / "again.parquet")
    pd.testing.assert_frame_equal(found[again.columns.tolist()], again)
    assert found.columns.tolist() == [
        "rid", "predicted", "novelty_score", "p_value", "p_cat", "p_dog", "p_owl", "p_novel", "nearest_known",
        "rank", "group", "novel_at_fdr", "note",
    ]  # fmt: skip


def test_the_rows_of_the_fit_are_those_of_the_file(sampled):
    found, rows = sampled.to_frame(), sampled.scored_file.index
    assert len(rows) == len(sampled.scored) == 500
    taken = found.iloc[rows]
    assert taken["rid"].tolist() == sampled.scored.id.tolist()
    np.testing.assert_array_equal(taken["novelty_score"], sampled.scored.novelty_score)
    np.testing.assert_array_equal(taken["rank"], sampled.scored.rank)
    np.testing.assert_array_equal(taken["group"], sampled.scored.group)
    np.testing.assert_array_equal(taken["novel_at_fdr"], sampled.scored.novel_at_fdr)
    assert sampled.scored_file.take("note", rows[:3]).tolist() == [f"note {row}" for row in rows[:3]]


def test_ranks_groups_and_counts_are_about_all_rows(sampled):
    found = sampled.to_frame()
    order = np.argsort(-found["novelty_score"].to_numpy(), kind="stable")
    assert found["rank"].to_numpy()[order].tolist() == list(range(1, 2001))
    assert sampled.summary.top_rows == found["rid"].to_numpy()[order[:20]].tolist()
    called = found["predicted"] == "novel"
    assert sampled.summary.called_novel == called.sum() > (sampled.scored.predicted == "novel").sum()
    # groups are looked for in the sample: of the other rows called novel none is known
    of_fit = np.isin(np.arange(2000), sampled.scored_file.index)
    assert (found["group"].isna() == (called & ~of_fit)).all() and (found["group"][~called] == 0).all()


def test_rows_are_listed_among_all_rows(sampled):
    found, model = sampled.to_frame(), sampled.model
    p = found["p_value"].to_numpy().copy()
    p[sampled.scored_file.index] = conformal_p_values(model.calibration_scores_, model.target_novelty_score_)
    for fdr in (0.1, 0.02):
        expected = found["rid"][benjamini_hochberg(p, fdr)]
        listed = sampled.novel_rows(fdr)
        assert set(listed["rid"]) == set(expected) and listed["novelty_score"].is_monotonic_decreasing
    assert sampled.summary.listed.rows == found["novel_at_fdr"].sum() == len(sampled.novel_rows(0.1)) > 0
    assert sampled.novel_rows(0.1, backend="polars").height == len(sampled.novel_rows(0.1))
    strict = sampled.novel_rows(0.1, max_density_ratio=1000)
    assert len(strict) == 0


def test_frames_of_each_library(sampled):
    assert sampled.to_frame("polars").height == len(sampled.to_frame("pyarrow")) == 2000
    with pytest.raises(ValueError, match="backend='r'"):
        sampled.to_frame("r")
    with pytest.raises(ValueError, match="backend='r'"):
        sampled.novel_rows(backend="r")


def test_where_no_row_can_be_listed_it_says_from_which_rate_on(large_files):
    found = openset.run(
        large_files / "source", large_files / "target", **SAMPLED, fdr=0.001, max_density_ratio=50
    )
    listed = found.summary.listed
    assert listed.rows == 0 == found.to_frame()["novel_at_fdr"].sum()
    assert listed.smallest_fdr is None or listed.smallest_fdr > 0.001


def test_the_temporary_file_goes_with_the_result(large_files):
    found = openset.run(large_files / "source", large_files / "target", **SAMPLED)
    folder = found.scored_file.path.parent
    assert [path.name for path in folder.iterdir()] == ["scored.parquet"]
    del found
    gc.collect()
    assert not folder.exists()
