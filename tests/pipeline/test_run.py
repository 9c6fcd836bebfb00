"""``openset.run`` and ``openset.load_run``: what is fitted, scored and told."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

import openset
from product_files import NAMES, frame, make_rows


def test_the_result_is_what_the_model_says(result, problem_files):
    model, scored = result.model, result.scored
    X = pd.read_parquet(problem_files / "target.parquet")[list(NAMES)].to_numpy()
    np.testing.assert_array_equal(result.features_target, X)  # complete numbers stay as they are
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
        "rid", "predicted", "novelty_score", "p_value", "p_cat", "p_dog", "p_novel", "nearest_known",
        "rank", "group",
    ]  # fmt: skip
    order = np.argsort(-scored.novelty_score, kind="stable")
    assert scored.rank[order].tolist() == list(range(1, 401))
    is_called = scored.predicted == "novel"
    assert (scored.group[~is_called] == 0).all()
    sizes = [group.size for group in result.summary.groups.groups]
    assert [int((scored.group == number + 1).sum()) for number in range(len(sizes))] == sizes


def test_a_bound_that_nothing_uses_is_an_error(problem_files):
    files = (problem_files / "source.parquet", problem_files / "target.parquet")
    options = {"label": "kind", "id": "rid", "method": "mahalanobis", "max_density_ratio": 2.5, "fpr": 0.05}
    with pytest.raises(ValueError, match="mahalanobis makes no use of max_density_ratio"):
        openset.run(*files, **options)
    assert openset.run(*files, **options, fdr=0.2).summary.listed.max_density_ratio == 2.5
    with pytest.raises(ValueError, match="max_density_ratio=0.5 is not valid"):
        openset.run(*files, **{**options, "max_density_ratio": 0.5})


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


def test_numbers_as_labels_and_booleans():
    X, y = make_rows(np.random.default_rng(0), {"cat": 60, "dog": 60})
    for labels, kind in ((np.where(y == "cat", 3, 7), "i"), (y == "cat", "O")):
        result = openset.run(frame(X, kind=labels), frame(X), label="kind", method="knn", fpr=0.1)
        assert result.scored.predicted.dtype.kind == kind and len(result.to_frame("pyarrow")) == 120


def test_a_batch_without_a_new_class_is_not_called_clear():
    random = np.random.default_rng(5)
    (X, y), (target, _) = make_rows(random, {"cat": 400, "dog": 400}), make_rows(random, {"cat": 100, "dog": 300})
    result = openset.run(frame(X, kind=y), frame(target), label="kind", method="mahalanobis")
    assert result.summary.verdict.code in ("nothing", "cannot_tell")


@pytest.mark.slow
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
    data = result.summary.data
    (encoded,) = data.encoded
    assert (encoded.kind, encoded.column) == ("text", "review") and data.features == ["review"]
    assert encoded.fingerprint and encoded.encoder in data.features_text
    assert set(result.scored.id[np.argsort(-result.scored.novelty_score)[:10]].tolist()) == set(range(20, 30))
