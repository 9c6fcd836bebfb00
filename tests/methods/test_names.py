from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from openset import MCM, ZOC
from openset.stats.metrics import auroc
from openset.stats.name_scores import mcm_score, zoc_log_odds

random = np.random.default_rng(0)
CONCEPTS = np.linalg.qr(random.normal(size=(32, 6)))[0].T
WHICH = random.integers(0, 6, 600)
IMAGES = 3 * CONCEPTS[WHICH] + 0.3 * random.normal(size=(600, 32))
KNOWN = WHICH < 4
NAMES = np.array(["ant", "bee", "cat", "dog", "elk", "fox"])
NAMED = dict(zip(NAMES[:4], CONCEPTS[:4], strict=True))


def fitted(model):
    return model.set_params(fpr=0.05).fit(IMAGES[KNOWN][:300], NAMES[WHICH[KNOWN][:300]], IMAGES)


def test_mcm_scores_by_its_rule_and_finds_what_has_another_name():
    model = fitted(MCM(class_embeddings=NAMED))
    np.testing.assert_allclose(model.novelty_score(IMAGES), mcm_score(IMAGES, CONCEPTS[:4]))
    assert auroc(~KNOWN, model.novelty_score(IMAGES)) > 0.95
    assert (model.predict_known(IMAGES[KNOWN]) == NAMES[WHICH[KNOWN]]).mean() > 0.95


def test_zoc_ranks_by_the_mass_on_candidates():
    model = fitted(ZOC(class_embeddings=NAMED, candidate_embeddings=CONCEPTS[4:], scale=10.0))
    mass = expit(zoc_log_odds(IMAGES, CONCEPTS[:4], CONCEPTS[4:], scale=10.0))
    np.testing.assert_array_equal(np.argsort(model.novelty_score(IMAGES)), np.argsort(mass))
    assert auroc(~KNOWN, mass) > 0.98


def test_names_may_come_as_an_array_and_without_them_the_mean_source_row_stands_in():
    by_name = fitted(MCM(class_embeddings=NAMED)).novelty_score(IMAGES)
    np.testing.assert_array_equal(fitted(MCM(class_embeddings=CONCEPTS[:4])).novelty_score(IMAGES), by_name)
    means = fitted(MCM())
    assert np.sum(means.names_ * CONCEPTS[:4], axis=1).min() > 0.95


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (MCM(class_embeddings={"ant": CONCEPTS[0]}), "no entry for 'bee', 'cat', 'dog'"),
        (MCM(class_embeddings=CONCEPTS[:3]), r"class_embeddings has shape \(3, 32\): expected \(4, 32\)"),
        (MCM(class_embeddings="ant"), "class_embeddings is not an array of numbers"),
        (MCM(class_embeddings=np.zeros((4, 32))), "zero or not finite"),
        (MCM(temperature=0), "temperature=0"),
        (ZOC(), "neither of candidate_embeddings and decoder"),
        (ZOC(candidate_embeddings=CONCEPTS, decoder="d"), "both of candidate_embeddings and decoder"),
        (ZOC(decoder="d"), "text_encoder must embed them"),
        (ZOC(candidate_embeddings=np.ones((2, 5))), r"candidate_embeddings has shape \(2, 5\)"),
        (ZOC(candidate_embeddings=CONCEPTS, scale=-1), "scale=-1"),
    ],
)
def test_what_cannot_be_is_told(model, message):
    with pytest.raises(ValueError, match=message):
        fitted(model)


def test_zoc_reads_labels_as_a_person_says_them(monkeypatch):
    prompted, known = [], []

    def embed(folder, names):
        prompted.extend(names)
        return CONCEPTS[: len(names)]

    def propose(decoder, folder, rows, names):
        known.append(list(names))
        return [CONCEPTS[4:5]] * len(rows)

    monkeypatch.setattr("openset.features.captions.embed_names", embed)
    monkeypatch.setattr("openset.features.captions.propose_embeddings", propose)
    labels = np.repeat(["/b/bakery/shop", "shopping_and_dining"], 30)
    rows = np.repeat(CONCEPTS[:2], 30, axis=0) + np.random.default_rng(0).normal(scale=0.1, size=(60, 32))
    model = ZOC(decoder="decoder", text_encoder="clip", fpr=0.1, random_state=0).fit(rows, labels, rows)
    assert prompted == ["bakery shop", "shopping and dining"] and known[0] == prompted
    assert model.predict_known(CONCEPTS[:2]).tolist() == ["/b/bakery/shop", "shopping_and_dining"]
