from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.theory._quadratic_program import (
    DenseKernel,
    MatrixFreeKernel,
    SingularError,
    block_pivoting,
    conjugate_gradients,
    least_distance,
    likely_support,
    proximal_point,
)


def program(seed, n, d):
    """Rows of unit length, and right-hand sides of which the first is positive."""
    random = np.random.default_rng(seed)
    rows = random.standard_normal((n, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    b = random.standard_normal(n)
    b[0] = abs(b[0])
    return rows, b


def brute_force(gram, b):
    """The minimiser of ½xᵀKx − bᵀx over x ≥ 0, from all supports."""
    best, found = np.inf, None
    for support in itertools.product([False, True], repeat=len(b)):
        free = np.flatnonzero(support)
        x = np.zeros(len(b))
        if len(free):
            x[free] = np.linalg.solve(gram[np.ix_(free, free)], b[free])
        value = 0.5 * x @ gram @ x - b @ x
        if x.min() >= 0 and value < best:
            best, found = value, x
    return found


@given(st.integers(0, 200), st.integers(1, 6))
def test_block_pivoting_finds_the_minimum_from_any_start(seed, n):
    rows, b = program(seed, n, 8)
    expected = brute_force(rows @ rows.T, b)
    for start in (np.zeros(n, bool), np.ones(n, bool), likely_support(DenseKernel(rows @ rows.T), b)):
        for kernel in (DenseKernel(rows @ rows.T), MatrixFreeKernel(rows)):
            found = block_pivoting(kernel, b, start)
            assert found.solved
            np.testing.assert_allclose(found.x, expected, atol=1e-9)


def test_a_shift_is_added_to_the_diagonal():
    rows, b = program(3, 5, 8)
    shifted = rows @ rows.T + 0.5 * np.eye(5)
    found = block_pivoting(DenseKernel(rows @ rows.T), b, np.ones(5, bool), shift=0.5)
    np.testing.assert_allclose(found.x, brute_force(shifted, b), atol=1e-12)


def test_both_kernels_are_the_same_matrix():
    rows, b = program(0, 6, 9)
    dense, free = DenseKernel(rows @ rows.T), MatrixFreeKernel(rows)
    assert dense.size == free.size == 6
    np.testing.assert_allclose(dense.apply(b), free.apply(b), atol=1e-14)
    index = np.array([1, 3, 4])
    solved = [kernel.solve(index, b[index], 0.1, np.zeros(3)) for kernel in (dense, free)]
    expected = np.linalg.solve((rows @ rows.T)[np.ix_(index, index)] + 0.1 * np.eye(3), b[index])
    np.testing.assert_allclose(solved, [expected] * 2, atol=1e-10)


def test_a_singular_block_is_told():
    rows = np.array([[1.0, 0.0], [1.0, 0.0]])
    index, rhs = np.arange(2), np.array([1.0, 2.0])
    for kernel in (DenseKernel(rows @ rows.T), MatrixFreeKernel(rows)):
        with pytest.raises(SingularError):
            kernel.solve(index, rhs, 0.0, np.zeros(2))


def test_conjugate_gradients_solve_a_badly_scaled_system():
    matrix = np.diag([1e-4, 1.0, 1e4])
    found = conjugate_gradients(lambda v: matrix @ v, np.ones(3), np.zeros(3))
    np.testing.assert_allclose(found, [1e4, 1.0, 1e-4], rtol=1e-8)


def test_too_few_pivots_are_not_called_a_solution():
    rows, b = program(1, 6, 8)
    assert not block_pivoting(DenseKernel(rows @ rows.T), b, np.zeros(6, bool), max_pivots=0).solved


def test_the_proximal_point_converges_where_rows_repeat():
    rows, b = program(2, 4, 6)
    rows, b = np.vstack([rows, rows[:2]]), np.append(b, b[:2])
    kernel = DenseKernel(rows @ rows.T)
    *_, (x, change, _) = proximal_point(kernel, b, np.ones(6, bool))
    w = x @ rows
    alone = brute_force(rows[:4] @ rows[:4].T, b[:4]) @ rows[:4]  # repeated rows change nothing
    np.testing.assert_allclose(w, alone, atol=1e-6)
    assert np.abs(change).max() < 1e-6


def test_the_change_becomes_a_ray_where_there_is_no_minimum():
    rows, b = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.ones(2)
    *_, (_, change, _) = proximal_point(DenseKernel(rows @ rows.T), b, np.ones(2, bool))
    ray = np.maximum(change, 0)
    assert b @ ray > 0 and np.linalg.norm(ray @ rows) <= 1e-9 * ray.sum()


@given(st.integers(0, 200), st.integers(1, 6))
def test_least_distance_agrees_with_pivoting(seed, n):
    rows, b = program(seed, n, 8)
    multipliers, _ = least_distance(rows, b)
    np.testing.assert_allclose(multipliers, brute_force(rows @ rows.T, b), atol=1e-6)


def test_least_distance_returns_a_ray_where_rows_contradict_each_other():
    rows, b = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1.0, 0.5])
    _, ray = least_distance(rows, b)
    assert b @ ray == pytest.approx(1) and np.linalg.norm(ray @ rows) < 1e-9
