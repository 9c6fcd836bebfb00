"""Runs that were fitted on a sample, from end to end: the same whatever the order of parts, loaded, scored, told.

No module has this name: what is tested here goes through reading, fitting, scoring, saving and the review.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import openset
from openset.pipeline.compare import compare_runs, evaluate_run
from openset.review.promote import promote
from openset.review.session import Session
from product_files import SAMPLED, write_large


@pytest.fixture(scope="module")
def loaded(large_files):
    return openset.load_run(large_files / "run")


def test_the_order_of_parts_changes_nothing(large_files, loaded, tmp_path):
    for name in ("source", "target"):
        (tmp_path / name).mkdir()
        for number in range(4):
            part = pd.read_parquet(large_files / name / f"part-{number}.parquet")
            part.iloc[::-1].to_parquet(tmp_path / name / f"part-{3 - number}.parquet")
    again = openset.run(tmp_path / "source", tmp_path / "target", **SAMPLED, fdr=0.1, carry="note")
    assert again.source.ids.tolist() == loaded.source.ids.tolist()
    assert again.scored.id.tolist() == loaded.scored.id.tolist()
    np.testing.assert_array_equal(again.scored.novelty_score, loaded.scored.novelty_score)
    one, two = (found.to_frame().set_index("rid").sort_index() for found in (again, loaded))
    pd.testing.assert_frame_equal(one.drop(columns="rank"), two.drop(columns="rank"))
    np.testing.assert_array_equal(again.source_scores, loaded.source_scores)


def test_nothing_is_sampled_where_there_are_few_enough_rows(large_files):
    files = (large_files / "source", large_files / "target")
    every = openset.run(*files, **{**SAMPLED, "fit_rows": "all"})
    for rows in (3000, "3000", 100_000):
        found = openset.run(*files, **{**SAMPLED, "fit_rows": rows})
        assert found.scored_file is None and not found.summary.data.is_sample
        pd.testing.assert_frame_equal(found.to_frame(), every.to_frame())
        np.testing.assert_array_equal(found.source_scores, every.source_scores)
        assert found.source.rows.tolist() == list(range(3000))
    one_side = openset.run(*files, **{**SAMPLED, "fit_rows": 2500})
    data = one_side.summary.data
    assert one_side.scored_file is None and data.source.fitted == 2500 + data.source.more_of_rare
    assert data.target.fitted is None and len(one_side.to_frame()) == 2000
    assert "All target rows are scored" not in data.sample_text


def test_csv_files_frames_and_parquet_give_one_sample(large_files, loaded, tmp_path):
    frames = [pd.read_parquet(large_files / name) for name in ("source", "target")]
    for name, whole in zip(("source", "target"), frames, strict=True):
        whole.to_csv(tmp_path / f"{name}.csv", index=False)
    of_csv = openset.run(tmp_path / "source.csv", tmp_path / "target.csv", **SAMPLED)
    of_frames = openset.run(*frames, **SAMPLED)
    for found in (of_csv, of_frames):
        assert found.scored.id.tolist() == loaded.scored.id.tolist()
        np.testing.assert_allclose(found.scored.novelty_score, loaded.scored.novelty_score, rtol=1e-9)
    assert of_frames.summary.data.source.path is None


def test_the_rare_class_stays_and_shares_are_those_of_all_source_rows(loaded):
    assert (loaded.source.y == "owl").sum() == 12 and loaded.model.classes_.tolist() == ["cat", "dog", "owl"]
    shares = {name: entry.source for name, entry in loaded.summary.class_mix.items()}
    assert shares == {"cat": 1500 / 3000, "dog": 1488 / 3000, "owl": 12 / 3000}
    data = loaded.summary.data
    assert data.source.rows == 3000 and data.source.fitted == len(loaded.source) == 500 + data.source.more_of_rare
    assert data.target.rows == 2000 and data.target.fitted == 500 and data.source.drawn_by == "id"


def test_it_says_what_was_fitted_on_and_what_that_is_about(large_files, loaded):
    text = " ".join(loaded.summary().split()).replace("- ", "-")
    fitted = loaded.summary.data.source.fitted
    assert (
        f"Fitted on {fitted} of 3000 source rows and 500 of 2000 target rows, drawn by a hash of the id" in text
    )
    assert "All target rows are scored" in text and "--fit-rows all" in text
    assert "of 2000 target rows, budget" in text and "In the sample, the " in text
    page = (large_files / "run" / "report.html").read_text(encoding="utf-8")
    assert "Which rows were fitted on" in page and "target rows fitted on with the highest novelty score" in page
    content = json.loads((large_files / "run" / "result.json").read_text())
    assert content["settings"]["fit_rows"] == 500 and content["data"]["target"]["fitted"] == 500
    assert "fit_rows = 500" in (large_files / "run" / "settings.toml").read_text()


def test_a_loaded_run_is_the_run(large_files, loaded, tmp_path):
    first = openset.run(large_files / "source", large_files / "target", **SAMPLED, fdr=0.1, carry="note")
    pd.testing.assert_frame_equal(loaded.to_frame(), first.to_frame())
    for name in ("rank", "group", "novel_at_fdr", "novelty_score", "id"):
        np.testing.assert_array_equal(getattr(loaded.scored, name), getattr(first.scored, name))
    pd.testing.assert_frame_equal(loaded.novel_rows(0.05), first.novel_rows(0.05))
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again" / "scored_target.parquet").read_bytes() == (
        large_files / "run" / "scored_target.parquet"
    ).read_bytes()
    loaded.report(tmp_path / "page.html")


def test_a_run_of_an_earlier_openset_was_fitted_on_all_rows(large_files, tmp_path):
    options = {**SAMPLED, "fit_rows": "all"}
    openset.run(large_files / "source", large_files / "target", **options).save(tmp_path / "run")
    path = tmp_path / "run" / "result.json"
    content = json.loads(path.read_text())
    content["settings"]["fit_rows"] = 500  # as the default, in a file that does not name it
    for role in ("source", "target"):
        for name in ("fitted", "drawn_by", "more_of_rare"):
            del content["data"][role][name]
    path.write_text(json.dumps(content))
    found = openset.load_run(tmp_path / "run")
    assert len(found.scored) == 2000 and len(found.source) == 3000 and found.scored_file is None


def test_an_id_that_came_before_is_found_also_outside_of_the_sample(large_files, tmp_path):
    twice = pd.read_parquet(large_files / "target")
    twice.loc[1500, "rid"] = "t3"
    twice.to_parquet(tmp_path / "twice.parquet")
    with pytest.raises(ValueError, match="row 1500: id t3 in column 'rid' came before"):
        openset.run(large_files / "source", tmp_path / "twice.parquet", **SAMPLED)
    found = openset.run(large_files / "source", tmp_path / "twice.parquet", **SAMPLED, skip_bad=True)
    data, ids = found.summary.data.target, found.to_frame()["rid"].tolist()
    assert (data.rows, data.skipped, data.fitted) == (1999, 1, 500)
    assert ids == [f"t{i}" for i in range(2000) if i != 1500]
    assert found.to_frame().iloc[found.scored_file.index]["rid"].tolist() == found.scored.id.tolist()


def test_source_rows_without_a_label_are_counted(large_files, tmp_path):
    source = pd.read_parquet(large_files / "source")
    source.loc[:1499, "kind"] = None
    source.to_parquet(tmp_path / "source.parquet")
    found = openset.run(tmp_path / "source.parquet", large_files / "target", **SAMPLED)
    data = found.summary.data.source
    assert (data.rows, data.skipped) == (1500, 1500) and len(found.source) == data.fitted


def test_evaluate_and_compare(large_files, tmp_path):
    is_new = write_large(tmp_path / "same")
    labelled = pd.read_parquet(large_files / "target").assign(kind=np.where(is_new, "kettle", "cat"))
    labelled.to_parquet(tmp_path / "labelled.parquet")
    found = evaluate_run(large_files / "run", tmp_path / "labelled.parquet")
    assert found["auroc"] > 0.99
    options = {**SAMPLED, "fit_rows": "all"}
    openset.run(large_files / "source", large_files / "target", **options).save(tmp_path / "all")
    one, two = compare_runs([tmp_path / "all", large_files / "run"])
    assert one.rows == two.rows == 2000 and two.rank_correlation > 0.9 and two.overlap > 0.8


def test_a_review_and_a_promotion_are_about_the_sample(large_files, loaded, tmp_path):
    is_new = write_large(tmp_path / "same")
    session = Session(loaded, seed=0)
    assert len(session) == 500
    # columns of the file that are no features belong to the right rows, though the sample is in another order
    notes = session.target.columns["note"]
    assert notes == [f"note {row}" for row in loaded.target.rows.tolist()]
    for i in range(60):
        row = session.next("explore" if i % 2 else "estimate").row
        session.new(row, "kettle") if is_new[loaded.target.rows[row]] else session.known(row)
    found = promote(session, tmp_path / "out")
    assert found.before.target_rows == 2000 and found.before.called_novel == loaded.summary.called_novel
    again = openset.load_run(tmp_path / "out" / "run")
    assert sorted(again.model.classes_) == ["cat", "dog", "kettle", "owl"] and again.scored_file is None
    assert len(again.source) == len(loaded.source) + 60 - found.check_rows


def test_no_row_of_the_file_is_listed_where_nothing_can_be_told(large_files, tmp_path):
    frames = [pd.read_parquet(large_files / name) for name in ("source", "target")]
    for number, (name, whole) in enumerate(zip(("source", "target"), frames, strict=True)):
        whole.assign(site=f"s{number}").to_csv(tmp_path / f"{name}.csv", index=False)
    found = openset.run(tmp_path / "source.csv", tmp_path / "target.csv", **SAMPLED, fdr=0.5)
    assert found.summary.verdict.code == "cannot_tell" and found.scored_file is not None
    assert found.summary.listed.rows == 0 and "nothing can be promised" in found.summary.listed.text
    assert not found.to_frame()["novel_at_fdr"].any() and not found.scored.novel_at_fdr.any()
    assert not len(found.novel_rows(0.5))
