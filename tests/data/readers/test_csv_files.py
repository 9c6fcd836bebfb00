from __future__ import annotations

import gzip

import numpy as np
import pytest
from table_files import check_bad_rows

from openset.data import iter_batches, read_table
from openset.data.readers.csv_files import open_csv


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


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "cut.csv.gz",
            gzip.compress(b"x,kind\n" + b"1.5,a\n" * 100_000)[:300],
            "ends too early: it is not whole",
        ),
        ("plain.csv.gz", b"x,kind\n1,a\n", "is not packed, although its name ends in .gz"),
        ("semicolons.csv", b"x;kind\n1;a\n", "separated by ';', so save it with commas"),
        ("tabs.csv", b"x\tkind\n1\ta\n", "so name it .tsv"),
        (
            "wide.csv",
            b"x,kind\n1,2,a\n",
            "no row has as many fields as the header.*it has 3 fields where the header has 2",
        ),
        ("header.csv", b"x,kind\n", "has no rows below its header"),
    ],
)
def test_what_is_no_csv_file_with_commas_is_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / name, label="kind")


def test_the_kinds_are_told_from_the_first_rows(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text("n\ttext\tempty\tmostly\n1\ta\t\t2\n2.5\tb\t\t3\n1e3\t4\t\tx\n")
    opened = open_csv(path)
    assert opened.kinds == {"n": "number", "text": "other", "empty": "other", "mostly": "number"}
    assert opened.name == str(path) and opened.folder == tmp_path and not opened.typed
    (chunk,) = opened.chunks(["n", "empty"], None)
    assert chunk.rows.tolist() == [0, 1, 2] and list(chunk.columns) == ["n", "empty"]
    assert chunk.columns["n"].to_pylist() == [b"1", b"2.5", b"1e3"], "a value is bytes until its use is known"
    assert chunk.columns["empty"].null_count == 3


def test_labels_of_csv_are_integers_only_if_all_are(tmp_path):
    for labels, expected in ((["1", "-2", "0"], [1, -2, 0]), (["1", "02", "3"], ["1", "02", "3"])):
        path = tmp_path / "t.csv"
        path.write_text("x,y,k\n" + "".join(f"1,{label},0{i}\n" for i, label in enumerate(labels)))
        records = read_table(path, label="y", id="k")
        assert records.y.tolist() == expected and records.ids.tolist() == ["00", "01", "02"]
        assert [b.y.tolist() for b in iter_batches(path, label="y", batch_rows=1)] == [
            [label] for label in expected
        ]
        assert read_table(path, id="y").ids.tolist() == expected, "so are ids"


def test_wrong_encodings(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("x,t\n1,abc\n2,café\n3,d\n".encode("latin1"))
    check_bad_rows(path, "row 1: column 't' is not UTF-8 text", [0, 2], [1], text="t")
    check_bad_rows(path, "row 1: column 't' holds bytes that are not UTF-8 text", [0, 2], [1], label="t")
    assert read_table(path).X.tolist() == [[1], [2], [3]], "a column that nobody asked for does not matter"
    path.write_text("x,t\n1,ä\n", encoding="utf-16")
    with pytest.raises(ValueError, match="not UTF-8 text .it looks like UTF-16.: save it as UTF-8"):
        read_table(path)
    path.write_bytes("näme,t\n1,2\n".encode("latin1"))
    with pytest.raises(ValueError, match="UTF-?8"):
        read_table(path)


def test_broken_lines(tmp_path):
    (tmp_path / "t.csv").write_text('x,y\n1,2\n3\n4,5\n6,7,8\n"9",10\n11\n')
    message = "row 1: it has 1 fields where the header has 2; row 3: it has 3 fields"
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "t.csv")
    records = read_table(tmp_path / "t.csv", skip_bad=True)
    assert records.rows.tolist() == [0, 2, 4] and records.X.tolist() == [[1, 2], [4, 5], [9, 10]]
    assert [bad.row for bad in records.skipped] == [1, 3, 5]
    (tmp_path / "long.csv").write_text(f"t\n{'x' * 3_000_000}\nb\n")
    with pytest.raises(ValueError, match="a row is longer than 1 MB, so write the table as Parquet"):
        read_table(tmp_path / "long.csv", text="t")
    (tmp_path / "d.csv").write_text("x,x\n1,2\n")
    with pytest.raises(ValueError, match="several columns named 'x'"):
        read_table(tmp_path / "d.csv")
