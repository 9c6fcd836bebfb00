"""Runs beside each other, and a run beside labels that arrived later."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

import openset
from openset.pipeline.compare import compare_runs, evaluate_run
from product_files import frame, make_rows


@pytest.fixture(scope="module")
def runs(problem_files, tmp_path_factory):
    """Two methods on one target, and one on another."""
    folder = tmp_path_factory.mktemp("runs")
    source, target = problem_files / "source.parquet", problem_files / "target.parquet"
    for method in ("knn", "mahalanobis"):
        openset.run(source, target, label="kind", id="rid", method=method, fpr=0.2).save(folder / method)
    rows = pd.read_parquet(target)
    rows.iloc[::-1].to_parquet(folder / "other.parquet")
    openset.run(source, folder / "other.parquet", label="kind", id="rid", method="knn", fpr=0.2).save(
        folder / "elsewhere"
    )
    return folder


def test_overlap_and_rank_correlation_are_with_the_first(runs):
    first, second, elsewhere = compare_runs([runs / "knn", runs / "mahalanobis", runs / "elsewhere"])
    scored = [pd.read_parquet(runs / name / "scored_target.parquet") for name in ("knn", "mahalanobis")]
    called, called_too = (table.predicted == "novel" for table in scored)
    assert second.overlap == (called & called_too).sum() / (called | called_too).sum()
    correlation = spearmanr(scored[0].novelty_score, scored[1].novelty_score).statistic
    assert second.rank_correlation == pytest.approx(correlation)
    assert (first.overlap, first.rank_correlation) == (1.0, pytest.approx(1))
    assert elsewhere.overlap is None and elsewhere.rank_correlation is None and elsewhere.rows == 400
    summary = openset.load_run(runs / "mahalanobis").summary
    assert (second.method, second.verdict) == ("mahalanobis", summary.verdict.word)
    assert second.low == summary.novel_fraction.low and second.called_novel == called_too.sum()


def test_one_run_is_none_to_compare(runs):
    with pytest.raises(ValueError, match="1 run is given: name at least two"):
        compare_runs([runs / "knn"])


def test_every_label_that_is_not_known_counts_as_novel(runs, problem_files):
    measured = evaluate_run(runs / "mahalanobis", problem_files / "labelled.csv")
    assert (measured["n_known"], measured["n_novel"]) == (100, 30) and measured["auroc"] == 1.0
    X, y = make_rows(np.random.default_rng(0), {"cat": 30, "dog": 30, "new": 10})
    labelled = frame(X, what=np.where(y == "dog", None, y))
    with pytest.raises(ValueError, match="column 'what' is missing.*skip_bad=True"):
        evaluate_run(runs / "mahalanobis", labelled, label="what")
    some = evaluate_run(runs / "mahalanobis", labelled, label="what", skip_bad=True)
    assert (some["n_known"], some["n_novel"]) == (30, 10)
    with pytest.raises(ValueError, match=r"none of the labels \(x\) is a class that the run knows \(cat, dog\)"):
        evaluate_run(runs / "mahalanobis", frame(X, what="x"), label="what")
