from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.base import clone

from openset import CoLOR, ConOp, DomainDiscriminator, make_background_shift
from openset.errors import FitWarning
from openset.methods._presets import PAPER_GRID
from openset.stats.metrics import auprc, auroc, evaluate

STEPS = {"max_steps": 150, "evaluate_every": 50, "random_state": 0}
QUICK = {**STEPS, "selection": "paper"}


@pytest.fixture(scope="module")
def fitted(small):
    return CoLOR(**QUICK, fpr=0.05).fit(small.X, small.y, small.X_target)


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
    with pytest.raises(ValueError, match="no novelty heads: pass X_target"):
        CoLOR(max_steps=5).fit(small.X, small.y).head_scores(small.X_test)


def test_out_of_fold_scores_cover_the_held_out_fifth_of_target(fitted, small):
    scored = ~np.isnan(fitted.target_novelty_score_)
    assert scored.sum() == pytest.approx(len(small.X_target) / 5, abs=1)
    np.testing.assert_array_equal(
        fitted.target_novelty_score_[scored], fitted.novelty_score(small.X_target)[scored]
    )


def test_five_members_score_every_target_row_out_of_fold(small):
    model = CoLOR(**QUICK, fpr=0.1, members=5).fit(small.X, small.y, small.X_target)
    assert not np.isnan(model.target_novelty_score_).any()
    assert model.selected_.recall.shape == (5,)
    # every row is held out by one member only, so its score is that member's, not the pooled one
    assert not np.array_equal(model.target_novelty_score_, model.novelty_score(small.X_target))


def test_pooled_scores_keep_zero_as_the_threshold(small):
    model = CoLOR(**QUICK, fpr=0.1, members=3).fit(small.X, small.y, small.X_target)
    assert model.threshold_ == 0
    for member in range(3):
        assert model._on_common_scale(member, np.zeros(1))[0] == 0


def test_nothing_is_called_novel_when_no_head_keeps_the_budget(small):
    with pytest.warns(FitWarning, match="no head kept"):
        model = CoLOR(
            selection="paper", max_steps=2, evaluate_every=1, fpr=1e-9, grid=(0.9,), random_state=0
        ).fit(small.X + 5, small.y, small.X + 5)
    if not model.selected_.feasible:
        assert model.threshold_ == np.inf
        assert set(model.predict(small.X_test).tolist()) <= set(model.classes_.tolist())
        assert (model.predict_proba(small.X_test)[:, -1] == 0).all()
        assert model.selected_.fpr == model.heads_.fpr.min()
        assert model.novel_fraction_.method == "not identified"


def test_nothing_of_an_earlier_fit_lingers(small):
    model = CoLOR(**QUICK, fpr=0.5).fit(small.X, small.y, small.X_target)
    model.fit(small.X, small.y)
    assert not hasattr(model, "selected_") and not hasattr(model, "heads_")
    assert model.n_target_ == 0 and model.novel_fraction_ is None


def test_conop_is_color_without_joint_learning(small):
    conop, separate = ConOp(**QUICK), CoLOR(**QUICK, joint=False)
    assert conop.get_params() == separate.get_params()
    assert clone(conop).joint is False and ConOp(joint=True).joint is True and CoLOR().joint is True
    for model in (conop, separate):
        model.fit(small.X, small.y, small.X_target)
    np.testing.assert_array_equal(conop.novelty_score(small.X_test), separate.novelty_score(small.X_test))
    assert set(conop.architecture_.bodies) == {"known", "novelty"}


def test_the_class_body_of_conop_never_sees_the_target(small):
    one, other = (
        ConOp(
            max_steps=20, evaluate_every=20, multiplier_bounds=(0.2,), standardize=None, fpr=0.9, random_state=0
        ).fit(small.X, small.y, t)
        for t in (small.X_target, small.X_target[::-1] * 0.5)
    )
    known = [name for name in one.weights_ if ".known." in name]
    assert len(known) == 4
    for name in known:
        np.testing.assert_array_equal(one.weights_[name], other.weights_[name])


