"""Algorithm 1 of the paper, and ConOp."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.base import clone

from openset import CoLOR, ConOp, DomainDiscriminator, PaperCoLOR, make_background_shift
from openset.errors import FitWarning
from openset.learn.losses import novel_loss, soft_rate
from openset.methods._presets import PAPER_GRID, Group

QUICK = {"max_steps": 150, "evaluate_every": 50, "random_state": 0}


@pytest.fixture(scope="module")
def fitted(small):
    return PaperCoLOR(**QUICK, fpr=0.05).fit(small.X, small.y, small.X_target)


def test_the_table_of_heads_holds_every_point_and_the_choice_is_one_of_its_rows(fitted):
    assert len(fitted.heads_) == 3 * len(PAPER_GRID)
    assert sorted(set(fitted.heads_.step.tolist())) == [50, 100, 150]
    assert fitted.heads_.candidate_recall[:10].tolist() == list(PAPER_GRID)
    assert fitted.selected_ in fitted.heads_
    assert fitted.selected_.fpr < 0.05 and fitted.selected_.feasible
    feasible = fitted.heads_[fitted.heads_.feasible]
    assert fitted.selected_.recall == feasible.recall.max()
    assert fitted.threshold_ == 0
    assert {"step", "loss", "class_loss", "known_accuracy", "fpr", "recall"} <= set(fitted.history_[0])
    assert fitted.stop_reason_ == "max_steps" and fitted.n_steps_ == 150


def test_head_scores_hold_the_novelty_score_in_the_selected_head_s_column(fitted, small):
    scores = fitted.head_scores(small.X_test)
    assert scores.shape == (1, len(small.X_test), len(PAPER_GRID))
    np.testing.assert_array_equal(scores[0, :, fitted.selected_.head], fitted.novelty_score(small.X_test))
    for method in (PaperCoLOR, CoLOR):
        with pytest.raises(ValueError, match="no novelty heads: pass X_target"):
            method(max_steps=5).fit(small.X, small.y).head_scores(small.X_test)


def test_target_validation_rows_are_a_fifth_and_have_scores_of_their_own(fitted, small):
    scored = ~np.isnan(fitted.target_novelty_score_)
    assert scored.sum() == pytest.approx(len(small.X_target) / 5, abs=1)
    np.testing.assert_array_equal(
        fitted.target_novelty_score_[scored], fitted.novelty_score(small.X_target)[scored]
    )


def test_five_members_have_every_target_row_as_a_validation_row(small):
    model = PaperCoLOR(**QUICK, fpr=0.1, members=5).fit(small.X, small.y, small.X_target)
    assert not np.isnan(model.target_novelty_score_).any()
    assert model.selected_.recall.shape == (5,)
    # every row is a validation row of one member only, so its score is that member's, not the pooled one
    assert not np.array_equal(model.target_novelty_score_, model.novelty_score(small.X_target))


def test_pooled_scores_keep_zero_as_the_threshold(small):
    model = PaperCoLOR(**QUICK, fpr=0.1, members=3).fit(small.X, small.y, small.X_target)
    assert model.threshold_ == 0 and len(model.pool_references_) == 3
    for member in range(3):
        assert model._on_common_scale(member, np.zeros(1), model.pool_references_)[0] == 0


def test_nothing_is_called_novel_when_no_head_keeps_the_budget(small):
    with pytest.warns(FitWarning, match="no head kept its false-positive rate on source validation rows below"):
        model = PaperCoLOR(max_steps=2, evaluate_every=1, fpr=1e-9, grid=(0.9,), random_state=0).fit(
            small.X + 5, small.y, small.X + 5
        )
    assert not model.selected_.feasible
    assert model.threshold_ == np.inf
    assert set(model.predict(small.X_test).tolist()) <= set(model.classes_.tolist())
    assert (model.predict_proba(small.X_test)[:, -1] == 0).all()
    assert model.selected_.fpr == model.heads_.fpr.min()
    assert model.novel_fraction_.method == "not identified"


def test_one_body_or_two_is_a_parameter_of_the_papers_rule_alone():
    assert not hasattr(CoLOR(), "joint")
    for method in (PaperCoLOR, ConOp):
        assert "joint" in method._get_param_names()
        with pytest.raises(ValueError, match="joint=1"):
            method(joint=1)._check_parameters()


def test_conop_is_color_without_joint_learning(small):
    conop, separate = ConOp(**QUICK), PaperCoLOR(**QUICK, joint=False)
    assert conop.get_params() == separate.get_params()
    assert clone(conop).joint is False and ConOp(joint=True).joint is True and PaperCoLOR().joint is True
    for model in (conop, separate):
        model.fit(small.X, small.y, small.X_target)
    np.testing.assert_array_equal(conop.novelty_score(small.X_test), separate.novelty_score(small.X_test))
    assert set(conop.architecture_.bodies) == {"known", "novelty"}


def test_the_class_body_of_its_own_never_sees_the_target(small):
    one, other = (
        ConOp(max_steps=20, evaluate_every=20, standardize=None, fpr=0.9, random_state=0).fit(small.X, small.y, t)
        for t in (small.X_target, small.X_target[::-1] * 0.5)
    )
    known = [name for name in one.weights_ if ".known." in name]
    assert len(known) == 4
    for name in known:
        np.testing.assert_array_equal(one.weights_[name], other.weights_[name])


def test_one_heads_gradient_is_the_discriminators_times_lambda_sigma():
    """Per target row, at m = 1: d/dh of λ(α̂ − σ(h)) is −λσ(h)(1 − σ(h)); of softplus(−h) it is −(1 − σ(h))."""
    h = torch.linspace(-4, 4, 9).view(1, -1, 1).requires_grad_()
    (ours,) = torch.autograd.grad(1.7 * (0.2 - soft_rate(h, 1.0)).sum(), h)
    (theirs,) = torch.autograd.grad(novel_loss(h).sum(), h)
    np.testing.assert_allclose(ours, theirs * 1.7 * h.detach().sigmoid(), atol=1e-7)


def test_class_loss_counts_once_whatever_the_grid(small):
    """With a constant novelty part the class head's gradient must not depend on the number of heads."""
    weights = [
        PaperCoLOR(max_steps=1, evaluate_every=1, joint=False, grid=grid, fpr=0.9, random_state=0)
        .fit(small.X, small.y, small.X_target)
        .weights_["heads.known.weight"]
        for grid in ((0.1,), PAPER_GRID)
    ]
    np.testing.assert_array_equal(*weights)


