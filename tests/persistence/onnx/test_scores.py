from __future__ import annotations

import numpy as np
import pytest

from onnx_graphs import evaluated
from openset.persistence.onnx.scores import onnx_energy, onnx_entropy, onnx_highest_logit, onnx_msp
from openset.stats.scores import energy_score, entropy_score, mls_score, msp_score

LOGITS = np.random.default_rng(0).normal(scale=3, size=(2, 40, 4))
TIED = np.array([[[2.0, 2.0, -1.0], [0.0, 0.0, 0.0], [50.0, -50.0, 49.0], [800.0, -800.0, 0.0]]])


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("logits", [LOGITS, TIED, LOGITS[..., :1]], ids=["random", "tied", "one class"])
@pytest.mark.parametrize(
    ("ours", "formula"), [(onnx_msp, msp_score), (onnx_entropy, entropy_score), (onnx_energy, energy_score)]
)
def test_scores_at_a_temperature_are_those_in_numpy(ours, formula, logits, temperature):
    found = evaluated(lambda x: ours(x, temperature), x=logits)
    assert found.shape == logits.shape[:2] and np.isfinite(found).all()
    np.testing.assert_allclose(found, formula(logits, temperature), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("logits", [LOGITS, TIED, LOGITS[..., :1]])
def test_the_highest_logit_is_that_in_numpy(logits):
    np.testing.assert_array_equal(evaluated(onnx_highest_logit, x=logits), mls_score(logits))
