from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.theory.certificate import Certificate, certify, prove_infeasible

ROWS = np.array([[2.0, 0.0], [0.0, 1.0]])


def test_an_optimal_pair_has_a_certificate_of_zero():
    # w = (1/2, 1): both constraints are active, so λ = (1/4, 1)
    certificate = certify(ROWS, np.ones(2), np.array([0.25, 1.0]))
    assert certificate == Certificate(0.0, 0.0, 0.0, 0.0) and certificate.worst == 0


def test_every_entry_by_hand():
    # w = (1, -1): slack (1, -2), ‖w‖² = 2, bᵀλ = -1/2
    certificate = certify(ROWS, np.ones(2), np.array([0.5, -1.0]))
    assert certificate.primal == 2
    assert certificate.dual == 1
    assert certificate.complementarity == 2 / 2
    assert certificate.gap == 2.5 / 1
    assert certificate.worst == 2.5


def test_bounds_above_one_make_the_violation_relative():
    assert certify(ROWS, np.array([10.0, 1.0]), np.zeros(2)).primal == 1


@given(st.floats(0, 3), st.floats(0, 3))
def test_only_the_optimum_has_a_certificate_near_zero(first, second):
    worst = certify(ROWS, np.ones(2), np.array([first, second])).worst
    distance = max(abs(first - 0.25), abs(second - 1))
    assert worst >= 0.4 * min(distance, 0.5)


def test_a_ray_proves_that_rows_contradict_each_other():
    rows, bound = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1.0, 0.5])
    proof = prove_infeasible(rows, bound, np.array([1.0, 1.0]), 1e-8)
    assert proof is not None
    assert proof.multipliers == pytest.approx([2 / 3, 2 / 3]) and bound @ proof.multipliers == pytest.approx(1)
    assert (proof.residual, proof.norm_at_least) == (0, np.inf)


def test_a_ray_that_is_nearly_right_is_refined():
    rows, bound = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1.0, 1.0])
    proof = prove_infeasible(rows, bound, np.array([1.0, 1.0005]), 1e-8)
    assert proof is not None and proof.residual <= 1e-8
    assert proof.multipliers == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize(
    "ray",
    [
        [1.0, 0.5],  # too far from a contradiction to be refined
        [0.0, 0.0],
    ],
)
def test_no_proof_from_a_wrong_ray(ray):
    rows, bound = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1.0, 1.0])
    assert prove_infeasible(rows, bound, np.array(ray), 1e-8) is None


def test_no_proof_for_a_feasible_program():
    assert prove_infeasible(ROWS, np.ones(2), np.array([1.0, 1.0]), 1e-8) is None
