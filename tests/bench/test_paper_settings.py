"""The splits of the paper's settings table: what is new, how many rows each part has, and the share that is new.

Rows are numbers here, as many as the official releases have images or reviews.
"""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from openset.bench.problems import build_problem
from openset.bench.problems.datasets import AMAZON_FRACTIONS, STAND_IN_CATEGORIES
from openset.bench.problems.loading import PER_SENTIMENT, forget_datasets
from openset.bench.spec import built_in_specs, load_spec
from openset.data.datasets.amazon import PAPER_CATEGORIES
from openset.data.datasets.cifar100 import SUPERCLASS_OF
from openset.data.datasets.dataset import Dataset
from openset.data.datasets.sun397 import sun397_hierarchy
from openset.shift import PAPER_SEEDS

CIFAR_SIZES = {
    0: (6540, 3698, 738, 0.068),
    8: (7560, 2682, 530, 0.093),
    103: (5520, 4714, 930, 0.053),
    573: (5940, 4306, 858, 0.058),
    1057: (7120, 3122, 618, 0.080),
}
"""By seed: rows of source, target and test, and the share of new rows in target."""
SUN_FRACTIONS = {
    ("shift", "water_ice_snow"): ("0.06±0.01", "0.053±0.021"),
    ("shift", "mountains_hills_desert_sky"): ("0.06±0.01", "0.067±0.023"),
    ("shift", "forest_field_jungle"): ("0.08±0.04", "0.073±0.021"),
    ("no-shift", "water_ice_snow"): ("0.06±0.00", "0.051±0.014"),
    ("no-shift", "mountains_hills_desert_sky"): ("0.05±0.01", "0.058±0.021"),
    ("no-shift", "forest_field_jungle"): ("0.07±0.03", "0.066±0.015"),
}
"""The share of new rows in target by setting and group: as the paper's tables of SUN397 print it, and ours."""
PROBLEMS = {problem.dataset: problem for problem in load_spec("table-settings").problems}


def numbered(**columns):
    """A dataset whose rows are numbers, so that a split can be told from its features."""
    n = len(columns["label"])
    return Dataset(
        title="official sizes", citation="", features=np.arange(n, dtype=np.float64)[:, None], **columns
    )


def whole_sun397():
    """Rows of every subtype, as many as the official release has images."""
    with (Path(__file__).parent / "sun397_counts.csv").open(encoding="utf-8") as file:
        images = {row["subtype"]: int(row["images"]) for row in csv.DictReader(file)}
    rows = [
        row
        for level1, groups in sun397_hierarchy().items()
        for level2, subtypes in groups.items()
        for subtype in subtypes
        for row in [(level1, level2, subtype)] * images[subtype]
    ]
    level1, level2, subtype = map(np.array, zip(*rows, strict=True))
    return numbered(name="sun397", label=level2, subtype=subtype, columns={"level1": level1})


def whole_cifar100():
    fine = np.repeat(sorted(SUPERCLASS_OF), 600)
    split = np.tile(np.repeat(["train", "test"], [500, 100]), 100)
    images = np.arange(len(fine), dtype=np.int64)[:, None]
    images[1::50] = images[0::50]  # copies, some within a class and split, as the release has them
    label = np.array([SUPERCLASS_OF[name] for name in fine])
    return replace(
        numbered(name="cifar100", label=label, subtype=fine, split=split), images=images, features=None
    )