def test_one_heads_gradient_is_the_discriminators_times_lambda_sigma():
    """Per target row, at m = 1: d/dh of λ(α̂ − σ(h)) is −λσ(h)(1 − σ(h)); of softplus(−h) it is −(1 − σ(h))."""
    from openset.learn.losses import novel_loss, soft_rate

    h = torch.linspace(-4, 4, 9).view(1, -1, 1).requires_grad_()
    (ours,) = torch.autograd.grad(1.7 * (0.2 - soft_rate(h, 1.0)).sum(), h)
    (theirs,) = torch.autograd.grad(novel_loss(h).sum(), h)
    np.testing.assert_allclose(ours, theirs * 1.7 * h.detach().sigmoid(), atol=1e-7)


def test_class_loss_counts_once_whatever_the_grid(small):
    """With a constant novelty part the class head's gradient must not depend on the number of heads."""
    weights = [
        CoLOR(selection="paper", max_steps=1, evaluate_every=1, joint=False, grid=grid, fpr=0.9, random_state=0)
        .fit(small.X, small.y, small.X_target)
        .weights_["heads.known.weight"]
        for grid in ((0.1,), PAPER_GRID)
    ]
    np.testing.assert_array_equal(*weights)


@pytest.mark.parametrize("name", ["amazon_reviews", "cifar100", "sun397_resnet50", "sun397_vitl14"])
def test_presets_are_the_papers_table(name):
    color, dd = CoLOR.preset(name), DomainDiscriminator.preset(name)
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
    assert CoLOR.preset(name, random_state=3, hidden=8).random_state == 3
    with pytest.raises(ValueError, match="preset='mnist'"):
        CoLOR.preset("mnist")


def test_a_preset_trains_for_200_of_the_papers_epochs(small):
    model = CoLOR.preset("amazon_reviews", hidden=8, random_state=0).fit(small.X, small.y, small.X_target)
    assert model.n_steps_ == 200  # 240 training source rows and 192 target rows: one batch an epoch
    assert sorted({record["step"] for record in model.history_}) == list(range(1, 201))


# ---------------------------------------------------------------------- selection="pooled", the default


@pytest.fixture(scope="module")
def pooled(small):
    return CoLOR(**STEPS, fpr=0.05).fit(small.X, small.y, small.X_target)


def test_wide_features_get_groups_with_dropout():
    data = make_background_shift(n_source=90, n_target=80, n_features=256, random_state=0)
    model = CoLOR(fpr=0.2, max_steps=20, evaluate_every=20, random_state=0).fit(data.X, data.y, data.X_target)
    names = ["bound", "dropout", "logit_multiplier"]
    groups = list(dict.fromkeys(zip(*(model.heads_[name].tolist() for name in names), strict=True)))
    assert groups == [(0.1, 0.0, 1.0), (0.3, 0.2, 0.6), (0.1, 0.2, 1.0)]
    assert model.architecture_.members == 5
    own = model.set_params(dropout=0.4).fit(data.X, data.y, data.X_target)
    assert set(own.heads_.dropout.tolist()) == {0.4} and set(own.heads_.bound.tolist()) == {0.1, 0.3, 1.0}
    paper = CoLOR(selection="paper", fpr=0.9, max_steps=5, random_state=0).fit(data.X, data.y, data.X_target)
    assert paper.architecture_.dropout == 0.4


@pytest.mark.parametrize(
    ("given", "n_features", "sharpness"),
    [
        ({}, 10, [0.6] * 3),
        ({"multiplier_bounds": (0.2,)}, 256, [1.0]),
        ({"selection": "paper"}, 10, [1.0]),
        ({"backbone": torch.nn.Identity()}, 10, [1.0]),
        ({"logit_multiplier": 0.8}, 256, [0.8] * 3),
        ({"logit_multiplier": (1, 0.5, 2)}, 10, [1, 0.5, 2]),
    ],
)
def test_the_recall_is_flatter_on_narrow_tables(given, n_features, sharpness):
    model = CoLOR(**given)
    model.n_features_in_ = n_features
    assert [group.logit_multiplier for group in model._groups()] == sharpness


def test_a_bound_that_the_paper_s_rule_does_not_use_changes_nothing_of_it():
    plain, bounded = CoLOR(selection="paper"), CoLOR(selection="paper", multiplier_bounds=(0.1,))
    plain.n_features_in_ = bounded.n_features_in_ = 300
    assert plain._groups() == bounded._groups() and plain._groups()[0].dropout == 0.4


