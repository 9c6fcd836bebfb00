"""One clear error for each thing that can be wrong with a file, or the row left out and listed."""

from __future__ import annotations

import gzip
import json
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from table_files import as_arrow, write_table

from openset.data import iter_batches, read_table
from openset.data.readers.records import Records, concatenate


def jsonl(path, rows):
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows))
    return path


def check(source, message, kept, skipped, **roles):
    """Refused with this message; with skip_bad these rows are kept and those skipped, whole and in batches."""
    with pytest.raises(ValueError, match=message):
        read_table(source, **roles)
    for batches in (
        [read_table(source, skip_bad=True, **roles)],
        list(iter_batches(source, skip_bad=True, batch_rows=2, **roles)),
    ):
        assert [row for batch in batches for row in batch.rows.tolist()] == kept
        assert [bad.row for batch in batches for bad in batch.skipped] == skipped
        assert sum(batch.n_skipped for batch in batches) == len(skipped)
        assert all(batch.X is None or len(batch.X) == len(batch) for batch in batches)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl", "feather"])
def test_duplicated_ids(tmp_path, suffix):
    for ids in ([5, 6, 5, 7, 6], ["p", "q", "p", "r", "q"]):
        path = write_table(tmp_path / f"t.{suffix}", {"x": [1.0] * 5, "k": ids})
        check(path, rf"row 2: id {ids[0]} in column 'k' came before; row 4", [0, 1, 3], [2, 4], id="k")


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
    check(jsonl(tmp_path / "t.jsonl", rows), "row 1: column 'x' holds 1000.*not a number", [0, 2], [1])
    check(
        jsonl(tmp_path / "v.jsonl", [{"x": [r["x"]]} for r in rows]), "row 1.*not a list of numbers", [0, 2], [1]
    )


def test_float_ids_are_told_apart():
    assert read_table(pl.DataFrame({"x": [1, 2], "k": [-1.0, -2.0]}), id="k").ids.tolist() == [-1, -2]


def test_mixed_types(tmp_path):
    rows = [{"x": 1, "y": "a"}, {"x": "two", "y": "b"}, {"x": 3, "y": 4}, {"x": 5, "y": "a"}]
    message = "row 1: column 'x' holds 'two' .str., not a number; row 2: column 'y' mixes types: it holds 4 .int."
    check(jsonl(tmp_path / "t.jsonl", rows), message, [0, 3], [1, 2], label="y")
    check(pd.DataFrame(rows), message, [0, 3], [1, 2], label="y")
    (tmp_path / "t.csv").write_text("x,y\n1,a\ntwo,b\n3,4\n")
    check(tmp_path / "t.csv", "row 1: column 'x' holds 'two' .text., not a number", [0, 2], [1], label="y")
    check(pl.DataFrame({"t": ["a", None, "b"]}), "row 1: column 't' is missing", [0, 2], [1], text="t")
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
    check(path, "row 1: column 'x' is missing; row 2: column 'y' is missing", [0, 3], [1, 2], label="y")
    write_table(path, {"x": [1.0, float("nan"), float("-inf"), 2.0], "z": [0.0] * 4})
    check(path, r"row 1: column 'x' is missing \(NaN\); row 2: column 'x' is infinite", [0, 3], [1, 2])


