from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from openset import NNPU, UPU, DomainDiscriminator, make_background_shift
from openset.learn.batches import ScaledRows, head_outputs
from openset.learn.losses import non_negative_risk, pu_risks
from openset.learn.network import Network
from openset.learn.train import MemberPlan, train
from openset.methods.discriminator import bodies_for
from openset.methods.pu import PUObjective
from openset.stats.folds import make_folds
from openset.stats.metrics import auroc
from openset.stats.scaling import fit_scaling, moments

QUICK = {"max_steps": 120, "evaluate_every": 40, "random_state": 0, "fpr": 0.05}


def risks(known, mixed, prior=0.7, loss="sigmoid"):
    tensors = (torch.tensor([values], dtype=torch.float64) for values in (known, mixed))
    return pu_risks(*tensors, torch.tensor([prior], dtype=torch.float64), loss)


def test_golden_numbers_of_a_batch_that_fits():
    known_risk, rest = risks([2, 0.5, -0.3], [1, -1, -2, 3])
    assert rest.item() == pytest.approx(0.067888, abs=1e-6)
    step, reported = non_negative_risk(known_risk, rest, 0.0, 1.0)
    for value in (known_risk + rest, step, reported):
        assert value.item() == pytest.approx(0.317831, abs=1e-6)


def test_golden_numbers_of_an_over_fitted_batch():
    known_risk, rest = risks([4, 4, 4], [-3] * 4)
    assert rest.item() == pytest.approx(-0.639984, abs=1e-6)
    assert (known_risk + rest).item() == pytest.approx(-0.627393, abs=1e-6)
    step, reported = non_negative_risk(known_risk, rest, 0.0, 1.0)
    assert step.item() == pytest.approx(0.639984, abs=1e-6)
    assert reported.item() == pytest.approx(0.012590, abs=1e-6)
    step, reported = non_negative_risk(known_risk, rest, 0.1, 0.5)
    assert step.item() == pytest.approx(0.319992, abs=1e-6)
    assert reported.item() == pytest.approx(-0.087410, abs=1e-6)
    step, _ = non_negative_risk(known_risk, rest, 0.7, 1.0)
    assert step.item() == pytest.approx(-0.627393, abs=1e-6)


def test_the_logistic_loss_is_softplus_of_minus_z():
    known_risk, rest = risks([2.0], [1.0], 0.6, "logistic")
    assert known_risk.item() == pytest.approx(0.6 * np.log1p(np.exp(-2)))
    assert rest.item() == pytest.approx(np.log1p(np.exp(1)) - 0.6 * np.log1p(np.exp(2)))


def test_every_member_takes_its_own_branch():
    known = torch.tensor([[2, 0.5, -0.3], [4, 4, 4]], dtype=torch.float64)
    mixed = torch.tensor([[1, -1, -2, 3], [-3, -3, -3, -3]], dtype=torch.float64)
    prior = torch.full((2,), 0.7, dtype=torch.float64)
    step, _ = non_negative_risk(*pu_risks(known, mixed, prior), 0.0, 1.0)
    np.testing.assert_allclose(step, [0.317831, 0.639984], atol=1e-6)


def test_the_objective_steps_on_one_value_and_reports_the_other():
    objective = PUObjective(
        bodies_for(3, 1, True), members=1, prior=0.7, estimator="bbe", warm_up=0.2, loss="sigmoid",
        non_negative=(0.0, 1.0),
    )  # fmt: skip
    known = torch.full((1, 3), 4.0, requires_grad=True)
    mixed = torch.full((1, 4), -3.0, requires_grad=True)
    value = objective._risk(known, mixed)
    assert value.item() == pytest.approx(0.012590, abs=1e-5)
    got = torch.autograd.grad(value.sum(), (known, mixed))
    want = torch.autograd.grad(-pu_risks(known, mixed, torch.tensor([0.7]))[1].sum(), (known, mixed))
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other)


