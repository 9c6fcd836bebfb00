"""The score in an ONNX graph against the score in numpy, for the parts and for whole models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnxruntime
import pytest

from align_problems import make_classes
from onnx_graphs import evaluated
from openset import CoLOR
from openset.align import choose_alignment
from openset.methods._distances import COMPONENTS, Space, Views
from openset.methods._voices import Trust, fit_voices
from openset.methods._voices_onnx import OnnxViews, _kth, _nearest, _ranked, voice_score
from openset.stats.scaling import fit_scaling, moments, scale_in_double, unscaled
from openset.stats.tail_ranks import fit_tail_rank

RANDOM = np.random.default_rng(0)
WIDE = max(COMPONENTS) + 5
MOVE = 3.0


def in_single(rows):
    """Rows that single precision holds exactly: a graph takes no others."""
    return rows.astype(np.float32).astype(np.float64)


def problem(n_columns):
    X, y = make_classes(150, n_columns=n_columns)
    target = make_classes(120, n_columns=n_columns, seed=1)[0] + MOVE
    target[:12] = 8 * np.eye(n_columns)[7] + MOVE
    later = make_classes(40, n_columns=n_columns, seed=2)[0] + MOVE
    return in_single(X), y, in_single(target), in_single(later)


@pytest.mark.parametrize("size", [3, 700])
def test_a_tail_rank_in_a_graph(size):
    rank, scores = fit_tail_rank(RANDOM.normal(size=size)), np.linspace(-6, 6, 200)
    np.testing.assert_allclose(evaluated(lambda x: _ranked(rank, x), x=scores), rank.apply(scores), rtol=1e-12)


@pytest.mark.parametrize(("offset", "k"), [(0.0, 5), (1e4, 5), (0.0, 30)])
def test_nearest_rows_in_a_graph(offset, k):
    references, rows = (RANDOM.normal(size=(n, 4)) + offset for n in (30, 20))
    references = references.astype(np.float32)
    gaps = np.linalg.norm(rows[:, None] - references.astype(np.float64), axis=2)
    distances = evaluated(lambda x: _nearest(x, references, k)[0], x=rows)
    np.testing.assert_allclose(distances, np.sort(gaps, axis=1)[:, :k], rtol=1e-9)
    indices = evaluated(lambda x: _nearest(x, references, k)[1], x=rows)
    np.testing.assert_array_equal(indices, np.argsort(gaps, axis=1)[:, :k])
    np.testing.assert_allclose(evaluated(lambda x: _kth(x, references), x=rows), np.sort(gaps, axis=1)[:, 4])


def test_fewer_references_than_neighbours_give_the_farthest():
    references, rows = np.float32([[0.0], [2.0]]), np.array([[1.0], [5.0]])
    np.testing.assert_allclose(evaluated(lambda x: _kth(x, references), x=rows), [1, 5])


@pytest.mark.parametrize("takes_aligned", [False, True])
@pytest.mark.parametrize("limit", [np.inf, 0.7])
@pytest.mark.parametrize("axes", [None, RANDOM.normal(size=(6, 2))])
def test_a_space_in_a_graph(takes_aligned, limit, axes):
    X, y, target, later = problem(12)
    X, target, later = X[:, :6], target[:, :6], later[:, :6]
    scaling = fit_scaling(moments(X), moments(target), "feature")
    scaled = [scale_in_double(scaling, rows) for rows in (X, target, later)]
    alignment = choose_alignment(scaled[0], y, scaled[1], "classes").alignment
    views = Views(later, unscaled(scaling, alignment.transform_target(scaled[2])))
    space = replace(Space.of(scaling, 6, takes_aligned=takes_aligned), limit=limit, axes=axes)
    found = evaluated(lambda x: OnnxViews(x, alignment).in_space(space), x=later.astype(np.float32))
    np.testing.assert_allclose(found, space.apply(views), rtol=1e-6, atol=1e-6)


@pytest.fixture(scope="module", params=[12, WIDE])
def fitted(request):
    """Voices of an aligned target, and rows of a later batch."""
    X, y, target, later = problem(request.param)
    scaling = fit_scaling(moments(X), moments(target), "auto")
    scaled = [scale_in_double(scaling, rows) for rows in (X, target, later)]
    alignment = choose_alignment(scaled[0], y, scaled[1], "classes").alignment
    aligned = [unscaled(scaling, alignment.transform_target(rows)) for rows in scaled[1:]]
    views, heads = Views(target, aligned[0]), RANDOM.normal(size=len(target))
    voices = fit_voices(Views(X, X), y, views, scaling, heads, np.random.SeedSequence(0), moved=True).voices
    return voices, alignment, Views(later, aligned[1])


@pytest.mark.parametrize(("heads", "distances"), [(1.0, 0.0), (0.0, 1.0), (0.6, 0.4)])
def test_the_score_in_a_graph_is_that_of_numpy_whatever_is_trusted(fitted, heads, distances):
    voices, alignment, later = fitted
    voices = replace(voices, trust=Trust(heads, distances, 0.3, 0.5))
    head_score = np.random.default_rng(1).normal(size=len(later.rows))
    found = evaluated(
        lambda x, head: voice_score(voices, OnnxViews(x, alignment), head),
        x=later.rows.astype(np.float32),
        head=head_score,
    )
    np.testing.assert_allclose(found, voices.score(later, head_score), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("move", "n_columns"), [(0.0, 12), (MOVE, 12), (MOVE, WIDE)], ids=["unmoved", "moved", "moved, components"]
)
@pytest.mark.filterwarnings("ignore::openset.errors.FitWarning")
def test_an_exported_model_scores_later_rows_alike(move, n_columns, tmp_path):
    X, y, target, later = problem(n_columns)
    target, later = in_single(target - MOVE + move), in_single(later - MOVE + move)
    model = CoLOR(max_steps=40, evaluate_every=20, members=2, groups=[(0.3,)], random_state=0, fpr=0.1)
    model.fit(X, y, target).to_onnx(tmp_path / "model.onnx")
    assert (model.alignment_.name != "none") == bool(move)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    for rows in (target, later, later[:1]):
        score, probabilities, label = session.run(None, {"x": rows.astype(np.float32)})
        said = model.predictions(rows)
        for found, expected in ((score, said.novelty_score), (probabilities, said.probabilities)):
            apart = np.abs(found - expected) / (1 + np.abs(expected))
            # ranks rise steeply between close rows: there the last bits of single precision count for more
            assert np.quantile(apart, 0.9) < 1e-5 and apart.max() < 1e-3
        sure = np.abs(said.novelty_score - model.threshold_) > 1e-3  # elsewhere rounding may decide
        np.testing.assert_array_equal(label[sure], said.predicted_index[sure])
