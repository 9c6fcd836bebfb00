from __future__ import annotations

import numpy as np
import pytest
import torch

from openset.learn.architecture import Architecture
from openset.learn.batches import ScaledRows, head_outputs
from openset.learn.bodies import DropoutMasks
from openset.learn.network import Network
from openset.stats.scaling import NO_SCALING

SEEDS = [np.random.SeedSequence(i) for i in range(3)]


def make_network(seeds, dropout=0.0, hidden=7, n_classes=4):
    architecture = Architecture(
        {"shared": {"classes": n_classes}}, 6, hidden, dropout, members=len(seeds),
        kinds={"shared": "weight_norm"}, body_kinds={"shared": "bottleneck"},
    )  # fmt: skip
    return Network(architecture).initialise(seeds)


def batches(n, members=3):
    generator = torch.Generator().manual_seed(0)
    return [3 * torch.randn(members, 20, 6, generator=generator) + 1 for _ in range(n)]


def torch_twin(network, member):
    """The same member out of torch's own layers."""
    body, head = network.bodies["shared"], network.heads["shared"]
    linear, norm = torch.nn.Linear(6, 7, bias=False), torch.nn.BatchNorm1d(7)
    out = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(7, 4))
    with torch.no_grad():
        linear.weight.copy_(body.weight[member].T)
        out.parametrizations.weight.original0.copy_(head.length[member].T)
        out.parametrizations.weight.original1.copy_(head.direction[member].T)
        out.bias.copy_(head.bias[member, 0])
    return torch.nn.Sequential(linear, norm, out)


def test_training_and_scoring_are_torchs_own_layers():
    network = make_network(SEEDS)
    twins = [torch_twin(network, m) for m in range(3)]
    for x in batches(3):
        network.zero_grad()
        logits = network(x, "shared", DropoutMasks(SEEDS))["classes"]
        logits.square().sum().backward()
        for member, twin in enumerate(twins):
            twin.zero_grad()
            expected = twin.train()(x[member])
            np.testing.assert_allclose(logits[member].detach(), expected.detach(), atol=1e-5)
            expected.square().sum().backward()
            body, head = network.bodies["shared"], network.heads["shared"]
            scale = 1 + twin[0].weight.grad.abs().max()
            np.testing.assert_allclose(body.weight.grad[member].T, twin[0].weight.grad, atol=1e-5 * scale)
            np.testing.assert_allclose(body.scale.grad[member, 0], twin[1].weight.grad, rtol=1e-4, atol=1e-4)
            own = twin[2].parametrizations.weight
            np.testing.assert_allclose(head.direction.grad[member].T, own.original1.grad, rtol=1e-4, atol=1e-3)
            np.testing.assert_allclose(head.length.grad[member].T, own.original0.grad, rtol=1e-4, atol=1e-3)
    (x,) = batches(1)
    with torch.inference_mode():
        scored = network(x, "shared")["classes"]
        for member, twin in enumerate(twins):
            body = network.bodies["shared"]
            np.testing.assert_allclose(body.running_mean[member, 0], twin[1].running_mean, atol=1e-5)
            np.testing.assert_allclose(body.running_variance[member, 0], twin[1].running_var, rtol=1e-5)
            np.testing.assert_allclose(scored[member], twin.eval()(x[member]), atol=1e-5)


def test_scoring_leaves_the_running_statistics_and_a_row_by_itself():
    network = make_network(SEEDS)
    for x in batches(2):
        network(x, "shared", DropoutMasks(SEEDS))
    before = {name: values.copy() for name, values in network.arrays().items()}
    rows = ScaledRows(np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32), NO_SCALING)
    whole = head_outputs(network, rows, representation=True)
    assert whole["shared"].shape == (3, 300, 7) and set(head_outputs(network, rows)) == {"classes"}
    backwards = head_outputs(network, rows, np.arange(300)[::-1], representation=True)
    alone = head_outputs(network, rows, np.array([17]), representation=True)
    for name, values in whole.items():
        assert np.array_equal(values[:, ::-1], backwards[name])
        assert np.array_equal(values[:, 17:18], alone[name])
    for name, values in network.arrays().items():
        assert np.array_equal(values, before[name])


