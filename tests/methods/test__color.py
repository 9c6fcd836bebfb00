from __future__ import annotations

import numpy as np
import pytest

from openset import CoLOR, PaperCoLOR
from openset._utils.arrays import make_records
from openset.learn.ledger import Choice
from openset.methods._color import ColorBase, row_of

TABLE = make_records(
    {"member": np.repeat([0, 1], 4), "step": np.tile([10, 10, 20, 20], 2), "head": np.tile([0, 1], 4)}
)


def test_a_choice_is_found_in_the_table_of_heads():
    for index, row in enumerate(TABLE):
        assert row_of(TABLE, row.member, Choice(row.step, row.head, 0.5)) == index


@pytest.mark.parametrize(("selected", "heads"), [(2, [2, 2, 2]), ([0, 4, 1], [0, 4, 1])])
def test_each_member_is_scored_by_its_own_head_or_all_by_one(selected, heads):
    model = PaperCoLOR()
    model.selected_ = make_records({"head": np.atleast_1d(selected)})
    if np.ndim(selected) == 0:
        model.selected_ = model.selected_[0]
    novelty = np.random.default_rng(0).normal(size=(3, 7, 5))
    found = model._member_scores({"novelty": novelty})
    np.testing.assert_array_equal(found, [novelty[member, :, head] for member, head in enumerate(heads)])


@pytest.mark.parametrize("method", [CoLOR, PaperCoLOR])
def test_both_share_the_parameters_of_the_constrained_heads(method):
    assert issubclass(method, ColorBase)
    assert {"grid", "max_density_ratio", "classifier"} <= set(method._get_param_names())
    for bad, message in [
        ({"grid": (0.1, 1.0)}, "grid entry=1.0"), ({"grid": ()}, "candidate recalls"),
        ({"max_density_ratio": 0.9}, "max_density_ratio=0.9"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            method(**bad)._check_parameters()


@pytest.mark.parametrize(("selected", "marked"), [(5, [5]), ([1, 6], [1, 6])])
def test_head_records_are_plain_and_mark_the_choice(selected, marked):
    model = PaperCoLOR()
    model.heads_, model.selected_, model.n_target_ = TABLE, TABLE[selected], 10
    records = model.head_records()
    assert [index for index, record in enumerate(records) if record["selected"]] == marked
    assert records[5] == {"member": 1, "step": 10, "head": 1, "selected": 5 in marked}
    assert all(type(value) in (int, bool) for record in records for value in record.values())
    model.n_target_ = 0
    assert model.head_records() == []
