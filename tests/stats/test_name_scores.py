from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, softmax

from openset.stats.metrics import auroc
from openset.stats.name_scores import mcm_score, name_logits, zoc_log_odds

random = np.random.default_rng(0)
NAMES = random.normal(size=(4, 16))
IMAGES = random.normal(size=(6, 16))
CANDIDATES = [random.normal(size=(m, 16)) for m in (3, 1, 5, 2, 0, 4)]


def zoc_score(*arguments, **options):
    """The paper's score, the probability of the candidates."""
    return expit(zoc_log_odds(*arguments, **options))


def cosines(a, b):
    return np.array([[x @ y / np.sqrt((x @ x) * (y @ y)) for y in b] for x in a])


def test_mcm_is_minus_the_largest_softmax_of_cosines():
    for temperature in (1.0, 0.1):
        expected = -softmax(cosines(IMAGES, NAMES) / temperature, axis=1).max(axis=1)
        np.testing.assert_allclose(mcm_score(IMAGES, NAMES, temperature), expected, atol=1e-12)


def test_mcm_by_hand():
    # cosines (1, 0) and (√½, √½): 1 / (1 + e⁻¹) and one half
    np.testing.assert_allclose(mcm_score([[1, 0], [1, 1]], [[1, 0], [0, 1]]), [-0.731059, -0.5], atol=1e-6)


def test_zoc_is_the_mass_on_candidates():
    scores = zoc_score(IMAGES, NAMES, CANDIDATES)
    for i, proposed in enumerate(CANDIDATES):
        p = softmax(100 * cosines(IMAGES[i : i + 1], np.vstack([NAMES, proposed]))[0])
        assert scores[i] == pytest.approx(p[len(NAMES) :].sum(), abs=1e-12)
    assert scores[4] == 0


def test_zoc_by_hand():
    # cosines 1 to the known name, .6 and 0 to the candidates, at scale 10
    expected = (np.exp(6) + 1) / (np.exp(10) + np.exp(6) + 1)
    score = zoc_score([[1, 0]], [[1, 0]], [[[0.6, 0.8], [0, 1]]], scale=10)
    assert score[0] == pytest.approx(expected, abs=1e-12)


def test_lengths_do_not_matter_and_the_input_stays():
    images = IMAGES * random.uniform(0.1, 10, size=(6, 1))
    before = images.copy()
    np.testing.assert_allclose(zoc_score(images, 3 * NAMES, CANDIDATES), zoc_score(IMAGES, NAMES, CANDIDATES))
    np.testing.assert_allclose(mcm_score(images, 3 * NAMES), mcm_score(IMAGES, NAMES))
    np.testing.assert_array_equal(images, before)


def test_a_class_with_a_name_of_its_own_is_found():
    concepts = np.linalg.qr(random.normal(size=(32, 6)))[0].T
    which = random.integers(0, 6, 300)
    images = concepts[which] + 0.1 * random.normal(size=(300, 32))
    known, new = concepts[:4], which >= 4
    logits = name_logits(images, known)
    assert (logits.argmax(axis=1) == which)[~new].mean() > 0.95
    assert auroc(new, mcm_score(images, known)) > 0.95
    assert auroc(new, zoc_score(images, known, np.broadcast_to(concepts[4:], (300, 2, 32)))) > 0.95


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mcm_score(IMAGES, NAMES[:, :3]), "images have 16 dimensions but names 3"),
        (lambda: mcm_score(IMAGES, NAMES, temperature=0), "temperature=0"),
        (lambda: mcm_score(IMAGES[0], NAMES), "images has shape"),
        (lambda: mcm_score(IMAGES, np.zeros((2, 16))), "direction is not defined"),
        (lambda: zoc_score(IMAGES, NAMES, CANDIDATES[:2]), "6 images but candidates for 2"),
        (lambda: zoc_score(IMAGES, NAMES, CANDIDATES, scale=-1), "scale=-1"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
