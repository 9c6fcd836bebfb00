from __future__ import annotations

import json

import numpy as np
import pytest

from align_problems import make_classes, random_offsets
from openset.align import ALIGNERS, ClassOffsets, Coral, check_align, choose_alignment, find_move, get_aligner
from openset.errors import ParameterError
from openset.persistence.codec import decode, encode

X, Y = make_classes(500)
ROWS, KINDS = make_classes(400, seed=2)
MOVED = ROWS + random_offsets(size=2.5)[KINDS]


def test_an_unmoved_batch_stays_as_it_is():
    chosen = choose_alignment(X, Y, ROWS)
    assert chosen.name == "none" and not chosen.before.is_moved and chosen.after is None
    np.testing.assert_array_equal(chosen.alignment.transform_target(ROWS), ROWS)


def test_a_moved_batch_is_aligned_by_classes():
    chosen = choose_alignment(X, Y, MOVED, seed=1)
    assert chosen.name == "classes" and chosen.before.is_moved and not chosen.after.is_moved
    expected = ClassOffsets(seed=1).fit(X, MOVED, Y).transform_target(MOVED)
    np.testing.assert_array_equal(chosen.alignment.transform_target(MOVED), expected)
    assert chosen.before == find_move(X, MOVED, seed=1)
    assert chosen.after == find_move(X, expected, seed=1)


def test_a_move_that_cannot_be_undone_is_stated():
    """Target rows lie in other directions than source rows: no offset brings them together."""
    rng = np.random.default_rng(0)
    source = np.column_stack([100 * rng.normal(size=(300, 4)), np.zeros((300, 4))])
    target = np.column_stack([np.zeros((300, 4)), 100 * rng.normal(size=(300, 4))])
    chosen = choose_alignment(source, np.arange(300) % 2, target)
    assert chosen.name == "classes" and chosen.after.is_moved


@pytest.mark.parametrize("name", ALIGNERS)
def test_a_name_is_fitted_whether_the_batch_moved_or_not(name):
    chosen = choose_alignment(X, Y, ROWS, align=name)
    assert chosen.name == name == get_aligner(name).name == chosen.alignment.name
    assert (chosen.after is None) == (name == "none")


def test_an_aligner_or_a_fitted_alignment_is_used_as_given():
    aligner = Coral(ridge=0.5)
    fitted = aligner.fit(X, MOVED)
    assert choose_alignment(X, Y, MOVED, align=fitted).alignment is fitted
    again = choose_alignment(X, Y, MOVED, align=aligner).alignment
    np.testing.assert_array_equal(again.matrix, fitted.matrix)


@pytest.mark.parametrize("wrong", [None, True, 3, Coral, object()])
def test_other_values_are_refused(wrong):
    with pytest.raises(ParameterError, match="align=.* is not valid: expected one of 'auto', 'none'"):
        choose_alignment(X, Y, ROWS, align=wrong)


def test_a_wrong_name_is_answered_with_the_right_one():
    with pytest.raises(ParameterError, match="align='class' is not valid.*Did you mean 'classes'?"):
        check_align("class")
    check_align("auto")


@pytest.mark.parametrize("name", ALIGNERS)
def test_an_aligner_can_be_stored_as_the_parameter_of_a_model(name):
    aligner, tensors = get_aligner(name, seed=3), {}
    again = decode(json.loads(json.dumps(encode(aligner, tensors, "align"))), tensors)
    assert again == aligner and type(again) is type(aligner)


def test_what_was_chosen_can_be_stored():
    tensors = {}
    chosen = choose_alignment(X, Y, MOVED)
    again = decode(json.loads(json.dumps(encode(chosen, tensors, "alignment_"))), tensors)
    assert (again.name, again.before, again.after) == (chosen.name, chosen.before, chosen.after)
    expected = chosen.alignment.transform_target(MOVED)
    np.testing.assert_array_equal(again.alignment.transform_target(MOVED), expected)
