"""The gate: every other explanation is named, with the column or class and what to do, and nothing else fails."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import openset
from openset.align import choose_alignment
from openset.pipeline.check_columns import NamedColumns, check_columns
from openset.pipeline.gate import (
    check_copies,
    check_displaced,
    check_half,
    check_labels,
    check_moved,
    run_gate,
)

NAMES = ["a", "b", "c", "d"]


def rows(seed=0, n=400, new=0):
    """Rows of two known classes; the last ``new`` rows are of neither."""
    random = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, "cat", "dog")
    X = random.normal(size=(n, 4)) + 4.0 * (y == "dog")[:, None] * np.array([1, 1, 0, 0])
    X[n - new :] = random.normal(size=(new, 4)) + np.array([0, 0, 9, 0])
    return X, y


def gate(X, y, target, *, called=None, nearest=None, names=NAMES, model=None):
    called = np.zeros(len(target), bool) if called is None else called
    nearest = np.resize(["cat", "dog"], len(target)) if nearest is None else nearest
    columns = None if names is None else NamedColumns(X, target, names)
    about = {"columns": columns, "nearest_known": nearest, "called": called, "groups": called - 1}
    return run_gate(model or SimpleNamespace(), X, y, target, **about)


def failed(checks):
    return [(check.name, check.sentence) for check in checks if check.state == "failed"]


def test_everything_passes_where_a_class_is_new():
    X, y = rows()
    target, _ = rows(1, new=40)
    checks = gate(X, y, target, called=np.arange(400) >= 360)
    assert {check.state for check in checks} == {"passed"}
    assert [check.name for check in checks] == [
        "separating column", "rows of a class", "moved batch", "copies", "displaced class", "share called new",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s, t: (np.arange(len(s)), 400 + np.arange(len(t))), "--id c"),
        (lambda s, t: (np.full(len(s), 1), np.full(len(t), 2)), "is 1 in every source row and 2 in every target"),
        (lambda s, t: (s, 1000 * t), "about 1 000 times larger in target: bring both to one unit"),
        (lambda s, t: (s, t / 100), "about 100 times smaller in target"),
        (lambda s, t: (s, t + 50), "--drop c"),
    ],
)
def test_a_column_that_separates_is_named_with_what_to_do(change, words):
    X, y = rows()
    target, _ = rows(1)
    X[:, 2], target[:, 2] = change(X[:, 2], target[:, 2])
    ((name, sentence),) = failed(check_columns(NamedColumns(X, target, NAMES)))
    assert "'c'" in sentence and words in sentence, name
    assert failed(gate(X, y, target))[0][1] == sentence, "what failed comes first"
    assert not failed(check_columns(NamedColumns(X[:, [0, 1, 3]], target[:, [0, 1, 3]], list("abd"))))


def test_columns_are_judged_in_their_own_units():
    """What models take may be scaled; a column's name, range and unit are those of the data."""
    X, y = rows()
    target, _ = rows(1)
    columns = NamedColumns(X[:, :1], 1000 * target[:, :1], ["pay"])
    about = {"nearest_known": np.resize(["cat", "dog"], 400), "called": np.zeros(400, bool)}
    about["groups"] = np.full(400, -1)
    ((name, sentence),) = failed(run_gate(SimpleNamespace(), X, y, target, columns=columns, **about))
    assert name == "other unit" and "'pay'" in sentence and "1 000 times larger in target" in sentence
    without = run_gate(SimpleNamespace(), X, y, target, columns=None, **about)
    assert not failed(without) and not {"separating column", "other unit"} & {check.name for check in without}


def test_labels_of_one_or_two_rows():
    y = np.repeat(["a", "b"], 100)
    assert check_labels(y)[0].state == "passed"
    (few,) = check_labels(np.append(y, ["c", "d", "d"]))
    assert few.state == "caution" and "2 of 4 known classes" in few.sentence and "'c'" in few.sentence
    (one,) = check_labels(np.arange(200))
    assert one.state == "failed" and "--label" in one.sentence


