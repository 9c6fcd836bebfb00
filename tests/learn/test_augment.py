from __future__ import annotations

import numpy as np

from openset.learn.augment import PADDING, CropFlip, crop_flip


def test_crops_and_flips_are_those_of_a_loop_over_images():
    random = np.random.default_rng(0)
    images = random.normal(size=(40, 3, 6, 5)).astype(np.float32)
    shifts, flips = random.integers(2 * PADDING + 1, size=(40, 2)), random.random(40) < 0.5
    expected = np.zeros_like(images)
    for n, ((down, right), flip) in enumerate(zip(shifts - PADDING, flips, strict=True)):
        for i in range(6):
            for j in range(5):
                if 0 <= i + down < 6 and 0 <= j + right < 5:
                    expected[n, :, i, 4 - j if flip else j] = images[n, :, i + down, j + right]
    np.testing.assert_array_equal(crop_flip(images, shifts, flips), expected)


def test_every_image_draws_for_itself_and_a_seed_draws_alike():
    image = np.random.default_rng(0).normal(size=(1, 1, 8, 8)).astype(np.float32)
    first, again = np.repeat(image, 600, axis=0), np.repeat(image, 600, axis=0)
    CropFlip(np.random.SeedSequence(1)).apply_in_place(first)
    CropFlip(np.random.SeedSequence(1)).apply_in_place(again)
    np.testing.assert_array_equal(first, again)
    # 81 crops, mirrored or not: 600 draws of 162 leave few of them out (162 · (161/162)^600 = 4 expected)
    assert 140 <= len(np.unique(first.reshape(600, -1), axis=0)) <= 162


def test_a_stream_goes_on_where_it_was():
    images = np.random.default_rng(0).normal(size=(9, 1, 8, 8)).astype(np.float32)
    one = CropFlip(np.random.SeedSequence(1))
    one.apply_in_place(images.copy())
    other = CropFlip(np.random.SeedSequence(2))
    other.restore(one.state())
    first, second = images.copy(), images.copy()
    one.apply_in_place(first)
    other.apply_in_place(second)
    np.testing.assert_array_equal(first, second)