def test_no_head_sinks_to_calling_nothing_novel():
    """A tenth of the target lies six deviations from any known row; at a slope of 1 AUPRC is .06 here."""
    random = np.random.default_rng(0)
    centres = random.normal(size=(9, 10))
    centres *= 8 / np.linalg.norm(centres, axis=1, keepdims=True)
    away = random.normal(size=10)
    new = centres[0] + 6 * away / np.linalg.norm(away)
    kind, kind_target = random.integers(9, size=(2, 1000))
    X, X_target = (centres[kinds] + random.normal(size=(1000, 10)) for kinds in (kind, kind_target))
    is_novel = np.arange(1000) < 100
    X_target[is_novel] = new + random.normal(size=(100, 10))
    settings = {"multiplier_bounds": (0.3,), "members": 3, "max_steps": 400, "evaluate_every": 100, "fpr": 0.05}
    model = CoLOR(**settings, random_state=0).fit(X, kind // 3, X_target)
    assert auprc(is_novel, model.novelty_score(X_target)) > 0.95


def test_groups_do_not_see_each_other(small):
    given = {**STEPS, "fpr": 0.2, "members": 2}
    two = CoLOR(**given, multiplier_bounds=(0.3, 0.1), dropout=(0.2, 0), logit_multiplier=(0.5, 1))
    one = CoLOR(**given, multiplier_bounds=(0.3,), dropout=0.2, logit_multiplier=0.5)
    both, alone = (model.fit(small.X, small.y, small.X_target).heads_ for model in (two, one))
    of_first = both[both.member == 0]
    assert len(both) == 2 * len(of_first) and len(set(both.value.tolist())) > len(alone)
    for name in both.dtype.names:
        np.testing.assert_allclose(of_first[name], alone[name], rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("name", ["dropout", "logit_multiplier"])
def test_numbers_for_each_group_must_be_as_many_as_the_groups(name, small):
    with pytest.raises(ValueError, match=rf"{name}=\(0.1, 0.2\) is .* one for each of the 3 multiplier_bounds"):
        CoLOR(**{name: (0.1, 0.2)}).fit(small.X, small.y, small.X_target)


def test_one_head_and_step_are_chosen_for_all_members_by_all_held_out_rows(pooled, small):
    table = pooled.heads_
    assert len(table) == 3 * 3 * 10 and set(table.bound.tolist()) == {0.1, 0.3, 1.0}
    assert (table.multiplier <= table.bound).all()
    assert pooled.selected_.value == table.value.max() and pooled.selected_ in table
    assert pooled.architecture_.members == 5 and len(pooled.head_scores(small.X)) == 5
    head = pooled.selected_.head
    np.testing.assert_allclose(
        pooled.novelty_score(small.X_test), pooled.head_scores(small.X_test)[:, :, head].mean(axis=0), rtol=1e-6
    )
    steps = sorted({record["step"] for record in pooled.history_})
    members = sorted({record["member"] for record in pooled.history_})
    assert steps == [50, 100, 150] and members in [list(range(first, first + 5)) for first in (0, 5, 10)]


def test_every_row_is_held_out_once_and_the_choice_can_be_repeated_from_them(pooled, small):
    from openset.stats.selection import penalised_recall

    assert not np.isnan(pooled.target_novelty_score_).any()
    assert len(pooled.calibration_scores_) == len(small.X)
    value = penalised_recall(pooled.calibration_scores_, pooled.target_novelty_score_, 12)
    assert value == pytest.approx(pooled.selected_.value, abs=1e-9)


def test_a_stricter_bound_on_the_shift_proves_less(small, pooled):
    strict = CoLOR(**STEPS, fpr=0.05, max_density_ratio=50).fit(small.X, small.y, small.X_target)
    lows = list(pooled.novel_fraction_.profile.values())
    assert lows == sorted(lows, reverse=True)
    assert strict.novel_fraction_.low <= pooled.novel_fraction_.low
    assert pooled.novel_fraction_.max_density_ratio == 12 and pooled.novelty_test_.word in (
        "none found",
        "likely",
        "clear",
    )
    assert {"separability achieved", "agreement of members", "constraint kept"} <= {
        entry.name for entry in pooled.diagnostics_
    }


def test_source_rows_stay_within_the_budget_on_fresh_rows():
    """Drawn anew from the same problem, at most ``fpr`` of source rows are called novel, with 95 % confidence."""
    exceeded = []
    for seed in range(4):
        data = make_background_shift(n_source=2400, n_target=600, n_features=20, random_state=seed)
        model = CoLOR(**{**STEPS, "fpr": 0.02}).fit(data.X[:1200], data.y[:1200], data.X_target)
        exceeded.append((model.novelty_score(data.X[1200:]) > model.threshold_).mean())
    assert np.mean(exceeded) <= 0.02 and max(exceeded) <= 0.03


def test_training_together_ends_when_no_choice_improves(small):
    model = CoLOR(random_state=0, fpr=0.1, evaluate_every=5, max_steps=2000).fit(small.X, small.y, small.X_target)
    assert model.stop_reason_ == "converged" and model.n_steps_ < 2000
    assert model.n_steps_ - model.heads_.step[model.heads_.value.argmax()] >= 20


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"selection": "best"}, "expected one of 'paper', 'pooled'"),
        ({"multiplier_bounds": ()}, "expected upper bounds"),
        ({"multiplier_bounds": (0.1, -1)}, "multiplier_bounds entry=-1"),
        ({"grid": "low"}, "expected candidate recalls"),
        ({"members": "many"}, "members='many'"),
        ({"max_density_ratio": 0.5}, "max_density_ratio=0.5"),
        ({"backbone": "resnet18", "multiplier_bounds": (0.1, 0.3)}, "not valid with a backbone"),
    ],
)
def test_bad_parameters_say_what_is_expected(small, parameters, message):
    with pytest.raises(ValueError, match=message):
        CoLOR(**parameters).fit(small.X, small.y, small.X_target)


