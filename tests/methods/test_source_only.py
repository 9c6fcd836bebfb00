from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from openset import SourceOnly
from openset.methods._known_classes import ClassObjective
from openset.stats.scores import msp_score

QUICK = {"max_steps": 20, "evaluate_every": 10, "fpr": 0.2, "random_state": 0}


@pytest.fixture(scope="module")
def fitted(small):
    return SourceOnly(**QUICK).fit(small.X, small.y, small.X_target)


def test_the_score_is_the_doubt_of_its_classifier(fitted, small):
    logits = fitted._head_outputs(small.X_test)["classes"][0].astype(float)
    np.testing.assert_array_equal(fitted.novelty_score(small.X_test), msp_score(logits))
    np.testing.assert_allclose(
        fitted.novelty_score(small.X_test), 1 - softmax(logits, axis=1).max(axis=1), atol=1e-7
    )
    np.testing.assert_array_equal(fitted.predict_known(small.X_test), logits.argmax(axis=1))


def test_the_network_with_the_lowest_cross_entropy_is_kept(fitted):
    assert isinstance(fitted._objective(_Three()), ClassObjective)
    losses = {record["step"]: record["class_loss"] for record in fitted.history_}
    assert set(losses) == {10, 20} and all(np.isfinite(list(losses.values())))
    assert set(fitted.architecture_.bodies) == {"shared"} and fitted.architecture_.bodies["shared"] == {
        "classes": 3
    }


class _Three:
    n_classes = 3


def test_the_target_takes_no_part_in_training_or_scaling(small):
    one, other = (
        SourceOnly(**QUICK).fit(small.X, small.y, target)
        for target in (small.X_target, small.X_target[::-1] * 3 + 1)
    )
    np.testing.assert_array_equal(one.novelty_score(small.X_test), other.novelty_score(small.X_test))
    np.testing.assert_array_equal(one.target_novelty_score_, one.novelty_score(small.X_target))


def test_it_scores_alike_with_and_without_a_target_up_to_the_rows_kept_for_the_threshold(small):
    closed = SourceOnly(**QUICK).fit(small.X, small.y)
    score = closed.novelty_score(small.X_test)
    assert closed.threshold_ == np.inf and ((score >= 0) & (score < 1)).all()
    assert set(closed.predict(small.X_test).tolist()) <= {0, 1, 2}
