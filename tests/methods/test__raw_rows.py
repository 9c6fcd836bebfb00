from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from torch import nn

from openset.methods._raw_rows import (
    check_augment,
    check_backbone,
    check_checkpoint,
    check_row_kind,
    raw_scaling,
    row_kind,
)
from openset.stats.scaling import NO_SCALING, moments

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)


def test_what_a_backbone_may_be():
    for good in (None, "resnet18", "resnet18(width=8)", nn.Identity(), lambda: nn.Identity()):
        check_backbone(good)
    for bad in (5, [nn.Identity()], "resnet50"):
        with pytest.raises(ValueError, match="backbone="):
            check_backbone(bad)


def test_a_checkpoint_needs_a_folder_and_an_integer_seed():
    for seed in (0, np.int64(3)):
        check_checkpoint("folder", seed)
    check_checkpoint(Path("folder"), 1)
    check_checkpoint(None, None)
    with pytest.raises(ValueError, match="checkpoint=3 is not valid: expected a folder or None"):
        check_checkpoint(3, 0)
    for seed in (None, np.random.RandomState(0)):
        with pytest.raises(ValueError, match="is not valid with checkpoint='folder': expected an integer"):
            check_checkpoint("folder", seed)


def test_augmentation_needs_a_backbone_and_images():
    check_augment(None, None)
    check_augment("crop_flip", nn.Identity())
    with pytest.raises(ValueError, match="augment='blur' is not valid"):
        check_augment("blur", nn.Identity())
    with pytest.raises(ValueError, match="augment='crop_flip' needs images"):
        check_augment("crop_flip", None)
    with pytest.raises(ValueError, match=r"needs images: X has rows of shape \(5,\) and type float"):
        check_row_kind("X", {"shape": [5], "bytes": False}, {"shape": [5], "bytes": False}, "crop_flip")


def test_rows_must_be_of_the_kind_fitted_with():
    fitted = row_kind(IMAGES)
    assert fitted == {"shape": [8, 8, 3], "bytes": True}
    check_row_kind("X", row_kind(IMAGES[:1]), fitted, None)
    for other, said in (
        (IMAGES[:, :4], r"\(4, 8, 3\) and type uint8"),
        (IMAGES / 255, r"\(8, 8, 3\) and type float"),
    ):
        with pytest.raises(ValueError, match=rf"X has rows of shape {said}, but X was fitted with .*\(8, 8, 3\)"):
            check_row_kind("X", row_kind(other), fitted, None)


def test_images_of_bytes_are_standardised_by_channel_and_all_else_left():
    scaling = raw_scaling(IMAGES, moments(IMAGES), None, "auto")
    np.testing.assert_allclose(scaling.mean[:, 0, 0], IMAGES.mean(axis=(0, 1, 2)))
    np.testing.assert_allclose(scaling.factor[:, 0, 0], 1 / IMAGES.std(axis=(0, 1, 2)))
    floats = IMAGES / 255
    assert raw_scaling(floats, moments(floats), None, "auto") is NO_SCALING
    assert raw_scaling(IMAGES[:, 0], moments(IMAGES[:, 0]), None, "auto") is NO_SCALING