def whole_amazon(categories=PAPER_CATEGORIES, per_sentiment=PER_SENTIMENT):
    label = np.repeat(categories, 2 * per_sentiment)
    return numbered(name="amazon", label=label, sentiment=np.tile([0, 1], len(label) // 2).astype(np.int8))


@pytest.fixture
def official(monkeypatch, tmp_path):
    """A data folder whose datasets have the official numbers of rows."""
    made = {
        "sun397": whole_sun397(),
        "cifar100": whole_cifar100(),
        "amazon": whole_amazon(),
        "amazon_fdu_mtl": whole_amazon(tuple(STAND_IN_CATEGORIES), 625),
    }
    monkeypatch.setattr("openset.data.datasets.catalogue.load_dataset", lambda name, path, **options: made[name])
    monkeypatch.setattr(
        "openset.features.encode_images", lambda images, encoder, progress: np.asarray(images, np.float64)
    )
    forget_datasets()
    yield tmp_path, made
    forget_datasets()


def splits(dataset, folder, settings=("shift", "no-shift"), novel=None):
    assert PROBLEMS[dataset].seeds == PAPER_SEEDS
    return {
        (setting, new, seed): build_problem(dataset, setting, new, seed, folder, **PROBLEMS[dataset].options)
        for setting in settings
        for new in novel
        for seed in PAPER_SEEDS
    }


def is_new(problem, labels):
    return labels == problem.novel_label


@pytest.mark.slow
def test_cifar100(official):
    folder, _ = official
    novel = ("baby", "man", "butterfly", "rocket", "streetcar")
    for (_, new, seed), made in splits("cifar100", folder, ("shift",), novel).items():
        n_source, n_target, n_test, fraction = CIFAR_SIZES[seed]
        assert (len(made.X), len(made.X_target), len(made.X_test)) == (n_source, n_target, n_test), (new, seed)
        assert made.novel_fraction == pytest.approx(fraction, abs=5e-4) and made.new_subtypes == 1
        assert is_new(made, made.y_target).sum() == 250 and is_new(made, made.y_test).sum() == 50
    fractions = [fraction for *_, fraction in CIFAR_SIZES.values()]
    assert f"{np.mean(fractions):.2f}±{np.std(fractions, ddof=1):.2f}" == "0.07±0.02"  # as the paper prints it
    without = splits("cifar100", folder, ("no-shift",), novel[:1])
    assert {round(made.novel_fraction, 2) for made in without.values()} == {0.05}  # the paper: 0.05±0.00


def test_copies_are_dropped_unless_a_spec_keeps_them(official):
    folder, _ = official
    made = build_problem("cifar100", "shift", "baby", 0, folder)
    assert len(made.X) < CIFAR_SIZES[0][0] and len(np.unique(made.X)) == len(made.X)
    kept = build_problem("cifar100", "shift", "baby", 0, folder, copies=True)
    assert len(np.unique(kept.X)) < len(kept.X) == CIFAR_SIZES[0][0]


def test_the_images_of_the_release_give_the_papers_sizes(shared_data):
    forget_datasets()
    for seed, (n_source, n_target, n_test, fraction) in CIFAR_SIZES.items():
        made = build_problem("cifar100-images", "shift", "baby", seed, shared_data, copies=True)
        assert (len(made.X), len(made.X_target), len(made.X_test)) == (n_source, n_target, n_test), seed
        assert made.novel_fraction == pytest.approx(fraction, abs=5e-4)
    forget_datasets()


@pytest.mark.parametrize("spec", [name for name in built_in_specs() if not name.startswith("results-")])
def test_specs_of_the_papers_tables_keep_copies(spec):
    problems = [p for p in load_spec(spec).problems if p.dataset.startswith("cifar100") and p.paper]
    assert all(problem.options.get("copies") for problem in problems)


@pytest.mark.slow
def test_amazon_reviews(official):
    folder, _ = official
    assert tuple(AMAZON_FRACTIONS.values()) == (0.32, 0.11, 0.07, 0.07, 0.22, 0.18)
    assert set(AMAZON_FRACTIONS) == set(PAPER_CATEGORIES)
    for (_, new, _), made in splits("amazon", folder, novel=PAPER_CATEGORIES).items():
        known, known_test = ~is_new(made, made.y_target), ~is_new(made, made.y_test)
        assert made.novel_fraction == pytest.approx(AMAZON_FRACTIONS[new], abs=5e-4)
        assert is_new(made, made.y_test).mean() == pytest.approx(AMAZON_FRACTIONS[new], abs=2e-3)
        assert len(made.X) == pytest.approx(2500, abs=5) and known.sum() == pytest.approx(2500, abs=5)
        assert known_test.sum() == pytest.approx(625, abs=5)
        assert set(np.unique(made.y, return_counts=True)[1]) <= {499, 500, 501}  # no label shift
    fractions = list(AMAZON_FRACTIONS.values())
    assert f"{np.mean(fractions):.2f}±{np.std(fractions):.2f}" == "0.16±0.09"  # the paper's summary


def test_where_novel_rows_are_few_the_stand_in_has_the_same_shares_of_fewer_rows(official):
    folder, _ = official
    for new, replaced in STAND_IN_CATEGORIES.items():
        made = build_problem("amazon-fdu-mtl", "shift", new, 0, folder)
        assert made.novel_fraction == pytest.approx(AMAZON_FRACTIONS[replaced], abs=1e-3)
        n_known = int((~is_new(made, made.y_target)).sum())
        if AMAZON_FRACTIONS[replaced] < 0.28:
            assert n_known == pytest.approx(2500, abs=5)
        else:  # 1000 novel rows are not enough for 2500 known ones
            assert n_known == round(1000 * 0.68 / 0.32)


def test_the_real_stand_in_has_the_papers_numbers_of_rows(shared_data):
    forget_datasets()
    for new, replaced in STAND_IN_CATEGORIES.items():
        made = build_problem("amazon-fdu-mtl", "shift", new, 0, shared_data)
        known, known_test = ~is_new(made, made.y_target), ~is_new(made, made.y_test)
        assert made.novel_fraction == pytest.approx(AMAZON_FRACTIONS[replaced], abs=5e-4)
        assert len(made.X) == pytest.approx(2500, abs=5) and known.sum() == pytest.approx(2500, abs=5)
        assert known_test.sum() == pytest.approx(625, abs=5)
    forget_datasets()


def test_a_share_for_each_category(official):
    folder, _ = official
    of_joint = {"Musical_Instruments": 0.16, "Software": 0.06}
    made = build_problem("amazon", "shift", "Software", 0, folder, novel_fraction=of_joint)
    assert made.novel_fraction == pytest.approx(0.06, abs=5e-4)
    stand_in = build_problem("amazon-fdu-mtl", "shift", "toys_games", 0, folder, novel_fraction=of_joint)
    assert stand_in.novel_fraction == pytest.approx(0.16, abs=5e-4)
    unlisted = build_problem("amazon", "shift", "Prime_Pantry", 0, folder, novel_fraction=of_joint)
    assert unlisted.novel_fraction == pytest.approx(0.18, abs=5e-4)
    with pytest.raises(ValueError, match="novel='Books' is not valid"):
        build_problem("amazon", "shift", "Books", 0, folder, novel_fraction=of_joint)


@pytest.mark.slow
def test_sun397(official):
    folder, made = official
    groups, subtype = made["sun397"].label, made["sun397"].subtype
    fractions, chosen = {}, {}
    novel = tuple(sun397_hierarchy()["outdoor_natural"])
    for (setting, new, seed), problem in splits("sun397", folder, novel=novel).items():
        rows = problem.X_target[is_new(problem, problem.y_target), 0].astype(int)
        assert set(groups[rows]) == {new}
        chosen[setting, new, seed] = set(subtype[rows])
        # of each of three groups: the paper counts 12
        assert len(chosen[setting, new, seed]) == problem.new_subtypes == 4
        assert set(problem.y) == set(sun397_hierarchy()["indoor"])
        images = sum((subtype == name).sum() for name in chosen[setting, new, seed])
        n_test = is_new(problem, problem.y_test).sum()
        assert len(rows) + n_test == pytest.approx(images / 2, abs=6)  # half of their images
        fractions.setdefault((setting, new), []).append(problem.novel_fraction)
        if setting == "no-shift":
            assert chosen[setting, new, seed] == chosen["shift", new, seed]
    assert {of: mean_and_sd(found, 3) for of, found in fractions.items()} == {
        of: ours for of, (_, ours) in SUN_FRACTIONS.items()
    }
    for of, (printed, _) in SUN_FRACTIONS.items():
        mean, sd = map(float, printed.split("±"))
        assert np.mean(fractions[of]) == pytest.approx(mean, abs=0.01), of
        assert np.std(fractions[of], ddof=1) == pytest.approx(sd, abs=0.02), of
    with_shift = [share for (setting, _), found in fractions.items() if setting == "shift" for share in found]
    assert mean_and_sd(with_shift, 2) == "0.06±0.02"  # the paper's summary: 0.07±0.03


def mean_and_sd(values, digits):
    return f"{np.mean(values):.{digits}f}±{np.std(values, ddof=1):.{digits}f}"
