from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_encoder import TinyEncoder

from openset.features.base import Batch, Encoder


class Doubling(Encoder):
    """Two features, on torch: the number and its double."""

    kind = "doubling"

    def __init__(self, *, normalise=False):
        self.name, self.settings, self.device = "doubling", {"normalise": normalise}, "cpu"

    def batches(self, items, rows, batch_size):
        yield Batch(list(rows), {"x": np.array([[items[row]] for row in rows], dtype=np.float64)})

    def _features(self, tensors):
        import torch

        return torch.cat([tensors["x"], 2 * tensors["x"]], dim=1)

    def _files(self):
        return []

    def _sample(self):
        return 1.0

    def _content(self, item, row):
        return repr(item).encode()


def test_fingerprint_and_keys_are_those_of_earlier_caches():
    encoder = TinyEncoder()
    assert encoder.fingerprint == "442b92c78e4afce3101ae01b984a0b0793d01397b342268c2be0df043a3badb4"
    assert encoder.key("é", 0).hex() == "d42b47dd777d12707d2f06f483bd49ea8e56bd38723509628f77c267026a22e0"


@given(st.text(max_size=5), st.text(max_size=5))
def test_keys_tell_items_and_encoders_apart_but_not_rows(one, other):
    encoder = TinyEncoder()
    assert encoder.key(one, 0) == encoder.key(one, 7)
    assert (encoder.key(one, 0) == encoder.key(other, 0)) == (one == other)
    assert Doubling().key(one, 0) != Doubling(normalise=True).key(one, 0)


def test_features_are_float32_and_of_length_one_if_normalised():
    items = [3.0, 0.5]
    for normalise in (False, True):
        encoder = Doubling(normalise=normalise)
        (batch,) = encoder.batches(items, [0, 1], 2)
        features = encoder.forward(batch.inputs)
        assert features.dtype == np.float32
        expected = np.array([[3, 6], [0.5, 1]])
        if normalise:
            expected /= np.linalg.norm(expected, axis=1, keepdims=True)
        np.testing.assert_allclose(features, expected, rtol=1e-6)


def test_the_dimension_is_that_of_one_sample():
    encoder = TinyEncoder()
    assert Doubling().dimension == 2 and encoder.dimension == 16
    assert encoder.dimension == 16 and encoder.rows_computed == 1, "it is computed once"


def test_an_encoder_shows_its_name_and_settings():
    assert repr(Doubling(normalise=True)) == "Doubling('doubling', normalise=True)"


def test_a_subclass_must_be_complete():
    with pytest.raises(TypeError, match="abstract"):
        Encoder()
