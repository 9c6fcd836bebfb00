from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax, logsumexp

from onnx_graphs import evaluated
from openset import DomainDiscriminator, PaperCoLOR
from openset.persistence.onnx.pooling import interpolated, pooled_logits, pooled_scores

RANDOM = np.random.default_rng(0)


def test_classes_are_pooled_as_the_log_of_the_mean_probability():
    logits = RANDOM.normal(scale=3, size=(3, 20, 4))
    expected = logsumexp(log_softmax(logits, axis=-1), axis=0) - np.log(3)
    np.testing.assert_allclose(evaluated(lambda x: pooled_logits(x, 3), x=logits), expected, rtol=1e-12)
    np.testing.assert_array_equal(evaluated(lambda x: pooled_logits(x, 1), x=logits[:1]), logits[0])


def model_of(scores, references=()):
    """What pooling reads off a fitted model."""
    return SimpleNamespace(architecture_=SimpleNamespace(members=len(scores)), pool_references_=list(references))


def test_one_score_is_itself_and_heads_that_members_share_are_averaged():
    scores = RANDOM.normal(size=(3, 20))
    found = evaluated(lambda x: pooled_scores(x, model_of(scores)), x=scores)
    np.testing.assert_allclose(found, scores.mean(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(
        evaluated(lambda x: pooled_scores(x, model_of(scores[:1])), x=scores[:1]), scores[0]
    )


@pytest.mark.filterwarnings("ignore::openset.errors.FitWarning")
@pytest.mark.parametrize("method", [DomainDiscriminator, PaperCoLOR])
def test_scores_of_members_are_ranked_among_their_references_and_beyond_them(method, small):
    model = method(members=2, max_steps=10, evaluate_every=5, random_state=0, fpr=0.2)
    model.fit(small.X, small.y, small.X_target)
    references = model.pool_references_
    scores = np.stack([np.concatenate([r, r[:5] + 1e-3, [r.min() - 5, r.max() + 5, 0.0]]) for r in references])
    expected = np.mean([model._on_common_scale(m, own, references) for m, own in enumerate(scores)], axis=0)
    found = evaluated(lambda x: pooled_scores(x, model), x=scores.astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@given(
    points=st.lists(st.integers(-50, 50), min_size=1, max_size=40, unique=True).map(sorted),
    x=st.lists(st.floats(-60, 60), min_size=1, max_size=30),
    seed=st.integers(0, 99),
)
def test_bisection_is_numpys_interp(points, x, seed):
    heights = np.random.default_rng(seed).normal(size=len(points))
    found = evaluated(lambda v: interpolated(v, np.array(points, float), heights), v=np.array(x, float))
    np.testing.assert_allclose(found, np.interp(x, points, heights), rtol=1e-12, atol=1e-12)
