from __future__ import annotations

import numpy as np
import torch

from openset.learn.architecture import Architecture
from openset.learn.backbones import output_shape
from openset.learn.bodies import DropoutMasks
from openset.learn.network import Network

SEEDS = [np.random.SeedSequence(i) for i in range(3)]


def make_network(dropout=0.0, members=3, bodies=None):
    bodies = bodies or {"shared": {"classes": 4, "novelty": 5}}
    architecture = Architecture(bodies, n_features=6, hidden=7, dropout=dropout, members=members)
    return Network(architecture).initialise(SEEDS[:members])


def test_a_gradient_flows_from_a_method_in_between_too():
    """A reversed gradient between body and head, as adversarial methods have it."""
    network = make_network()
    x = torch.randn(3, 5, 6)
    h = network.represent(x, "shared", DropoutMasks(SEEDS))
    h.register_hook(lambda g: -g)
    network.heads["shared"](h)["classes"].sum().backward()
    reversed_gradient = network.bodies["shared"].weight.grad.clone()
    network.zero_grad()
    network.workspace.reset()
    network(x, "shared", DropoutMasks(SEEDS))["classes"].sum().backward()
    np.testing.assert_allclose(reversed_gradient, -network.bodies["shared"].weight.grad, atol=1e-6)


def test_a_member_draws_the_same_alone_or_in_company():
    together, alone = (
        make_network(),
        Network(Architecture({"shared": {"classes": 4, "novelty": 5}}, 6, 7, 0.0, members=1)).initialise(
            SEEDS[1:2]
        ),
    )
    for a, b in zip(together.parameters(), alone.parameters(), strict=True):
        assert torch.equal(a[1], b[0])


def test_arrays_round_trip_and_member_views_share_weights():
    network = make_network(bodies={"known": {"classes": 2}, "novelty": {"novelty": 3}})
    again = Network.from_arrays(network.architecture, network.arrays())
    x = torch.randn(1, 8, 6).expand(3, 8, 6)
    with torch.inference_mode():
        for body in ("known", "novelty"):
            for head, logits in network(x, body).items():
                assert torch.equal(again(x, body)[head], logits)
                one = network.member(2)(x[:1], body)[head]
                np.testing.assert_allclose(one[0], logits[2], atol=1e-6)


class Convolution(torch.nn.Module):
    """A tiny backbone with batch norm, which has buffers."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 3, 3)
        self.norm = torch.nn.BatchNorm2d(3)

    def forward(self, x):
        return self.norm(self.conv(x)).relu().mean(dim=(2, 3))


def test_every_member_has_a_backbone_of_its_own():
    architecture = Architecture({"shared": {"classes": 2}}, 1, hidden=3, dropout=0.0, members=2)
    network = Network(architecture, Convolution()).initialise(SEEDS[:2])
    x = torch.randn(2, 4, 1, 6, 6)
    network(x, "shared", DropoutMasks(SEEDS[:2]))["classes"].sum().backward()
    assert all(p.grad is not None for p in network.parameter_groups()[0].own[1])
    state = network.member_state(1)
    assert any("running_mean" in name for name in state)
    assert network.member(1)(x[1:], "shared")["classes"].shape == (1, 4, 2)


def test_a_map_is_read_as_its_mean_cell_and_cell_by_cell():
    network = make_network()
    x = torch.randn(3, 8, 5, 6, generator=torch.Generator().manual_seed(0))
    h, cells = network.represent_with_cells(x, "shared")
    torch.testing.assert_close(h, network.represent(x.mean(dim=2), "shared"))
    torch.testing.assert_close(network.represent(x, "shared"), h)
    for cell in range(5):
        torch.testing.assert_close(cells[:, :, cell], network.represent(x[:, :, cell], "shared"))


def test_a_backbones_map_is_its_mean_and_its_cells():
    backbone = torch.nn.Conv2d(2, 7, 2)
    assert output_shape(backbone, (2, 3, 4)) == (6, 7)
    network = Network(Architecture({"shared": {"classes": 4}}, 4, 7, 0.0, members=2), backbone)
    x = torch.randn(2, 5, 2, 3, 4, generator=torch.Generator().manual_seed(0))
    h, cells = network.represent_with_cells(x, "shared")
    maps = torch.stack([backbone(rows) for rows in x])
    torch.testing.assert_close(h, maps.mean(dim=(3, 4)))
    torch.testing.assert_close(network.represent(x, "shared"), h)
    torch.testing.assert_close(cells[:, :, 4], maps[:, :, :, 1, 1])
