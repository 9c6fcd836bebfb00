from __future__ import annotations

import numpy as np
import pandas as pd

import openset
from openset.pipeline.export import export_run


def test_a_table_with_dates_has_features_as_its_input_and_says_why(tmp_path):
    random = np.random.default_rng(0)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 300, 200), unit="D")
    source = pd.DataFrame({"size": random.normal(size=200), "when": days, "kind": ["a", "b"] * 100})
    target = source.drop(columns="kind").sample(frac=1, random_state=0)
    options = {"label": "kind", "method": "dd", "parameters": {"hidden": 8, "max_steps": 50}}
    openset.run(source, target, **options).save(tmp_path / "run")
    exported = export_run(tmp_path / "run", tmp_path / "m.onnx")
    assert exported.inputs == ["x"] and exported.features[:2] == ["size", "when month"]
    assert exported.sentence.endswith(
        "It is not made of columns, as column 'when' is a date, which ONNX cannot read."
    )
    assert exported.to_dict()["method"] == "DomainDiscriminator"


def test_plain_numbers_have_one_input_of_their_columns(tmp_path):
    random = np.random.default_rng(0)
    source = pd.DataFrame(random.normal(size=(200, 3)), columns=["a", "b", "c"]).assign(kind=["a", "b"] * 100)
    target = source.drop(columns="kind") + 0.1
    options = {"label": "kind", "method": "dd", "parameters": {"hidden": 8, "max_steps": 50}}
    openset.run(source, target, **options).save(tmp_path / "run")
    exported = export_run(tmp_path / "run", tmp_path / "m.onnx")
    assert exported.inputs == ["x"] and exported.sentence == "Its input x is made of: a, b, c"