def test_more_than_half_called_new():
    assert check_half(np.arange(100) < 50).state == "passed"
    assert check_half(np.arange(100) < 51).state == "failed"
    assert check_half(np.zeros(0, bool)).state == "passed"


def test_copies_of_source_rows():
    X, target = rows()[0], rows(1)[0]
    assert check_copies(X, target).state == "passed"
    some = np.concatenate([target[:300], X[:100]])
    assert check_copies(X, some).state == "caution" and "25.0 %" in check_copies(X, some).sentence
    assert check_copies(X, X[::-1]).state == "failed"


def test_equal_rows_are_no_copies_where_they_are_usual():
    """Three columns of four levels: nearly every row of any draw equals one of another draw."""
    random = np.random.default_rng(0)
    X, target = random.integers(0, 4, (600, 3)).astype(float), random.integers(0, 4, (500, 3)).astype(float)
    check = check_copies(X, target)
    assert check.state == "passed" and "equal rows are usual here" in check.sentence
    half = np.concatenate([rows()[0], np.ones((120, rows()[0].shape[1]))])
    assert check_copies(half, half[::-1]).state == "failed", "a few equal rows of source excuse no copy"


@pytest.mark.parametrize(("align", "state"), [("auto", "caution"), ("none", "failed")])
def test_a_moved_batch_fails_unless_it_was_aligned(align, state):
    X, y = rows()
    target = rows(1)[0] + 30
    chosen = choose_alignment(X, (y == "dog").astype(int), target, align)
    check = check_moved(SimpleNamespace(alignment_=chosen), X, target)
    assert check.state == state and "the whole batch moved" in check.sentence
    assert check.sentence.startswith("Half of the target rows have almost no source row near them: ")
    without = check_moved(SimpleNamespace(), X, target)
    assert without.state == "failed" and "method color can align it" in without.sentence
    still = check_moved(
        SimpleNamespace(alignment_=replace(chosen, name="classes", after=chosen.before)), X, target
    )
    assert still.state == "failed" and "aligning it by 'classes' did not undo that" in still.sentence
    assert "--align clusters" in still.sentence
    fast = check_moved(openset.CoLOR(effort="fast"), X, target)
    assert fast.state == "failed" and "--align classes" in fast.sentence


def test_in_a_batch_that_moved_other_ranges_are_part_of_the_move():
    X, y = rows()
    target = rows(1)[0] + 30
    checks = gate(X, y, target)
    assert checks[0].name == "moved batch" and [name for name, _ in failed(checks)] == ["moved batch"]
    (columns,) = (check for check in checks if check.name == "separating column")
    assert columns.state == "caution" and columns.sentence == (
        "Columns 'a', 'b', 'c', 'd' each separate source and target: part of the move."
    )
    target[:, 2] = 1000 + np.arange(400)
    X[:, 2] = np.arange(400)
    assert "'c'" in " ".join(sentence for _, sentence in failed(gate(X, y, target))), (
        "a counter still explains it"
    )


@pytest.mark.parametrize(
    "change", [lambda r: r + np.array([0, 0, 12, 0]), lambda r: 3 * r + np.array([0, 0, 20, 0])]
)
def test_a_known_class_that_is_elsewhere_as_a_whole_is_named(change):
    X, y = rows()
    target, truth = rows(1)
    called = truth == "dog"
    target[called] = change(target[called])
    (check,) = check_displaced(X, y, target, np.where(called, "dog", "cat"), called, called - 1)
    assert check.state == "failed" and "known class 'dog'" in check.sentence


def test_a_new_class_is_no_displaced_one_while_all_known_classes_are_there():
    """A new class may have the very shape of a known one."""
    X, y = rows()
    target, truth = rows(1, new=40)
    called = np.arange(400) >= 360
    (check,) = check_displaced(X, y, target, truth, called, called - 1)
    assert check.state == "passed"