class Pixels(torch.nn.Module):
    """A small convolutional backbone."""

    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten()
        )

    def forward(self, x):
        return self.net(x)


@pytest.mark.filterwarnings("ignore::openset.errors.FitWarning")
def test_a_backbone_trains_from_raw_arrays_and_saves(tmp_path):
    import openset

    random = np.random.default_rng(0)
    y = np.arange(120) % 2
    X = random.normal(size=(120, 1, 6, 6)).astype(np.float32) + (y * 2)[:, None, None, None]
    target = np.concatenate([X[:60], X[:20] * 0 - 3])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        backbone = Pixels()
    model = CoLOR(backbone=backbone, max_steps=60, evaluate_every=20, members=2, random_state=0, fpr=0.2)
    before = torch.get_rng_state()
    model.fit(X, y, target)
    assert torch.equal(before, torch.get_rng_state())
    assert (model.predict_known(X) == y).mean() > 0.9
    model.save(tmp_path)
    with pytest.raises(openset.ModelFormatError, match="backbone=module"):
        openset.load(tmp_path)
    again = openset.load(tmp_path, backbone=Pixels())
    np.testing.assert_array_equal(again.novelty_score(target), model.novelty_score(target))


@pytest.mark.parametrize("seed", range(5))
def test_color_finds_the_new_class_where_discriminators_follow_the_shift(seed):
    from sklearn.neural_network import MLPClassifier

    data = make_background_shift(random_state=seed)
    color = CoLOR(random_state=0).fit(data.X, data.y, data.X_target)
    dd = DomainDiscriminator(random_state=0).fit(data.X, data.y, data.X_target)
    stacked = np.concatenate([data.X, data.X_target])
    domain = np.repeat([0, 1], [len(data.X), len(data.X_target)])
    mlp = MLPClassifier((128,), early_stopping=True, random_state=0).fit(stacked, domain)
    assert evaluate(color, data.X_test, data.y_test).auroc >= 0.95
    assert auroc(data.is_novel_test, dd.novelty_score(data.X_test)) < 0.8
    assert auroc(data.is_novel_test, mlp.predict_proba(data.X_test)[:, 1]) < 0.8
