from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from openset._utils.typed import read_as
from openset.features import TableFeatures
from openset.features.table.apply import scaled, values_of
from openset.features.table.fitted import FittedTable


@parametrize_with_checks([TableFeatures()])
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def messy(n=60, seed=0):
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "size": np.where(random.random(n) < 0.2, np.nan, random.normal(50, 9, n)),
            "income": np.exp(random.normal(8, 2, n)),
            "town": random.choice(["Ulm", "Bonn", "Kiel"], n),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 300, n), unit="D"),
            "paid": random.random(n) < 0.4,
        }
    )


def test_the_stored_state_makes_the_same_features():
    table = messy()
    made = TableFeatures().fit(table)
    stored = read_as(FittedTable, json.loads(json.dumps(asdict(made.fitted_))), "features.json")
    cells = made._table(table, first=False)
    np.testing.assert_array_equal(made.transform(table), scaled(stored, values_of(stored, cells).values))


def test_order_of_columns_and_further_columns_do_not_matter():
    table = messy()
    made = TableFeatures().fit(table)
    other = table[table.columns[::-1]].assign(more="x")
    np.testing.assert_array_equal(made.transform(table), made.transform(other))
    with pytest.raises(ValueError, match="column 'town' is missing; the run was fitted with it"):
        made.transform(table.drop(columns="town"))


def test_it_stands_in_a_pipeline_and_keeps_every_row():
    table = messy(200)
    y = (table["town"] == "Ulm").to_numpy()
    model = make_pipeline(TableFeatures(), LogisticRegression()).fit(table, y)
    assert model.score(table, y) == 1.0
    assert model[0].transform(messy(17, seed=1)).shape == (17, len(model[0].get_feature_names_out()))


def test_a_kind_that_was_set_and_one_that_cannot_be():
    table = pd.DataFrame({"zip": [10115, 53111, 10115, 89073] * 5, "x": np.arange(20.0)})
    names = TableFeatures({"zip": "category"}).fit(table).get_feature_names_out().tolist()
    assert names == ["zip=10115", "zip=53111", "zip=89073", "zip=(other)", "x"]
    with pytest.raises(ValueError, match="column 'town' cannot be a number: most of its values are no numbers"):
        TableFeatures({"town": "number"}).fit(messy())


def test_a_column_that_became_another_kind():
    made = TableFeatures().fit(messy())
    with pytest.raises(ValueError, match="'size' holds numbers in the fit, and now categories, such as 'big'"):
        made.transform(messy().assign(size=["big", "small"] * 30))
    some = messy().assign(size=["7.5"] * 50 + ["?"] * 10)
    assert np.isfinite(made.transform(some)).all()
    assert made.notes(some) == ["10 values of column 'size' cannot be read as in source: taken as missing."]
