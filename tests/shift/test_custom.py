from __future__ import annotations

import numpy as np
import pytest

from openset.shift import background_shift


@pytest.fixture
def columns():
    return {"label": np.repeat(["cat", "dog", "eel"], 2000), "subtype": np.tile(["young", "old"], 3000)}


def sizes(split, part="source"):
    return {(c["class"], c["subtype"]): c[part] for c in split.manifest.proportions}


def test_given_shares_are_kept_to_the_row(columns):
    shares = {"young": 0.75, "old": 0.5, ("dog", "old"): 0.0}
    split = background_shift(**columns, novel="eel", test_fraction=0.5, subtype_shares=shares)
    assert sizes(split) == {
        ("cat", "old"): 250,
        ("cat", "young"): 375,
        ("dog", "old"): 0,
        ("dog", "young"): 375,
    }
    assert sizes(split, "test_target")["dog", "old"] == 500
    assert split.novel_fraction == 1000 / (2000 - 1000 + 1000)


def test_label_shift_alone_and_on_top_of_shares(columns):
    alone = background_shift(**columns, novel="eel", test_fraction=0, class_shares={"cat": 0.8})
    assert sizes(alone) == {
        ("cat", "old"): 800,
        ("cat", "young"): 800,
        ("dog", "old"): 500,
        ("dog", "young"): 500,
    }
    assert len(alone.test_source) == len(alone.test_target) == 0
    assert alone.manifest.test_novel_fraction is None
    # log-odds add up: 4 to 1 for cats and 4 to 1 for the young make 16 to 1
    both = background_shift(
        **columns,
        novel="eel",
        test_fraction=0,
        class_shares={"cat": 0.8},
        subtype_shares={"young": 0.8, "old": 0.5},
    )
    assert sizes(both)["cat", "young"] == round(1000 * 16 / 17)


def test_dirichlet_shares_shift_less_the_more_concentrated(columns):
    def spread(concentration):
        drawn = [
            cell["share"]
            for seed in range(30)
            for cell in background_shift(
                **columns, novel="eel", concentration=concentration, random_state=seed
            ).manifest.proportions
        ]
        assert min(drawn) >= 0.05 and max(drawn) <= 0.95
        return np.std(drawn), np.mean(drawn)

    strong, weak = spread(0.5), spread(50)
    # a Beta(c, c) variable has variance 1 / (4 (2c + 1)), shrunk by .9 towards one half
    assert strong[0] == pytest.approx(0.9 / np.sqrt(4 * 2), abs=0.04)
    assert weak[0] == pytest.approx(0.9 / np.sqrt(4 * 101), abs=0.01)
    assert strong[1] == pytest.approx(0.5, abs=0.1)


def test_rows_go_to_target_with_the_odds_their_score_gives():
    n = 20000
    random = np.random.default_rng(0)
    label, score = np.where(np.arange(n) < 1000, "new", "known"), random.normal(3, 2, n)
    split = background_shift(label=label, novel="new", score=score, strength=1.5, test_fraction=0)
    known = label == "known"
    z = (score - score[known].mean()) / score[known].std()
    in_target = np.zeros(n, bool)
    in_target[split.target] = True
    for low in (-1.5, -0.5, 0.5, 1.5):
        near = known & (np.abs(z - low) < 0.15)
        assert in_target[near].mean() == pytest.approx(1 / (1 + np.exp(-1.5 * low)), abs=0.04)


def test_no_strength_means_no_covariate_shift():
    random = np.random.default_rng(0)
    label, score = np.repeat(["known", "new"], [4000, 100]), random.normal(size=4100)
    split = background_shift(label=label, novel="new", score=score, strength=0, test_fraction=0)
    assert abs(len(split.source) - 2000) <= 1
    assert abs(score[split.source].mean()) < 0.06


def test_several_classes_can_be_new_together(columns):
    split = background_shift(**columns, novel=["dog", "eel"], novel_label="?", novel_fraction=0.25)
    assert set(columns["label"][split.label == "?"]) == {"dog", "eel"}
    assert split.novel_fraction == pytest.approx(0.25, abs=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"novel": "ant"}, "label has no rows of 'ant'"),
        ({"novel": ["cat", "dog", "eel"]}, "no class beside the novel one"),
        ({"subtype_shares": {"young": 0.5}}, "no share for 'old' of 'cat', 'old' of 'dog'"),
        ({"subtype_shares": {"young": 0.5, "old": 0.5, "baby": 0.1}}, "subtype_shares has 'baby'"),
        ({"subtype_shares": {"young": 0.5, "old": 1.5}}, "subtype_shares\\['old'\\]=1.5"),
        ({"subtype_shares": {"young": 0.5, "old": 0.5}, "concentration": 1}, "either subtype_shares or"),
        ({"concentration": 0}, "concentration=0"),
        ({"concentration": 1, "least_share": 0.7}, "least_share=0.7"),
        ({"class_shares": {"eel": 0.5}}, "class_shares has 'eel'"),
        ({"class_shares": {"cat": 1.0}}, "class_shares\\['cat'\\]=1.0"),
        ({"subtype_shares": {"young": 0, "old": 0}}, "no row of 'cat', 'dog' is in source"),
        ({"subtype_shares": {"young": 1, "old": 1}}, "no known row is in target"),
        ({"score": np.zeros(6000)}, "score is the same in all known rows"),
        ({"score": ["a"] * 6000}, "score is of type"),
        ({"score": np.full(6000, np.nan)}, "score has 6000 missing values"),
        ({"strength": -1}, "strength=-1"),
        ({"source_share": 1}, "source_share=1"),
        ({"novel_fraction": 0.6}, "novel_fraction=0.6 needs 2400 novel rows"),
    ],
)
def test_what_it_refuses(columns, change, message):
    with pytest.raises(ValueError, match=message):
        background_shift(**columns | {"novel": "eel"} | change)
