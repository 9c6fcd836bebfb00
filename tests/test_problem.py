"""Values of a fit: how rows are split, and what problem, scores, decision and predictions hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from openset import KNN, CoLOR, DomainDiscriminator, Mahalanobis
from openset.problem import (
    Decision,
    FitScores,
    Predictions,
    Problem,
    Split,
    check_sizes,
    draw_split,
    other_scales,
    unseen_classes,
)
from openset.stats.diagnostics import Diagnostic
from openset.stats.folds import Fold
from openset.stats.scaling import moments
from openset.stats.shares import ShareEstimate

SEED = np.random.SeedSequence(7)
SHARE = ShareEstimate(0.2, 0.1, 0.3, 0.95, "test")


def split_of(y, n_target=40, *, members=1, fraction=0.2, choosing=True, calibrating=True, seed=SEED):
    return draw_split(
        np.asarray(y),
        n_target,
        seed,
        members=members,
        fraction=fraction,
        choosing=choosing,
        calibrating=calibrating,
    )


def problem_of(X, X_target=None, split=None):
    y = np.arange(len(X)) % 2
    return Problem(
        X, y, X_target, 2, SEED, split or split_of(y), moments(X), None if X_target is None else moments(X_target)
    )


def test_some_target_rows_of_a_problem_stay_in_their_folds():
    rows = np.arange(80, dtype=float).reshape(40, 2)
    whole = problem_of(rows, rows, split_of(np.arange(40) % 2, members=2))
    chosen = np.array([3, 7, 20, 21, 22, 39])
    part = whole.of_target_rows(chosen)
    np.testing.assert_array_equal(part.target, rows[chosen])
    assert part.target_moments is whole.target_moments and part.split.folds is whole.split.folds
    for own, given_fold in zip(part.split.target_folds, whole.split.target_folds, strict=True):
        np.testing.assert_array_equal(chosen[own.train], np.intersect1d(given_fold.train, chosen))


# ---------------------------------------------------------------------- the split


@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=4),
    n_target=st.integers(0, 40),
    members=st.integers(1, 6),
    fraction=st.floats(0.05, 0.6),
    choosing=st.booleans(),
    calibrating=st.booleans(),
    seed=st.integers(0, 99),
)
def test_every_split_trains_on_all_classes_and_tells_its_rows_apart(
    sizes, n_target, members, fraction, choosing, calibrating, seed
):
    y = np.repeat(np.arange(len(sizes)), sizes)
    split = split_of(
        y, n_target, members=members, fraction=fraction, choosing=choosing, calibrating=calibrating,
        seed=np.random.SeedSequence(seed),
    )  # fmt: skip
    assert len(split.folds) == members and len(split.target_folds) == (members if n_target else 0)
    for fold in split.folds:
        assert set(y[fold.train]) == set(y), "each class is trained on"
        assert len(fold.validation), "where no row is left for validation, training rows are used"
        apart = not np.isin(fold.validation, fold.train).any()
        assert apart or np.array_equal(fold.validation, fold.train)
        if calibrating and n_target and split.calibration_is_unseen:
            assert not np.isin(split.calibration, fold.train).any()
    for fold in split.target_folds:
        assert len(fold.validation) and np.unique(np.concatenate(fold_rows(fold))).tolist() == list(
            range(n_target)
        )


def fold_rows(fold):
    return fold.train, fold.validation


def test_members_times_fraction_of_one_gives_every_row_one_validation():
    y = np.arange(50) % 3
    split = split_of(y, 40, members=5, calibrating=False)
    assert sorted(np.concatenate([fold.validation for fold in split.folds])) == list(range(50))
    assert sorted(np.concatenate([fold.validation for fold in split.target_folds])) == list(range(40))
    for fold in (*split.folds, *split.target_folds):
        assert not np.isin(fold.validation, fold.train).any()
    np.testing.assert_array_equal(split.calibration, split.folds[0].validation)
    assert not split.calibration_is_unseen, "the other members trained on the first one's validation rows"


def test_choosing_and_calibrating_share_the_fraction():
    y = np.zeros(100, np.intp)
    both = split_of(y)
    assert len(both.calibration) == 10 and len(both.folds[0].validation) == 9, "a tenth, and a tenth of the rest"
    assert not np.isin(both.calibration, both.folds[0].validation).any() and both.calibration_is_unseen
    calibrating = split_of(y, choosing=False)
    assert len(calibrating.calibration) == 20 and len(calibrating.folds[0].train) == 80
    np.testing.assert_array_equal(calibrating.folds[0].validation, calibrating.folds[0].train)
    choosing = split_of(y, calibrating=False)
    assert len(choosing.folds[0].validation) == 20 and choosing.calibration_is_unseen
    without_target = split_of(y, 0)
    assert len(without_target.folds[0].validation) == 20 and without_target.target_folds == []


def test_a_seed_draws_one_split_and_another_seed_another():
    y = np.arange(60) % 3
    one, again = split_of(y, members=2), split_of(y, members=2)
    other = split_of(y, members=2, seed=np.random.SeedSequence(8))
    for a, b in zip((*one.folds, *one.target_folds), (*again.folds, *again.target_folds), strict=True):
        np.testing.assert_array_equal(a.validation, b.validation)
        np.testing.assert_array_equal(a.train, b.train)
    assert one.folds[0].validation.tolist() != other.folds[0].validation.tolist()
    assert one.target_folds[0].validation.tolist() != other.target_folds[0].validation.tolist()


# ---------------------------------------------------------------------- classes of rows that were not trained on


def test_classes_of_unseen_rows_are_probabilities_with_their_labels():
    X = np.random.default_rng(0).normal(size=(20, 3))
    problem = problem_of(X, X[:7])
    calibration = problem.split.calibration
    of_source, of_target = (np.random.default_rng(1).normal(size=(n, 2)) for n in (len(calibration), 7))
    found = unseen_classes(problem, of_source, of_target)
    np.testing.assert_array_equal(found.source, softmax(of_source, axis=1))
    np.testing.assert_array_equal(found.target, softmax(of_target, axis=1))
    np.testing.assert_array_equal(found.y, problem.y[calibration])
    assert found.target_rows.tolist() == list(range(7))


def test_a_row_that_was_trained_on_has_no_unseen_class():
    rows = np.arange(20)
    split = Split([Fold(rows, rows)], [], rows)
    X = np.zeros((20, 3))
    assert not split.calibration_is_unseen
    assert unseen_classes(problem_of(X, X, split), np.zeros((20, 2)), np.zeros((20, 2))) is None


@pytest.mark.filterwarnings("ignore::openset.errors.FitWarning")
@pytest.mark.parametrize("method", [KNN, Mahalanobis, DomainDiscriminator])
def test_methods_that_calibrate_judge_calibration_rows(method, small):
    steps = {"max_steps": 10} if method is DomainDiscriminator else {}
    model = method(random_state=3, **steps).fit(small.X, small.y, small.X_target)
    split, found = model.fit_scores_.split, model.fit_scores_.validation_classes
    assert split.calibration_is_unseen
    np.testing.assert_array_equal(found.y, small.y[split.calibration])
    np.testing.assert_array_equal(found.source.argmax(axis=1), model.predict_known(small.X[split.calibration]))
    np.testing.assert_array_equal(found.target.argmax(axis=1), model.predict_known(small.X_target))


@pytest.mark.filterwarnings("ignore::openset.errors.FitWarning")
def test_too_few_rows_to_keep_any_from_training_give_no_classes():
    X, y = np.random.default_rng(0).normal(size=(4, 3)), np.arange(4)
    model = CoLOR(max_steps=2, evaluate_every=1, random_state=0).fit(X, y, X)
    assert model.fit_scores_.validation_classes is None


# ---------------------------------------------------------------------- decision, predictions, scores


def test_a_decision_has_no_attribute_for_what_it_does_not_decide():
    assert Decision(1.5, SHARE).state() == {"threshold_": 1.5, "novel_fraction_": SHARE}
    said = [Diagnostic("support", 0.1, 0.5, ok=True, sentence="Fine.")]
    assert Decision(1.5, SHARE, diagnostics=said).state()["diagnostics_"] is said


def test_predictions_look_labels_up_by_index():
    labels = np.array(["ant", "bee", "novel"])
    found = Predictions(labels, np.array([2, 0, 1]), np.array([1, 0, 1]), np.zeros(3), np.zeros((3, 3)))
    assert found.predicted.tolist() == ["novel", "ant", "bee"]
    assert found.known.tolist() == ["bee", "ant", "bee"]


def test_scores_are_empty_until_rows_are_scored():
    scores = FitScores(split_of(np.zeros(10, np.intp)))
    assert scores.target_score.shape == (0,) and scores.target_logits.shape == (0, 0)
    assert scores.validation_classes is None and scores.state == {} and scores.heads is None


def test_a_problem_without_a_target_has_no_target_rows():
    X = np.zeros((10, 2))
    with pytest.raises(AssertionError):
        _ = problem_of(X).target
    assert problem_of(X, X).target is X


# ---------------------------------------------------------------------- checks of values


def test_values_too_large_to_compute_with_are_named():
    fine, huge = np.ones((10, 2)), np.full((10, 2), 1e200) * np.array([1, -1])
    check_sizes(problem_of(fine, fine))
    with pytest.raises(ValueError, match=r"X has values up to 9e\+200, too large to compute with: bring its"):
        check_sizes(problem_of(huge * np.arange(10)[:, None], fine))
    with pytest.raises(ValueError, match="X_target has values up to"):
        check_sizes(problem_of(fine, huge * np.arange(10)[:, None]))


def test_features_in_other_units_are_named_by_column_or_number():
    X = np.random.default_rng(0).normal(size=(50, 3))
    moved = X + np.array([0, 1000, 0])
    assert other_scales(problem_of(X), None) == () == other_scales(problem_of(X, X), None)
    (message,) = other_scales(problem_of(X, moved), None)
    assert message.startswith("1 features are on incompatible scales in X and X_target: feature 1 has mean")
    assert f"{X[:, 1].mean():.3g} ± {X[:, 1].std():.3g} in source" in message
    (message,) = other_scales(problem_of(X, moved), ["a", "b", "c"])
    assert "column 'b' has mean" in message
