from __future__ import annotations

import gzip

import pyarrow as pa
import pytest

from openset.data.readers.csv_text import CsvText, is_escaped, restored
from openset.errors import DataWarning, UnreadableError


def read_all(path, size=7):
    with CsvText(path, ",") as text:
        parts = list(iter(lambda: text.read(size), b""))
        assert all(len(part) <= size for part in parts)
        return b"".join(parts), text.escapes


def test_utf_8_passes_as_it_is(tmp_path):
    content = "\ufeffnäme,t\n1,é€𝄞\n".encode()
    (tmp_path / "t.csv").write_bytes(content)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(content))
    assert read_all(tmp_path / "t.csv") == read_all(tmp_path / "t.csv.gz") == (content, False)


def test_other_bytes_are_escaped_and_come_back(tmp_path):
    value = bytes(range(128, 256)) + b"caf\xe9 \xf0\x9d"
    (tmp_path / "t.csv").write_bytes(b"t\n" + value)
    text, escapes = read_all(tmp_path / "t.csv")
    assert escapes and is_escaped(text.decode())
    batch = pa.record_batch({"t": pa.array([text[2:], None, b"plain"], pa.binary())})
    assert restored(batch).column("t").to_pylist() == [value, None, b"plain"]


def test_blank_lines_above_the_header_are_left_out(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\n\r\n\n\n\n\n\n\nx\n1\n\n2\n")
    assert read_all(tmp_path / "t.csv", 3) == (b"x\n1\n\n2\n", False)


def test_a_file_that_ends_inside_a_quote_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text('x\n"1\n2\n')
    with pytest.raises(UnreadableError, match="line 2 is never closed. Rows would be lost"):
        read_all(tmp_path / "t.csv")


def test_a_value_of_very_many_lines_is_warned_of(tmp_path):
    (tmp_path / "t.csv").write_text('x\n1\n"' + "2\n" * 500 + '"\n')
    with pytest.warns(DataWarning, match="line 3 goes over 501 lines, which are one row"):
        read_all(tmp_path / "t.csv")
