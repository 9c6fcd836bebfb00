from __future__ import annotations

import csv

import numpy as np
import pytest

from openset.shift import (
    PAPER_SEEDS,
    cifar_shift,
    content_keys,
    rebuild,
    sentiment_shift,
    subtype_shift,
)
from openset.shift.manifest import PARTS

# EXPERIMENTS.md: marginals, source, target, test source, test target, novel fraction
CIFAR_SIZES = {
    0: ([0.64, 0.77, 0.68, 0.64, 0.54], 6540, 3698, 1308, 738, 0.068),
    8: ([0.90, 0.97, 0.90, 0.62, 0.39], 7560, 2682, 1512, 530, 0.093),
    103: ([0.55, 0.34, 0.34, 0.86, 0.67], 5520, 4714, 1104, 930, 0.053),
    573: ([0.58, 0.86, 0.51, 0.23, 0.79], 5940, 4306, 1184, 858, 0.058),
    1057: ([0.48, 0.81, 0.36, 0.98, 0.93], 7120, 3122, 1424, 618, 0.080),
}


@pytest.fixture(scope="module")
def cifar(shared_data):
    with np.load(shared_data / "cifar100" / "cifar100_26classes.npz") as data:
        return {name: data[name] for name in ("coarse", "fine", "split")}, content_keys(data["images"])


@pytest.mark.parametrize("novel", ["baby", "man", "butterfly", "rocket", "streetcar"])
@pytest.mark.parametrize("seed", PAPER_SEEDS)
def test_cifar_sizes_are_those_of_the_paper(cifar, seed, novel):
    columns, _ = cifar
    marginals, *sizes, alpha = CIFAR_SIZES[seed]
    split = cifar_shift(**columns, novel=novel, random_state=seed)
    assert list(split.manifest.sizes.values()) == sizes == [len(getattr(split, part)) for part in PARTS]
    assert round(split.novel_fraction, 3) == alpha
    assert (split.label[split.target] == "novel").sum() == 250
    assert (columns["fine"][split.target] == novel).sum() == 250
    assert [cell["share"] for cell in split.manifest.proportions] == marginals * 4
    for cell, m in zip(split.manifest.proportions, marginals * 4, strict=True):
        chosen = columns["fine"][split.source] == cell["subtype"]
        assert chosen.sum() == cell["source"] == int(500 * m)
        assert cell["target"] == int(500 * (1 - m))


