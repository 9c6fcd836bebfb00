from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import nnls

from openset.theory import (
    LinearGaussianProblem,
    NotSolvedError,
    max_margin,
    max_margin_color,
    max_margin_dd,
)

TOLERANCE = 1e-8


def check_proof(rows, bound, result):
    """Recompute the proof that comes with a result, from its definition."""
    if result.feasible:
        w, multipliers = result.weights, result.multipliers
        assert (multipliers >= 0).all()
        np.testing.assert_allclose(multipliers @ rows, w, atol=1e-12 * (1 + np.abs(w).max()))
        assert (rows @ w - bound).min() >= -TOLERANCE * max(1, np.abs(bound).max())
        assert w @ w - bound @ multipliers <= TOLERANCE * (w @ w) / 2 + 1e-300
        assert result.certificate.worst <= TOLERANCE
    else:
        proof = result.infeasibility
        assert (proof.multipliers >= 0).all()
        assert bound @ proof.multipliers == pytest.approx(1)
        weight = proof.multipliers @ np.linalg.norm(rows, axis=1)
        assert np.linalg.norm(proof.multipliers @ rows) <= TOLERANCE * weight
        assert np.isnan(result.weights).all()


def random_program(i):
    """Small programs of all kinds: more or fewer rows than features, both signs of bounds, integer rows."""
    rng = np.random.default_rng([7, i])
    n, d = int(rng.integers(1, 15)), int(rng.integers(1, 10))
    rows = rng.standard_normal((n, d)) if i % 2 else rng.integers(-2, 3, (n, d)).astype(float)
    bound = rng.choice([-1.0, 0.0, 1.0, 1.0], n)
    bound[0] = 1.0
    return rows, bound


