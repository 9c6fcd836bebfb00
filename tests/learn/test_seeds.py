from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from openset.learn.seeds import child_seed, isolated_random_state, restore_stream, stream_state, torch_seed

SEED = np.random.SeedSequence(5)


def test_a_child_is_the_same_however_often_and_in_whatever_order_it_is_asked_for():
    children = [child_seed(SEED, i).generate_state(2).tolist() for i in (3, 0, 3, 1)]
    assert children[0] == children[2] and len({tuple(child) for child in children}) == 3
    assert children[1] == np.random.SeedSequence(5).spawn(1)[0].generate_state(2).tolist()
    assert child_seed(child_seed(SEED, 1), 2).spawn_key == (1, 2)


@given(st.integers(0, 2**63))
def test_a_seed_for_torch_is_one_that_it_takes(entropy):
    seed = torch_seed(np.random.SeedSequence(entropy))
    assert 0 <= seed < 2**63 and seed == torch_seed(np.random.SeedSequence(entropy))
    torch.Generator().manual_seed(seed)


def test_torchs_generator_is_seeded_within_and_left_as_it_was():
    before = torch.get_rng_state()
    drawn = []
    for seed in (SEED, SEED, child_seed(SEED, 0)):
        with isolated_random_state(seed):
            drawn.append(torch.rand(3).tolist())
    assert drawn[0] == drawn[1] != drawn[2]
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(RuntimeError, match="stop"), isolated_random_state(SEED):
        raise RuntimeError(f"stop after {torch.rand(3)}")
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("half_used", [False, True])
def test_a_stream_goes_on_where_its_state_was_taken(half_used):
    stream = np.random.SFC64(SEED)
    random = np.random.Generator(stream)
    random.random(7)
    if half_used:
        random.integers(0, 9, dtype=np.int32)  # 32 of the 64 bits are left for the next draw
    state = stream_state(stream)
    assert state.dtype == np.uint64 and state.shape == (6,) and bool(state[4]) == half_used
    other = np.random.SFC64(np.random.SeedSequence(99))
    restore_stream(other, state)
    expected, again = (
        np.random.Generator(s).integers(0, 2**31, size=20, dtype=np.int32) for s in (stream, other)
    )
    np.testing.assert_array_equal(expected, again)