def test_missing_values_in_arrays(tmp_path):
    for dtype in (np.float16, np.float64):
        x = np.ones((5, 3), dtype)
        x[2, 1], x[4, 0] = np.nan, np.inf
        np.save(tmp_path / "x.npy", x)
        check(
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
    check(path, message, [0, 6], [1, 2, 3, 4, 5])
    assert read_table(path, skip_bad=True).X.tolist() == [[1, 2.5], [3, 4]]
    lists = pa.array([row["e"] if row["e"] != "x" else None for row in rows], pa.list_(pa.float16()))
    check(pa.table({"e": lists}), message, [0, 6], [1, 2, 3, 4, 5])
    assert read_table(pa.table({"e": lists}), skip_bad=True).X.dtype == np.float16
    # a batch that is even in itself, but not with those before
    check(pa.table({"e": [[1.0, 2], [1, 2], [1, 2, 3], [1, 2, 3]]}), "row 2.*3 numbers where.*2", [0, 1], [2, 3])
    nulls = pa.array([[1.0, 2.0], None, [3.0, None]], pa.list_(pa.float32(), 2))
    check(pa.table({"e": nulls}), "row 1: column 'e' is missing; row 2.*index 1", [0], [1, 2])


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


def test_wrong_encodings(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("x,t\n1,abc\n2,café\n3,d\n".encode("latin1"))
    check(path, "row 1: column 't' is not UTF-8 text", [0, 2], [1], text="t")
    check(path, "row 1: column 't' holds bytes that are not UTF-8 text", [0, 2], [1], label="t")
    assert read_table(path).X.tolist() == [[1], [2], [3]], "a column that nobody asked for does not matter"
    path.write_text("x,t\n1,ä\n", encoding="utf-16")
    with pytest.raises(ValueError, match="not UTF-8 text .it looks like UTF-16.: save it as UTF-8"):
        read_table(path)
    path.write_bytes("näme,t\n1,2\n".encode("latin1"))
    with pytest.raises(ValueError, match="UTF-?8"):
        read_table(path)
    lines = tmp_path / "t.jsonl"
    lines.write_bytes(b'{"t": "a"}\n{"t": "caf\xe9"}\n')
    check(lines, "row 1: it is not UTF-8 text", [0], [1], text="t")
    lines.write_bytes(b'\xef\xbb\xbf{"t": "a"}\n')
    assert read_table(lines, text="t").texts.tolist() == ["a"]


def test_broken_lines(tmp_path):
    (tmp_path / "t.csv").write_text('x,y\n1,2\n3\n4,5\n6,7,8\n"9",10\n11\n')
    message = "row 1: it has 1 fields where the header has 2; row 3: it has 3 fields"
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "t.csv")
    records = read_table(tmp_path / "t.csv", skip_bad=True)
    assert records.rows.tolist() == [0, 2, 4] and records.X.tolist() == [[1, 2], [4, 5], [9, 10]]
    assert [bad.row for bad in records.skipped] == [1, 3, 5]
    check(
        jsonl(tmp_path / "t.jsonl", [{"x": 1}, "{", "[1]", {"x": 2}]),
        "row 1: it is not JSON.*row 2: it holds a list",
        [0, 3],
        [1, 2],
    )
    (tmp_path / "t.json").write_text('[{"x": 1},\n {"x": 2}]')
    with pytest.raises(ValueError, match="no line holds a JSON object"):
        read_table(tmp_path / "t.json")
    (tmp_path / "long.csv").write_text(f"t\n{'x' * 3_000_000}\nb\n")
    with pytest.raises(ValueError, match="a row is longer than 1 MB, so write the table as Parquet"):
        read_table(tmp_path / "long.csv", text="t")
    (tmp_path / "d.csv").write_text("x,x\n1,2\n")
    with pytest.raises(ValueError, match="several columns named 'x'"):
        read_table(tmp_path / "d.csv")


def test_unreadable_images(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for name in ("cat/a.png", "cat/b.png", "dog/c.png", "dog/deep/d.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        image.new("L", (3, 2), 7).save(tmp_path / name)
    records = read_table(tmp_path)
    assert records.y.tolist() == ["cat", "cat", "dog", "dog"]
    assert records.ids.tolist() == ["cat/a.png", "cat/b.png", "dog/c.png", "dog/deep/d.png"]
    assert records.X is None and records.images[1].tolist() == [[[7, 7, 7]] * 3] * 2
    (tmp_path / "cat" / "b.png").write_bytes(b"no image")
    check(tmp_path, "row 1: image 'cat/b.png' is unreadable", [0, 2, 3], [1])
    with pytest.raises(ValueError, match="unreadable"):
        records.images[1]
    (tmp_path / "t.csv").write_text("file,y\ncat/a.png,1\ncat/absent.png,0\ndog/c.png,1\n")
    check(tmp_path / "t.csv", "row 1: image 'cat/absent.png' is not in", [0, 2], [1], image="file", label="y")
    image.new("L", (3, 2)).save(tmp_path / "loose.png")
    with pytest.raises(ValueError, match="1 images beside the class folders .loose.png."):
        read_table(tmp_path)
    (tmp_path / "none").mkdir()
    with pytest.raises(ValueError, match="a folder without images"):
        read_table(tmp_path / "none")


def test_files_that_are_not_what_they_seem(tmp_path):
    for suffix in ("parquet", "feather", "arrow", "npy", "npz"):
        (tmp_path / f"t.{suffix}").write_bytes(b"something else entirely")
        with pytest.raises(ValueError, match="is not a readable"):
            read_table(tmp_path / f"t.{suffix}")
    (tmp_path / "t.xlsx").write_bytes(b"x")
    with pytest.raises(ValueError, match="extension '.xlsx' is unknown. Known are .parquet, .csv"):
        read_table(tmp_path / "t.xlsx")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(ValueError, match="expected a path or a data frame, got list"):
        read_table([1, 2])


def test_pickled_objects_in_arrays_are_not_read(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[object()]]), allow_pickle=True)
    np.savez(tmp_path / "t.npz", x=np.array([[object()]]))
    np.savez_compressed(tmp_path / "u.npz", x=np.array([[object()]]))
    for name in ("t.npy", "t.npz", "u.npz"):
        with pytest.raises(ValueError, match="is not a readable"):
            read_table(tmp_path / name)


def test_arrays_must_have_rows_and_match(tmp_path):
    np.save(tmp_path / "t.npy", np.arange(3))
    with pytest.raises(ValueError, match=r"array of shape \(3,\)"):
        read_table(tmp_path / "t.npy")
    np.savez(tmp_path / "t.npz", x=np.eye(3), y=np.arange(2), more=np.eye(3))
    with pytest.raises(ValueError, match="different lengths .'x' 3, 'y' 2."):
        read_table(tmp_path / "t.npz", features="x", label="y")
    with pytest.raises(ValueError, match="'x', 'more' holds whole vectors"):
        read_table(tmp_path / "t.npz", label="y")


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


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    path = write_table(tmp_path / "t.parquet", {"x": [1.0]})
    np.savez(tmp_path / "t.npz", x=np.eye(2))
    jsonl(tmp_path / "t.jsonl", [{"x": 1.5, "y": "a"}])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"openset\\[data\\]".replace("\\\\", "\\")):
        read_table(path)
    assert read_table(tmp_path / "t.npz").X.shape == (2, 2)
    assert read_table(tmp_path / "t.jsonl", label="y").X.tolist() == [[1.5]]


