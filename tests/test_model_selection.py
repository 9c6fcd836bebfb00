from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from openset import CoLOR, SourceOnly
from openset.base import OpenSetClassifier
from openset.model_selection import (
    SCORERS,
    OpenSetGridSearch,
    cross_validate_open_set,
    split_by_domain,
    split_domains,
)
from openset.stats.selection import bounded_recall

QUICK = {"max_steps": 40, "evaluate_every": 20, "random_state": 0, "fpr": 0.2}
pytestmark = pytest.mark.filterwarnings("ignore::openset.errors.FitWarning")


class Recorder(OpenSetClassifier):
    """Stores the rows it was fitted on; every row holds its own index."""

    seen: list = []  # noqa: RUF012

    def __init__(self, fpr=0.5, validation_fraction=0.2, novel_label=None, random_state=0, tag=0):
        self.fpr, self.validation_fraction, self.novel_label = fpr, validation_fraction, novel_label
        self.random_state, self.tag = random_state, tag

    def _fit(self, problem):
        Recorder.seen.append((problem.X[:, 0], problem.X_target[:, 0]))
        return {}

    def _outputs(self, rows):
        return np.zeros((len(rows), len(self.classes_))), rows[:, 0] + self.tag


def test_source_and_target_are_split_separately():
    Recorder.seen.clear()
    n = 60  # as many target as source rows: scikit-learn's own search would slice target by source rows
    X, target = np.arange(n)[:, None] * 1.0, 1000 + np.arange(n)[:, None] * 1.0
    y = np.arange(n) % 3
    scores = cross_validate_open_set(Recorder(), X, y, target, cv=3)
    assert set(scores) == {"separated_mass", "known_accuracy", "source_specificity", "target_recall"}
    assert all(len(values) == 3 for values in scores.values())
    for source_rows, target_rows in Recorder.seen:
        assert len(source_rows) == 40 and len(target_rows) == 40
        assert not np.array_equal(np.sort(source_rows), np.sort(target_rows - 1000))
    tested = [set(range(1000, 1060)) - set(rows) for _, rows in Recorder.seen]
    assert set.union(*tested) == set(range(1000, 1060))


def test_splits_are_disjoint_stratified_and_repeatable():
    y = np.repeat(["a", "b"], [40, 20])
    splits = list(split_domains(y, 33, n_splits=4, random_state=1))
    for split in splits:
        assert not set(split.source_train) & set(split.source_test)
        assert not set(split.target_train) & set(split.target_test)
        assert (y[split.source_test] == "a").sum() == 10
    again = list(split_domains(y, 33, n_splits=4, random_state=1))
    assert all((a.target_test == b.target_test).all() for a, b in zip(splits, again, strict=True))
    with pytest.raises(ValueError, match="n_splits=30"):
        list(split_domains(y, 33, n_splits=30))


def test_grid_search_tunes_without_target_labels(small):
    search = OpenSetGridSearch(SourceOnly(**QUICK), {"hidden": [1, 16]}, cv=2, scoring="known_accuracy")
    search.fit(small.X, small.y, small.X_target)
    assert search.best_params_ == {"hidden": 16}
    assert search.cv_results_["split_test_score"].shape == (2, 2)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    assert search.best_estimator_.n_target_ == len(small.X_target)
    assert search.predict(small.X_test).shape == search.novelty_score(small.X_test).shape
    assert search.predict_proba(small.X_test).shape == (120, 4)
    assert set(search.predict_known(small.X_test)) <= {0, 1, 2}


def test_scorers_are_shares_of_rows():
    model = Recorder().fit(np.zeros((9, 1)), np.arange(9) % 2, np.zeros((9, 1)))
    model.threshold_ = 2.5
    X, y, target = np.arange(5.0)[:, None], np.array([0, 0, 1, 0, 1]), np.arange(10.0)[:, None]
    found = {name: scorer(model, X, y, target) for name, scorer in SCORERS.items()}
    assert found == {
        "separated_mass": bounded_recall(X[:, 0], target[:, 0]),
        "known_accuracy": 3 / 5,
        "source_specificity": 3 / 5,
        "target_recall": 7 / 10,
    }


def test_a_search_has_the_methods_of_its_estimator_only():
    search = OpenSetGridSearch(StandardScaler(), {})
    assert not hasattr(search, "predict") and not hasattr(search, "novelty_score")
    assert hasattr(OpenSetGridSearch(Recorder(), {}), "novelty_score")


def test_scorers_can_be_functions_and_wrong_names_are_refused(small):
    args = (SourceOnly(**QUICK), small.X, small.y, small.X_target)
    result = cross_validate_open_set(*args, cv=2, scoring=lambda model, X, y, X_target: len(X_target))
    assert result["score"].tolist() == [120, 120]
    with pytest.raises(ValueError, match="scoring='auroc'"):
        cross_validate_open_set(*args, scoring="auroc")


def test_skadas_convention():
    X = pd.DataFrame({"a": [1.0, 2, 3, 4]})
    source, y, target = split_by_domain(X, ["x", "y", "masked", "masked"], [1, 2, -3, -3])
    assert source.a.tolist() == [1, 2] and y.tolist() == ["x", "y"] and target.a.tolist() == [3, 4]
    with pytest.raises(ValueError, match="2 source and 0 target"):
        split_by_domain(X[:2], [0, 1], [1, 1])
    with pytest.raises(ValueError, match="positive numbers for source"):
        split_by_domain(X, [0, 1, 0, 1], [1, 0, -1, -1])
    with pytest.raises(ValueError, match="one entry per row"):
        split_by_domain(X, [0, 1, 0, 1], [1, -1])


@pytest.mark.slow
def test_a_pipeline_transforms_the_target_too(small):
    with sklearn.config_context(enable_metadata_routing=True):
        model = CoLOR(**QUICK, standardize=None).set_fit_request(X_target=True)
        pipeline = Pipeline([("scale", StandardScaler()), ("color", model)], transform_input=["X_target"])
        pipeline.fit(small.X * 50 + 7, small.y, X_target=small.X_target * 50 + 7)
        labels = pipeline.predict(small.X_test * 50 + 7)
    scaler = StandardScaler().fit(small.X)
    by_hand = CoLOR(**QUICK, standardize=None).fit(
        scaler.transform(small.X), small.y, scaler.transform(small.X_target)
    )
    np.testing.assert_array_equal(labels, by_hand.predict(scaler.transform(small.X_test)))
