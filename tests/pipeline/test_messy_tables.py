"""Tables as people have them, from two files to scores; it is about many modules together."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import openset
from command_line import call
from messy_tables import FRAMES, SUFFIXES, as_frame, messy_columns, write_messy
from openset.data.readers.open import open_source
from openset.data.readers.tables import read_table
from openset.features.table.apply import scaled, values_of
from openset.features.table.fit import fit_table
from openset.stats.metrics import auprc

N, N_TARGET, NEW = 300, 240, 30


def problem():
    """Source with labels, and a target with another order of columns, one more column and one level more."""
    known, labels, _ = messy_columns(N, 1)
    batch, _, is_new = messy_columns(N_TARGET, 2, new=NEW)
    target = {"extra": [i % 7 for i in range(N_TARGET)]} | {name: batch[name] for name in reversed(batch)}
    return known | {"kind": labels}, target, is_new


def run(source, target):
    return openset.run(source, target, label="kind", id="ticket", method="mahalanobis")


@pytest.fixture(scope="module")
def expected():
    source, target, is_new = problem()
    return run(as_frame(source, "pandas"), as_frame(target, "pandas")), is_new


def test_every_row_is_scored_and_each_column_is_told(expected):
    result, is_new = expected
    table = result.to_frame()
    assert len(table) == N_TARGET and table["ticket"].tolist() == [f"T-2-{i:05d}" for i in range(N_TARGET)]
    assert np.isfinite(table["novelty_score"]).all()
    assert sorted(table["rank"]) == list(range(1, N_TARGET + 1))
    order = table.sort_values("rank")["novelty_score"].to_numpy()
    assert (np.diff(order) <= 0).all() and is_new[table["rank"].to_numpy() <= NEW].mean() > 0.6
    kinds = {use.name: use.kind for use in result.summary.data.columns}
    assert kinds == {
        "size": "number", "count": "number", "income": "number", "rate": "number", "paid": "boolean",
        "town": "category", "shop": "category", "when": "date", "day": "date", "wait": "duration",
        "code": "number", "unit": "constant", "remark": "text", "empty": "empty",
    }  # fmt: skip
    became = {use.name: use.became for use in result.summary.data.columns}
    assert became["income"].startswith("its logarithm") and "and a flag" in became["town"]
    assert "levels in 32 hashed columns" in became["shop"] and "--text remark" in became["remark"]
    said = result.summary()
    assert "Column 'town' has levels that source lacks: 'Rome'" in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 80


@pytest.mark.parametrize("library", FRAMES[1:])
def test_frames_give_the_same_answer(expected, library):
    source, target, _ = problem()
    result = run(as_frame(source, library), as_frame(target, library))
    np.testing.assert_array_equal(result.scored.novelty_score, expected[0].scored.novelty_score)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_give_the_same_answer(expected, suffix, tmp_path):
    source, target, _ = problem()
    files = [write_messy(tmp_path / f"{name}.{suffix}", part) for name, part in (("s", source), ("t", target))]
    result = run(*files)
    np.testing.assert_array_equal(result.scored.novelty_score, expected[0].scored.novelty_score)
    assert result.scored.id.tolist() == expected[0].scored.id.tolist()


def test_save_load_and_score_give_the_same_rows(tmp_path):
    source, target, _ = problem()
    files = [write_messy(tmp_path / f"{name}.csv", part) for name, part in (("s", source), ("t", target))]
    result = run(*files)
    result.save(tmp_path / "run")
    again = openset.load_run(tmp_path / "run")
    np.testing.assert_array_equal(again.scored.novelty_score, result.scored.novelty_score)
    later = write_messy(tmp_path / "later.parquet", target)
    answer = openset.score(
        tmp_path / "run", later, tmp_path / "out.parquet", carry=["town", "wait"], batch_rows=37
    )
    table = read_table(tmp_path / "out.parquet", id="ticket", features="novelty_score", cells=["town", "wait"])
    assert answer.rows == N_TARGET and any("'Rome'" in sentence for sentence in answer.cells)
    np.testing.assert_allclose(table.X[:, 0], result.scored.novelty_score, rtol=1e-6)
    towns, levels = table.table["town"].coded()
    found = [levels[code] if code >= 0 else None for code in towns]
    assert found == target["town"] and table.table["wait"].kind == "duration"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.pop("town"), "has no column 'town'"),
        (
            lambda t: t.update(size=["big", "small"] * (N_TARGET // 2)),
            "'size' holds numbers in the fit, and now",
        ),
    ],
)
def test_another_table_at_score_time_is_told(tmp_path, change, words):
    source, target, _ = problem()
    run(as_frame(source, "pandas"), as_frame(target, "pandas")).save(tmp_path / "run")
    change(target)
    path = write_messy(tmp_path / "later.csv", target)
    done = call("score", tmp_path / "run", path, "--out", tmp_path / "out.csv")
    assert done.exit_code == 2 and words in " ".join(done.stderr.split()), done.stderr
    assert not (tmp_path / "out.csv").exists()


@settings(max_examples=8)
@given(
    seed=st.integers(0, 10**6), n=st.integers(25, 60), gaps=st.sampled_from([0.0, 0.2, 0.6]),
    cut=st.integers(1, 24), suffix=st.sampled_from(SUFFIXES),
)  # fmt: skip
def test_features_do_not_depend_on_the_format_or_on_how_rows_are_cut(seed, n, gaps, cut, suffix):
    known, _, _ = messy_columns(n, seed, gaps=gaps)
    batch, _, _ = messy_columns(n, seed + 1, new=3, gaps=gaps)
    frame = read_table(as_frame(known, "polars"), cells=list(known)).table
    fitted = fit_table(frame)
    wanted = scaled(
        fitted, values_of(fitted, read_table(as_frame(batch, "pandas"), cells=list(batch)).table).values
    )
    with tempfile.TemporaryDirectory() as folder:
        source = open_source(write_messy(Path(folder) / f"t.{suffix}", batch))
        assert (
            fit_table(read_table(write_messy(Path(folder) / f"s.{suffix}", known), cells=list(known)).table)
            == fitted
        )
        from openset.data.readers.tables import iter_batches

        parts = [part.table for part in iter_batches(source, cells=list(batch), batch_rows=cut)]
    made = np.concatenate([scaled(fitted, values_of(fitted, part).values) for part in parts])
    assert made.shape == wanted.shape and np.isfinite(made).all()
    np.testing.assert_array_equal(made, wanted)


@pytest.mark.slow
def test_network_traffic_with_its_strings_is_one_command(shared_data, tmp_path):
    """CSV and Parquet give identical scores, and the columns of strings help."""
    pq = pytest.importorskip("pyarrow.parquet")
    train, test = (
        pq.read_table(shared_data / "nsl_kdd" / f"{name}.parquet").to_pandas()
        for name in ("train_20_percent", "test")
    )
    known = train[train.family.isin(["normal", "dos", "probe"])].sample(3000, random_state=10)
    old = test[test.attack.isin(known.attack)].sample(2700, random_state=10)
    truth = pd.concat([old, test[test.family.isin(["r2l", "u2r"])].sample(300, random_state=10)])
    source, target = (
        known.drop(columns=["attack", "difficulty"]),
        truth.drop(columns=["attack", "difficulty", "family"]),
    )
    found = {}
    for suffix in ("csv", "parquet"):
        for name, part in (("source", source), ("target", target)):
            path = tmp_path / f"{name}.{suffix}"
            part.to_csv(path, index=False) if suffix == "csv" else part.to_parquet(path, index=False)
        files = tmp_path / f"source.{suffix}", tmp_path / f"target.{suffix}"
        found[suffix] = openset.run(*files, label="family", method="knn")
    np.testing.assert_array_equal(found["csv"].scored.novelty_score, found["parquet"].scored.novelty_score)
    kinds = {use.name: use.kind for use in found["csv"].summary.data.columns}
    assert [kinds[name] for name in ("protocol_type", "service", "flag")] == ["category"] * 3
    strings = ["protocol_type", "service", "flag"]
    without = openset.run(*files, label="family", method="knn", drop=strings)
    is_new = truth.family.isin(["r2l", "u2r"]).to_numpy()
    with_strings, numbers_alone = (
        auprc(is_new, result.scored.novelty_score) for result in (found["csv"], without)
    )
    assert with_strings > numbers_alone > 0.2
