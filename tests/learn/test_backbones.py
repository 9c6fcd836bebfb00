"""Backbones: their shapes, their own start, what they are given, and that they are left alone."""

from __future__ import annotations

import copy
import functools
import tracemalloc

import numpy as np
import pytest
import torch
from torch import nn

import openset
from openset import CoLOR, DomainDiscriminator
from openset.learn.backbones import named_backbone, resnet18, template_of
from openset.learn.bodies import BackboneBody, DropoutMasks
from openset.methods._network import NetworkBase
from openset.registry import get_method, methods
from openset.stats.scaling import fit_image_scaling, moments

QUICK = {"max_steps": 6, "evaluate_every": 3, "batch_size": 16, "random_state": 0, "fpr": 0.3}
pytestmark = pytest.mark.filterwarnings("ignore::openset.errors.FitWarning")


def small_body():
    """Convolution, batch norm (with buffers) and dropout of its own."""
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.3), nn.Flatten(), nn.Linear(144, 8)
    )


def small_map():
    """The same without its last layers: a map of 36 cells a row."""
    return small_body()[:4]


@pytest.fixture(scope="module")
def images():
    """Bright and dark noise, and a target with a third kind: (n, 8, 8, 3) bytes."""
    random = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = random.integers(0, 120, (60, 8, 8, 3)) + 130 * y[:, None, None, None]
    novel = random.integers(0, 250, (15, 8, 8, 3)) * np.array([1, 0, 0])
    return X.astype(np.uint8), y, np.concatenate([X[:30], novel]).astype(np.uint8)


def with_seed(seed, make):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return make()


def test_resnet18_has_the_published_size():
    assert sum(p.numel() for p in resnet18().parameters()) + 512 * 10 + 10 == 11_173_962
    assert resnet18(width=4, channels=1)(torch.zeros(3, 1, 32, 32)).shape == (3, 32)
    assert sum(isinstance(m, nn.Conv2d) and m.kernel_size == (3, 3) for m in resnet18(4).modules()) == 17


@pytest.mark.parametrize(("width", "size"), [(2, 8), (6, 9), (8, 16)])
def test_shortcuts_are_strided_convolutions(width, size):
    """Outputs and gradients are those of the usual writing, in double precision."""
    block = resnet18(width).double().blocks[2]
    x = torch.randn(5, width, size, size, dtype=torch.double).contiguous(memory_format=torch.channels_last)
    convolution, norm = block.shortcut
    usual = norm(nn.functional.conv2d(x.contiguous(), convolution.weight, stride=2))
    z = block.first_norm(block.first(x)).relu()
    expected = (block.second_norm(block.second(z)) + usual).relu()
    torch.testing.assert_close(block(x), expected)
    wanted = torch.autograd.grad(expected.square().sum(), convolution.weight)[0]
    torch.testing.assert_close(torch.autograd.grad(block(x).square().sum(), convolution.weight)[0], wanted)


def test_a_name_is_a_call_and_anything_else_an_error():
    spelled = named_backbone(" resnet18(width=8,channels=1)")()
    assert [p.shape for p in spelled.parameters()] == [p.shape for p in resnet18(8, 1).parameters()]
    for bad in ("resnet50", "resnet18(depth=3)", "resnet18(width=0)", "resnet18(width=8", "__import__('os')"):
        with pytest.raises(ValueError, match="'resnet18"):
            CoLOR(backbone=bad).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match=r"expected a torch\.nn\.Module"):
        template_of(lambda: 3)


def test_every_member_starts_from_its_own_seed(images):
    X, y, target = images
    settings = {**QUICK, "max_steps": 1, "learning_rate": 1e-9, "members": 2}
    before = torch.get_rng_state()
    first = DomainDiscriminator(backbone=small_body, **settings).fit(X, y, target)
    again = DomainDiscriminator(backbone=small_body, **settings).fit(X, y, target)
    other = DomainDiscriminator(backbone=small_body, **{**settings, "random_state": 1}).fit(X, y, target)
    assert torch.equal(before, torch.get_rng_state())
    for name, weights in first.weights_.items():
        np.testing.assert_array_equal(weights, again.weights_[name])
    own = [first.weights_[f"bodies.shared.copies.{member}.0.weight"] for member in (0, 1)]
    assert np.abs(own[0] - own[1]).max() > 0.01
    assert np.abs(own[0] - other.weights_["bodies.shared.copies.0.0.weight"]).max() > 0.01


