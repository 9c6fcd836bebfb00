from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from openset.learn.architecture import Architecture
from openset.learn.batches import ARRAY_BLOCK, SCORING_BLOCK
from openset.learn.bodies import DropoutMasks
from openset.learn.kernels import NARROW, BodyFunction, HeadsFunction, Workspace, repeatable_product
from openset.learn.network import Network

SEEDS = [np.random.SeedSequence(i) for i in range(3)]
GENERATOR = torch.Generator().manual_seed(0)


def parameters(*shapes):
    return [nn.Parameter(torch.randn(*shape, generator=GENERATOR)) for shape in shapes]


def make_network(dropout=0.0):
    architecture = Architecture({"shared": {"classes": 4, "novelty": 5}}, 6, hidden=7, dropout=dropout, members=3)
    return Network(architecture).initialise(SEEDS)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("calls", [1, 2])
def test_the_written_out_backward_pass_is_autograds(dropout, calls):
    network = make_network(dropout)
    x = torch.randn(3, 11, 6, generator=torch.Generator().manual_seed(0))
    weights = torch.randn(3, 11, 9, generator=torch.Generator().manual_seed(1))
    masks = DropoutMasks(SEEDS)
    loss = sum(
        (torch.cat(list(network(x, "shared", masks).values()), dim=-1).sin() * weights).sum()
        for _ in range(calls)
    )
    loss.backward()
    assert all(p.grad is not None for p in network.parameters())

    plain = [p.detach().clone().requires_grad_() for p in network.parameter_groups()[0].stacked]
    body_w, body_b, head_w, head_b = plain
    again = DropoutMasks(SEEDS)
    total = 0
    for _ in range(calls):
        keep_x, keep_h = torch.ones_like(x), torch.ones(3, 11, 7)
        if dropout:
            keep_x = again.fill(torch.empty(3, 11, 6), dropout) * again.scale(dropout)
            keep_h = again.fill(torch.empty(3, 11, 7), dropout) * again.scale(dropout)
        h = F.relu((x * keep_x) @ body_w + body_b) * keep_h
        total = total + ((h @ head_w + head_b).sin() * weights).sum()
    total.backward()
    assert loss.item() == pytest.approx(total.item(), rel=1e-5)
    for ours, theirs in zip(network.parameter_groups()[0].stacked, plain, strict=True):
        np.testing.assert_allclose(ours.grad, theirs.grad, rtol=1e-4, atol=1e-4)


@given(
    rows=st.sampled_from([ARRAY_BLOCK, SCORING_BLOCK]),
    width=st.sampled_from([*range(1, NARROW + 1), 12, 13, 16, 20]),  # MKL rounds otherwise at 9 to 11 columns
    seed=st.integers(0, 99),
)
def test_a_product_rounds_a_row_alike_wherever_it_stands_in_a_block(rows, width, seed):
    generator = torch.Generator().manual_seed(seed)
    x, weight, bias = (torch.randn(2, *s, generator=generator) for s in ((rows, 9), (9, width), (1, width)))
    product = repeatable_product(x, weight, bias)
    assert product.shape == (2, rows, width)
    np.testing.assert_allclose(product, x @ weight + bias, atol=1e-5)
    assert torch.equal(repeatable_product(x.flip(1), weight, bias), product.flip(1))


def test_a_workspace_hands_memory_out_once_until_it_is_reset():
    workspace, like = Workspace(), torch.empty(1)
    first, second, other = (workspace.take(shape, like) for shape in ((2, 3), (2, 3), (4,)))
    assert first.data_ptr() != second.data_ptr() and other.shape == (4,)
    assert first.dtype == torch.float32 and first.device == like.device
    workspace.reset()
    again = {workspace.take((2, 3), like).data_ptr() for _ in range(2)}
    assert again == {first.data_ptr(), second.data_ptr()}, "and then hands out the same memory again"
    assert workspace.take((2, 3), like).data_ptr() not in again


def test_gradients_are_added_to_those_that_are_there_and_their_memory_is_used_again():
    weight, bias = parameters((1, 4, 3), (1, 1, 3))
    h, workspace, buffers = torch.randn(1, 6, 4, generator=GENERATOR, requires_grad=True), Workspace(), {}

    def backward():
        HeadsFunction.apply(weight, bias, h, workspace, buffers).sum().backward()
        workspace.reset()

    backward()
    once, memory = weight.grad.clone(), weight.grad.data_ptr()
    backward()
    np.testing.assert_allclose(weight.grad, 2 * once)
    np.testing.assert_allclose(bias.grad, torch.full((1, 1, 3), 12.0))
    weight.grad = bias.grad = None
    backward()
    np.testing.assert_array_equal(weight.grad, once)
    assert weight.grad.data_ptr() == memory


def test_a_scale_for_every_member_is_that_scale_for_each_alone():
    weight, bias = parameters((2, 5, 4), (2, 1, 4))
    x = torch.randn(2, 7, 5, generator=GENERATOR)
    scales = torch.tensor([1.25, 2.0]).view(2, 1, 1)
    keep = [torch.randint(0, 2, shape, generator=GENERATOR).float() for shape in ((2, 7, 5), (2, 7, 4))]
    together = BodyFunction.apply(weight, bias, x, *keep, scales, Workspace(), {})
    together.sum().backward()
    for member, scale in enumerate((1.25, 2.0)):
        own = slice(member, member + 1)
        alone = [nn.Parameter(p.detach()[own].clone()) for p in (weight, bias)]
        h = BodyFunction.apply(*alone, x[own], keep[0][own], keep[1][own], scale, Workspace(), {})
        h.sum().backward()
        np.testing.assert_allclose(together[own].detach(), h.detach(), rtol=1e-5)
        np.testing.assert_allclose(weight.grad[own], alone[0].grad, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(bias.grad[own], alone[1].grad, rtol=1e-4, atol=1e-5)
