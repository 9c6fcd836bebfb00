"""A result in its folder: written whole, read again, and refused in one sentence where it is damaged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import openset
from mutations import mutations, outcome
from net.fixture import FOLDERS
from openset.pipeline.compare import compare_runs
from openset.pipeline.result import check_free, read_summary
from openset.pipeline.summary import Groups
from openset.stats.p_values import benjamini_hochberg, conformal_p_values
from product_files import frame, make_rows


def test_saved_and_read_again(result, tmp_path):
    result.save(tmp_path / "run")
    assert read_summary(tmp_path / "run") == result.summary
    again = openset.load_run(tmp_path / "run")
    pd.testing.assert_frame_equal(again.to_frame(), result.to_frame())
    pd.testing.assert_frame_equal(
        pq.read_table(tmp_path / "run" / "scored_target.parquet").to_pandas(), again.to_frame()
    )
    np.testing.assert_array_equal(again.features_source, result.features_source)
    with pytest.raises(ValueError, match="holds a run already"):
        result.save(tmp_path / "run")


def test_the_marked_rows_are_saved_and_read_again(color, tmp_path):
    color.save(tmp_path / "run")
    pd.testing.assert_frame_equal(openset.load_run(tmp_path / "run").to_frame(), color.to_frame())
    content = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    for name in ("novelty_test", "known_classes", "groups", "listed"):
        assert content.pop(name) == color.summary.to_dict()[name]
    # a run of before there were these is read all the same
    (tmp_path / "run" / "result.json").write_text(json.dumps(content), encoding="utf-8")
    old = read_summary(tmp_path / "run")
    assert old.groups == Groups() and "not looked for" in old()


def test_rows_at_a_false_discovery_rate(color, result):
    listed = color.novel_rows(0.1)
    assert (listed["novelty_score"].diff().dropna() <= 0).all()
    assert listed["novel_at_fdr"].all() and len(listed) == color.scored.novel_at_fdr.sum()
    stated = color.summary.listed
    assert (stated.fdr, stated.max_density_ratio, stated.rows) == (0.1, 8, len(listed))
    assert not len(listed) and len(color.novel_rows(stated.smallest_fdr + 1e-9)), "and just below it none is"
    assert not len(color.novel_rows(stated.smallest_fdr - 1e-3)) and stated.source_rows_needed > 600
    held = color.model.target_novelty_score_  # each by the member that held the row out
    assert not np.isnan(held).any()
    p = conformal_p_values(color.model.calibration_scores_, held)
    for ratio in (1, 3):
        expected = color.scored.id[benjamini_hochberg(p, 0.2, max_density_ratio=ratio)]
        assert set(color.novel_rows(0.2, max_density_ratio=ratio)["rid"]) == set(expected)
    assert len(color.novel_rows(0.2, max_density_ratio=1)) >= len(color.novel_rows(0.2, max_density_ratio=3))
    # a method that assumes no bound lists rows as if nothing had shifted
    assert set(result.novel_rows(0.1)["rid"]) == set(result.novel_rows(0.1, max_density_ratio=1)["rid"])
    assert len(result.novel_rows(0.1)) >= 40 and "novel_at_fdr" not in result.to_frame()
    with pytest.raises(ValueError, match="fdr=1"):
        result.novel_rows(1)


def test_markup_in_ids_and_labels_shows_as_text():
    evil = "<script>alert(1)</script>"
    X, y = make_rows(np.random.default_rng(0), {"cat": 60, "dog": 60})
    source = frame(X, kind=np.where(y == "cat", evil, "dog"))
    target = frame(X, rid=[f"{evil}{i}" for i in range(len(X))])
    result = openset.run(
        source.assign(rid=range(120)).astype({"rid": str}), target, label="kind", id="rid", method="knn"
    )
    shown = result._repr_html_()
    assert "<script" not in shown and "&lt;script&gt;alert(1)" in shown
    assert evil in result.summary()


@pytest.mark.parametrize("kind", ["float32", "float64", "uint64"])
def test_the_novel_label_is_written_as_the_summary_has_it(tmp_path, kind):
    random = np.random.default_rng(0)
    X, y = make_rows(random, {"cat": 60, "dog": 60})
    X_target, _ = make_rows(random, {"cat": 30, "dog": 30, "new": 20})
    frame(X, kind=np.where(y == "cat", 3, 7).astype(kind)).to_parquet(tmp_path / "source.parquet")
    frame(X_target).to_parquet(tmp_path / "target.parquet")
    for method in ("knn", "mahalanobis"):
        given = {"label": "kind", "method": method, "fpr": 0.1}
        result = openset.run(tmp_path / "source.parquet", tmp_path / "target.parquet", **given)
        predicted = [str(label) for label in result.scored.predicted.tolist()]
        assert predicted.count(str(result.summary.novel_label)) == result.summary.called_novel >= 15
        result.save(tmp_path / method)
    _, second = compare_runs([tmp_path / "knn", tmp_path / "mahalanobis"])
    assert second.overlap > 0.5


def test_a_folder_with_other_files_is_not_overwritten(result, tmp_path):
    result.save(tmp_path / "run")
    (tmp_path / "run" / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match=r"other files \(thesis.tex\)"):
        result.save(tmp_path / "run", overwrite=True)
    assert (tmp_path / "run" / "thesis.tex").exists()
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "result.json").write_text('{"mine": 1}')
    with pytest.raises(ValueError, match="own/result.json was not written by openset"):
        result.save(tmp_path / "own", overwrite=True)
    assert (tmp_path / "own" / "result.json").read_text() == '{"mine": 1}'


def test_a_folder_in_use_is_refused_before_anything_is_computed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="is the current folder or a mount point"):
        check_free(Path(), overwrite=False)
    with pytest.raises(ValueError, match="is the current folder or a mount point"):
        check_free(Path("/proc"), overwrite=True)


def test_a_link_to_a_folder_stays_a_link(result, tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk", target_is_directory=True)
    result.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "disk" / "result.json").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk", "link"]


def test_a_result_file_of_another_kind(tmp_path):
    (tmp_path / "result.json").write_text("{}")
    with pytest.raises(ValueError, match="result.json was not written by openset: openset_version is missing"):
        read_summary(tmp_path)
    (tmp_path / "result.json").write_text("{")
    with pytest.raises(ValueError, match="is damaged"):
        read_summary(tmp_path)


def test_a_run_without_a_file_or_of_no_folder(tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path, tmp_path / "none", tmp_path / "file"):
        with pytest.raises(FileNotFoundError, match="is no run: there is no result.json in it"):
            read_summary(path)


UNTYPED = ("parameters", "settings.parameters")
"""What a method takes: names and values of any kind."""
OPTIONAL = ("novelty_test", "known_classes", "groups", "listed", "novel_fraction", "class_mix", "settings")
"""Parts with something that the first runs did not have, or that has a default."""


def test_a_result_file_with_one_thing_changed_is_read_or_refused_in_one_sentence(tmp_path):
    content = json.loads((FOLDERS / "runs" / "color" / "result.json").read_text(encoding="utf-8"))
    for name in ("parameters", "class_mix", "timings", "environment"):  # a few stand for all
        content[name] = dict(list(content[name].items())[:5])
    for name in ("heads", "history", "diagnostics", "top_rows"):
        content[name] = content[name][:1]
    read = refused = 0
    for mutation in mutations(content):
        (tmp_path / "result.json").write_text(json.dumps(mutation.content), encoding="utf-8")
        summary, message = outcome(read_summary, tmp_path)
        if message:
            refused += 1
            assert message.startswith(f"{tmp_path / 'result.json'}") and message.endswith((".", "?"))
            assert mutation.field in message and "\n" not in message and "Traceback" not in message
            continue
        read += 1
        json.dumps(summary.to_dict(), allow_nan=False)
        assert summary().startswith("Verdict: ")
        in_a_list = isinstance(mutation.path[-1], int)
        assert (
            mutation.what == "add"
            or mutation.field.startswith((*UNTYPED, *OPTIONAL))
            or (mutation.what == "drop" and (in_a_list or mutation.path[0] in ("timings", "history", "heads")))
            or may_be_null(mutation)
        ), mutation[:2]
    assert read > 50 and refused > 500


def may_be_null(mutation):
    """The value that was put in place is one that the field may have."""
    place = mutation.content
    for step in mutation.path:
        place = place[step]
    scalars = ("classes", "novel_label", "top_rows", "history")
    return place is None or (mutation.path[0] in scalars and not isinstance(place, (list, dict)))