def test_a_module_starts_from_its_weights_and_is_left_as_it_was(images):
    X, y, target = images
    module = with_seed(0, small_body)
    module[1].eval()  # modes of its parts are its own affair
    before = copy.deepcopy(module.state_dict())
    model = CoLOR(backbone=module, learning_rate=1e-9, l2=0.0, **QUICK).fit(X, y, target)
    assert [part.training for part in module] == [True, False, True, True, True, True]
    for name, tensor in module.state_dict().items():
        assert torch.equal(tensor, before[name])
    np.testing.assert_allclose(model.weights_["bodies.shared.copies.0.5.weight"], before["5.weight"], atol=1e-6)
    # buffers belong to the weights: batch norm has counted the steps up to the kept one
    assert model.weights_["bodies.shared.copies.0.1.num_batches_tracked"] == model.selected_.step
    assert np.abs(model.weights_["bodies.shared.copies.0.1.running_mean"]).max() > 0


def test_dropout_in_a_module_is_each_members_own(images):
    """A member trains alike alone and in company, also where its module draws at random."""
    together = BackboneBody(nn.Dropout(0.5), 2)
    seeds = [np.random.SeedSequence(i) for i in (5, 6)]
    x = torch.ones(2, 4, 9)
    both = with_seed(0, lambda: together(x, DropoutMasks(seeds)))
    alone = with_seed(1, lambda: BackboneBody(nn.Dropout(0.5), 1)(x[1:], DropoutMasks(seeds[1:])))
    assert torch.equal(both[1], alone[0]) and not torch.equal(both[0], both[1])
    assert torch.equal(together(x, None), x)


def test_scores_are_of_evaluation_mode_and_alike_in_any_batch(images):
    X, y, target = images
    model = CoLOR(backbone="resnet18(width=8)", augment="crop_flip", members=2, **QUICK).fit(X, y, target)
    rows = np.concatenate([X, target])
    scores = model.novelty_score(rows)
    np.testing.assert_array_equal(model.novelty_score(rows[::-1]), scores[::-1])
    for start, stop in ((0, 1), (17, 40), (64, 65), (104, 105)):
        np.testing.assert_array_equal(model.novelty_score(rows[start:stop]), scores[start:stop])


def test_channels_may_be_first_or_last(images):
    X, y, target = images
    last = CoLOR(backbone=small_body, **QUICK).fit(X, y, target)
    first = CoLOR(backbone=small_body, **QUICK).fit(np.moveaxis(X, 3, 1), y, np.moveaxis(target, 3, 1))
    np.testing.assert_allclose(first.scaling_.mean, last.scaling_.mean)
    np.testing.assert_allclose(
        first.novelty_score(np.moveaxis(X, 3, 1)), last.novelty_score(X), rtol=1e-4, atol=1e-4
    )


def test_image_scaling_is_that_of_all_pixels_of_a_channel(images):
    X, _, target = images
    scaling = fit_image_scaling(moments(X), moments(target), "auto", 3)
    weights = np.repeat([0.5 / len(X), 0.5 / len(target)], [len(X), len(target)])
    both = np.concatenate([X, target]).astype(float)
    mean = np.einsum("n,nhwc->c", weights, both) / 64
    sd = np.sqrt(np.einsum("n,nhwc->c", weights, (both - mean) ** 2) / 64)
    np.testing.assert_allclose(scaling.mean[:, 0, 0], mean)
    np.testing.assert_allclose(scaling.factor[:, 0, 0], 1 / sd)
    assert fit_image_scaling(moments(X), None, None, 3).factor == 1 / 255


def test_bytes_stay_bytes_and_mapped_arrays_mapped(images, tmp_path):
    X, y, target = images
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = CoLOR(backbone=small_body, **QUICK)
    problem = model._validate(mapped, y, target)
    assert problem.X.dtype == np.uint8 and np.shares_memory(problem.X, mapped)
    assert np.shares_memory(problem.X_target, target)
    of_mapped = model.fit(mapped, y, target).novelty_score(mapped)
    np.testing.assert_array_equal(
        of_mapped, CoLOR(backbone=small_body, **QUICK).fit(X, y, target).novelty_score(X)
    )


