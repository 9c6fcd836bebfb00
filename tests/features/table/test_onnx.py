from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import openset
from openset.features.table.fitted import FittedTable, TableColumn
from openset.features.table.onnx import inputs_of, why_not
from openset.pipeline.export import export_run

ort = pytest.importorskip("onnxruntime")


def table(n, seed):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": random.normal(size=n),
            "income": np.exp(random.normal(7, 2, n)),
            "town": random.choice(["Ulm", "Bonn", "Köln, Süd"], n),
            "paid": random.random(n) < 0.4,
        }
    ).astype({"paid": object})
    gone = random.random(frame.shape) < 0.2
    return frame.mask(gone), random.choice(["cat", "dog"], n)


def test_the_graph_takes_columns_as_they_are_and_gives_the_same_scores(tmp_path):
    (source, y), (target, _) = table(200, 0), table(120, 1)
    target.loc[5, "town"] = "Rome"
    result = openset.run(
        source.assign(kind=y), target, label="kind", method="dd", parameters={"hidden": 16, "max_steps": 150}
    )
    result.save(tmp_path / "run")
    exported = export_run(tmp_path / "run", tmp_path / "m.onnx")
    assert exported.inputs == ["size", "income", "town", "paid"] and "columns size, income" in exported.sentence
    session = ort.InferenceSession(tmp_path / "m.onnx")
    feed = {name: target[name].to_numpy(dtype=np.float64) for name in ("size", "income", "paid")}
    feed["town"] = target["town"].fillna("").to_numpy(dtype=object)
    scores, probabilities, _ = session.run(None, feed)
    np.testing.assert_allclose(scores, result.scored.novelty_score, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(probabilities, result.scored.probabilities, atol=1e-6)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (TableColumn("when", "date", fill=0.0, parts=["month"]), "'when' is a date, which ONNX cannot read"),
        (
            TableColumn("shop", "category", fill="a", levels=["a"] * 150, buckets=32),
            "'shop' has 150 hashed levels",
        ),
    ],
)
def test_what_a_graph_cannot_do_is_told(column, words):
    number = TableColumn("x", "number", fill=0.0)
    assert words in why_not(FittedTable([number, column]))
    assert why_not(FittedTable([number])) == "" and not inputs_of(FittedTable([number]))[0].is_text
