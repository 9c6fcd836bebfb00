from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.neural_network import MLPClassifier
from torch.nn import functional as F

from openset import DomainDiscriminator, make_background_shift
from openset.learn.architecture import Architecture
from openset.learn.batches import Batch
from openset.learn.bodies import DropoutMasks
from openset.learn.network import Network
from openset.learn.objective import KEEP_LATEST, Validation
from openset.methods.discriminator import DiscriminatorObjective, bodies_for, joint_outputs
from openset.stats.metrics import auroc

QUICK = {"max_steps": 20, "evaluate_every": 10, "fpr": 0.2, "random_state": 0}


def test_bodies_are_shared_or_one_each():
    assert bodies_for(3, 10, True) == {"shared": {"classes": 3, "novelty": 10}}
    assert bodies_for(3, 10, False) == {"known": {"classes": 3}, "novelty": {"novelty": 10}}


@pytest.mark.parametrize("joint", [True, False])
def test_the_loss_is_class_and_domain_cross_entropy(joint):
    objective = DiscriminatorObjective(bodies_for(3, 1, joint))
    network = Network(Architecture(objective.bodies, 4, 6, 0.0)).initialise([np.random.SeedSequence(0)])
    x = torch.randn(1, 12, 4, generator=torch.Generator().manual_seed(0))
    y = torch.arange(6).view(1, 6) % 3
    batch, masks = Batch(x, y, y), DropoutMasks([np.random.SeedSequence(1)])
    classes, novelty = joint_outputs(network, batch, masks)
    assert classes.shape[1] == (12 if joint else 6), "a class body of its own reads source rows only"
    is_target = (torch.arange(12) >= 6).float()
    domain = F.binary_cross_entropy_with_logits(novelty[0, :, 0], is_target)
    expected = F.cross_entropy(classes[0, :6], y[0]) + domain
    found = objective.terms(network, batch, DropoutMasks([np.random.SeedSequence(1)])).objective
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)


def test_the_latest_network_is_kept_and_the_domain_loss_recorded(small):
    random = np.random.default_rng(0)
    source = {"classes": random.normal(size=(8, 3)), "novelty": random.normal(size=(8, 1))}
    target = {"novelty": random.normal(size=(5, 1))}
    validation = Validation(source, np.arange(8) % 3, target, np.empty(0), 0, 1, 1)
    judgement = DiscriminatorObjective(bodies_for(3, 1, True)).judge_member(validation)
    expected = np.log1p(np.exp(source["novelty"])).mean() + np.log1p(np.exp(-target["novelty"])).mean()
    assert judgement.key == KEEP_LATEST and judgement.metrics["domain_loss"] == pytest.approx(expected / 2)
    model = DomainDiscriminator(**QUICK).fit(small.X, small.y, small.X_target)
    assert [set(record) for record in model.history_] == [
        {"step", "member", "loss", "class_loss", "known_accuracy", "domain_loss"}
    ] * 2


def test_the_score_is_the_logit_of_target(small):
    model = DomainDiscriminator(**QUICK, joint=False).fit(small.X, small.y, small.X_target)
    assert set(model.architecture_.bodies) == {"known", "novelty"}
    logit = model._head_outputs(small.X_test)["novelty"][0, :, 0]
    np.testing.assert_array_equal(model.novelty_score(small.X_test), logit.astype(float))
    with pytest.raises(ValueError, match="joint='no'"):
        DomainDiscriminator(joint="no").fit(small.X, small.y)


def test_without_shift_it_finds_a_far_new_class():
    data = make_background_shift(
        n_source=400, n_target=400, n_test=400, shift=False, n_features=8, novel_distance=10, random_state=0
    )
    model = DomainDiscriminator(max_steps=150, fpr=0.1, random_state=0).fit(data.X, data.y, data.X_target)
    assert auroc(data.is_novel_test, model.novelty_score(data.X_test)) > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_without_shift_it_is_as_good_as_scikit_learns_network(seed):
    # few dimensions and a far new class: nothing to over-fit, so that both must find it
    data = make_background_shift(shift=False, n_features=20, novel_distance=8.0, random_state=seed)
    ours = DomainDiscriminator(random_state=0).fit(data.X, data.y, data.X_target)
    stacked = np.concatenate([data.X, data.X_target])
    domain = np.repeat([0, 1], [len(data.X), len(data.X_target)])
    theirs = MLPClassifier((128,), early_stopping=True, random_state=0).fit(stacked, domain)
    own = auroc(data.is_novel_test, ours.novelty_score(data.X_test))
    other = auroc(data.is_novel_test, theirs.predict_proba(data.X_test)[:, 1])
    assert min(own, other) >= 0.95 and abs(own - other) <= 0.02
