"""Every kind of bad input works sensibly or says what was received and what to do."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from scipy import sparse
from sklearn.exceptions import NotFittedError

from openset import CoLOR, DomainDiscriminator, PaperCoLOR, SourceOnly
from openset.errors import FitWarning

QUICK = {"max_steps": 30, "evaluate_every": 10, "random_state": 0, "fpr": 0.2}
EFFORTS = pytest.mark.parametrize("effort", ["fast", pytest.param("full", marks=pytest.mark.slow)])


def fit(X, y, X_target=None, **parameters):
    return CoLOR(**{**QUICK, "effort": "fast", **parameters}).fit(X, y, X_target)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("where", ["X", "X_target"])
def test_missing_and_infinite_values_are_refused(small, bad, where):
    X, target = small.X.copy(), small.X_target.copy()
    (X if where == "X" else target)[3, 2] = bad
    with pytest.raises(ValueError, match=f"Input {where} contains"):
        fit(X, small.y, target)


def test_empty_inputs_are_refused(small):
    with pytest.raises(ValueError, match="0 sample"):
        fit(small.X[:0], small.y[:0], small.X_target)
    with pytest.raises(ValueError, match="X_target is not valid.*0 sample"):
        fit(small.X, small.y, small.X_target[:0])


def test_one_class_needs_a_target(small):
    one = np.full(len(small.X), "only")
    with pytest.raises(ValueError, match=r"one class only \('only'\).*Pass X_target"):
        fit(small.X, one)
    assert set(fit(small.X, one, small.X_target).predict(small.X_test)) <= {"only", "novel"}


@EFFORTS
def test_a_class_with_one_row_is_learned_and_never_kept_from_training(small, effort):
    y = small.y.copy()
    y[0] = 99
    for seed in range(4):
        model = fit(small.X, y, small.X_target, random_state=seed, effort=effort)
        assert 99 in model.classes_


def test_different_widths_and_columns_are_refused(small):
    with pytest.raises(ValueError, match="X has 8 features but X_target has 7"):
        fit(small.X, small.y, small.X_target[:, :7])
    source = pd.DataFrame(small.X, columns=list("abcdefgh"))
    with pytest.raises(ValueError, match="X and X_target have different columns.*z"):
        fit(source, small.y, pd.DataFrame(small.X_target, columns=list("abcdefgz")))
    model = fit(source, small.y, pd.DataFrame(small.X_target, columns=list("abcdefgh")))
    with pytest.raises(ValueError, match="yet now missing"):
        model.predict(pd.DataFrame(small.X_test[:, :5], columns=list("abcde")))
    with pytest.raises(ValueError, match="X has 5 features, but CoLOR is expecting 8"):
        fit(small.X, small.y, small.X_target).predict(small.X_test[:, :5])


def test_columns_that_are_not_numbers_are_named(small):
    frame = pd.DataFrame(small.X, columns=list("abcdefgh")).assign(city="Rome", when="today")
    with pytest.raises(ValueError, match="columns that are not numbers: 'city'.*'when'.*OneHotEncoder"):
        fit(frame, small.y, frame)
    with pytest.raises(ValueError, match="not numbers: 'city'"):
        fit(pl.DataFrame({"a": small.X[:, 0], "city": ["x"] * 300}), small.y)


def test_labels_that_contain_the_novel_label_are_refused_only_with_a_target(small):
    y = small.y - 1  # −1, 0, 1
    with pytest.raises(ValueError, match="y contains the label -1.*novel_label="):
        fit(small.X, y, small.X_target)
    assert set(fit(small.X, y).predict(small.X_test).tolist()) <= {-1, 0, 1}
    assert fit(small.X, y, small.X_target, novel_label=7).novel_label_ == 7


def test_missing_mixed_and_misshapen_labels_are_refused(small):
    names = np.array(["a", "b", "c"], dtype=object)[small.y]
    missing = names.copy()
    missing[5] = None
    with pytest.raises(ValueError, match="1 missing labels"):
        fit(small.X, missing)
    with pytest.raises(ValueError, match="1 missing labels"):
        fit(small.X, pd.Series(missing, dtype="string"))
    mixed = names.copy()
    mixed[5] = 3
    with pytest.raises(ValueError, match="mixes label types"):
        fit(small.X, mixed)
    with pytest.raises(ValueError, match="300 rows but y has 299 labels"):
        fit(small.X, small.y[:-1])
    with pytest.raises(ValueError, match="Unknown label type"):
        fit(small.X, small.X[:, 0])


@EFFORTS
def test_a_target_smaller_than_a_batch_works(small, effort):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        for rows in (1, 2, 7):
            model = fit(small.X, small.y, small.X_target[:rows], effort=effort)
            assert np.isfinite(model.novelty_score(small.X_test)).all()


@pytest.mark.filterwarnings("ignore::openset.errors.FitWarning")
@pytest.mark.parametrize("rows", [3, 5, 6, 7])
def test_a_handful_of_source_rows_works(small, rows):
    model = fit(small.X[:rows], np.arange(rows) % 2, small.X_target, effort="full")
    assert np.isfinite(model.novelty_score(small.X_test)).all()
    assert set(model.predict(small.X_test).tolist()) <= {0, 1, -1}


@EFFORTS
def test_duplicated_rows_and_constant_features_work(small, effort):
    X = np.repeat(small.X[:50], 4, axis=0)
    X[:, 0] = 3.0
    target = np.repeat(small.X_target[:50], 4, axis=0)
    target[:, 0] = 3.0
    for standardize in ("auto", "feature", "global", None):
        model = fit(X, np.repeat(small.y[:50], 4), target, standardize=standardize, effort=effort)
        assert np.isfinite(model.novelty_score(target)).all()
    same = np.ones((40, 2))
    constant = fit(same, np.arange(40) % 2, same, fpr=0.6, effort=effort)
    assert np.isfinite(constant.novelty_score(np.ones((3, 2)))).all()


def test_huge_values_work_scaled_and_are_refused_otherwise(small):
    huge = fit(small.X * 1e30, small.y, small.X_target * 1e30)
    assert np.isfinite(huge.novelty_score(small.X_test * 1e30)).all()
    with pytest.raises(ValueError, match="too large"):
        fit(small.X * 1e300, small.y, small.X_target * 1e300)
    with pytest.raises(ValueError, match="too large for single precision"):
        fit(small.X * 1e60, small.y, small.X_target * 1e60, standardize=None)
    rows = small.X_test.copy()
    rows[3] = 1e200
    model = fit(small.X, small.y, small.X_target)
    with pytest.raises(ValueError, match="row 3 has values too large to score"):
        model.novelty_score(rows)


def test_sparse_input_is_refused_clearly(small):
    with pytest.raises(TypeError, match="[Ss]parse"):
        fit(sparse.csr_matrix(small.X), small.y)


def test_incompatible_scales_are_warned_about(small):
    with pytest.warns(FitWarning, match="incompatible scales.*feature 0.*transform_input"):
        fit(small.X, small.y, small.X_target * 1000)
    columns = list("abcdefgh")
    shifted = pd.DataFrame(small.X_target, columns=columns).assign(b=lambda f: f.b + 500)
    with pytest.warns(FitWarning, match="column 'b'"):
        fit(pd.DataFrame(small.X, columns=columns), small.y, shifted)


SHARED = [
    ("fpr", 0), ("fpr", 1.5), ("fpr", "small"), ("members", 0), ("members", 1.5), ("hidden", -3),
    ("learning_rate", 0), ("l2", -1), ("clip", 0), ("batch_size", 0), ("batch_size", True), ("max_steps", 0),
    ("evaluate_every", 2.5), ("validation_fraction", 0), ("validation_fraction", 1), ("standardize", "maybe"),
    ("grid", ()), ("grid", (0.1, 2)), ("grid", "low"), ("device", 3), ("backbone", 5),
]  # fmt: skip
OWN = {
    CoLOR: [
        ("effort", "best"), ("groups", ()), ("groups", [(0.1, 1.0)]), ("groups", [(0.1, 0.2, 0)]),
        ("align", "class"), ("align", None),
    ],
    PaperCoLOR: [
        ("members", "auto"), ("dropout", 1.0), ("optimizer", "adagrad"), ("momentum", 1), ("tol", -1),
        ("dual_optimizer", None), ("dual_learning_rate", -0.1), ("class_loss_weight", float("nan")),
        ("logit_multiplier", 0), ("joint", "yes"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("method", "name", "value"), [(method, *bad) for method, own in OWN.items() for bad in (*SHARED, *own)]
)
def test_wrong_parameters_are_named(small, method, name, value):
    with pytest.raises(ValueError, match=name):
        method(**{**QUICK, name: value}).fit(small.X, small.y, small.X_target)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_known", "novelty_score"])
def test_predicting_before_fitting_is_refused(small, method):
    with pytest.raises(NotFittedError):
        getattr(CoLOR(), method)(small.X)


def test_saving_before_fitting_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        CoLOR().save(tmp_path / "model")


@pytest.mark.filterwarnings("ignore::openset.errors.FitWarning")
def test_every_kind_of_table_gives_the_same_model(small):
    columns = [f"f{i}" for i in range(8)]
    expected = fit(small.X, small.y, small.X_target).novelty_score(small.X_test)

    def as_polars(x):
        return pl.DataFrame(x, schema=columns)

    kinds = {
        "pandas": lambda x: pd.DataFrame(x, columns=columns),
        "polars": as_polars,
        "pyarrow": lambda x: pa.table(dict(zip(columns, x.T, strict=True))),
        "torch": torch.from_numpy,
        "list": lambda x: x.tolist(),
    }
    for name, convert in kinds.items():
        model = fit(convert(small.X), small.y, convert(small.X_target))
        np.testing.assert_array_equal(model.novelty_score(convert(small.X_test)), expected, err_msg=name)
        if name in ("pandas", "polars", "pyarrow"):
            assert model.feature_names_in_.tolist() == columns


def test_every_kind_of_labels_works(small):
    names = ["a", "b", "c"]
    plain = [names[i] for i in small.y]
    for y in (
        plain,
        np.array(plain),
        pd.Series(plain),
        pd.Series(plain, dtype="category"),
        pl.Series(plain),
        pa.chunked_array([plain]),
    ):
        model = SourceOnly(**QUICK).fit(small.X, y)
        assert model.classes_.tolist() == names
        assert set(model.predict(small.X_test).tolist()) <= set(names)
    assert SourceOnly(**QUICK).fit(small.X, torch.from_numpy(small.y)).classes_.tolist() == [0, 1, 2]


def test_too_few_source_rows_for_the_level_are_warned_about(small):
    with pytest.warns(FitWarning, match=r"fpr=0\.001 cannot be promised from \d+ source validation rows"):
        DomainDiscriminator(**{**QUICK, "fpr": 0.001}).fit(small.X, small.y, small.X_target)