@pytest.mark.parametrize("model", [UPU, NNPU])
def test_warm_up_is_the_discriminator_and_parameters_move_after_it(model, small):
    args = (small.X, small.y, small.X_target)
    dd = DomainDiscriminator(**{**QUICK, "max_steps": 30, "evaluate_every": 30}).fit(*args)
    # one step after the warm-up: not yet far from the discriminator; many: far
    near, far = (model(**{**QUICK, "max_steps": steps}, warmup=30 / steps).fit(*args) for steps in (31, 120))
    name = "heads.shared.weight"
    moved = [np.abs(m.weights_[name] - dd.weights_[name]).max() for m in (near, far)]
    assert 0 < moved[0] < 2e-3 < 10 * moved[0] < moved[1]
    assert [r["step"] for r in far.history_] == [30, 40, 80, 120]
    assert [r["prior"] for r in far.history_] == [far.prior_[0]] * 4


@pytest.mark.slow
def test_the_prior_comes_from_the_estimator_on_validation_rows():
    data = make_background_shift(n_features=20, shift=False, novel_fraction=0.3, random_state=1)
    for name, tolerance in (("bbe", 0.08), ("en", 0.15), ("dedpul", 0.1)):
        model = NNPU(max_steps=400, prior_estimator=name, random_state=0).fit(data.X, data.y, data.X_target)
        assert model.prior_[0] == pytest.approx(0.7, abs=tolerance), name
        assert auroc(data.is_novel_test, model.novelty_score(data.X_test)) > 0.9


def test_members_are_independent(small):
    scaling = fit_scaling(moments(small.X), moments(small.X_target), "global")
    source, target = ScaledRows(small.X, scaling), ScaledRows(small.X_target, scaling)
    random = np.random.default_rng(5)
    folds = [
        make_folds(y, members=3, share=0.2, random=random) for y in (small.y, np.zeros(len(small.X_target), int))
    ]
    plans = [
        MemberPlan(np.random.SeedSequence(100 + m), s.train, s.validation, t.train, t.validation)
        for m, (s, t) in enumerate(zip(*folds, strict=True))
    ]
    settings = replace(NNPU(**QUICK)._settings(), tol=0.0)

    def run(chosen):
        objective = PUObjective(
            bodies_for(3, 1, True), members=len(chosen), prior=None, estimator="bbe", warm_up=0.3,
            loss="sigmoid", non_negative=(0.0, 1.0),
        )  # fmt: skip
        trained = train(objective, chosen, source, small.y, target, settings)
        network = Network.from_arrays(trained.architecture, trained.weights)
        return objective.priors, head_outputs(network, target)["novelty"]

    priors, together = run(plans)
    for member, plan in enumerate(plans):
        prior, alone = run([plan])
        assert prior[0] == pytest.approx(priors[member], abs=1e-6)
        np.testing.assert_allclose(alone[0], together[member], atol=1e-4)


def test_a_separate_class_body_is_possible(small):
    model = NNPU(**QUICK, joint=False, members=2).fit(small.X, small.y, small.X_target)
    assert set(model.architecture_.bodies) == {"known", "novelty"}
    assert model.prior_.shape == (2,)


@pytest.mark.parametrize("name", ["amazon_reviews", "cifar100", "sun397_resnet50", "sun397_vitl14"])
def test_presets_are_the_papers_table(name):
    for model in (UPU.preset(name), NNPU.preset(name)):
        assert model.learning_rate == (1e-1 if name == "sun397_vitl14" else 1e-3)
        assert model.l2 == (1e-4 if name == "amazon_reviews" else 3e-7)
        assert model.clip == (1.0 if name == "amazon_reviews" else 5.0)


@pytest.mark.parametrize(
    "bad",
    [
        {"prior": 0}, {"prior": 1.0}, {"prior": "0.5"}, {"prior_estimator": "guess"}, {"warmup": 0},
        {"warmup": 1}, {"loss": "hinge"}, {"joint": 1}, {"beta": -1}, {"gamma": 0},
    ],
)  # fmt: skip
def test_bad_parameters_are_named(bad, small):
    with pytest.raises(ValueError, match=next(iter(bad))):
        NNPU(**bad).fit(small.X, small.y, small.X_target)
