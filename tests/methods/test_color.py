"""The library's CoLOR: groups of members, one choice on all validation rows, a corrected threshold."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.neural_network import MLPClassifier

import openset
from openset import CoLOR, DomainDiscriminator, make_background_shift
from openset.methods._color_decision import called_threshold
from openset.methods._color_defaults import NARROW_GROUPS, WIDE_GROUPS
from openset.methods._presets import Group
from openset.methods.color import as_groups
from openset.pipeline.summary import VERDICTS
from openset.stats.metrics import auprc, auroc, evaluate
from openset.stats.selection import penalised_recall
from openset.stats.thresholds import threshold_after_choice

STEPS = {"max_steps": 60, "evaluate_every": 20, "random_state": 0}


@pytest.fixture(scope="module")
def fitted(small):
    return CoLOR(**STEPS, fpr=0.05).fit(small.X, small.y, small.X_target)


def head_score(model, rows):
    """The mean logit of the chosen head, from which the score starts."""
    return model.head_scores(rows)[:, :, model.selected_.head].mean(axis=0)


def pooled_head(model, rows):
    """What the score would be without distances."""
    return model._pooled(model._head_outputs(rows), model.pool_references_)[1]


# ---------------------------------------------------------------------- parameters


def test_there_are_at_most_25_parameters():
    assert len(CoLOR().get_params()) <= 25


FORMER = {
    "selection": "Algorithm 1 is PaperCoLOR",
    "joint": r"Use PaperCoLOR\(joint=False\), which is ConOp",
    **dict.fromkeys(("multiplier_bounds", "dropout", "logit_multiplier"), "Use groups=.Group.bound, dropout"),
    **dict.fromkeys(("optimizer", "momentum", "tol"), "CoLOR trains with Adam until its choice settles"),
    **dict.fromkeys(("dual_optimizer", "dual_learning_rate", "class_loss_weight"), "Algorithm 1 is PaperCoLOR"),
}


@pytest.mark.parametrize("name", FORMER)
def test_a_former_parameter_is_an_error_that_says_what_to_use(name):
    with pytest.raises(TypeError, match=f"CoLOR has no parameter '{name}'. {FORMER[name]}"):
        CoLOR(**{name: 1})
    with pytest.raises(ValueError, match=f"Invalid parameter '{name}'"):
        CoLOR().set_params(**{name: 1})


def resolved(n_features, **given):
    """What is resolved beside the ratio, which is 12 until the fit has scores to read it off."""
    found = CoLOR(**given)._resolve(n_features)
    assert found.pop("max_density_ratio") == 12 and not CoLOR(max_density_ratio=3)._resolve(8).get(
        "max_density_ratio"
    )
    return found


@pytest.mark.parametrize(
    ("given", "n_features", "members", "groups"),
    [
        ({}, 8, 5, [(0.1, 0, 0.6), (0.3, 0, 0.6), (1, 0, 0.6)]),
        ({}, 255, 5, [(0.1, 0, 0.6), (0.3, 0, 0.6), (1, 0, 0.6)]),
        ({}, 256, 5, [(0.1, 0, 1), (0.3, 0.2, 0.6), (0.1, 0.2, 1)]),
        ({"backbone": "resnet18"}, 8, 1, [(1, 0, 1)]),
        ({"backbone": "resnet18"}, 3072, 1, [(1, 0, 1)]),
        ({"effort": "fast"}, 8, 1, [(0.1, 0, 0.6)]),
        ({"effort": "fast"}, 256, 1, [(0.1, 0.2, 1)]),
        ({"effort": "fast", "backbone": "resnet18"}, 256, 1, [(1, 0, 1)]),
    ],
)
def test_what_auto_is_resolved_to(given, n_features, members, groups):
    assert resolved(n_features, **given) == {"members": members, "groups": tuple(groups)}


def test_what_was_given_is_not_resolved():
    assert resolved(8, members=3, groups=[(0.2,)], effort="fast") == {}
    assert resolved(8, members=3, effort="fast") == {"groups": ((0.1, 0, 0.6),)}
    assert resolved(300, groups=[(0.2,)]) == {"members": 5}


def test_a_fit_says_what_auto_became_and_leaves_its_parameters_alone(small, fitted):
    assert fitted.resolved_parameters_ == {
        "members": 5, "groups": NARROW_GROUPS, "standardize": "global", "align": "none",
        "max_density_ratio": fitted.novelty_test_.max_density_ratio,
    }  # fmt: skip
    assert (fitted.members, fitted.groups, fitted.standardize, fitted.align) == ("auto",) * 4
    given = CoLOR(
        max_density_ratio=12, **STEPS, members=2, groups=[(0.2,)], standardize="feature", align="none", fpr=0.2
    )
    assert given.fit(small.X, small.y, small.X_target).resolved_parameters_ == {}


def test_fast_is_one_network_of_one_group(small):
    fast = CoLOR(**STEPS, fpr=0.2, effort="fast").fit(small.X, small.y, small.X_target)
    assert fast.architecture_.members == 1 and len(fast.heads_) == 3 * 10
    assert set(fast.heads_.bound.tolist()) == {0.1} and set(fast.heads_.sharpness.tolist()) == {0.6}
    assert fast.resolved_parameters_ == {
        "members": 1, "groups": (Group(0.1),), "standardize": "global", "align": "none",
        "max_density_ratio": fast.novelty_test_.max_density_ratio,
    }  # fmt: skip
    assert fast.alignment_.name == "none" and not hasattr(fast, "voices_")
    same = CoLOR(**STEPS, fpr=0.2, members=1, groups=[(0.1, 0, 0.6)]).fit(small.X, small.y, small.X_target)
    np.testing.assert_array_equal(fast.head_scores(small.X_test), same.head_scores(small.X_test))
    np.testing.assert_array_equal(fast.novelty_score(small.X_test), head_score(same, small.X_test))
    assert fast.selected_ == same.selected_ and fast.novelty_test_ == same.novelty_test_
    own = threshold_after_choice(fast.calibration_scores_, 0.2, n_compared=len(fast.heads_))
    assert fast.threshold_ == called_threshold(own, fast.calibration_scores_, fast.novelty_test_)
    # one fifth of the rows chose, tested and set the threshold: no row that was trained on
    assert len(fast.calibration_scores_) == 60 and np.isnan(fast.target_novelty_score_).sum() == 192


def test_wide_features_get_groups_with_dropout():
    data = make_background_shift(n_source=90, n_target=80, n_features=256, random_state=0)
    model = CoLOR(fpr=0.2, max_steps=20, evaluate_every=20, random_state=0).fit(data.X, data.y, data.X_target)
    assert trained_groups(model) == [(0.1, 0.0, 1.0), (0.3, 0.2, 0.6), (0.1, 0.2, 1.0)]
    assert model.architecture_.members == 5 and model.resolved_parameters_["groups"] == WIDE_GROUPS
    own = [(0.1, 0.4, 1.0), (0.3, 0.4, 1.0), (1.0, 0.4, 1.0)]
    model.set_params(groups=own).fit(data.X, data.y, data.X_target)
    assert trained_groups(model) == own


def trained_groups(model):
    columns = (model.heads_[name].tolist() for name in Group._fields)
    return list(dict.fromkeys(zip(*columns, strict=True)))


def test_groups_may_be_given_in_three_ways():
    expected = [Group(0.1, 0.2, 0.6), Group(0.3, 0.0, 0.6)]
    for given in (expected, [(0.1, 0.2), [0.3]], ({"bound": 0.1, "dropout": 0.2}, {"bound": 0.3})):
        assert as_groups(given) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("wide", "groups='wide' is not valid: expected settings such as"),
        (0.1, "groups=0.1 is not valid: expected settings such as"),
        ((), r"groups=\(\) is not valid: expected settings such as"),
        (None, "groups=None is not valid"),
        ([0.1, 0.3], "groups entry 0.1 is not valid: expected settings such as"),
        ([(0.1, 0.2, 0.6, 1.0)], r"groups entry \(0.1, 0.2, 0.6, 1.0\) is not valid"),
        ([{"bounds": 0.1}], "groups entry {'bounds': 0.1} is not valid"),
        ([(0.1,), (-1,)], "groups bound=-1 is not valid"),
        ([("much",)], "groups bound='much' is not valid"),
        ([(np.inf,)], "groups bound=inf is not valid"),
        ([(0.1, 1.0)], r"groups dropout=1.0 is not valid: expected a number in \[0, 1\)"),
        ([(0.1, 0.2, 0)], "groups sharpness=0 is not valid"),
    ],
)
def test_bad_groups_say_what_is_expected(small, given, message):
    with pytest.raises(ValueError, match=message):
        as_groups(given)
    with pytest.raises(ValueError, match=message):
        CoLOR(groups=given).fit(small.X, small.y, small.X_target)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"effort": "best"}, "effort='best' is not valid: expected one of 'full', 'fast'"),
        ({"grid": "low"}, "expected candidate recalls"),
        ({"members": "many"}, "members='many'"),
        ({"max_density_ratio": 0.5}, "max_density_ratio=0.5"),
        ({"backbone": "resnet18", "groups": [(0.1,), (0.3,)]}, "not valid with a backbone: expected one group"),
        ({"align": "class"}, "align='class' is not valid"),
        ({"backbone": "resnet18", "align": "coral"}, "align='coral' is not valid with a backbone"),
    ],
)
def test_bad_parameters_say_what_is_expected(small, parameters, message):
    with pytest.raises(ValueError, match=message):
        CoLOR(**parameters).fit(small.X, small.y, small.X_target)


# ---------------------------------------------------------------------- groups, and the choice among them


@pytest.mark.slow
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
    settings = {"groups": [(0.3,)], "members": 3, "max_steps": 400, "evaluate_every": 100, "fpr": 0.05}
    model = CoLOR(**settings, random_state=0).fit(X, kind // 3, X_target)
    assert auprc(is_novel, model.novelty_score(X_target)) > 0.95


def test_groups_do_not_see_each_other(small):
    given = {**STEPS, "fpr": 0.2, "members": 2}
    two = CoLOR(**given, groups=[(0.3, 0.2, 0.5), (0.1, 0, 1)])
    one = CoLOR(**given, groups=[(0.3, 0.2, 0.5)])
    both, alone = (model.fit(small.X, small.y, small.X_target).heads_ for model in (two, one))
    of_first = both[both.member == 0]
    assert len(both) == 2 * len(of_first) and len(set(both.value.tolist())) > len(alone)
    for name in both.dtype.names:
        np.testing.assert_allclose(of_first[name], alone[name], rtol=1e-4, atol=1e-7)


def test_one_head_and_step_are_chosen_for_all_members_by_all_validation_rows(fitted, small):
    table = fitted.heads_
    assert len(table) == 3 * 3 * 10 and set(table.bound.tolist()) == {0.1, 0.3, 1.0}
    assert (table.multiplier <= table.bound).all()
    assert fitted.selected_.value == table.value.max() and fitted.selected_ in table
    assert fitted.architecture_.members == 5 and len(fitted.head_scores(small.X)) == 5
    np.testing.assert_allclose(pooled_head(fitted, small.X_test), head_score(fitted, small.X_test), rtol=1e-6)
    steps = sorted({record["step"] for record in fitted.history_})
    members = sorted({record["member"] for record in fitted.history_})
    assert steps == [20, 40, 60] and members in [list(range(first, first + 5)) for first in (0, 5, 10)]


def test_every_row_is_a_validation_row_once_and_the_choice_can_be_repeated_from_them(fitted, small):
    assert not np.isnan(fitted.target_novelty_score_).any()
    assert len(fitted.calibration_scores_) == len(small.X)
    split, head = fitted.fit_scores_.split, fitted.selected_.head
    source, target = (
        np.concatenate([scores[m, fold.validation, head] for m, fold in enumerate(folds)]).astype(np.float64)
        for scores, folds in (
            (fitted.head_scores(small.X), split.folds),
            (fitted.head_scores(small.X_target), split.target_folds),
        )
    )
    assert (len(source), len(target)) == (len(small.X), len(small.X_target))
    value = penalised_recall(source, target, 12)
    assert value == pytest.approx(fitted.selected_.value, abs=1e-9)


def test_a_stricter_bound_on_the_shift_proves_less(small, fitted):
    strict = CoLOR(**STEPS, fpr=0.05, max_density_ratio=50).fit(small.X, small.y, small.X_target)
    lows = list(fitted.novel_fraction_.profile.values())
    assert lows == sorted(lows, reverse=True)
    assert strict.novel_fraction_.low <= fitted.novel_fraction_.low
    assert fitted.max_density_ratio == "auto"
    assert strict.novelty_test_.max_density_ratio == 50 > fitted.novelty_test_.max_density_ratio
    assert fitted.novelty_test_.code in VERDICTS
    assert {"separability achieved", "agreement of members", "constraint kept"} <= {
        entry.name for entry in fitted.diagnostics_
    }


@pytest.mark.slow
def test_source_rows_stay_within_the_budget_on_fresh_rows():
    """Drawn anew from the same problem, at most ``fpr`` of source rows are called novel, with 95 % confidence."""
    exceeded = []
    for seed in range(4):
        data = make_background_shift(n_source=2400, n_target=600, n_features=20, random_state=seed)
        model = CoLOR(max_steps=150, evaluate_every=50, fpr=0.02, random_state=0).fit(
            data.X[:1200], data.y[:1200], data.X_target
        )
        exceeded.append((model.novelty_score(data.X[1200:]) > model.threshold_).mean())
    assert np.mean(exceeded) <= 0.02 and max(exceeded) <= 0.03


@pytest.mark.slow
def test_training_together_ends_when_no_choice_improves(small):
    model = CoLOR(random_state=0, fpr=0.1, evaluate_every=5, max_steps=2000).fit(small.X, small.y, small.X_target)
    assert model.stop_reason_ == "converged" and model.n_steps_ < 2000
    assert model.n_steps_ - model.heads_.step[model.heads_.value.argmax()] >= 20


# ---------------------------------------------------------------------- backbones, and the quality of the ranking


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
    assert model.resolved_parameters_["groups"] == (Group(1.0, 0.0, 1.0),)
    model.save(tmp_path)
    with pytest.raises(openset.ModelFormatError, match="backbone=module"):
        openset.load(tmp_path)
    again = openset.load(tmp_path, backbone=Pixels())
    np.testing.assert_array_equal(again.novelty_score(target), model.novelty_score(target))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_color_finds_the_new_class_where_discriminators_follow_the_shift(seed):
    data = make_background_shift(random_state=seed)
    color = CoLOR(random_state=0).fit(data.X, data.y, data.X_target)
    dd = DomainDiscriminator(random_state=0).fit(data.X, data.y, data.X_target)
    stacked = np.concatenate([data.X, data.X_target])
    domain = np.repeat([0, 1], [len(data.X), len(data.X_target)])
    mlp = MLPClassifier((128,), early_stopping=True, random_state=0).fit(stacked, domain)
    assert evaluate(color, data.X_test, data.y_test).auroc >= 0.95
    assert auroc(data.is_novel_test, dd.novelty_score(data.X_test)) < 0.8
    assert auroc(data.is_novel_test, mlp.predict_proba(data.X_test)[:, 1]) < 0.8
