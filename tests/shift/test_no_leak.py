"""No builder ever puts a row, or a copy of it, into two parts: for any labels, splits, copies and settings."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from openset.shift import background_shift, cifar_shift, rebuild, sentiment_shift, subtype_shift
from openset.shift.manifest import PARTS, Manifest

BUILDERS = {
    "cifar_shift": (cifar_shift, ("coarse", "fine"), {"known": ["a", "b"]}),
    "sentiment_shift": (sentiment_shift, ("category", "sentiment"), {"n_train": 8, "n_test": 3}),
    "subtype_shift": (subtype_shift, ("group", "subtype"), {}),
    "background_shift": (background_shift, ("label", "subtype"), {}),
}


@st.composite
def problems(draw, name):
    """Columns and settings for a builder: three classes ("c" is new), two subtypes, copies, perhaps a split."""
    _, (classes, subtypes), settings = BUILDERS[name]
    n = draw(st.integers(1, 150))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    label = random.choice(["a", "b", "c"], n)
    subtype = random.choice(["x", "y"], n)
    if name == "cifar_shift":
        subtype = np.char.add(label, subtype)
    columns = {classes: label, subtypes: subtype}
    if name == "cifar_shift" or draw(st.booleans()):
        columns["split"] = random.choice(["train", "train", "test"], n)
    if draw(st.booleans()):  # few contents, so that copies cross classes, subtypes and splits
        columns["content"] = random.integers(0, draw(st.integers(2, 2 * n + 2)), n)
    settings = dict(settings, random_state=draw(st.integers(0, 1000)))
    if draw(st.booleans()):
        settings["novel_fraction"] = draw(st.floats(0, 0.4))
    if name == "background_shift":
        settings["novel"] = "c"
        if draw(st.booleans()):
            settings["concentration"] = draw(st.floats(0.1, 10))
        if draw(st.booleans()):
            columns["score"] = random.normal(size=n)
            settings["strength"] = draw(st.floats(0, 5))
        if draw(st.booleans()):
            settings["class_shares"] = {"a": draw(st.floats(0.1, 0.9))}
    else:
        settings["shift"] = draw(st.booleans())
        settings |= {
            "cifar_shift": {"novel": "cx"},
            "sentiment_shift": {"novel": "c"},
            "subtype_shift": {"novel_group": "c"},
        }[name]
    return columns, settings


@pytest.mark.parametrize("name", BUILDERS)
def test_no_row_and_no_copy_of_it_is_in_two_parts(name):
    builder, (classes, _), _ = BUILDERS[name]
    outcomes = []

    @settings(max_examples=150)
    @given(problems(name))
    def check(problem):
        columns, options = problem
        try:
            split = builder(**columns, **options)
        except ValueError as refused:  # too few rows for what was asked
            event("refused")
            outcomes.append(str(refused))
            return
        outcomes.append(None)
        n = len(columns[classes])
        parts = {part: set(getattr(split, part).tolist()) for part in PARTS}
        content = columns.get("content", np.arange(n))
        for one, other in combinations(PARTS, 2):
            assert not parts[one] & parts[other]
            assert not set(content[sorted(parts[one])]) & set(content[sorted(parts[other])])
        drawn = np.concatenate([getattr(split, part) for part in PARTS])
        assert len(set(content[drawn].tolist())) == len(drawn)
        if "split" in columns:
            assert set(columns["split"][split.source]) | set(columns["split"][split.target]) == {"train"}
            assert set(columns["split"][np.concatenate([split.test_source, split.test_target])]) <= {"test"}
        known = {"a", "b"} & set(columns[classes].tolist())
        assert set(split.label[split.source]) == known >= set(split.label[split.test_source])
        assert set(split.label[split.target]) <= known | {"novel"}
        assert split.novel_fraction == (split.label[split.target] == "novel").mean()
        if "novel_fraction" in options:
            assert split.novel_fraction == pytest.approx(options["novel_fraction"], abs=1 / len(split.target))
        again = rebuild(Manifest.from_json(split.manifest.to_json()), **columns)
        assert all(np.array_equal(getattr(split, part), getattr(again, part)) for part in PARTS)

    check()
    built = sum(outcome is None for outcome in outcomes)
    assert built > len(outcomes) / 3, outcomes  # the property was put to the test, not only refused
