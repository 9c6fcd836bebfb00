"""Our max-margin solver against general ones, as ratios of times measured in one run.

    python benchmarks/max_margin.py            # d = 3000, N = 2000, a minute
    python benchmarks/max_margin.py --scale 4  # a quarter of both, seconds

Every solver gets the formulation that suits it: quadratic programs the dual on the Gram matrix, LinearSVC and
NNLS the rows. The first ratio does not count the computation of the Gram matrix, the second ("from the rows on")
counts it for all that need it. For cvxpy the times are those of its solvers, without cvxpy's compilation. All use
one BLAS thread. "KKT" is the worst entry of our certificate, computed from each solver's own multipliers
(LinearSVC has none: its row has the distance of its weights from ours instead).
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from scipy.optimize import nnls
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from openset.theory import LinearGaussianProblem, max_margin
from openset.theory.certificate import certify

TOLERANCE = 1e-8


def best_of(work, repeats=3):
    """The result, and the shortest of a few times."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return result, min(times)


def by_cvxpy(gram, bound, solver, **options):
    """Multipliers and solve time of a dual solved through cvxpy."""
    import cvxpy

    x = cvxpy.Variable(len(bound), nonneg=True)
    objective = cvxpy.Minimize(0.5 * cvxpy.quad_form(x, cvxpy.psd_wrap(gram)) - bound @ x)
    program = cvxpy.Problem(objective)
    program.solve(solver, **options)
    return np.maximum(x.value, 0.0), program.solver_stats.solve_time


def by_nnls(rows, bound):
    """Lawson and Hanson's least-distance reduction with scipy's NNLS."""
    stacked = np.vstack([rows.T, bound])
    wanted = np.append(np.zeros(rows.shape[1]), 1.0)
    start = time.perf_counter()
    x, _ = nnls(stacked, wanted, maxiter=20 * len(bound))
    seconds = time.perf_counter() - start
    return x / (1 - bound @ x), seconds


def by_linear_svc(rows, sign):
    """Hinge loss with a large C: its weights, because it stores no multipliers."""
    model = LinearSVC(loss="hinge", fit_intercept=False, dual=True, C=1e6, tol=TOLERANCE, max_iter=100_000)
    start = time.perf_counter()
    model.fit(rows * sign[:, None], sign)
    return model.coef_[0], time.perf_counter() - start


def by_coordinate_descent(gram, bound):
    """Compiled dual coordinate descent with shrinking, the alternative to block pivoting."""
    import numba

    @numba.njit
    def descend(K, b, tolerance):
        n = len(b)
        x, g, active, m, limit = np.zeros(n), -b.copy(), np.arange(n), n, np.inf
        for _ in range(100_000):
            worst, k = 0.0, 0
            while k < m:
                i = active[k]
                if x[i] == 0 and g[i] > limit:  # shrink
                    m -= 1
                    active[k], active[m] = active[m], active[k]
                    continue
                slope = g[i] if x[i] > 0 else min(g[i], 0.0)
                worst = max(worst, abs(slope))
                step = max(x[i] - g[i] / K[i, i], 0.0) - x[i]
                if step != 0:
                    x[i] += step
                    g += step * K[i]
                k += 1
            limit = worst
            if worst < tolerance:
                if m == n:
                    break
                m, limit = n, np.inf
        return x

    descend(gram[:4, :4].copy(), bound[:4], 1e-3)  # compile outside the clock
    return best_of(lambda: descend(gram, bound, TOLERANCE))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scale", type=int, default=1, help="divide the features and rows by this")
    scale = parser.parse_args().scale
    problem = LinearGaussianProblem(
        d=3000 // scale, r_mu=0.1, r_eta=1.0, alpha=0.15, n_source=1600 // scale, n_target=400 // scale
    )
    sample = problem.sample(0)
    rows = np.vstack([-sample.source, sample.target])
    sign = np.concatenate([-np.ones(problem.n_source), np.ones(problem.n_target)])
    gram, forming = best_of(lambda: rows @ rows.T)
    print(f"d = {problem.d}, N = {problem.n_total}; forming the Gram matrix {forming:.3f} s")
    for name, margin in (("DD", 1.0), ("CoLOR", 0.0)):
        bound = np.where(sign < 0, margin, 1.0)
        ours, seconds = best_of(lambda bound=bound: max_margin(rows, bound, gram=gram))
        _, warm = best_of(lambda b=bound, s=ours.support: max_margin(rows, b, gram=gram, start=s))
        _, free = best_of(lambda b=bound: max_margin(rows, b, gram_limit=0), repeats=1)
        print(f"\n{name}: ours {seconds:.3f} s after the Gram matrix = {seconds / forming:.2f} x its forming,")
        print(f"  KKT {ours.certificate.worst:.0e}, {ours.pivots} pivots, {ours.support.sum()} active rows;")
        print(f"  warm start {warm:.3f} s, matrix-free (no Gram matrix at all) {free:.3f} s")
        rivals = {
            "OSQP (dual)": lambda b=bound: by_cvxpy(
                gram, b, "OSQP", eps_abs=TOLERANCE, eps_rel=TOLERANCE, max_iter=200_000, polishing=True
            ),
            "Clarabel (dual)": lambda b=bound: by_cvxpy(
                gram, b, "CLARABEL", tol_gap_abs=TOLERANCE, tol_gap_rel=TOLERANCE, tol_feas=TOLERANCE
            ),
            "scipy NNLS": lambda b=bound: by_nnls(rows, b),
            "coordinate descent, numba": lambda b=bound: by_coordinate_descent(gram, b),
        }
        for label, work in rivals.items():
            try:
                x, theirs = work()
            except ModuleNotFoundError as error:
                print(f"  {label:<28}skipped: {error.name} is not installed")
                continue
            worst = certify(rows, bound, x).worst
            whole = theirs + (0.0 if label == "scipy NNLS" else forming)  # NNLS works on the rows
            ratios = f"{theirs / seconds:6.1f} x ours, {whole / (forming + seconds):5.1f} x from the rows on"
            print(f"  {label:<27}{theirs:7.3f} s ={ratios}, KKT {worst:.0e}", flush=True)
        if name == "DD":
            w, theirs = by_linear_svc(rows, sign)
            apart = np.linalg.norm(w - ours.weights) / ours.norm
            ratios = f"{theirs / seconds:6.1f} x ours, {theirs / (forming + seconds):5.1f} x from the rows on"
            print(f"  {'LinearSVC (hinge, C = 1e6)':<27}{theirs:7.3f} s ={ratios}, weights {apart:.0e} apart")


if __name__ == "__main__":
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
