"""``read_table`` and ``iter_batches``: which columns are read, and one clear error for each bad row."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from table_files import as_arrow, check_bad_rows, jsonl, write_table

from openset.data import iter_batches, read_table


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl", "feather"])
def test_duplicated_ids(tmp_path, suffix):
    for ids in ([5, 6, 5, 7, 6], ["p", "q", "p", "r", "q"]):
        path = write_table(tmp_path / f"t.{suffix}", {"x": [1.0] * 5, "k": ids})
        check_bad_rows(path, rf"row 2: id {ids[0]} in column 'k' came before; row 4", [0, 1, 3], [2, 4], id="k")


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl", "stored.npz"])
def test_missing_columns_suggest_the_closest(tmp_path, suffix):
    path = write_table(tmp_path / f"t.{suffix}", {"label": [0, 1], "value": [1.5, 2.5]})
    with pytest.raises(ValueError, match="has no column 'lable'; it has label, value. Did you mean 'label'?"):
        read_table(path, label="lable")
    with pytest.raises(ValueError, match="has no column 'embedding'"):
        iter_batches(path, features="embedding")  # at once, not at the first batch
    with pytest.raises(ValueError, match="features names no column"):
        read_table(path, features=[])


def test_numbers_too_large(tmp_path):
    rows = [{"x": 1}, {"x": 10**400}, {"x": 2}]
    check_bad_rows(jsonl(tmp_path / "t.jsonl", rows), "row 1: column 'x' holds 1000.*not a number", [0, 2], [1])
    check_bad_rows(
        jsonl(tmp_path / "v.jsonl", [{"x": [r["x"]]} for r in rows]), "row 1.*not a list of numbers", [0, 2], [1]
    )


def test_float_ids_are_told_apart():
    assert read_table(pl.DataFrame({"x": [1, 2], "k": [-1.0, -2.0]}), id="k").ids.tolist() == [-1, -2]


def test_mixed_types(tmp_path):
    rows = [{"x": 1, "y": "a"}, {"x": "two", "y": "b"}, {"x": 3, "y": 4}, {"x": 5, "y": "a"}]
    message = "row 1: column 'x' holds 'two' .str., not a number; row 2: column 'y' mixes types: it holds 4 .int."
    check_bad_rows(jsonl(tmp_path / "t.jsonl", rows), message, [0, 3], [1, 2], label="y")
    check_bad_rows(pd.DataFrame(rows), message, [0, 3], [1, 2], label="y")
    (tmp_path / "t.csv").write_text("x,y\n1,a\ntwo,b\n3,4\n")
    check_bad_rows(
        tmp_path / "t.csv", "row 1: column 'x' holds 'two' .text., not a number", [0, 2], [1], label="y"
    )
    check_bad_rows(pl.DataFrame({"t": ["a", None, "b"]}), "row 1: column 't' is missing", [0, 2], [1], text="t")
    with pytest.raises(ValueError, match="row 0: column 'n' holds 5 .int., not text"):
        read_table(pl.DataFrame({"n": [5]}), text="n")


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl", "feather"])
def test_missing_values(tmp_path, suffix):
    table = {"x": [1.0, None, 3.0, 4.0], "y": ["a", "b", None, "c"]}
    path = tmp_path / f"t.{suffix}"
    if suffix == "csv":
        path.write_text("x,y\n1,a\n,b\n3,\n4,c\n")
    else:
        write_table(path, table)
    check_bad_rows(path, "row 1: column 'x' is missing; row 2: column 'y' is missing", [0, 3], [1, 2], label="y")
    write_table(path, {"x": [1.0, float("nan"), float("-inf"), 2.0], "z": [0.0] * 4})
    check_bad_rows(path, r"row 1: column 'x' is missing \(NaN\); row 2: column 'x' is infinite", [0, 3], [1, 2])


def test_missing_values_in_arrays(tmp_path):
    for dtype in (np.float16, np.float64):
        x = np.ones((5, 3), dtype)
        x[2, 1], x[4, 0] = np.nan, np.inf
        np.save(tmp_path / "x.npy", x)
        check_bad_rows(
            tmp_path / "x.npy",
            "row 2: column 'array' at index 1 is missing .NaN.; row 4.*infinite",
            [0, 1, 3],
            [2, 4],
        )


def test_ragged_embeddings(tmp_path):
    rows = [{"e": [1, 2.5]}, {"e": [1]}, {"e": None}, {"e": [1, None]}, {"e": "x"}, {"e": []}, {"e": [3, 4]}]
    path = jsonl(tmp_path / "t.jsonl", rows)
    message = (
        "row 1: column 'e' holds 1 numbers where the rows before hold 2; row 2: .* is missing; row 3: .*index 1"
    )
    check_bad_rows(path, message, [0, 6], [1, 2, 3, 4, 5])
    assert read_table(path, skip_bad=True).X.tolist() == [[1, 2.5], [3, 4]]
    lists = pa.array([row["e"] if row["e"] != "x" else None for row in rows], pa.list_(pa.float16()))
    check_bad_rows(pa.table({"e": lists}), message, [0, 6], [1, 2, 3, 4, 5])
    assert read_table(pa.table({"e": lists}), skip_bad=True).X.dtype == np.float16
    # a batch that is even in itself, but not with those before
    check_bad_rows(
        pa.table({"e": [[1.0, 2], [1, 2], [1, 2, 3], [1, 2, 3]]}), "row 2.*3 numbers where.*2", [0, 1], [2, 3]
    )
    nulls = pa.array([[1.0, 2.0], None, [3.0, None]], pa.list_(pa.float32(), 2))
    check_bad_rows(pa.table({"e": nulls}), "row 1: column 'e' is missing; row 2.*index 1", [0], [1, 2])


def test_empty_files(tmp_path):
    for suffix in ("parquet", "csv", "jsonl", "npy", "npz", "feather"):
        (tmp_path / f"t.{suffix}").touch()
        with pytest.raises(ValueError, match="is empty: it has no bytes at all"):
            read_table(tmp_path / f"t.{suffix}")
    (tmp_path / "t.csv").write_text("x,y\n")
    (tmp_path / "t.jsonl").write_text("\n\n")
    write_table(tmp_path / "t.parquet", {"x": pa.array([], pa.float64())})
    np.save(tmp_path / "t.npy", np.empty((0, 4)))
    for suffix in ("csv", "jsonl", "parquet", "npy"):
        with pytest.raises(ValueError, match="no rows|no columns of numbers"):
            read_table(tmp_path / f"t.{suffix}")
    with pytest.raises(ValueError, match="no rows"):
        list(iter_batches(pa.table({"x": pa.array([], pa.float64())})))
    with pytest.raises(
        ValueError, match="none of its 2 rows can be used. The first: row 0: column 'x' is missing"
    ):
        read_table(pa.table({"x": pa.array([None, None], pa.float64())}), skip_bad=True)


def test_vectors_stand_alone():
    table = as_arrow({"e": np.eye(2), "n": [1, 2]})
    with pytest.raises(ValueError, match="'e' holds whole vectors, so it cannot be one feature among 2"):
        read_table(table)
    assert read_table(table, features="e").X.shape == (2, 2) and read_table(table, features=["n"]).X.shape == (
        2,
        1,
    )
    with pytest.raises(ValueError, match="no columns of numbers for features; it has t"):
        read_table(pl.DataFrame({"t": ["a"]}))


def test_batches_without_a_good_row_keep_their_list():
    batches = list(
        iter_batches(
            pl.DataFrame({"x": [1.0, None, None, 4.0], "y": [0, 1, 0, 1]}), label="y", batch_rows=1, skip_bad=True
        )
    )
    assert [len(batch) for batch in batches] == [1, 0, 0, 1] and [batch.n_skipped for batch in batches] == [
        0,
        1,
        1,
        0,
    ]
    assert all(batch.X.shape[1] == 1 for batch in batches)


def test_labels_that_are_missing_at_first_do_not_settle_the_kind(tmp_path, monkeypatch):
    monkeypatch.setattr("openset.data.readers.json_lines._CHUNK_ROWS", 5)
    path = jsonl(tmp_path / "late.jsonl", [{"x": 1, "kind": None}] * 7 + [{"x": 1, "kind": "a"}] * 2)
    assert read_table(path, label="kind", skip_bad=True).y.tolist() == ["a", "a"]


@pytest.mark.parametrize("blank", ["", "  "])
def test_blank_labels_are_missing(tmp_path, blank):
    path = tmp_path / "quoted.csv"
    path.write_text(f'"x","kind"\n"1","0"\n"2","1"\n"3","{blank}"\n')
    with pytest.raises(ValueError, match="row 2: column 'kind' is missing"):
        read_table(path, label="kind")
    kept = read_table(path, label="kind", skip_bad=True)
    assert kept.y.tolist() == [0, 1] and kept.y.dtype.kind == "i"


@pytest.mark.parametrize("ids", [[2**63 + 5, 7, 2**63 + 6], [-7, 2**63 + 1, 2**63 + 2]])
def test_large_ids_stay_integers(tmp_path, ids):
    path = jsonl(tmp_path / "hashes.jsonl", [{"x": 1, "id": i} for i in ids])
    assert read_table(path, id="id").ids.tolist() == ids


def test_the_index_that_pandas_writes_is_no_feature(tmp_path):
    table = pd.DataFrame({"x": [1.0, 2.0], "kind": ["a", "b"]})
    table.to_csv(tmp_path / "a.csv")
    pd.read_csv(tmp_path / "a.csv").to_csv(tmp_path / "b.csv", index=False)  # "Unnamed: 0"
    for name in ("a.csv", "b.csv"):
        assert read_table(tmp_path / name, label="kind").feature_names == ("x",)


def test_columns_of_numbers_are_found(tmp_path):
    table = {"a": [1.5, 2], "y": [0, 1], "n": ["p", "q"], "b": [True, False], "key": [4, 5]}
    for suffix in ("parquet", "jsonl"):
        records = read_table(write_table(tmp_path / f"t.{suffix}", table), label="y", id="key")
        assert records.feature_names == ("a", "b") and records.X.tolist() == [[1.5, 1], [2, 0]]
    assert read_table(as_arrow({"e": np.eye(2, dtype=np.float16), "y": [0, 1]}), label="y").feature_names == (
        "e",
    )
    assert read_table(as_arrow({"t": ["u"], "n": [1]}), text="t").X is None


def test_what_is_no_feature_is_left_out(tmp_path):
    frame = pd.DataFrame({"x": [1.5, 2.5, 3.5]}, index=[3, 5, 9])
    frame.drop(5).to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").feature_names == ("x",)
    table = {"x": [1, 2], "tags": [["red"], ["red", "blue"]]}
    for suffix in ("jsonl", "parquet"):
        assert read_table(write_table(tmp_path / f"tags.{suffix}", table)).feature_names == ("x",)


def test_a_value_of_pandas_that_is_missing_among_mixed_types_is_named():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": pd.Series(["a", 5, pd.NA], dtype=object)})
    message = "row 1: column 'y' mixes types.*; row 2: column 'y' is missing"
    check_bad_rows(frame, message, [0], [1, 2], label="y")


def test_several_problems_of_a_row_are_one(tmp_path):
    path = jsonl(tmp_path / "t.jsonl", [{"x": 1, "y": "a"}, {"x": "two", "y": None}])
    (skipped,) = read_table(path, label="y", skip_bad=True).skipped
    assert (skipped.row, skipped.reason) == (1, "column 'x' holds 'two' (str), not a number")


def test_five_bad_rows_are_named_and_the_others_counted():
    message = "row 4: column 'x' is missing; and 3 more. Fix them, or skip them with skip_bad=True"
    with pytest.raises(ValueError, match=message):
        read_table(pl.DataFrame({"x": [None] * 8 + [1.0]}))


def test_parameters_are_checked():
    table = pl.DataFrame({"x": [1.0]})
    with pytest.raises(ValueError, match="skip_bad='yes' is not valid"):
        read_table(table, skip_bad="yes")
    with pytest.raises(ValueError, match="batch_rows=0 is not valid"):
        iter_batches(table, batch_rows=0)


def test_numbers_become_floats():
    assert read_table(pl.DataFrame({"x": [1, 2]})).X.dtype == np.float64
    narrow = pa.table({"a": pa.array([1, 2], pa.int8()), "b": pa.array([0.5, 1.5], pa.float32())})
    assert read_table(narrow).X.dtype == np.float32


def test_reading_needs_no_scikit_learn():
    """Importing it takes longer than reading most tables."""
    code = "import sys, openset.data; assert 'sklearn' not in sys.modules and 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