def test_statistics_are_stored_and_viewed_by_member_like_weights():
    network = make_network(SEEDS)
    for x in batches(2):
        network(x, "shared", DropoutMasks(SEEDS))
    assert {"bodies.shared.running_mean", "bodies.shared.running_variance"} <= set(network.member_state(0))
    (x,) = batches(1)
    again = Network.from_arrays(network.architecture, network.arrays())
    with torch.inference_mode():
        logits = network(x, "shared")["classes"]
        assert torch.equal(again(x, "shared")["classes"], logits)
        np.testing.assert_allclose(network.member(2)(x[2:], "shared")["classes"][0], logits[2], atol=1e-6)


def test_a_member_starts_alike_alone_or_in_company_and_its_lengths_are_those_of_its_directions():
    network, alone = make_network(SEEDS), make_network(SEEDS[1:2])
    for (name, a), b in zip(network.state_dict().items(), alone.state_dict().values(), strict=True):
        assert torch.equal(a[1], b[0]), name
    head = network.heads["shared"]
    np.testing.assert_allclose(head.length[:, 0].detach(), head.direction.detach().norm(dim=1), rtol=1e-6)


def test_dropout_drops_inputs_and_outputs_at_its_rate_and_keeps_the_mean():
    network = make_network(SEEDS[:1], dropout=0.25, hidden=400)
    body = network.bodies["shared"]
    torch.nn.init.ones_(body.shift)
    torch.nn.init.zeros_(body.scale)
    z = body(batches(1, members=1)[0].repeat(1, 20, 1), DropoutMasks(SEEDS[:1])).detach()
    assert (z == 0).float().mean().item() == pytest.approx(0.25, abs=0.01)
    assert z.mean().item() == pytest.approx(1, abs=0.01)


def test_a_batch_of_one_row_stays_finite():
    network = make_network(SEEDS)
    logits = network(batches(1)[0][:, :1], "shared", DropoutMasks(SEEDS))["classes"]
    logits.sum().backward()
    assert torch.isfinite(logits).all()
    assert all(torch.isfinite(p.grad).all() for p in network.parameters())


# ---------------------------------------------------------------------- keep-masks


def test_masks_drop_at_the_rate_and_keep_the_mean():
    masks = DropoutMasks(SEEDS[:2])
    mask = masks.fill(torch.empty(2, 1000, 100), 0.2)
    assert set(mask.unique().tolist()) == {0.0, 1.0}
    assert 1 - mask.mean().item() == pytest.approx(0.2, abs=0.004)
    assert (mask * masks.scale(0.2)).mean().item() == pytest.approx(1, abs=0.004)
    assert not torch.equal(mask[0], mask[1])


def test_a_members_masks_are_the_same_alone_or_in_company():
    mask = DropoutMasks(SEEDS).fill(torch.empty(3, 9, 5), 0.5)
    assert torch.equal(mask[1], DropoutMasks(SEEDS[1:2]).fill(torch.empty(1, 9, 5), 0.5)[0])


def test_rates_of_members_replace_that_of_the_network():
    masks = DropoutMasks(SEEDS, rates=(0.0, 0.2, 0.5))
    mask = masks.fill(torch.empty(3, 500, 100), 0.9)
    np.testing.assert_allclose(1 - mask.mean(dim=(1, 2)), [0, 0.2, 0.5], atol=0.01)
    np.testing.assert_allclose((mask * masks.scale(0.9)).mean(dim=(1, 2)), [1, 1, 1], atol=0.01)
    alike = DropoutMasks(SEEDS, rates=(0.2, 0.2, 0.2))
    assert DropoutMasks(SEEDS).scale(0.2) == 256 / 205  # one number, part of the product
    assert torch.equal(alike.scale(0.2), torch.full((3, 1, 1), 256 / 205))  # a factor of each member's rows


def test_masks_go_on_where_their_state_was_taken():
    one, other = DropoutMasks(SEEDS), DropoutMasks(SEEDS[::-1])
    one.fill(torch.empty(3, 40), 0.3)
    other.restore(one.state())
    assert torch.equal(one.fill(torch.empty(3, 40), 0.3), other.fill(torch.empty(3, 40), 0.3))
    assert [one.draw_seed(m) for m in range(3)] == [other.draw_seed(m) for m in range(3)]