def test_multipliers_have_no_bound_and_wide_features_get_dropout():
    data = make_background_shift(n_source=90, n_target=80, n_features=256, random_state=0)
    model = PaperCoLOR(fpr=0.9, max_steps=5, random_state=0).fit(data.X, data.y, data.X_target)
    assert model.architecture_.dropout == 0.4
    assert model.resolved_parameters_["dropout"] == 0.4
    assert model._groups() == [Group(math.inf, 0.4, 1.0)]
    sharper = PaperCoLOR(logit_multiplier=1.2, dropout=0.1)
    assert sharper._groups() == [Group(math.inf, 0.1, 1.2)]
    with pytest.raises(TypeError, match="PaperCoLOR has no parameter 'groups'"):
        PaperCoLOR(groups=[(0.1,)])


@pytest.mark.parametrize("name", ["amazon_reviews", "cifar100", "sun397_resnet50", "sun397_vitl14"])
def test_presets_are_the_papers_table(name):
    color, dd = PaperCoLOR.preset(name), DomainDiscriminator.preset(name)
    text = name == "amazon_reviews"
    assert color.learning_rate == 1e-3
    assert color.dual_learning_rate == (6e-2 if text else 2e-2)
    assert color.l2 == (1e-4 if text else 3e-7)
    assert color.logit_multiplier == (1.0 if text else 1.2)
    assert color.clip == (1.0 if text else 5.0) == dd.clip
    assert color.optimizer == ("adam" if text else "sgd") and color.dual_optimizer == "adam"
    assert dd.learning_rate == (1e-1 if name == "sun397_vitl14" else 1e-2)
    assert dd.l2 == (1e-4 if text else 3e-5)
    assert (color.batch_size, color.dropout, color.max_steps, color.fpr) == (200, 0.2, None, 0.01)
    assert PaperCoLOR.preset(name, random_state=3, hidden=8).random_state == 3
    assert ConOp.preset(name).get_params() == {**color.get_params(), "joint": False}
    with pytest.raises(ValueError, match="preset='mnist'"):
        PaperCoLOR.preset("mnist")


def test_a_preset_trains_for_200_of_the_papers_epochs(small):
    model = PaperCoLOR.preset("amazon_reviews", hidden=8, random_state=0).fit(small.X, small.y, small.X_target)
    assert model.n_steps_ == 200  # 240 training source rows and 192 target rows: one batch an epoch
    assert sorted({record["step"] for record in model.history_}) == list(range(1, 201))
