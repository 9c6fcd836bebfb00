"""Columns that separate the domains, told by the names and levels of the data, with options that can be typed."""

from __future__ import annotations

import numpy as np

from openset.pipeline.check_columns import NamedColumns, check_columns


def failed(checks):
    return [(check.name, check.sentence) for check in checks if check.state == "failed"]


def test_many_columns_are_counted():
    X, target = np.zeros((50, 9)), np.ones((50, 9))
    found = failed(check_columns(NamedColumns(X, target, [f"x{k}" for k in range(9)])))
    assert len(found) == 6 and "So do 4 more: 'x5', 'x6', 'x7', 'x8'." in found[-1][1]


def test_a_category_is_told_by_its_own_name_and_level_once():
    """Features have names that no option takes: what to type is the column's name, quoted for a shell."""
    yes = np.eye(2)[np.zeros(60, int)]
    names = ["in use=yes", "in use=(other)"]
    ((_, sentence),) = failed(check_columns(NamedColumns(yes, yes[:, ::-1], names, ["in use"] * 2)))
    assert (
        sentence == "'in use' is yes in every source row and in no target row: leave it out with --drop 'in use'."
    )
    other = NamedColumns(yes[:, 1:], yes[:, :1], names[1:], ["in use"])
    assert failed(check_columns(other))[0][1].startswith(
        "'in use' is a level that source lacks in no source row and in every target row: "
    )
    rare = yes[:, :1].copy()
    rare[0] = 0
    ((_, sentence),) = failed(check_columns(NamedColumns(rare, yes[:, 1:], ["flag=on and off"], ["flag"])))
    assert "'flag' is 'on and off' in 98 % of the source rows and in no target row" in sentence
    gaps = NamedColumns(yes[:, :1], yes[:, 1:], ["size is missing"], ["size"])
    assert "'size' is missing in every source row and in no target row" in failed(check_columns(gaps))[0][1]
    days = NamedColumns(np.arange(60.0)[:, None], 60 + np.arange(60.0)[:, None], ["day elapsed days"], ["day"])
    ((_, sentence),) = failed(check_columns(days))
    assert "(elapsed days: 0 to 59 in source" in sentence and "--id day if" in sentence
    hashed = NamedColumns(yes[:, :1], yes[:, 1:], ["town#3"], ["town"])
    assert "by its levels: leave it out with --drop town." in failed(check_columns(hashed))[0][1]


def test_a_name_with_a_space_is_quoted():
    numbers = np.arange(120.0)[:, None]
    ((_, sentence),) = failed(check_columns(NamedColumns(numbers[:60], numbers[60:], ["Ticket no"])))
    assert "--id 'Ticket no' if" in sentence and "else --drop 'Ticket no'." in sentence
