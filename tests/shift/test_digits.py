from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from openset.shift.digits import GROUPS, NOVEL_DIGIT, digits_problem, digits_rows

IMAGES, DIGIT = load_digits(return_X_y=True)
DIGIT_OF = {row.tobytes(): digit for row, digit in zip(IMAGES, DIGIT, strict=True)}


def share_in_source(problem):
    """Of every known digit, the share of its images that is in source."""
    counts = {
        name: np.bincount([DIGIT_OF[row.tobytes()] for row in np.concatenate(parts)], minlength=10)
        for name, parts in {"source": [problem.X], "all": [problem.X, problem.X_target, problem.X_test]}.items()
    }
    return counts["source"][:NOVEL_DIGIT] / counts["all"][:NOVEL_DIGIT]


def test_the_problem_is_a_background_shift():
    problem = digits_problem(0)
    assert problem.novel_fraction == pytest.approx(0.08, abs=0.005)
    assert set(problem.y) == {"0–2", "3–5", "6–8"} and len(GROUPS) == 3
    assert set(problem.y_test) == {"0–2", "3–5", "6–8", "novel"}
    rows = [row.tobytes() for part in (problem.X, problem.X_target, problem.X_test) for row in part]
    assert len(set(rows)) == len(rows)  # no image is in two parts


def test_the_sizes_of_the_first_split_stay_as_they_are():
    problem = digits_problem(0)
    assert (len(problem.X), len(problem.X_target), len(problem.X_test)) == (661, 727, 312)


def test_shares_are_the_same_in_every_group():
    shares = share_in_source(digits_problem(3)).reshape(3, 3)
    assert np.ptp(shares, axis=0).max() < 0.01 and np.ptp(shares, axis=1).min() > 0.05
    assert (shares > 0.24).all() and (shares < 0.76).all()


def test_without_shift_every_share_is_one_half():
    assert share_in_source(digits_problem(3, shift=False)) == pytest.approx(0.5, abs=0.01)


def test_a_share_of_the_target_is_for_testing():
    problem = digits_problem(1, test_fraction=0.5)
    assert len(problem.X_test) == pytest.approx(len(problem.X_target), abs=2)
    assert (problem.y_test == "novel").mean() == pytest.approx(0.08, abs=0.005)


def test_the_share_of_nines_can_be_chosen():
    default, none, every = (digits_rows(DIGIT, 2, 0.0, novel_fraction=share) for share in (0.08, 0.0, None))
    assert (DIGIT[default.target] == NOVEL_DIGIT).mean() == pytest.approx(0.08, abs=0.005)
    assert NOVEL_DIGIT not in DIGIT[none.target] and len(none.test) == 0
    assert sorted(np.concatenate([every.source, every.target])) == list(range(len(DIGIT)))
    assert np.array_equal(default.source, none.source) and np.array_equal(default.source, every.source)


def test_the_seed_decides():
    one, same, other = (digits_problem(seed).X for seed in (1, 1, 2))
    assert np.array_equal(one, same) and not np.array_equal(one[:100], other[:100])
