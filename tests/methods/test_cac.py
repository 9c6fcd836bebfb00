from __future__ import annotations

import numpy as np
import pytest
import torch

from openset import CAC
from openset.learn.objective import Validation
from openset.methods.cac import CacObjective, anchor_distances, anchor_means, cac_loss, rejection

QUICK = {"max_steps": 60, "evaluate_every": 20, "random_state": 0, "fpr": 0.1}
Z = np.array([[2, -1, 0.5], [0, 1, 0], [0.3, 0.2, -0.4], [-1, 0, 3]])
Y = np.array([0, 1, 0, 2])
ANCHORS = 10 * np.eye(3)


def test_golden_numbers():
    loss = cac_loss(torch.tensor(Z)[None], torch.tensor(Y)[None])
    assert loss.tolist() == [pytest.approx(1.261208, abs=1e-5)]
    scores = rejection(anchor_distances(Z, ANCHORS)).min(axis=-1)
    np.testing.assert_allclose(scores, [1.512929, 3.705766, 5.666421, 0.310762], atol=1e-5)


def test_the_loss_is_the_formula_for_the_last_class_too():
    """A known mistake elsewhere is that the last class is never among "the others"."""
    d = np.linalg.norm(Z[:, None] - 3 * np.eye(3), axis=-1)
    for y in ([0, 0, 0, 0], [1, 2, 1, 0], [2, 2, 2, 2]):
        expected = np.mean(
            [
                0.2 * row[c] + np.log1p(sum(np.exp(row[c] - row[j]) for j in range(3) if j != c))
                for row, c in zip(d, y, strict=True)
            ]
        )
        loss = cac_loss(torch.tensor(Z)[None], torch.tensor([y]), magnitude=3.0, weight=0.2)
        assert loss.item() == pytest.approx(expected)


def test_a_row_on_its_anchor_has_a_finite_gradient_and_no_distance():
    z = torch.tensor([[[10.0, 0, 0]]], requires_grad=True)
    loss = cac_loss(z, torch.tensor([[0]]))
    loss.sum().backward()
    assert loss.item() == pytest.approx(0, abs=1e-5) and torch.isfinite(z.grad).all()


def test_anchors_are_means_of_correct_rows_and_a_class_without_any_keeps_its_own():
    z = np.array([[4, 0, 0], [2, 0, 0], [0, 9, 0], [0, 5, 0], [0, 1, 0]], dtype=np.float32)
    anchors = anchor_means(z, np.array([0, 0, 0, 1, 2]))
    assert anchors.dtype == np.float64
    np.testing.assert_array_equal(anchors, [[3, 0, 0], [0, 5, 0], [0, 0, 10]])


def test_one_class_is_scored_by_its_distance():
    np.testing.assert_array_equal(rejection(np.array([[3.0], [0.5]])), [[3.0], [0.5]])


def test_class_and_score_are_those_of_gamma_from_the_fitted_anchors(small):
    model = CAC(**QUICK).fit(small.X, small.y, small.X_target)
    assert model.anchors_.shape == (1, 3, 3) and model.anchors_.dtype == np.float64
    z = model._head_outputs(small.X_test)["classes"][0].astype(float)
    d = np.linalg.norm(z[:, None] - model.anchors_[0], axis=-1)
    gamma = d * (1 - np.exp(-d) / np.exp(-d).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(model.novelty_score(small.X_test), gamma.min(axis=1))
    np.testing.assert_array_equal(model.predict_known(small.X_test), gamma.argmin(axis=1))


def test_the_anchors_come_from_training_rows_of_each_member(small):
    model = CAC(**QUICK, members=3).fit(small.X, small.y, small.X_target)
    assert model.anchors_.shape == (3, 3, 3)
    assert not np.array_equal(model.anchors_[0], model.anchors_[1])
    assert np.isfinite(model.novelty_score(small.X_test)).all()


def test_without_a_target_it_is_a_closed_set_classifier(small):
    model = CAC(**QUICK).fit(small.X, small.y)
    refitted = CAC(**QUICK).fit(small.X, small.y, small.X_target).fit(small.X, small.y)
    assert model.predict_proba(small.X_test).shape == (len(small.X_test), 3)
    np.testing.assert_array_equal(model.anchors_, refitted.anchors_)
    np.testing.assert_array_equal(model.predict_proba(small.X_test), refitted.predict_proba(small.X_test))


def test_the_lowest_validation_anchor_loss_is_kept():
    judgement = CacObjective(3, 10.0, 0.1).judge_member(Validation({"classes": Z}, Y, {}, np.empty(0), 0, 1, 1))
    expected = np.linalg.norm(Z - ANCHORS[Y], axis=1).mean()
    assert judgement.key == pytest.approx(-expected)
    assert judgement.metrics["anchor_loss"] == pytest.approx(expected)


@pytest.mark.parametrize(
    "bad", [{"magnitude": 0}, {"magnitude": -1.0}, {"magnitude": "ten"}, {"weight": -1}, {"weight": None}]
)
def test_bad_parameters_are_named(small, bad):
    with pytest.raises(ValueError, match=f"{next(iter(bad))}="):
        CAC(**bad).fit(small.X, small.y, small.X_target)


def test_presets_have_the_authors_learning_rate():
    assert CAC.preset("cifar100").learning_rate == CAC.preset("sun397_vitl14").learning_rate == 1e-2
