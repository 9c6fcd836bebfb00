from __future__ import annotations

import gzip

import pytest
from table_files import check_bad_rows, jsonl

from openset.data import read_table
from openset.data.readers.json_lines import open_json_lines, read_json_lines


def test_each_line_is_an_object_or_a_reason(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"x": 1}\n\n  \n[1]\n{"x"\n3\n{"t": "caf\xe9"}\n' + b"[" * 100_000 + b"\n")
    first, *reasons = read_json_lines(path)
    assert first == {"x": 1}
    assert [reason.split(" (")[0] for reason in reasons] == [
        "it holds a list, not an object {…}",
        "it is not JSON",
        "it holds a int, not an object {…}",
        "it is not UTF-8 text",
        "it is not JSON",
    ]


def test_columns_are_those_of_the_first_rows(tmp_path):
    rows = [{"n": 1, "t": "a"}, "[1]", {"n": 2, "v": [1, 2]}, {"n": None}]
    opened = open_json_lines(jsonl(tmp_path / "t.jsonl", rows))
    assert opened.kinds == {"n": "number", "t": "other", "v": "vector"} and opened.typed
    first, second = opened.chunks(["n", "t"], 3)
    assert first.rows.tolist() == [0, 2] and first.columns == {"n": [1, 2], "t": ["a", None]}
    assert list(first.broken) == [1] and second.rows.tolist() == [3] and second.broken == {}


def test_broken_lines(tmp_path):
    path = jsonl(tmp_path / "t.jsonl", [{"x": 1}, "{", "[1]", {"x": 2}])
    check_bad_rows(path, "row 1: it is not JSON.*row 2: it holds a list", [0, 3], [1, 2])
    (tmp_path / "t.json").write_text('[{"x": 1},\n {"x": 2}]')
    with pytest.raises(ValueError, match="no line holds a JSON object {…}. The first line: it is not JSON"):
        read_table(tmp_path / "t.json")
    (tmp_path / "blank.jsonl").write_text("\n\n")
    with pytest.raises(ValueError, match="has no rows: all of its lines are blank"):
        read_table(tmp_path / "blank.jsonl")


def test_wrong_encodings(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"t": "a"}\n{"t": "caf\xe9"}\n')
    check_bad_rows(path, "row 1: it is not UTF-8 text", [0], [1], text="t")
    path.write_bytes(b'\xef\xbb\xbf{"t": "a"}\n')
    assert read_table(path, text="t").texts.tolist() == ["a"]
    path.write_bytes(b'{"x": 1, "kind": "\\ud83d"}\n')
    for role in ("label", "text"):
        with pytest.raises(ValueError, match="not valid Unicode: half of a surrogate pair"):
            read_table(path, **{role: "kind"})


def test_a_truncated_gzip_file_is_an_error(tmp_path):
    path = tmp_path / "t.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"x": 1}\n' * 1000)[:-10])
    with pytest.raises(ValueError, match="ends too early: it is not whole"):
        list(read_json_lines(path))
    path.write_bytes(b'{"x": 1}\n')
    with pytest.raises(ValueError, match="is not packed, although its name ends in .gz: download it again"):
        open_json_lines(path)
