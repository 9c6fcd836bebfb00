from __future__ import annotations

import numpy as np
import pytest
import torch

from openset.learn.architecture import Architecture
from openset.learn.bodies import DropoutMasks
from openset.learn.heads import HEAD_KINDS, CellDiscriminators, CellHeads, Heads, reciprocal_outputs
from openset.learn.kernels import Workspace
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


# ---------------------------------------------------------------------- linear heads, and those of ANNA


def heads_of(kind, members=2, **widths):
    layer = HEAD_KINDS[kind](widths, 7, members, Workspace())
    with torch.no_grad():
        for member in range(members):
            layer.initialise(member, torch.Generator().manual_seed(member))
    return layer


def test_linear_heads_are_one_product_split_by_name():
    heads = heads_of("linear", classes=3, novelty=5)
    z = torch.randn(2, 4, 7, generator=torch.Generator().manual_seed(9))
    expected = z @ heads.weight + heads.bias
    for outputs in (heads(z), torch.no_grad()(heads)(z)):
        assert list(outputs) == ["classes", "novelty"]
        np.testing.assert_allclose(outputs["classes"].detach(), expected[..., :3].detach(), atol=1e-6)
        np.testing.assert_allclose(outputs["novelty"].detach(), expected[..., 3:].detach(), atol=1e-6)


def test_linear_weights_start_within_the_usual_bound():
    heads = heads_of("linear", classes=400)
    bound = 7**-0.5
    assert heads.weight.abs().max() <= bound and heads.weight.std().item() == pytest.approx(
        bound / 3**0.5, rel=0.05
    )


def test_discriminators_are_three_layers_with_leaky_relu_between():
    network = CellDiscriminators(7, 2)
    with torch.no_grad():
        for member in range(2):
            network.initialise(member, torch.Generator().manual_seed(member))
    cells = torch.randn(2, 5, 7, generator=torch.Generator().manual_seed(9))
    found = network(cells)
    assert found.shape == (2, 2, 5)
    for member in range(2):
        for kind in range(2):
            h = cells[member]
            for layer, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
                h = (torch.where(h > 0, h, 0.2 * h) if layer else h) @ weight[member, kind] + bias[member, kind]
            np.testing.assert_allclose(found[member, kind].detach(), h[:, 0].detach(), atol=1e-6)
    assert [tuple(w.shape[2:]) for w in network.weights] == [(7, 3), (3, 3), (3, 1)]


def test_cell_heads_are_linear_heads_with_discriminators_beside_them():
    heads = heads_of("cells", classes=3, unknown=1)
    assert isinstance(heads, CellHeads) and isinstance(heads, Heads)
    plain = heads_of("linear", classes=3, unknown=1)
    assert torch.equal(heads.weight, plain.weight), "discriminators are drawn after them"
    z = torch.randn(2, 4, 7, generator=torch.Generator().manual_seed(9))
    assert torch.equal(heads(z)["unknown"], plain(z)["unknown"])


@pytest.mark.parametrize("kind", HEAD_KINDS)
def test_every_kind_has_the_members_axis_first(kind):
    widths = {"classes": 3, "unknown": 1} if kind == "cells" else {"classes": 3}
    layer = heads_of(kind, members=4, **widths)
    assert all(tensor.shape[0] == 4 for tensor in layer.state_dict().values())
    outputs = layer(torch.zeros(4, 5, 7))
    assert all(values.shape[:2] == (4, 5) for values in outputs.values()) and outputs["classes"].shape[2] == 3
