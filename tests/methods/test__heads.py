from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openset.learn.architecture import Architecture
from openset.learn.batches import ScaledRows, head_outputs
from openset.learn.network import Network
from openset.methods._heads import FittedNetwork, RowOutputs
from openset.stats.scaling import NO_SCALING


@given(st.sets(st.integers(0, 60), min_size=1), st.data())
def test_outputs_are_found_again_by_row_number(rows, data):
    known = np.array(sorted(rows))
    outputs = {
        "novelty": np.stack([known * 10.0, known * 100.0])[:, :, None],
        "classes": np.zeros((2, len(known), 3)),
    }
    wanted = np.array(data.draw(st.lists(st.sampled_from(sorted(rows)), max_size=8)), dtype=np.intp)
    found = RowOutputs(known, outputs).of(wanted)
    assert found["novelty"][0, :, 0].tolist() == (10 * wanted).tolist(), "in the order asked for, also twice"
    assert found["novelty"][1, :, 0].tolist() == (100 * wanted).tolist()
    assert found["classes"].shape == (2, len(wanted), 3)


def test_a_fitted_network_scores_source_rows_as_it_will_later():
    network = Network(Architecture({"shared": {"classes": 3}}, 4, 5, 0.0)).initialise([np.random.SeedSequence(0)])
    rows = ScaledRows(np.random.default_rng(0).normal(size=(20, 4)), NO_SCALING)
    chosen = np.array([7, 2, 19])
    found = FittedNetwork(network, rows).source_outputs(chosen)["classes"]
    np.testing.assert_array_equal(found, head_outputs(network, rows)["classes"][:, chosen])
