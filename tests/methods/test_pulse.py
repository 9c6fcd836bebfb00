from __future__ import annotations

import numpy as np
import pytest
import torch

from openset import PULSE, make_background_shift
from openset.learn.losses import cvir_loss
from openset.methods.pulse import PulseObjective, class_shares, kept_as_novel, resample
from openset.stats.metrics import auroc

QUICK = {"max_steps": 100, "evaluate_every": 25, "random_state": 0, "fpr": 0.05}


@pytest.fixture(scope="module")
def label_shift():
    """Known classes 1/3 each in source and 10 : 3 : 5 in target, a new class of about 20 %."""
    data = make_background_shift(
        n_source=4000, n_target=6000, n_test=300, n_features=10, n_subtypes=1, subtype_distance=0,
        shift=False, novel_fraction=0.14, novel_distance=8, class_distance=8, random_state=0,
    )  # fmt: skip
    share = np.array([1.0, 0.3, 0.5, 1.0])[data.y_target]  # the last entry is of the new class, −1
    taken = np.random.default_rng(0).random(len(share)) < share
    return data, data.X_target[taken], data.y_target[taken]


def test_under_label_shift_both_kinds_of_shares_are_found(label_shift):
    data, target, y_target = label_shift
    model = PULSE(max_steps=400, evaluate_every=100, random_state=0).fit(data.X, data.y, target)
    novel = (y_target == -1).mean()
    assert model.novel_fraction_.value == pytest.approx(novel, abs=0.05)
    assert model.novel_fraction_.low <= novel <= model.novel_fraction_.high
    assert model.novel_fraction_.method == "PULSE"
    shares = np.bincount(y_target[y_target >= 0]) / (y_target >= 0).sum()
    np.testing.assert_allclose(model.class_shares_[0], shares, atol=0.05)
    assert auroc(data.is_novel_test, model.novelty_score(data.X_test)) > 0.97
    np.testing.assert_allclose(model.class_shift_[0], np.log(model.class_shares_[0] * 3), atol=0.05)


def test_known_failure_shifted_subtypes_are_read_as_novel():
    data = make_background_shift(
        n_source=2000, n_target=2000, n_test=10, n_features=20, n_classes=1, novel_fraction=0.05,
        random_state=0,
    )  # fmt: skip
    model = PULSE(max_steps=200, evaluate_every=100, random_state=0).fit(data.X, data.y, data.X_target)
    assert model.novel_fraction_.value > 0.4


def test_cvir_is_the_weighted_cross_entropy_over_source_and_kept_rows():
    source, target = torch.tensor([[1.0, -2.0]]), torch.tensor([[3.0, -1.0, 0.5]])
    kept = torch.tensor([[True, False, True]])
    expected = torch.nn.functional.cross_entropy(
        torch.tensor([[0.0, 1.0], [0.0, -2.0], [0.0, 3.0], [0.0, 0.5]]),
        torch.tensor([0, 0, 1, 1]),
        weight=torch.tensor([0.7, 0.3]),
    )
    assert cvir_loss(source, target, kept, torch.tensor([0.3])).item() == pytest.approx(expected.item())


def test_with_nothing_kept_the_discriminator_rests():
    logits = torch.tensor([[1.0, -2.0]], requires_grad=True)
    loss = cvir_loss(logits, logits, torch.zeros(1, 2, dtype=torch.bool), torch.tensor([0.0]))
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    assert loss.item() == 0 and not gradient.any()


def test_as_many_rows_are_kept_as_estimated_and_none_for_zero():
    novelty = np.array([0.1, 5, -3, 2, 4, 0, 1, 1, 1, 1])
    assert kept_as_novel(novelty, 0.0).sum() == 0
    assert kept_as_novel(novelty, 0.09).sum() == 0
    assert np.flatnonzero(kept_as_novel(novelty, 0.25)).tolist() == [1, 4]
    assert kept_as_novel(novelty, 1.0).all()


def test_resampling_takes_rows_of_a_class_equally_often():
    y = np.array([0, 0, 1, 1, 1, 1, 2, 2])
    rows = resample(y, np.array([0.5, 0.25, 0.25]))
    assert np.bincount(y[rows]).tolist() == [4, 2, 2]
    assert np.bincount(rows, minlength=8)[:2].tolist() == [2, 2]
    assert len(set(rows[y[rows] == 1].tolist())) == 2
    assert resample(y[:2], np.array([1.0, 0, 0])).tolist() == [0, 1]


def test_class_shares_cope_with_rare_classes_and_with_one():
    logits = np.random.default_rng(0).normal(size=(40, 3))
    y = np.arange(40) % 2  # no validation row of class 2
    shares = class_shares(logits, y, logits)
    assert shares.sum() == pytest.approx(1) and shares[2] == 0
    assert class_shares(logits[:, :1], np.zeros(40, int), logits[:, :1]).tolist() == [1.0]


def test_kept_rows_are_training_rows_of_the_target(small):
    objectives = []

    class Watched(PULSE):
        def _objective(self, problem):
            objectives.append(super()._objective(problem))
            return objectives[-1]

    model = Watched(**QUICK, members=2).fit(small.X, small.y, small.X_target)
    (objective,) = objectives
    validation = ~np.isnan(model.target_novelty_score_)
    assert isinstance(objective, PulseObjective) and objective.kept.shape == (2, len(small.X_target))
    for member in range(2):
        n_train = len(small.X_target) - validation.sum() // 2
        assert objective.kept[member].sum() == pytest.approx(objective.novel[member].value * n_train, abs=2)
    assert [r["step"] for r in model.history_ if r["member"] == 0] == [13, 25, 50, 75, 100]


def test_no_novel_rows_at_all(small):
    model = PULSE(**QUICK).fit(small.X, small.y, small.X)
    assert np.isfinite(model.novelty_score(small.X_test)).all()


def test_presets_are_the_papers_table():
    assert {PULSE.preset(n).learning_rate for n in PULSE._presets} == {1e-3}
    assert PULSE.preset("amazon_reviews").l2 == 1e-4 and PULSE.preset("cifar100").l2 == 3e-5


@pytest.mark.parametrize("bad", [{"warmup": 0}, {"warmup": 1.0}, {"joint": "yes"}])
def test_bad_parameters_are_named(bad, small):
    with pytest.raises(ValueError, match=next(iter(bad))):
        PULSE(**bad).fit(small.X, small.y, small.X_target)
