from __future__ import annotations

import numpy as np
import pytest

from openset.learn.architecture import Architecture
from openset.learn.batches import Batches, RowStream, ScaledRows, head_outputs
from openset.learn.network import Network
from openset.stats.scaling import NO_SCALING, fit_scaling, moments


def test_a_stream_uses_every_row_equally_often():
    stream = RowStream(np.array([3, 5, 8, 9, 11]), np.random.SeedSequence(0))
    taken = np.concatenate([stream.take(3) for _ in range(50)])
    rows, counts = np.unique(taken, return_counts=True)
    assert rows.tolist() == [3, 5, 8, 9, 11]
    assert counts.tolist() == [30] * 5


def test_a_batch_may_be_larger_than_the_set():
    stream = RowStream(np.arange(4), np.random.SeedSequence(0))
    assert np.bincount(stream.take(10)).min() >= 2


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_gathering_scales_rows_of_every_float_type(dtype):
    x = (np.random.default_rng(0).normal(size=(30, 3)) * 5 + 1).astype(dtype)
    scaling = fit_scaling(moments(x), None, "feature")
    out = np.empty((4, 3), np.float32)
    ScaledRows(x, scaling).gather(np.array([7, 0, 7, 29]), out)
    np.testing.assert_allclose(out, scaling.apply(x[[7, 0, 7, 29]].astype(float)), atol=2e-3)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_scaled_once_are_the_same_bit_for_bit(dtype):
    x = (np.random.default_rng(0).normal(size=(30, 3)) * 5 + 1).astype(dtype)
    rows = ScaledRows(x, fit_scaling(moments(x), None, "feature"))
    chosen, each, once = np.array([7, 0, 7, 29]), np.empty((4, 3), np.float32), np.empty((4, 3), np.float32)
    rows.gather(chosen, each)
    rows.scaled_once().gather(chosen, once)
    np.testing.assert_array_equal(once, each)


def test_rows_on_disk_images_and_rows_that_need_no_scaling_are_not_copied(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((5, 2), np.float32))
    mapped = ScaledRows(np.load(tmp_path / "x.npy", mmap_mode="r"), NO_SCALING)
    images = ScaledRows(np.zeros((2, 3, 4, 4), np.uint8), NO_SCALING)
    ready = ScaledRows(np.ones((5, 2), np.float32), NO_SCALING)
    for rows in (mapped, images, ready):
        assert rows.scaled_once() is rows


def test_batches_hold_source_then_target_of_each_member():
    source, target = np.arange(10.0)[:, None], 100 + np.arange(10.0)[:, None]
    y = np.arange(10)
    seeds = [np.random.SeedSequence(i) for i in range(4)]
    batches = Batches(
        ScaledRows(source, NO_SCALING),
        y,
        ScaledRows(target, NO_SCALING),
        [RowStream(np.arange(5), seeds[0]), RowStream(np.arange(5, 10), seeds[1])],
        [RowStream(np.arange(5), seeds[2]), RowStream(np.arange(5, 10), seeds[3])],
        size=4,
        device="cpu",
    )
    batch = batches.next()
    assert batch.x.shape == (2, 8, 1)
    assert batch.source(batch.x)[:, :, 0].int().tolist() == batch.y.tolist()
    assert (batch.source(batch.x)[0] < 5).all() and (batch.source(batch.x)[1] >= 5).all()
    assert (batch.target(batch.x)[:, :, 0].int() - 100).tolist() == batch.target_rows.tolist()
    assert (batch.target(batch.x)[0] < 105).all() and (batch.target(batch.x)[1] >= 105).all()


def test_outputs_are_bit_identical_whatever_rows_go_together():
    network = Network(Architecture({"shared": {"novelty": 5}}, 33, 65, 0.0, members=2)).initialise(
        [np.random.SeedSequence(i) for i in range(2)]
    )
    rows = ScaledRows(np.random.default_rng(0).normal(size=(700, 33)), NO_SCALING)
    whole = head_outputs(network, rows)["novelty"]
    assert whole.shape == (2, 700, 5)
    for chosen in (np.array([650]), np.arange(300, 310), np.random.default_rng(1).permutation(700)):
        assert np.array_equal(head_outputs(network, rows, chosen)["novelty"], whole[:, chosen])
    assert head_outputs(network, rows, np.empty(0, np.intp))["novelty"].shape == (2, 0, 5)


def make_batches(seed=0, augment=()):
    seeds = [np.random.SeedSequence(seed + i) for i in range(2)]
    rows = ScaledRows(np.arange(10.0)[:, None], NO_SCALING)
    streams = [[RowStream(np.arange(10), s)] for s in seeds]
    return Batches(rows, np.arange(10), rows, *streams, size=3, device="cpu", augment=augment)


def test_batches_go_on_where_their_state_was_taken():
    one, other = make_batches(), make_batches(seed=5)
    for _ in range(4):
        one.next()
    other.restore(one.state())
    for _ in range(5):
        first, second = one.next(), other.next()
        assert first.y.tolist() == second.y.tolist() and first.target_rows.tolist() == second.target_rows.tolist()


def test_without_a_target_a_batch_is_source_alone():
    rows = ScaledRows(np.arange(10.0)[:, None], NO_SCALING)
    stream = RowStream(np.arange(10), np.random.SeedSequence(0))
    batch = Batches(rows, np.arange(10), None, [stream], [], size=4, device="cpu").next()
    assert batch.x.shape == (1, 4, 1) and batch.target_rows.shape == (1, 0)
    assert batch.target(batch.x).shape == (1, 0, 1)


def test_images_are_read_with_their_channels_first():
    images = np.random.default_rng(0).integers(0, 256, (5, 8, 6, 3), dtype=np.uint8)
    last, first = ScaledRows(images, NO_SCALING), ScaledRows(np.moveaxis(images, 3, 1), NO_SCALING)
    assert last.row_shape == first.row_shape == (3, 8, 6)
    out = np.empty((2, 2, 3, 8, 6), np.float32)
    last.gather(np.array([4, 0]), out[0])
    first.gather(np.array([4, 0]), out[1])
    np.testing.assert_array_equal(out[0], out[1])
    np.testing.assert_array_equal(out[0], np.moveaxis(images[[4, 0]], 3, 1))


def test_values_beyond_single_precision_become_infinite_not_an_error():
    rows = ScaledRows(np.array([[1e300], [1.0]]), NO_SCALING)
    out = np.empty((2, 1), np.float32)
    rows.gather(np.array([0, 1]), out)
    assert out[:, 0].tolist() == [np.inf, 1.0]
