"""``openset.run`` from Python: what the result holds, says, saves and reads again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

import openset
from openset.pipeline.compare import compare_runs
from openset.pipeline.result import check_free, read_summary
from openset.pipeline.scored_table import score_rows
from openset.pipeline.verdict import give_verdict
from openset.stats.bounded_shift import Counts
from openset.stats.conformal import benjamini_hochberg
from openset.stats.novelty import NoveltyTest
from openset.stats.proportions import NOT_IDENTIFIED, ProportionEstimate
from openset.stats.thresholds import conformal_p_values
from product_files import NAMES, frame, make_rows


@pytest.fixture(scope="module")
def result(problem_files):
    return openset.run(
        problem_files / "source.parquet",
        problem_files / "target.parquet",
        label="kind",
        id="rid",
        method="mahalanobis",
        parameters={"validation_fraction": 0.4},
    )


@pytest.fixture(scope="module")
def color(problem_files):
    """CoLOR on the same files, in few steps: a run with a test of its own."""
    return openset.run(
        problem_files / "source.parquet",
        problem_files / "target.parquet",
        label="kind",
        id="rid",
        fdr=0.1,
        max_density_ratio=8,
        parameters={"max_steps": 200, "evaluate_every": 100, "grid": [0.05, 0.1], "multiplier_bounds": [0.3]},
    )


def test_the_result_is_what_the_model_says(result):
    model, scored = result.model, result.scored
    X = pd.DataFrame(result.target.X, columns=NAMES).to_numpy()
    assert scored.predicted.tolist() == model.predict(X).tolist()
    assert scored.nearest_known.tolist() == model.predict_known(X).tolist()
    np.testing.assert_array_equal(scored.probabilities, model.predict_proba(X))
    np.testing.assert_array_equal(scored.novelty_score, model.novelty_score(X))
    held = model.calibration_scores_
    expected = [(1 + sum(held >= s)) / (len(held) + 1) for s in scored.novelty_score]
    np.testing.assert_allclose(scored.p_value, expected, rtol=1e-12)
    # a row is called novel where its p-value is small enough: the threshold is a rank among the same scores
    assert (scored.p_value[scored.predicted == "novel"] <= result.summary.fpr).all()
    assert result.to_frame().columns.tolist() == [
        "id", "predicted", "novelty_score", "p_value", "p_cat", "p_dog", "p_novel", "nearest_known",
    ]  # fmt: skip


def test_the_summary_holds_the_answer(result):
    summary = result.summary
    # mahalanobis has no test of its own, and an interval of sampling error alone is `likely` at most
    assert summary.verdict["word"] == "likely" and summary.novelty_test is None
    assert 0.07 < summary.novel_fraction["value"] < 0.13
    assert summary.called_novel == (result.scored.predicted == "novel").sum()
    assert summary.class_mix["dog"]["source"] == 0.5
    assert summary.class_mix["dog"]["target"] == pytest.approx(2 / 3, abs=0.02)
    assert len(summary.top_rows) == 20 and all(row.startswith("t") for row in summary.top_rows)
    assert summary.data["source"]["rows"] == 600 and len(summary.data["source"]["sha256"]) == 64
    assert json.loads(json.dumps(summary.to_dict(), allow_nan=False)) == summary.to_dict()
    text = result.summary()
    assert max(map(len, text.splitlines())) <= 80
    assert "Known classes" in text


def test_color_finds_a_clear_class_and_says_under_which_assumption(color):
    summary, text = color.summary, " ".join(color.summary().split())
    assert summary.verdict["word"] == summary.novelty_test["word"] == "clear"
    assert summary.novelty_test["p_value"] <= 0.01 and summary.novelty_test["max_density_ratio"] == 8
    assert summary.parameters["max_density_ratio"] == 8 and summary.novel_fraction["max_density_ratio"] == 8
    assert list(summary.novel_fraction["profile"]) == ["1", "3", "8", "12", "30"]
    assert f"p = {summary.novelty_test['p_value']:.2g}" in text
    assert "no kind of known row is more than 8 times as common" in text
    assert "The upper end assumes that at least 95 % of the new class" in text
    assert all(
        f"{100 * low:.1f} % for {ratio}" in text for ratio, low in summary.novel_fraction["profile"].items()
    )
    for entry in summary.diagnostics:
        assert entry["ok"] or entry["sentence"] in text
    assert {"separability achieved", "constraint kept"} <= {entry["name"] for entry in summary.diagnostics}
    assert max(map(len, color.summary().splitlines())) <= 80


def test_color_brings_its_heads_and_history(color):
    heads = color.summary.heads
    assert len(heads) == 4 and sum(head["selected"] for head in heads) == 1
    assert set(heads[0]) >= {"step", "head", "candidate_recall", "fpr", "recall", "multiplier", "feasible"}
    assert [entry["step"] for entry in color.summary.history] == [100] * 5 + [200] * 5  # a record of each member
    assert len(color.source_scores) and (np.diff(color.source_scores) >= 0).all()


def test_known_classes_under_shift(color, result):
    for found in (color, result):
        mix, about = found.summary.class_mix, found.summary.known_classes
        assert about["corrected"] and mix["dog"]["target"] == pytest.approx(2 / 3, abs=0.02)
        assert sum(shares["target"] for shares in mix.values()) == pytest.approx(1)
        kept = found.scored.predicted != "novel"
        counted = (found.scored.nearest_known[kept] == "dog").mean()
        assert mix["dog"]["counted"] == pytest.approx(counted)
        assert about["accuracy"]["value"] > 0.95 and about["accuracy"]["source_accuracy"] > 0.95
        assert "corrected by EM" in about["sentence"]
        assert "0.02 too high on average" in " ".join(found.summary().split())


def test_the_groups_of_novel_rows_are_told(color):
    about = color.summary.groups
    (group,) = about["groups"]
    assert group["size"] == color.summary.called_novel and group["medoid"] == group["examples"][0]
    assert group["share"]["low"] < 0.1 < group["share"]["high"]
    assert color.scored.id[group["rows"]].tolist() == group["examples"]
    assert (color.scored.predicted[group["rows"]] == "novel").all()
    assert "form one group" in about["sentence"] and "form one group" in color.summary()
    assert ((color.novel_groups().labels == 0) == (color.scored.predicted == "novel")).all()


def test_several_groups_have_a_line_each():
    random = np.random.default_rng(1)
    X, y = make_rows(random, {"cat": 200, "dog": 200})
    target, _ = make_rows(random, {"cat": 100, "dog": 100, "new": 40})
    other = random.normal((0, -9, 9), 0.5, size=(30, 3))
    found = openset.run(
        frame(X, kind=y), frame(np.concatenate([target, other])), label="kind", method="mahalanobis", fpr=0.02
    )
    groups = found.summary.groups["groups"]
    assert len(groups) == 2 and all(group["stability"] > 0.75 for group in groups)
    assert all(row >= 240 for row in groups[1]["rows"]) and all(row < 240 for row in groups[0]["rows"])
    lines = found.summary().splitlines()
    assert [line[:4] for line in lines if "of the target [" in line] == ["  1 ", "  2 "]
    assert "fall into 2 groups" in found._repr_html_()


def test_rows_at_a_false_discovery_rate(color, result):
    listed = color.novel_rows(0.1)
    assert (listed["novelty_score"].diff().dropna() <= 0).all()
    assert listed["novel_at_fdr"].all() and len(listed) == color.scored.novel_at_fdr.sum()
    assert color.summary.listed == {"fdr": 0.1, "max_density_ratio": 8, "rows": len(listed)}
    held = color.model.target_novelty_score_  # each by the member that held the row out
    assert not np.isnan(held).any()
    p = conformal_p_values(color.model.calibration_scores_, held)
    for ratio in (1, 3):
        expected = color.scored.id[benjamini_hochberg(p, 0.2, max_density_ratio=ratio)]
        assert set(color.novel_rows(0.2, max_density_ratio=ratio)["id"]) == set(expected)
    assert len(color.novel_rows(0.2, max_density_ratio=1)) >= len(color.novel_rows(0.2, max_density_ratio=3))
    # a method that assumes no bound lists rows as if nothing had shifted
    assert set(result.novel_rows(0.1)["id"]) == set(result.novel_rows(0.1, max_density_ratio=1)["id"])
    assert len(result.novel_rows(0.1)) >= 40 and "novel_at_fdr" not in result.to_frame()
    with pytest.raises(ValueError, match="fdr=1"):
        result.novel_rows(1)


def test_the_marked_rows_are_saved_and_read_again(color, tmp_path):
    color.save(tmp_path / "run")
    pd.testing.assert_frame_equal(openset.load_run(tmp_path / "run").to_frame(), color.to_frame())
    content = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    for name in ("novelty_test", "known_classes", "groups", "listed"):
        assert content.pop(name) == getattr(color.summary, name)
    # a run of before there were these is read all the same
    (tmp_path / "run" / "result.json").write_text(json.dumps(content), encoding="utf-8")
    old = read_summary(tmp_path / "run")
    assert old.groups == {} and "not looked for" in old()


def test_a_bound_that_nothing_uses_is_an_error(problem_files):
    files = (problem_files / "source.parquet", problem_files / "target.parquet")
    options = {"label": "kind", "id": "rid", "method": "mahalanobis", "max_density_ratio": 2.5, "fpr": 0.05}
    with pytest.raises(ValueError, match="mahalanobis makes no use of max_density_ratio"):
        openset.run(*files, **options)
    assert openset.run(*files, **options, fdr=0.2).summary.listed["max_density_ratio"] == 2.5
    with pytest.raises(ValueError, match="max_density_ratio=0.5 is not valid"):
        openset.run(*files, **{**options, "max_density_ratio": 0.5})


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


def test_data_that_changed_is_told(problem_files, tmp_path):
    data = pd.read_parquet(problem_files / "source.parquet")
    data.to_csv(tmp_path / "source.csv", index=False)
    target = problem_files / "target.parquet"
    options = {"label": "kind", "features": list(NAMES), "method": "knn", "fpr": 0.1}
    openset.run(tmp_path / "source.csv", target, **options).save(tmp_path / "run")
    data.iloc[::-1].to_csv(tmp_path / "source.csv", index=False)
    with pytest.raises(ValueError, match="changed since"):
        openset.load_run(tmp_path / "run")
    (tmp_path / "source.csv").unlink()
    with pytest.raises(FileNotFoundError, match="which is gone"):
        openset.load_run(tmp_path / "run")


def test_frames_of_each_library_give_the_same(problem_files):
    source, target = (pd.read_parquet(problem_files / f"{name}.parquet") for name in ("source", "target"))
    found = [
        openset.run(as_frame(source), as_frame(target), label="kind", id="rid", method="knn", fpr=0.1)
        for as_frame in (lambda f: f, pl.from_pandas)
    ]
    pd.testing.assert_frame_equal(found[0].to_frame(), found[1].to_frame())
    assert found[0].to_frame("polars").equals(pl.from_arrow(found[0].to_frame("pyarrow")))
    with pytest.raises(ValueError, match="backend='r'"):
        found[0].to_frame("r")


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


def test_numbers_as_labels_and_booleans():
    X, y = make_rows(np.random.default_rng(0), {"cat": 60, "dog": 60})
    for labels, kind in ((np.where(y == "cat", 3, 7), "i"), (y == "cat", "O")):
        result = openset.run(frame(X, kind=labels), frame(X), label="kind", method="knn", fpr=0.1)
        assert result.scored.predicted.dtype.kind == kind and len(result.to_frame("pyarrow")) == 120


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
    assert second["overlap"] > 0.5


def test_a_folder_with_other_files_is_not_overwritten(result, tmp_path):
    result.save(tmp_path / "run")
    (tmp_path / "run" / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match=r"other files \(thesis.tex\)"):
        result.save(tmp_path / "run", overwrite=True)
    assert (tmp_path / "run" / "thesis.tex").exists()
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "result.json").write_text('{"mine": 1}')
    with pytest.raises(ValueError, match="written by no or another openset"):
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


@pytest.mark.parametrize(
    ("estimate", "word"),
    [
        (NOT_IDENTIFIED, "none found"),
        (ProportionEstimate(0.02, 0.0, 0.05, 0.95, "m"), "none found"),
        (ProportionEstimate(0.02, 0.01, 0.05, 0.95, "m"), "likely"),
    ],
)
def test_an_estimate_without_a_test_is_likely_at_most(estimate, word):
    verdict = give_verdict(estimate)
    assert verdict["word"] == word and "sampling error only" in verdict["caveat"]


@pytest.mark.parametrize(
    ("p_value", "word"), [(0.01, "clear"), (0.011, "likely"), (0.05, "likely"), (0.06, "none found")]
)
def test_the_verdict_is_the_tests(p_value, word):
    estimate = ProportionEstimate(
        0.02,
        0.01,
        1.0,
        0.95,
        "m",
        max_density_ratio=12,
        profile={"12": 0.01},
        assumptions="A.",
        high_identified=False,
    )
    verdict = give_verdict(estimate, NoveltyTest(p_value, 12, Counts(0, 10, 5, 10)))
    assert verdict["word"] == word and verdict["caveat"].startswith(
        f"p = {p_value:.2g}. A. The lower end is 1.0 % for 12"
    )
    assert ("at least 1.0 %" in verdict["sentence"]) == (word != "none found")


def test_a_batch_without_a_new_class_is_not_called_clear():
    random = np.random.default_rng(5)
    (X, y), (target, _) = make_rows(random, {"cat": 400, "dog": 400}), make_rows(random, {"cat": 100, "dog": 300})
    result = openset.run(frame(X, kind=y), frame(target), label="kind", method="mahalanobis")
    assert result.summary.verdict["word"] == "none found"


def test_a_closed_set_model_scores_no_table():
    X, y = make_rows(np.random.default_rng(0), {"cat": 60, "dog": 60})
    with pytest.raises(ValueError, match="without a target"):
        score_rows(openset.KNN().fit(X, y), X, np.arange(120))


def test_a_result_file_of_another_kind(tmp_path):
    (tmp_path / "result.json").write_text("{}")
    with pytest.raises(ValueError, match="it lacks"):
        read_summary(tmp_path)
    (tmp_path / "result.json").write_text("{")
    with pytest.raises(ValueError, match="is damaged"):
        read_summary(tmp_path)


def test_the_run_function_stays_a_function_whatever_is_imported_first():
    code = "import openset.pipeline.run, openset; assert callable(openset.run) and callable(openset.score)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_text_goes_through_an_encoder(tmp_path):
    words = {"cat": "the cat sat on the mat", "dog": "a dog chased the ball", "new": "interest rates rose again"}
    rows = [(f"{words[k]} {i}", k) for k in ("cat", "dog") for i in range(15)]
    source = pd.DataFrame(rows, columns=["review", "kind"])
    target = pd.DataFrame({"review": [f"{words[k]} {i}" for k in words for i in range(40, 50)]})
    result = openset.run(source, target, label="kind", text="review", method="knn", fpr=0.2)
    assert result.features_target.shape == (30, 384)
    assert result.summary.data["features"]["kind"] == "text"
    assert set(result.scored.id[np.argsort(-result.scored.novelty_score)[:10]].tolist()) == set(range(20, 30))
