from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from align_problems import make_classes
from onnx_graphs import evaluated
from openset.align import ALIGNERS, Affine, Offsets, get_aligner
from openset.align.base import check_classes, check_rows
from openset.persistence.codec import decode, encode

RNG = np.random.default_rng(0)
FITTED = [
    Affine("none"),
    Affine("standardize", factor=RNG.uniform(0.5, 2, 4), shift=RNG.normal(size=4)),
    Affine("coral", matrix=RNG.normal(size=(4, 4)), shift=RNG.normal(size=4)),
    Offsets("clusters", *(RNG.normal(size=s) for s in (4, (4, 3), 3, (3, 4))), hard=False),
    Offsets("classes", *(RNG.normal(size=s) for s in (4, (4, 3), 3, (3, 4))), hard=True),
    Offsets("classes", np.zeros(4), np.zeros((4, 1)), np.zeros(1), np.ones((1, 4)), hard=True),
]


def test_affine_is_its_formula():
    rows = RNG.normal(size=(5, 4))
    matrix, factor, shift = RNG.normal(size=(4, 4)), RNG.normal(size=4), RNG.normal(size=4)
    moved = Affine("a", matrix, factor, shift).transform_target(rows)
    np.testing.assert_allclose(moved, rows @ matrix @ np.diag(factor) + shift)
    np.testing.assert_array_equal(Affine("none").transform_target(rows), rows)


def test_offsets_are_their_formula():
    rows = RNG.normal(size=(7, 4))
    soft, hard = FITTED[3], FITTED[4]
    logits = (rows - soft.centre) @ soft.weights + soft.intercept
    gate = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(soft.transform_target(rows), rows + gate @ soft.offsets)
    chosen = ((rows - hard.centre) @ hard.weights + hard.intercept).argmax(axis=1)
    np.testing.assert_allclose(hard.transform_target(rows), rows + hard.offsets[chosen])
    assert hard.gate(rows).sum(axis=1).tolist() == [1] * 7


@pytest.mark.parametrize("fitted", FITTED)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_graph_computes_the_same_in_the_precision_of_its_input(fitted, dtype):
    rows = RNG.normal(size=(50, 4)).astype(dtype)
    found = evaluated(lambda x: fitted.onnx(x), x=rows)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, fitted.transform_target(rows), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ALIGNERS)
def test_what_is_fitted_computes_the_same_as_a_graph_and_after_storing(name):
    X, y = make_classes(300)
    X_target = make_classes(200, seed=1)[0] + 3
    fitted = get_aligner(name).fit(X, X_target, y)
    expected = fitted.transform_target(X_target)
    rows = X_target.astype(np.float32)
    found = evaluated(lambda x: fitted.onnx(x), x=rows)
    np.testing.assert_allclose(found, fitted.transform_target(rows), rtol=1e-5, atol=1e-5)
    tensors = {}
    again = decode(json.loads(json.dumps(encode(fitted, tensors, "v"))), tensors)
    assert type(again) is type(fitted) and again.name == name
    np.testing.assert_array_equal(again.transform_target(X_target), expected)


@given(
    st.integers(0, 9), st.sampled_from([np.float16, np.float32, np.float64, np.int64]), st.sampled_from(FITTED)
)
def test_any_number_of_rows_of_any_number_type(n, dtype, fitted):
    rows = np.arange(4 * n).reshape(n, 4).astype(dtype)
    before = rows.copy()
    moved = fitted.transform_target(rows)
    assert moved.shape == (n, 4) and moved.dtype == np.float64
    np.testing.assert_array_equal(rows, before)
    for i in range(n):  # a row does not depend on the rows around it
        np.testing.assert_allclose(fitted.transform_target(rows[i : i + 1]), moved[i : i + 1], atol=1e-9)


def test_wrong_rows_are_refused():
    rows = np.zeros((3, 4))
    for fitted in FITTED[1:]:
        with pytest.raises(ValueError, match="rows have 5 columns, the alignment was fitted on 4"):
            fitted.transform_target(np.zeros((3, 5)))
    for X, X_target, message in (
        (rows[0], rows, "X must have rows and columns"),
        (rows, rows[:, :0], "X_target must have rows and columns"),
        (rows, rows[:, :3], "X has 4 columns and X_target has 3"),
        (rows, rows[:1], "X_target has 1 rows: an alignment needs at least 2"),
        (rows + np.nan, rows, "X contains NaN or infinity"),
        (rows, rows + np.inf, "X_target contains NaN or infinity"),
    ):
        with pytest.raises(ValueError, match=message):
            check_rows(X, X_target)


def test_labels_become_codes():
    assert check_classes(["b", "a", "b"], 3).tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match="needs y"):
        check_classes(None, 3)
    with pytest.raises(ValueError, match="y has 2 labels for 3 source rows"):
        check_classes([0, 1], 3)


def test_fitting_and_moving_rows_imports_no_torch():
    code = """
import sys
import numpy as np
from openset.align import choose_alignment
rows = np.random.default_rng(0).normal(size=(90, 3))
for align, name in (("auto", "classes"), ("clusters", "clusters"), ("coral", "coral")):
    assert choose_alignment(rows, np.arange(90) % 2, rows + 50, align=align).name == name
assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
