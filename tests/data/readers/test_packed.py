from __future__ import annotations

import gzip

import pytest

from openset.data.readers import packed
from openset.errors import UnreadableError


def test_plain_and_packed_files_give_the_same_bytes(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"x\n1\n")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"x\n1\n"))
    for name in ("a.csv", "a.csv.gz"):
        with packed.open_unpacked(tmp_path / name) as file:
            assert (file.readline(100), file.read(100), file.read(1)) == (b"x\n", b"1\n", b"")


def test_a_small_file_that_unpacks_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(packed, "MOST_UNPACKED", 2**20)
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"0\n" * 2**20))
    with packed.open_unpacked(path) as file, pytest.raises(UnreadableError, match="more than 200 times its size"):
        list(iter(lambda: file.read(2**16), b""))
    with pytest.raises(UnreadableError, match="unpacks to 9000000 bytes"):
        packed.check_unpacked_size(path, 9_000_000)
    packed.check_unpacked_size(path, 2**20)
