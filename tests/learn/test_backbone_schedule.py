"""Fine-tuning: frozen layers stay bit for bit, rates go by layer, and a warm-up scales the first steps."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch import nn

from openset.errors import FitWarning
from openset.learn.architecture import Architecture
from openset.learn.backbone_schedule import BackboneSchedule, apply_schedule, layers_of, split_learning_rate
from openset.learn.network import Network
from openset.methods.color_paper import PaperCoLOR
from openset.methods.discriminator import DomainDiscriminator


def pretrained():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(8, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 5)
    )


def fitted(small, module, **options):
    settings = {"max_steps": 6, "evaluate_every": 3, "batch_size": 32, "random_state": 0, "fpr": 0.1, **options}
    model = DomainDiscriminator(backbone=module, **settings)
    return model.fit(small.X.astype(np.float32), small.y, small.X_target.astype(np.float32))


def weights(model):
    """The backbone's arrays by their names in the module."""
    prefix = "bodies.shared.copies.0."
    return {name.removeprefix(prefix): a for name, a in model.weights_.items() if name.startswith(prefix)}


def test_frozen_layers_and_their_statistics_stay_and_the_others_learn(small):
    module = pretrained()
    before = {name: tensor.numpy().copy() for name, tensor in module.state_dict().items()}
    after = weights(fitted(small, module, learning_rate={"heads": 1e-3, "freeze": 3}))
    for name, array in before.items():
        same = np.array_equal(after[name], array)
        assert same is (int(name[0]) < 3), name  # Linear, BatchNorm and ReLU are layers 0 to 2
    everything = weights(fitted(small, module, learning_rate={"heads": 1e-3, "freeze": -1}))
    assert all(np.array_equal(everything[name], array) for name, array in before.items())
    assert all(p.requires_grad for p in module.parameters())  # the user's module is not changed


def test_the_defaults_change_nothing_and_a_slow_backbone_moves_less(small):
    module = pretrained()
    start = module.state_dict()["5.weight"].numpy()
    plain, same = fitted(small, module), fitted(small, module, learning_rate={"heads": 1e-3})
    np.testing.assert_allclose(weights(plain)["5.weight"], weights(same)["5.weight"], atol=1e-6)
    moved = {
        rate: np.abs(
            weights(fitted(small, module, learning_rate={"heads": 1e-3, "rate": rate}))["5.weight"] - start
        ).max()
        for rate in (1.0, 0.1)
    }
    assert 0 < moved[0.1] < 0.3 * moved[1.0]  # Adam's steps are proportional to the rate
    with pytest.warns(FitWarning, match="warmup=600 is not shorter than the training of 6 steps"):
        slow = weights(fitted(small, module, learning_rate={"heads": 1e-3, "warmup": 600}))["5.weight"]
    assert np.abs(slow - start).max() < 0.02 * moved[1.0]  # six steps of a warm-up of 600


def test_rates_go_by_layer_from_the_highest_down():
    module = pretrained()
    architecture = Architecture(bodies={"shared": {"novelty": 1}}, n_features=8, hidden=5, dropout=0.0, members=2)
    network = Network(architecture, module)
    groups = apply_schedule(network, BackboneSchedule(freeze=1, rate=0.5, decay=0.1), 1.0)
    rates = {id(p): group["lr"] for group in groups for p in group["params"]}
    for copied in network.bodies["shared"].copies:
        found = [rates.get(id(copied[i].weight)) for i in (5, 3, 1, 0)]
        assert found[:3] == pytest.approx([0.5, 0.5e-2, 0.5e-4]) and found[3] is None
    assert groups[0]["lr"] == 1.0 and len(rates) == sum(p.requires_grad for p in network.parameters())


def test_layers_of_transformers_and_nested_modules():
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=9, hidden_size=8, num_hidden_layers=3, num_attention_heads=2, intermediate_size=8
    )
    names = [type(layer).__name__ for layer in layers_of(transformers.BertModel(config))]
    assert names == ["BertEmbeddings", "BertLayer", "BertLayer", "BertLayer", "BertPooler"]
    assert len(layers_of(nn.Sequential(pretrained()))) == 6 and len(layers_of(nn.Linear(2, 2))) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"heads": 0.1, "rates": 1.0},
            "expected a number, or a mapping of heads and some of freeze",
        ),
        ({"freeze": 2}, "expected a number, or a mapping of heads"),
        ("slow", "learning_rate='slow'"),
        ({"heads": 0.0}, "learning_rate heads=0"),
        ({"heads": 0.1, "freeze": -2}, "learning_rate freeze=-2"),
        ({"heads": 0.1, "rate": 0.0}, "learning_rate rate=0"),
        ({"heads": 0.1, "decay": 1.5}, "learning_rate decay=1.5"),
        ({"heads": 0.1, "warmup": 1.5}, "learning_rate warmup=1.5"),
    ],
)
def test_what_is_not_valid_is_told(given, message):
    with pytest.raises(ValueError, match=message):
        split_learning_rate(given)


def test_no_more_layers_than_there_are_can_be_frozen(small):
    module = pretrained()
    before = module.state_dict()["5.weight"].numpy().copy()
    everything = weights(fitted(small, module, learning_rate={"heads": 1e-3, "freeze": 6}))
    assert np.array_equal(everything["5.weight"], before)
    with pytest.raises(ValueError, match=r"freeze=7 is not valid: the backbone has 6 layers\. Give fewer, or -1"):
        fitted(small, module, learning_rate={"heads": 1e-3, "freeze": 7})


@pytest.mark.parametrize(("warmup", "is_told"), [(5, False), (6, True)])
def test_a_warm_up_as_long_as_the_training_is_told(small, recwarn, warmup, is_told):
    warnings.simplefilter("always", FitWarning)
    fitted(small, pretrained(), learning_rate={"heads": 1e-3, "warmup": warmup})
    assert any(f"warmup={warmup} is not shorter" in str(found.message) for found in recwarn) is is_told


def test_a_schedule_needs_a_backbone(small):
    with pytest.raises(ValueError, match="needs a backbone"):
        PaperCoLOR(learning_rate={"heads": 1e-3, "warmup": 5}).fit(small.X, small.y, small.X_target)