def test_a_new_class_of_another_shape_is_no_displaced_one_though_a_class_is_gone():
    X, y = rows()
    random = np.random.default_rng(3)
    angle = random.random(100) * 2 * np.pi
    ring = np.column_stack([np.cos(angle), np.sin(angle), 0 * angle, 0 * angle]) * 3
    target = np.concatenate([X[y == "cat"][:200] + 0.01, ring + np.array([0, 0, 15, 0])])
    called = np.arange(300) >= 200
    (check,) = check_displaced(X, y, target, np.full(300, "cat"), called, called - 1)
    assert check.state == "passed"


def test_each_group_of_rows_called_new_is_compared_for_itself():
    """A displaced class beside a new one of another shape: one group is named, by its number and its class."""
    X, y = rows()
    random = np.random.default_rng(3)
    angle = random.random(60) * 2 * np.pi
    ring = np.column_stack([np.cos(angle), np.sin(angle), 0 * angle, 0 * angle]) * 3 + 15
    dogs = rows(1)[0][rows(1)[1] == "dog"][:80] + np.array([0, 0, 12, 0])
    target = np.concatenate([rows(2)[0][rows(2)[1] == "cat"], ring, dogs])
    groups = np.repeat([-1, 0, 1], [200, 60, 80])
    called = groups >= 0
    (check,) = check_displaced(X, y, target, np.full(340, "cat"), called, groups)
    assert check.state == "failed"
    assert check.sentence.startswith("Group 2 (80 rows called new) looks like known class 'dog' after one shift")


def test_of_classes_of_one_shape_the_one_with_the_share_of_the_group_comes_first():
    random = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], [60, 180, 360])
    X = random.normal(size=(600, 4)) + 8 * np.eye(3, 4)[np.repeat([0, 1, 2], [60, 180, 360])]
    target = np.concatenate([random.normal(size=(350, 4)) + 8 * np.eye(4)[2], random.normal(size=(150, 4)) - 30])
    called = np.arange(500) >= 350
    (check,) = check_displaced(X, y, target, np.full(500, "c"), called, called - 1)
    assert "look like known class 'b' or 'a' after" in check.sentence and "one of them may have" in check.sentence


def test_one_factor_for_all_columns_and_not_one_for_each():
    """A flat disc is no ball: a factor for each column would make it one."""
    X, y = rows()
    flat = np.random.default_rng(3).normal(size=(100, 4)) * [6, 6, 0.05, 0.05] + np.array([0, 0, 20, 20])
    target = np.concatenate([rows(1)[0][rows(1)[1] == "cat"], flat])
    called = np.arange(300) >= 200
    (check,) = check_displaced(X, y, target, np.full(300, "cat"), called, called - 1)
    assert check.state == "passed"


def test_without_a_rest_no_class_is_said_to_be_gone_from_it():
    X, y = rows()
    target = rows(1)[0] + np.array([0, 0, 60, 0])
    checks = gate(X, y, target, called=np.arange(400) >= 100)
    assert "displaced class" not in {check.name for check in checks}
    assert "share called new" in [name for name, _ in failed(checks)]


def test_rows_that_are_no_table_and_no_vectors():
    X, y = rows()
    target, _ = rows(1)
    assert "separating column" not in {check.name for check in gate(X, y, target + 1000, names=None)}
    images = gate(X.reshape(-1, 4, 1, 1), y, target.reshape(-1, 4, 1, 1))
    assert {check.name for check in images} == {"rows of a class", "share called new"}


def test_a_class_with_two_kinds_is_displaced_though_it_is_two_groups():
    X, y = rows()
    X[::4] += np.array([0, 6, 0, 0])  # half of the cats
    target, truth = rows(1)
    target[::4] += np.array([0, 6, 0, 0])
    called = truth == "cat"
    target[called] += np.array([0, 0, 0, 40])
    groups = np.where(called, np.arange(400) % 4 // 2, -1)
    (check,) = check_displaced(X, y, target, np.full(400, "dog"), called, groups)
    assert check.state == "failed"
    assert check.sentence.startswith("The 200 rows called new look like known class 'cat'")
