from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from openset.learn.architecture import Architecture
from openset.learn.network import Network
from openset.persistence.codec import decode, encode

TWO_BODIES = Architecture({"known": {"classes": 3}, "novelty": {"novelty": 5}}, 8, 16, 0.2, members=2)


def test_it_is_plain_data_that_can_be_stored_and_compared():
    stored = json.loads(json.dumps(encode(TWO_BODIES, {}, "architecture_")))
    again = decode(stored, {})
    assert again == TWO_BODIES and list(again.bodies) == ["known", "novelty"], "and bodies keep their order"
    assert replace(TWO_BODIES, members=1) != TWO_BODIES
    with pytest.raises(FrozenInstanceError):
        TWO_BODIES.hidden = 4


def test_a_network_is_built_from_sizes_alone():
    shapes = {name: tensor.shape for name, tensor in Network(TWO_BODIES).state_dict().items()}
    assert shapes == {
        "bodies.known.weight": (2, 8, 16), "bodies.known.bias": (2, 1, 16),
        "bodies.novelty.weight": (2, 8, 16), "bodies.novelty.bias": (2, 1, 16),
        "heads.known.weight": (2, 16, 3), "heads.known.bias": (2, 1, 3),
        "heads.novelty.weight": (2, 16, 5), "heads.novelty.bias": (2, 1, 5),
    }  # fmt: skip


@pytest.mark.parametrize("kinds", [{"kinds": {"shared": "round"}}, {"body_kinds": {"shared": "round"}}])
def test_a_kind_that_does_not_exist_is_an_error(kinds):
    with pytest.raises(KeyError, match="round"):
        Network(Architecture({"shared": {"classes": 2}}, 3, 4, 0.0, **kinds))


def test_members_of_one_architecture_are_alike_in_size():
    one = Network(replace(TWO_BODIES, members=1)).initialise([np.random.SeedSequence(0)])
    assert sum(p.numel() for p in one.parameters()) * 2 == sum(
        p.numel() for p in Network(TWO_BODIES).parameters()
    )
