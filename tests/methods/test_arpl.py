from __future__ import annotations

import numpy as np
import pytest
import torch

from openset import ARPL
from openset.learn.heads import reciprocal_outputs
from openset.methods.arpl import arpl_loss

QUICK = {"max_steps": 60, "evaluate_every": 20, "random_state": 0, "fpr": 0.1}
Z = torch.tensor([[[2, -1, 0.5], [0, 1, 0], [0.3, 0.2, -0.4], [-1, 0, 3]]], dtype=torch.float64)
Y = torch.tensor([[0, 1, 0, 2]])
POINTS = torch.tensor([[[0.1, 0, -0.1], [0, 0.2, 0], [0.3, 0, 0.1]]], dtype=torch.float64)


def test_golden_numbers():
    logits, distances = reciprocal_outputs(Z, POINTS)
    loss = arpl_loss(logits, distances, torch.zeros(1, 1), Y)
    assert loss.tolist() == [pytest.approx(1.484654, abs=1e-5)]
    model = ARPL()
    scores = model._member_scores({"classes": logits.numpy()})
    np.testing.assert_allclose(scores, [[-2.096667, -0.366667, -0.046667, -4.006667]], atol=1e-5)


def test_the_radius_term_counts_only_beyond_the_radius_and_pulls_it_up():
    logits, distances = reciprocal_outputs(Z, POINTS)
    plain = arpl_loss(logits, distances, torch.zeros(1, 1), Y, weight=0.0)
    far = arpl_loss(logits, distances, torch.full((1, 1), 100.0), Y)
    np.testing.assert_allclose(far, plain)
    radius = torch.zeros(1, 1, requires_grad=True)
    (gradient,) = torch.autograd.grad(arpl_loss(logits, distances, radius, Y).sum(), radius)
    assert gradient.item() == pytest.approx(-0.1)


def test_points_and_radius_train_and_come_back_from_a_folder(small, tmp_path):
    model = ARPL(**QUICK, members=2, hidden=16).fit(small.X, small.y, small.X_target)
    assert model.weights_["heads.shared.points"].shape == (2, 3, 16)
    radius = model.weights_["heads.shared.radius"]
    assert radius.shape == (2, 1) and (radius > 0).all()
    from openset import load

    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.architecture_ == model.architecture_
    np.testing.assert_array_equal(again.novelty_score(small.X_test), model.novelty_score(small.X_test))


def test_target_rows_do_not_change_what_is_learned(small):
    one, other = (
        ARPL(**QUICK, standardize=None).fit(small.X, small.y, target)
        for target in (small.X_target, small.X_target[::-1] * 0.5)
    )
    for name, weights in one.weights_.items():
        np.testing.assert_array_equal(weights, other.weights_[name])


def test_a_backbone_brings_the_embedding(small):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        backbone = torch.nn.Sequential(torch.nn.Linear(8, 5), torch.nn.Tanh())
    model = ARPL(**QUICK, backbone=backbone).fit(small.X, small.y, small.X_target)
    assert model.weights_["heads.shared.points"].shape == (1, 3, 5)
    assert np.isfinite(model.novelty_score(small.X_test)).all()


@pytest.mark.parametrize("weight", [-0.1, np.inf, "much", None])
def test_weight_must_be_a_number_of_at_least_zero(small, weight):
    with pytest.raises(ValueError, match="weight="):
        ARPL(weight=weight).fit(small.X, small.y, small.X_target)


@pytest.mark.parametrize("name", ["amazon_reviews", "cifar100", "sun397_resnet50", "sun397_vitl14"])
def test_presets_are_the_papers_table(name):
    model = ARPL.preset(name)
    assert model.learning_rate == 1e-2 and model.weight == 0.1
    assert (model.l2, model.clip) == ((1e-4, 1.0) if name == "amazon_reviews" else (3e-5, 100.0))