def test_cifar_classes_are_as_balanced_in_source_as_in_target(cifar):
    columns, _ = cifar
    split = cifar_shift(**columns, novel="rocket", random_state=8)
    assert np.unique(split.label[split.source], return_counts=True)[1].tolist() == [7560 // 4] * 4


def test_cifar_holds_copies_that_the_content_check_keeps_apart(cifar):
    columns, keys = cifar

    def shared(split):
        rows = [set(keys[getattr(split, part)].tolist()) for part in PARTS]
        return sum(len(a & b) for i, a in enumerate(rows) for b in rows[:i])

    as_published = cifar_shift(**columns, novel="baby")
    checked = cifar_shift(**columns, novel="baby", content=keys)
    assert shared(as_published) == 13
    assert shared(checked) == 0
    # 17 images are there twice, mostly under one name, once as fish and as an aquatic mammal
    assert checked.manifest.duplicates == {"left_out": 17, "under_several_labels": 1}
    assert list(checked.manifest.sizes.values()) == [6533, 3694, 1302, 734]
    assert "17 rows were left out as copies" in str(checked)


def test_without_shift_every_subtype_is_near_one_half(cifar):
    columns, _ = cifar
    split = cifar_shift(**columns, novel="baby", shift=False, random_state=103)
    assert all(0.45 <= cell["share"] <= 0.5 for cell in split.manifest.proportions)
    assert len({cell["share"] for cell in split.manifest.proportions[:5]}) > 1


@pytest.mark.parametrize("alpha", [0, 0.03, 0.12])
def test_novel_fraction_is_reached_in_target_and_test(cifar, alpha):
    columns, _ = cifar
    split = cifar_shift(**columns, novel="baby", novel_fraction=alpha)
    assert split.novel_fraction == pytest.approx(alpha, abs=2e-4)
    assert split.manifest.test_novel_fraction == pytest.approx(alpha, abs=1e-3)


def test_an_impossible_novel_fraction_says_what_is_possible(cifar):
    columns, _ = cifar
    with pytest.raises(ValueError, match="needs 862 novel rows .* there are 500: ask for at most 0.1266"):
        cifar_shift(**columns, novel="baby", novel_fraction=0.2)


def toy_cifar():
    fine = np.repeat(["carp", "pike", "oak", "elm", "man"], 60)
    coarse = np.repeat(["fish", "tree", "people"], [120, 120, 60])
    return {"coarse": coarse, "fine": fine, "split": np.tile(["train"] * 5 + ["test"], 50)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"novel": "woman"}, "fine has no rows of 'woman': it holds 'carp'"),
        ({"known": ["fish", "birds"]}, "coarse has no rows of 'birds'"),
        ({"known": []}, "no class beside the novel one"),
        ({"known": ["fish", "people"]}, "differ in their number of subtypes .*'fish' 2"),
        ({"shift": 1}, "shift=1"),
        ({"random_state": None}, "random_state=None"),
        ({"random_state": -1}, "random_state=-1"),
        ({"novel_fraction": 1.0}, "novel_fraction=1.0"),
        ({"novel_share": 2}, "novel_share=2"),
        ({"novel_label": "fish"}, "novel_label='fish' is one of the classes"),
        ({"fine": ["carp"] * 3}, "differ in length: coarse has 300, fine has 3"),
        ({"split": ["all"] * 300}, "split holds 'all'"),
        ({"split": ["test"] * 300}, "no row of 'fish', 'tree' is in source"),
        ({"content": np.zeros(300)}, "no row of"),
        ({"coarse": np.zeros((300, 2))}, "coarse has shape"),
        ({"fine": ["carp", None] * 150}, "fine has 150 missing values"),
        ({"fine": ["carp", 3] * 150}, "fine holds int, str"),
    ],
)
def test_what_cifar_shift_refuses(change, message):
    problem = toy_cifar() | {"novel": "man", "known": ["fish", "tree"]} | change
    with pytest.raises(ValueError, match=message):
        cifar_shift(**problem)


def test_numbered_classes_get_a_numbered_novel_label():
    toy = toy_cifar()
    coarse, fine = (np.unique(toy[name], return_inverse=True)[1] for name in ("coarse", "fine"))
    split = cifar_shift(coarse=coarse, fine=fine, split=toy["split"], novel=2, known=[0, 2])
    assert split.novel_label == -1 and split.label.dtype.kind == "i"
    assert set(split.label[split.target]) == {-1, 0, 2}
    again = rebuild(split.manifest, coarse=coarse.astype(np.int16), fine=fine, split=toy["split"].astype(object))
    assert np.array_equal(again.label, split.label)


SIX = ["music", "software", "health_personal_care", "kitchen_housewares", "toys_games", "apparel"]


@pytest.fixture(scope="module")
def reviews(shared_data):
    from pyarrow import parquet

    table = parquet.read_table(shared_data / "amazon_reviews" / "reviews.parquet")
    return {
        name: table[name].to_numpy(zero_copy_only=False) for name in ("category", "sentiment", "split", "text")
    }