def test_row_numbers_of_a_long_csv_with_broken_lines(tmp_path):
    random = np.random.default_rng(0)
    broken = set(random.choice(40_000, 300, replace=False).tolist()) | {0, 39_999}
    with (tmp_path / "t.csv").open("w") as file:
        file.write("n,t\n")
        file.writelines(f"{i}\n" if i in broken else f'{i},"{"w" * 60}\n{i}"\n' for i in range(40_000))
    assert (tmp_path / "t.csv").stat().st_size > 2 * 2**20, "several blocks are needed"
    batches = list(iter_batches(tmp_path / "t.csv", features="n", text="t", skip_bad=True, batch_rows=700))
    rows = np.concatenate([batch.rows for batch in batches])
    assert rows.tolist() == [i for i in range(40_000) if i not in broken]
    np.testing.assert_array_equal(np.concatenate([batch.X[:, 0] for batch in batches]), rows)
    assert [bad.row for batch in batches for bad in batch.skipped] == sorted(broken)


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


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rows.csv.gz", b"x,kind\n1,a\n2,b\n"),
        ("ROWS.CSV.GZ", b"x,kind\n1,a\n2,b\n"),
        ("rows.jsonl.GZ", b'{"x": 1, "kind": "a"}\n{"x": 2, "kind": "b"}\n'),
    ],
)
def test_a_gzip_file_without_its_name_is_read(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text))
    assert read_table(path, label="kind").y.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cut.csv.gz", gzip.compress(b"x,kind\n" + b"1.5,a\n" * 100_000)[:300], "cannot be read to its end"),
        ("plain.csv.gz", b"x,kind\n1,a\n", "is not a readable gzip file"),
        ("semicolons.csv", b"x;kind\n1;a\n", "separated by ';', so save it with commas"),
        ("tabs.csv", b"x\tkind\n1\ta\n", "so name it .tsv"),
        (
            "wide.csv",
            b"x,kind\n1,2,a\n",
            "no row has as many fields as the header.*it has 3 fields where the header has 2",
        ),
        ("blank.jsonl", b"\n\n", "has no rows"),
        ("half.jsonl", b'{"x": 1, "kind": "\\ud83d"}\n', "not valid Unicode: half of a surrogate pair"),
    ],
)
def test_files_that_are_not_what_their_name_says(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / name, label="kind")


def test_the_last_extension_counts(tmp_path):
    (tmp_path / "rows.tsv.csv").write_text("x,kind\n1,a\n")
    assert read_table(tmp_path / "rows.tsv.csv", label="kind").y.tolist() == ["a"]


def test_labels_that_are_missing_at_first_do_not_settle_the_kind(tmp_path):
    path = tmp_path / "late.jsonl"
    path.write_text('{"x": 1, "kind": null}\n' * 70_000 + '{"x": 1, "kind": "a"}\n' * 2)
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
    path = tmp_path / "hashes.jsonl"
    path.write_text("".join(json.dumps({"x": 1, "id": i}) + "\n" for i in ids))
    assert read_table(path, id="id").ids.tolist() == ids


def test_batches_of_small_and_of_large_ids_are_joined_as_integers():
    parts = [Records(np.arange(1), ids=np.array([value])) for value in (7, 2**63 + 1)]
    assert concatenate(parts).ids.tolist() == [7, 2**63 + 1]
    parts = [Records(np.arange(1), ids=np.array([value])) for value in (-7, 2**63 + 1)]
    assert concatenate(parts).ids.tolist() == [-7, 2**63 + 1]


def test_the_index_that_pandas_writes_is_no_feature(tmp_path):
    table = pd.DataFrame({"x": [1.0, 2.0], "kind": ["a", "b"]})
    table.to_csv(tmp_path / "a.csv")
    pd.read_csv(tmp_path / "a.csv").to_csv(tmp_path / "b.csv", index=False)  # "Unnamed: 0"
    for name in ("a.csv", "b.csv"):
        assert read_table(tmp_path / name, label="kind").feature_names == ("x",)


def test_frames_with_numbered_and_with_repeated_columns():
    numbered = pd.DataFrame(np.eye(2)).assign(kind=["a", "b"])
    assert read_table(numbered, label="kind").feature_names == ("0", "1")
    with pytest.raises(ValueError, match="several columns of the same name"):
        read_table(pd.DataFrame(np.eye(2), columns=["x", "x"]))
    with pytest.raises(ValueError, match="several columns named '0'"):
        read_table(pd.DataFrame(np.eye(2), columns=[0, "0"]))
