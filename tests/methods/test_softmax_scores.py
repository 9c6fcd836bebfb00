from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from openset import MLS, MSP, Energy, Entropy, SourceOnly
from openset.errors import FitWarning
from openset.learn.memory import TrainingMemory
from openset.methods._presets import PRESETS
from openset.stats.metrics import auroc
from openset.stats.scores import energy_score, entropy_score, mls_score, msp_score
from openset.testing import Subject

QUICK = {"max_steps": 60, "random_state": 0, "hidden": 16}
FORMULAS = {MSP: msp_score, Entropy: entropy_score, Energy: energy_score, MLS: mls_score}
ALL = list(FORMULAS)


def fit(cls, data, *, target=True, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return cls(**{**QUICK, **parameters}).fit(data.X, data.y, data.X_target if target else None)


@pytest.mark.parametrize("target", [True, False])
@pytest.mark.parametrize("cls", ALL)
def test_the_score_is_its_formula_with_and_without_a_target(cls, target, small):
    model = fit(cls, small, target=target)
    logits, score = model._outputs(small.X_test)
    np.testing.assert_array_equal(score, FORMULAS[cls](logits))


@pytest.mark.parametrize("cls", ALL)
def test_all_are_one_classifier(cls, small):
    ours, plain = fit(cls, small), fit(SourceOnly, small)
    np.testing.assert_array_equal(ours._outputs(small.X_test)[0], plain._outputs(small.X_test)[0])


def test_msp_at_temperature_one_is_source_only(small):
    ours, plain = fit(MSP, small), fit(SourceOnly, small)
    np.testing.assert_array_equal(ours.novelty_score(small.X_test), plain.novelty_score(small.X_test))
    assert ours.threshold_ == plain.threshold_


@pytest.mark.parametrize("cls", [MSP, Entropy, Energy])
def test_temperature_counts_in_scoring_alone(cls, small):
    one, four = fit(cls, small), fit(cls, small, temperature=4.0)
    np.testing.assert_array_equal(one.predict_known(small.X_test), four.predict_known(small.X_test))
    expected = FORMULAS[cls](one._outputs(small.X_test)[0], 4.0)
    np.testing.assert_array_equal(four.novelty_score(small.X_test), expected)


@pytest.mark.parametrize("cls", ALL)
def test_members_score_apart_and_are_pooled(cls, small):
    model = fit(cls, small, target=False, members=3)
    logits = model._head_outputs(small.X_test)["classes"]
    ranks = [
        model._on_common_scale(m, FORMULAS[cls](part), model.pool_references_) for m, part in enumerate(logits)
    ]
    np.testing.assert_allclose(model.novelty_score(small.X_test), np.mean(ranks, axis=0), rtol=1e-12)
    assert np.isfinite(fit(cls, small, members=3).novelty_score(small.X_test)).all()


@pytest.mark.parametrize("cls", [MSP, Entropy, Energy])
@pytest.mark.parametrize("temperature", [0, -1.0, np.inf, None, True])
def test_a_bad_temperature_is_refused(cls, temperature, small):
    with pytest.raises(ValueError, match="temperature=.*expected a number"):
        cls(**QUICK, temperature=temperature).fit(small.X, small.y)


@pytest.mark.parametrize("cls", [SourceOnly, *ALL])
def test_presets_are_the_papers(cls):
    for name, values in PRESETS["source_only"].items():
        assert cls.preset(name).get_params().items() >= values.items()


@pytest.mark.parametrize("cls", ALL)
def test_strength_without_shift(cls):
    subject = Subject(cls(max_steps=300))
    data = subject.data
    assert auroc(data.is_novel_test, subject.fitted.novelty_score(data.X_test)) > 0.95


def test_one_training_serves_all_scores_and_changes_none(small):
    memory = TrainingMemory()
    for cls in (SourceOnly, *ALL):
        with memory.used():
            shared = fit(cls, small)
        assert (memory.spared > (0, 0)) == (cls is not SourceOnly)
        alone = fit(cls, small)
        np.testing.assert_array_equal(shared.novelty_score(small.X_test), alone.novelty_score(small.X_test))
        assert shared.threshold_ == alone.threshold_


@pytest.mark.parametrize("other", [{"random_state": 1}, {"learning_rate": 0.01}, {"members": 2}])
def test_training_that_differs_is_done_again(small, other):
    memory = TrainingMemory()
    with memory.used():
        models = [fit(MSP, small), fit(MSP, small, **other), fit(MSP, replace(small, X=small.X * 2))]
    assert memory.spared == (0, 0)
    scores = [model.novelty_score(small.X_test) for model in models]
    assert not np.array_equal(scores[0], scores[1]) and not np.array_equal(scores[0], scores[2])