@pytest.mark.parametrize("own_split", [True, False])
@pytest.mark.parametrize("seed", PAPER_SEEDS)
def test_amazon_stand_in_has_the_papers_sizes(reviews, seed, own_split):
    columns = {name: reviews[name] for name in ("category", "sentiment")}
    if own_split:
        columns["split"] = reviews["split"]
    novel = SIX[seed % 6]
    known = [name for name in SIX if name != novel]
    split = sentiment_shift(**columns, novel=novel, known=known, random_state=seed)
    assert len(split.source) == 2500
    assert (split.label[split.target] != "novel").sum() == 2500
    assert (split.label[split.target] == "novel").sum() == 1000
    assert len(split.test_source) == 625 and len(split.test_target) == 625 + 250
    for label in known:
        assert (split.label[split.source] == label).sum() == (split.label[split.target] == label).sum() == 500
        shares = {c["subtype"]: c for c in split.manifest.proportions if c["class"] == label}
        m = shares[0]["share"]
        assert 0.08 <= m <= 0.15 or 0.85 <= m <= 0.92
        assert shares[0]["source"] == round(500 * m) and shares[1]["source"] == round(500 * (1 - m))
        assert shares[0]["target"] == 500 - round(500 * m)
    assert set(reviews["category"][split.target]) == set(SIX)


def test_amazon_stand_in_at_the_measured_novel_fraction(reviews):
    columns = {name: reviews[name] for name in ("category", "sentiment", "split")}
    split = sentiment_shift(**columns, novel="music", known=SIX[1:], novel_fraction=0.09, random_state=8)
    assert split.novel_fraction == pytest.approx(0.09, abs=2e-4)
    assert len(split.source) == 2500
    keys = content_keys(reviews["text"])
    same = sentiment_shift(
        **columns, novel="music", known=SIX[1:], novel_fraction=0.09, random_state=8, content=keys
    )
    assert np.array_equal(same.target, split.target)  # the collection has no copies


def test_few_reviews_give_balanced_classes():
    category, sentiment = np.repeat(["a", "b", "c"], 100), np.repeat([0, 1, 0, 1, 0, 1], [30, 70, 50, 50, 10, 90])
    split = sentiment_shift(category=category, sentiment=sentiment, novel="c", random_state=3)
    sizes = {label: int((split.label[split.source] == label).sum()) for label in "ab"}
    assert sizes == {"a": 24, "b": 40}  # a fifth of the rarer sentiment is for testing
    assert (split.label[split.target] == "a").sum() == 24


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"novel": "d"}, "category has no rows of 'd'"),
        ({"known": ["a", "c"]}, "'c' cannot be both known and novel"),
        ({"sentiment": [0] * 300}, "sentiment holds 1 values"),
        ({"sentiment": [0, 1, 2] * 100}, "sentiment holds 3 values"),
        ({"sentiment": [0] * 100 + [0, 1] * 100}, "category 'a' has rows of sentiment 0 only"),
        ({"n_train": 0}, "n_train=0"),
        ({"novel_fraction": 0.9}, "novel_fraction=0.9 needs"),
        ({"category": [], "sentiment": []}, "category is empty"),
    ],
)
def test_what_sentiment_shift_refuses(change, message):
    problem = {"category": np.repeat(["a", "b", "c"], 100), "sentiment": [0, 1] * 150, "novel": "c"} | change
    with pytest.raises(ValueError, match=message):
        sentiment_shift(**problem)


