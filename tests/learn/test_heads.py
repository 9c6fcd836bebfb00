from __future__ import annotations

import numpy as np
import pytest
import torch

from openset.learn.architecture import Architecture
from openset.learn.bodies import DropoutMasks
from openset.learn.heads import reciprocal_outputs
from openset.learn.network import Network

SEEDS = [np.random.SeedSequence(i) for i in range(3)]


def make_network(seeds, backbone=None):
    architecture = Architecture(
        {"shared": {"classes": 4}}, 6, 7, 0.3, members=len(seeds), kinds={"shared": "reciprocal"}
    )
    return Network(architecture, backbone).initialise(seeds)


@pytest.mark.parametrize("k", [1, 4, 9])
def test_outputs_are_the_formula_written_out(k):
    random = np.random.default_rng(0)
    z, points = (torch.tensor(random.normal(size=(2, n, 3))) for n in (5, k))
    logits, distances = reciprocal_outputs(z, points)
    for member in range(2):
        for row in range(5):
            for c in range(k):
                d = ((z[member, row] - points[member, c]) ** 2).sum() / 3
                assert distances[member, row, c] == pytest.approx(d.item())
                expected = d - z[member, row] @ points[member, c]
                assert logits[member, row, c] == pytest.approx(expected.item())


def test_points_and_radius_start_as_said_and_alike_alone_or_in_company():
    network = make_network(SEEDS)
    heads = network.heads["shared"]
    assert heads.points.shape == (3, 4, 7) and heads.radius.shape == (3, 1)
    assert (heads.radius == 0).all()
    assert heads.points.std().item() == pytest.approx(0.1, rel=0.3)
    alone = make_network(SEEDS[1:2])
    for a, b in zip(network.parameters(), alone.parameters(), strict=True):
        assert torch.equal(a[1], b[0])


def test_they_are_stored_viewed_by_member_and_given_gradients_like_other_weights():
    network = make_network(SEEDS)
    x = torch.randn(1, 8, 6, generator=torch.Generator().manual_seed(0)).expand(3, 8, 6)
    again = Network.from_arrays(network.architecture, network.arrays())
    with torch.inference_mode():
        logits = network(x, "shared")["classes"]
        assert torch.equal(again(x, "shared")["classes"], logits)
        np.testing.assert_allclose(network.member(2)(x[:1], "shared")["classes"][0], logits[2], atol=1e-6)
    assert {"heads.shared.points", "heads.shared.radius"} <= set(network.member_state(0))
    outputs = network(x.contiguous(), "shared", DropoutMasks(SEEDS))
    (outputs["distances"].sum() - network.heads["shared"].radius.sum()).backward()
    (group,) = network.parameter_groups()
    assert len(list(group)) == 4 and all(p.grad is not None for p in group)