def test_images_of_bytes_are_never_floats_all_at_once():
    X = np.random.default_rng(0).integers(0, 256, (12_000, 32, 32, 3), dtype=np.uint8)
    y = np.arange(len(X)) % 2
    model = CoLOR(backbone=nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten()), **{**QUICK, "max_steps": 2})
    model.fit(X[:100], y[:100], X[:100])  # what is imported on the way is not measured
    tracemalloc.start()
    model.fit(X, y, X[:600])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # one float32 copy of X would be 4 · X.nbytes; validation rows and blocks of pixels are what there is
    assert peak < 1.2 * X.nbytes, peak / X.nbytes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda X: X[:, :6],
            r"X has rows of shape \(6, 8, 3\) and type uint8, but X was fitted .* shape \(8, 8, 3\)",
        ),
        (lambda X: X[:, :, :6], r"shape \(8, 6, 3\) and type uint8, but X was fitted .* shape \(8, 8, 3\)"),
        (lambda X: X / 255, "type float, but X was fitted"),
        (
            lambda X: X.reshape(len(X), -1),
            r"X has rows of shape \(192,\) and type uint8, but X was fitted .* shape \(8, 8, 3\)",
        ),
    ],
)
def test_rows_of_another_kind_are_refused(images, change, message):
    X, y, target = images
    model = CoLOR(backbone=small_body, **QUICK).fit(X, y, target)
    with pytest.raises(ValueError, match=message):
        model.novelty_score(change(X))
    with pytest.raises(ValueError, match="X_target|rows"):
        CoLOR(backbone=small_body, **QUICK).fit(X, y, change(target))


def test_what_cannot_be_augmented_or_taken_in_is_said_so(images, small):
    X, y, target = images
    with pytest.raises(ValueError, match="needs images, and images need a backbone"):
        CoLOR(augment="crop_flip").fit(small.X, small.y)
    with pytest.raises(ValueError, match=r"needs images: X has rows of shape \(8,\)"):
        CoLOR(augment="crop_flip", backbone=nn.Linear(8, 3)).fit(small.X, small.y)
    with pytest.raises(ValueError, match="augment='blur'"):
        CoLOR(augment="blur").fit(small.X, small.y)
    with pytest.raises(ValueError, match=r"cannot take rows of shape \(3, 8, 8\)"):
        CoLOR(backbone="resnet18(width=4, channels=1)", **QUICK).fit(X, y, target)


def test_saved_models_come_back_by_name_or_with_their_code(images, tmp_path):
    X, y, target = images
    named = CoLOR(backbone="resnet18(width=4)", **QUICK).fit(X, y, target)
    named.save(tmp_path / "named")
    again = openset.load(tmp_path / "named")
    assert again.backbone == "resnet18(width=4)"
    np.testing.assert_array_equal(again.novelty_score(X), named.novelty_score(X))
    made = CoLOR(backbone=functools.partial(resnet18, 4), checkpoint=tmp_path / "c", **QUICK).fit(X, y, target)
    np.testing.assert_array_equal(made.novelty_score(X), named.novelty_score(X))
    made.save(tmp_path / "made")
    with pytest.raises(openset.ModelFormatError, match="backbone=module"):
        openset.load(tmp_path / "made")
    for code in (resnet18(4), functools.partial(resnet18, 4), "resnet18(width=4)"):
        loaded = openset.load(tmp_path / "made", backbone=code)
        np.testing.assert_array_equal(loaded.novelty_score(X), named.novelty_score(X))


TRAINED = [m.name for m in methods() if issubclass(m.load(), NetworkBase)]


@pytest.mark.parametrize("name", TRAINED)
def test_every_trained_method_takes_a_backbone_and_augments(name, images):
    X, y, target = images
    body = small_map if get_method(name).input == "cells" else small_body
    model = get_method(name).make(backbone=body, augment="crop_flip", **QUICK).fit(X, y, target)
    assert np.isfinite(model.novelty_score(target)).all()
    assert set(model.predict(target)) <= {0, 1, -1}