@pytest.mark.parametrize(("column", "by_share"), [(0, 4), (1, 1), (2, 4)])
def test_sun397_hierarchy_gives_the_papers_numbers_of_novel_subtypes(shared_data, column, by_share):
    """Four of each group, twelve in all; the share of the authors' script would give one of the mountains."""

    def subtypes(name):
        with open(shared_data / "sun397_hierarchy" / name, encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file))
        return [[row[i] for row in rows if i < len(row) and row[i]] for i in range(len(rows[0]))]

    columns = [*subtypes("sun397_hierarchy.csv"), subtypes("sun397_ood_subset.csv")[column]]
    group = np.repeat([f"group {i}" for i in range(6)] + ["nature"], [100 * len(c) for c in columns])
    subtype = np.repeat([name for c in columns for name in c], 100)
    split = subtype_shift(group=group, subtype=subtype, novel_group="nature", random_state=573)
    assert len(split.manifest.label["novel"]["subtype"]) == 4
    assert (split.label[split.target] == "novel").sum() == 4 * 40  # half of the 80 that are not for testing
    shared = {"group": group, "subtype": subtype, "novel_group": "nature", "subtype_share": 0.13}
    assert len(subtype_shift(**shared).manifest.label["novel"]["subtype"]) == by_share
    assert len(split.manifest.proportions) == 48
    shares = np.array([cell["share"] for cell in split.manifest.proportions])
    assert (((shares > 0.08) & (shares < 0.15)) | ((shares > 0.85) & (shares < 0.92))).all()
    assert len(set(shares)) == 48
    assert len(split.test_source) + len(split.test_target) == 48 * 20 + 4 * 10


def test_sun_stand_in_with_a_known_groups_subtype_as_new(shared_data):
    with open(shared_data / "sun_scenes" / "index.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = {"group": [row["level1"] for row in rows], "subtype": [row["class"] for row in rows]}
    known = ["indoor", "outdoor_manmade"]
    assert set(known) < set(columns["group"])
    split = subtype_shift(**columns, known=known, novel_subtypes=["airport"], novel_fraction=0.06, random_state=1)
    assert split.novel_fraction == pytest.approx(0.06, abs=1e-3)
    assert "airport" not in {cell["subtype"] for cell in split.manifest.proportions}
    assert {cell["class"] for cell in split.manifest.proportions} == set(known)
    assert np.array(columns["subtype"])[split.label == "novel"].tolist() == ["airport"] * columns[
        "subtype"
    ].count("airport")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"novel_group": None}, "either novel_group or novel_subtypes"),
        ({"novel_subtypes": ["x"]}, "either novel_group or novel_subtypes"),
        ({"novel_group": None, "novel_subtypes": ["z"]}, "subtype has no rows of 'z'"),
        ({"novel_group": "d"}, "group has no rows of 'd'"),
        ({"test_fraction": 1.0}, "test_fraction=1.0"),
        ({"subtype_share": -1}, "subtype_share=-1"),
    ],
)
def test_what_subtype_shift_refuses(change, message):
    problem = {"group": np.repeat(["a", "b", "c"], 50), "subtype": ["x", "y"] * 75, "novel_group": "c"} | change
    with pytest.raises(ValueError, match=message):
        subtype_shift(**problem)


def test_a_group_whose_every_subtype_is_new_is_not_known():
    group, subtype = np.repeat(["a", "b"], 50), np.repeat(["x", "y", "z"], [25, 25, 50])
    split = subtype_shift(group=group, subtype=subtype, novel_subtypes=["z"])
    assert {cell["class"] for cell in split.manifest.proportions} == {"a"}


def test_the_papers_novel_subtypes_are_drawn_by_seed():
    from openset.data import sun397_hierarchy

    levels = sun397_hierarchy()
    pairs = [(g, s) for groups in levels.values() for g, subtypes in groups.items() for s in subtypes] * 40
    group, subtype = (np.array(column) for column in zip(*pairs, strict=True))

    def drawn(natural, seed, **options):
        made = subtype_shift(
            group=group, subtype=subtype, novel_group=natural, known=list(levels["indoor"]), random_state=seed,
            **options,
        )  # fmt: skip
        return tuple(made.manifest.label["novel"]["subtype"])

    assert [len(drawn(natural, 0)) for natural in levels["outdoor_natural"]] == [4, 4, 4]
    water = levels["outdoor_natural"]["water_ice_snow"]
    draws = [drawn("water_ice_snow", seed) for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2] and set(draws[0]) < set(water)
    assert set(drawn("water_ice_snow", 0, subtype_share=1.0)) == set(water)
