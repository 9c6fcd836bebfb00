from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import expit

from openset import BODA, SourceOnly, make_background_shift
from openset.learn.architecture import Architecture
from openset.learn.batches import Batch
from openset.learn.bodies import DropoutMasks
from openset.learn.network import Network
from openset.learn.objective import Validation
from openset.methods.boda import BodaObjective, adversarial_loss, unknown_log_odds
from openset.stats.metrics import evaluate

QUICK = {"max_steps": 60, "evaluate_every": 20, "random_state": 0, "fpr": 0.1}
LOGITS = np.array([[[1.0, 0.0, 2.0], [0.0, 3.0, -1.0]]])


def test_golden_numbers():
    classes, unknown = LOGITS[..., :2], LOGITS[..., 2:]
    np.testing.assert_allclose(expit(unknown_log_odds(classes, unknown)), [[0.665241, 0.017148]], atol=1e-6)
    loss = adversarial_loss(torch.tensor(classes), torch.tensor(unknown))
    assert loss.tolist() == [pytest.approx(1.396267, abs=1e-5)]


def test_another_t_is_the_formula_and_least_where_p_u_is_t():
    classes, unknown = torch.tensor(LOGITS[..., :2]), torch.tensor(LOGITS[..., 2:])
    p = torch.cat([classes, unknown], dim=-1).softmax(-1)[..., 2]
    expected = (-0.2 * p.log() - 0.8 * (1 - p).log()).mean(dim=1)
    np.testing.assert_allclose(adversarial_loss(classes, unknown, 0.2), expected, atol=1e-4)
    odds = torch.linspace(-3, 3, 6001)
    losses = torch.stack([adversarial_loss(torch.zeros(1, 1, 1), u.view(1, 1, 1), 0.2) for u in odds[::50]])
    assert torch.sigmoid(odds[::50][losses.argmin()]).item() == pytest.approx(0.2, abs=0.01)


def gradients(objective, network, batch):
    network.zero_grad()
    network.workspace.reset()
    objective.terms(network, batch, DropoutMasks([np.random.SeedSequence(0)])).objective.sum().backward()
    return (
        network.bodies["shared"].weight.grad.clone(),
        network.heads["shared"].weight.grad.clone(),
    )


def test_the_body_gets_the_adversarial_gradient_reversed_and_the_head_does_not():
    """Both against plain autograd: head ∇(L_s + L_adv), body ∇(L_s − L_adv)."""
    objective = BodaObjective(3, 0.5)
    network = Network(Architecture(objective.bodies, 6, 7, 0.0)).initialise([np.random.SeedSequence(1)])
    generator = torch.Generator().manual_seed(0)
    rows = torch.arange(10).view(1, 10)
    batch = Batch(torch.randn(1, 20, 6, generator=generator), rows % 3, target_rows=rows)
    body, head = gradients(objective, network, batch)

    w, b, v, c = (p.detach().clone().requires_grad_() for p in network.parameter_groups()[0].stacked)
    logits = (batch.x @ w + b).relu() @ v + c
    source = torch.nn.functional.cross_entropy(logits[0, :10], batch.y[0])
    adversarial = adversarial_loss(logits[:, 10:, :3], logits[:, 10:, 3:]).sum()
    (expected_body,) = torch.autograd.grad(source - adversarial, w, retain_graph=True)
    (expected_head,) = torch.autograd.grad(source + adversarial, v)
    np.testing.assert_allclose(body, expected_body, atol=1e-6)
    np.testing.assert_allclose(head, expected_head, atol=1e-6)


def test_the_score_is_p_u_on_the_logit_scale_and_the_classes_are_the_first_k(small):
    model = BODA(**QUICK).fit(small.X, small.y, small.X_target)
    outputs = model._head_outputs(small.X_test)
    assert outputs["classes"].shape[-1] == 3 and outputs["unknown"].shape[-1] == 1
    logits = np.concatenate([outputs["classes"], outputs["unknown"]], axis=-1)[0].astype(float)
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(expit(model.novelty_score(small.X_test)), p[:, 3], atol=1e-9)
    np.testing.assert_array_equal(model.predict_known(small.X_test), p[:, :3].argmax(axis=1))
    assert {"source_loss", "adversarial_loss", "class_loss"} <= set(model.history_[0])


def test_the_judgement_is_the_validation_loss_over_k_plus_one_classes():
    random = np.random.default_rng(0)
    outputs = {"classes": random.normal(size=(9, 3)), "unknown": random.normal(size=(9, 1))}
    y = np.arange(9) % 3
    judgement = BodaObjective(3, 0.5).judge_member(Validation(outputs, y, outputs, np.empty(0), 0, 1, 1))
    logits = torch.tensor(np.concatenate([outputs["classes"], outputs["unknown"]], axis=1))
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(y)).item()
    assert judgement.key == pytest.approx(-loss) and judgement.metrics["source_loss"] == pytest.approx(loss)
    adversarial = adversarial_loss(logits[None, :, :3], logits[None, :, 3:]).item()
    assert judgement.metrics["adversarial_loss"] == pytest.approx(adversarial)


@pytest.mark.slow
def test_it_beats_the_source_classifiers_doubt_where_the_new_class_is_large():
    """A new class of 30 % that the classifier gives to a known one with confidence."""
    reached = {BODA: [], SourceOnly: []}
    for seed in range(3):
        data = make_background_shift(
            n_source=500, n_target=500, n_test=500, n_features=10, n_subtypes=1, subtype_distance=0,
            novel_distance=8, novel_fraction=0.3, shift=False, random_state=seed,
        )  # fmt: skip
        for method, scores in reached.items():
            model = method(max_steps=250, fpr=0.1, random_state=0).fit(data.X, data.y, data.X_target)
            scores.append(evaluate(model, data.X_test, data.y_test))
    for metric in ("auroc", "oscr"):
        boda, msp = (np.array([getattr(m, metric) for m in scores]) for scores in reached.values())
        assert boda.min() > 0.93
        assert boda.mean() > msp.mean() + 0.1


def test_members_score_every_target_row_out_of_fold(small):
    model = BODA(**QUICK, members=5).fit(small.X, small.y, small.X_target)
    assert not np.isnan(model.target_novelty_score_).any()


@pytest.mark.parametrize("t", [0, 1, -0.1, "half", None, True])
def test_t_must_lie_inside_the_unit_interval(small, t):
    with pytest.raises(ValueError, match="t="):
        BODA(t=t).fit(small.X, small.y, small.X_target)


@pytest.mark.parametrize("name", ["amazon_reviews", "cifar100", "sun397_resnet50", "sun397_vitl14"])
def test_presets_are_the_papers_table(name):
    model = BODA.preset(name)
    text = name == "amazon_reviews"
    assert model.learning_rate == 1e-3 and model.t == 0.5
    assert (model.l2, model.clip) == ((1e-4, 1.0) if text else (3e-3, 5.0))