def test_agrees_with_an_interior_point_solver():
    cvxpy = pytest.importorskip("cvxpy")
    seen = {True: 0, False: 0}
    for i in range(100):
        rows, bound = random_program(i)
        w = cvxpy.Variable(rows.shape[1])
        program = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(w)), [rows @ w >= bound])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # cvxpy's own deprecations
            # 1e-10 makes Clarabel itself give up on a program with a zero row
            program.solve(cvxpy.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
        result = max_margin(rows, bound)
        check_proof(rows, bound, result)
        seen[result.feasible] += 1
        assert result.feasible == (program.status in ("optimal", "optimal_inaccurate"))
        if result.feasible:
            np.testing.assert_allclose(result.weights, w.value, atol=1e-6 * (1 + result.norm))
    assert min(seen.values()) >= 20  # both kinds were met


def test_agrees_with_least_distance_programming():
    """Lawson and Hanson: a least-squares problem over λ ≥ 0 whose residual gives w, or is zero."""
    for i in range(100, 200):
        rows, bound = random_program(i)
        stacked = np.vstack([rows.T, bound])
        _, distance = nnls(stacked, np.append(np.zeros(rows.shape[1]), 1.0))
        result = max_margin(rows, bound)
        assert result.feasible == (distance > 1e-7)
        if result.feasible:
            x, _ = nnls(stacked, np.append(np.zeros(rows.shape[1]), 1.0))
            residual = stacked @ x - np.append(np.zeros(rows.shape[1]), 1.0)
            np.testing.assert_allclose(
                result.weights, -residual[:-1] / residual[-1], atol=1e-6 * (1 + result.norm)
            )


def test_agrees_with_all_supports_tried():
    rng = np.random.default_rng(0)
    for _ in range(20):
        rows = rng.standard_normal((5, 7))
        bound = rng.choice([0.0, 1.0], 5)
        best = np.inf
        for support in itertools.product([False, True], repeat=5):
            free = np.flatnonzero(support)
            w = np.linalg.pinv(rows[free]) @ bound[free] if len(free) else np.zeros(7)
            if (rows @ w >= bound - 1e-9).all():
                best = min(best, float(w @ w))
        assert max_margin(rows, bound).norm ** 2 == pytest.approx(best, abs=1e-9)


small = st.integers(-3, 3).map(float)


@st.composite
def degenerate_programs(draw):
    """Rows with repeats, zeros and opposite copies, by construction."""
    d = draw(st.integers(1, 4))
    base = draw(arrays(float, (draw(st.integers(1, 4)), d), elements=small))
    picked = draw(st.lists(st.integers(0, len(base) - 1), min_size=1, max_size=8))
    factor = draw(arrays(float, len(picked), elements=st.sampled_from([1.0, 1.0, 2.0, -1.0, 0.0])))
    bound = draw(arrays(float, len(picked), elements=st.sampled_from([-1.0, 0.0, 1.0])))
    return base[picked] * factor[:, None], bound


@settings(max_examples=300, deadline=None)
@given(degenerate_programs(), st.sampled_from([20_000, 0]))
def test_degenerate_programs_come_with_a_proof(program, gram_limit):
    rows, bound = program
    check_proof(rows, bound, max_margin(rows, bound, gram_limit=gram_limit))


@settings(max_examples=60, deadline=None)
@given(degenerate_programs(), st.sampled_from([1e-3, 1e3]))
def test_scaling_the_rows_scales_the_answer(program, factor):
    rows, bound = program
    first, second = max_margin(rows, bound), max_margin(factor * rows, bound)
    assert first.feasible == second.feasible
    if first.feasible:
        np.testing.assert_allclose(second.weights * factor, first.weights, atol=1e-7 * (1 + first.norm))


def test_one_point():
    result = max_margin([[3.0, 4.0]], [1.0])
    np.testing.assert_allclose(result.weights, [0.12, 0.16], atol=1e-15)
    assert max_margin([[3.0, 4.0]], [-1.0]).norm == 0
    zero = max_margin([[0.0, 0.0]], [1.0])
    assert not zero.feasible
    assert zero.infeasibility.norm_at_least == np.inf


def test_a_row_in_source_and_target_contradicts_itself():
    rows = np.random.default_rng(0).standard_normal((6, 10))
    result = max_margin_dd(rows[:4], rows[3:])
    assert not result.feasible
    assert np.flatnonzero(result.infeasibility.multipliers > 1e-9).tolist() == [3, 4]
    # and so it does under the constrained rule: w·x ≤ 0 and w·x ≥ 1
    assert not max_margin_color(rows[:4], rows[3:]).feasible


@pytest.fixture(scope="module")
def sample():
    return LinearGaussianProblem(d=300, r_mu=0.1, r_eta=1.0, alpha=0.15, n_source=160, n_target=40).sample(0)


@pytest.mark.parametrize("solver", [max_margin_dd, max_margin_color])
def test_all_ways_lead_to_the_same_weights(solver, sample):
    plain = solver(sample.source, sample.target)
    rows = np.vstack([sample.source, sample.target])
    ways = {
        "free": solver(sample.source, sample.target, gram_limit=0),
        "gram": solver(sample.source, sample.target, gram=rows @ rows.T),
        "warm": solver(sample.source, sample.target, start=plain.support),
        "cold": solver(sample.source, sample.target, start=~plain.support),
        "none": solver(sample.source, sample.target, start=np.zeros(200, bool)),
    }
    for result in ways.values():
        assert result.certificate.worst <= TOLERANCE
        np.testing.assert_allclose(result.weights, plain.weights, atol=1e-9 * plain.norm)
    assert ways["free"].method == "matrix-free"
    assert ways["warm"].pivots == 1 < ways["cold"].pivots


@pytest.mark.parametrize("gram_limit", [20_000, 0])
def test_many_more_rows_than_features(gram_limit):
    rng = np.random.default_rng(1)
    shift = np.array([3.0, 0, 0, 0, 0])
    source, target = rng.standard_normal((400, 5)) - 2 * shift, rng.standard_normal((200, 5)) + 2 * shift
    result = max_margin_dd(source, target, gram_limit=gram_limit)
    check_proof(np.vstack([-source, target]), np.ones(600), result)
    assert result.feasible
    assert result.method.startswith("working set" if gram_limit == 0 else "gram")
    np.testing.assert_allclose(result.weights, max_margin_dd(source, target).weights, atol=1e-8)
    hopeless = max_margin_dd(source + 2 * shift, target - 2 * shift, gram_limit=gram_limit)
    assert not hopeless.feasible
    assert hopeless.infeasibility.residual <= TOLERANCE


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.3, 0.5, 1.5])
@pytest.mark.parametrize("n", [150, 200, 300])
def test_near_the_capacity_of_the_features(shift, n):
    """Around twice as many rows as features, where pivoting alone gets lost among singular blocks."""
    rows = np.random.default_rng(0).standard_normal((n, 100))
    rows[:, 0] += shift
    result = max_margin(rows, np.ones(n))
    check_proof(rows, np.ones(n), result)
    _, distance = nnls(np.vstack([rows.T, np.ones(n)]), np.append(np.zeros(100), 1.0))
    assert result.feasible == (distance > 1e-7)


def test_the_gram_matrix_given_is_left_alone(sample):
    rows = np.vstack([sample.source, sample.target])
    gram = rows @ rows.T
    before = gram.copy()
    max_margin_dd(sample.source, sample.target, gram=gram)
    np.testing.assert_array_equal(gram, before)


@pytest.mark.parametrize(
    ("rows", "bound", "options", "message"),
    [
        ([[1.0]], [1.0, 1.0], {}, "one bound per row"),
        (np.zeros((0, 2)), [], {}, "one bound per row"),
        ([[np.nan]], [1.0], {}, "must be finite"),
        ([[1.0]], [1.0], {"gram": np.ones((2, 2))}, "gram has shape"),
        ([[1.0]], [1.0], {"start": np.ones(2, bool)}, "one flag per row"),
        ([[1.0]], [1.0], {"tolerance": 0.0}, "tolerance=0.0"),
    ],
)
def test_bad_input_is_named(rows, bound, options, message):
    with pytest.raises(ValueError, match=message):
        max_margin(rows, bound, **options)


def test_source_and_target_must_have_the_same_features():
    with pytest.raises(ValueError, match="the same features"):
        max_margin_dd(np.ones((2, 3)), np.ones((2, 4)))


def test_a_tolerance_beyond_rounding_is_refused_not_faked(sample):
    with pytest.raises(NotSolvedError, match="no certificate within"):
        max_margin_dd(sample.source, sample.target, tolerance=1e-18)
