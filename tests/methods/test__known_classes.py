from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from openset.learn.architecture import Architecture
from openset.learn.batches import Batch
from openset.learn.bodies import DropoutMasks
from openset.learn.network import Network
from openset.learn.objective import Validation
from openset.methods._known_classes import ClassObjective, class_metrics

LOGITS = np.array([[2.0, 0.0, -1.0], [0.0, 0.0, 3.0], [1.0, 1.5, 0.0], [0.0, 1.0, 0.0]], dtype=np.float32)
Y = np.array([0, 2, 0, 1])


def validation(logits=LOGITS, y=Y):
    return Validation({"classes": logits}, y, {}, np.empty(0), 0, 1, 1)


def test_metrics_are_cross_entropy_and_accuracy():
    metrics = class_metrics(validation())
    assert metrics["known_accuracy"] == 0.75
    assert metrics["class_loss"] == pytest.approx(F.cross_entropy(torch.tensor(LOGITS), torch.tensor(Y)).item())
    assert metrics["class_loss"] == pytest.approx(0.480086, abs=1e-6)


def test_the_lower_the_cross_entropy_of_validation_rows_the_better():
    judged = [ClassObjective(3).judge_member(validation(scale * LOGITS)) for scale in (1.0, 0.1)]
    assert judged[0].key == -judged[0].metrics["class_loss"] > judged[1].key
    certain = ClassObjective(3).judge_member(validation(np.float32(1e4) * LOGITS))
    assert np.isfinite(certain.key), "also where a wrong class is certain"


def test_the_loss_is_that_of_the_source_half_of_a_batch_on_the_named_body():
    objective = ClassObjective(3, body="known")
    assert objective.bodies == {"known": {"classes": 3}}
    network = Network(Architecture(objective.bodies, 4, 6, 0.0)).initialise([np.random.SeedSequence(0)])
    x = torch.randn(1, 10, 4, generator=torch.Generator().manual_seed(0))
    y = torch.arange(5).view(1, 5) % 3
    terms = objective.terms(network, Batch(x, y, y), DropoutMasks([np.random.SeedSequence(1)]))
    expected = F.cross_entropy(network(x[:, :5], "known")["classes"][0], y[0])
    assert terms.objective.shape == (1,) and terms.proxy_violation is None
    assert terms.objective.item() == pytest.approx(expected.item(), rel=1e-5)
