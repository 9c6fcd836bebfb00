from __future__ import annotations

import os
from pathlib import Path

import pytest

from openset._utils.files import (
    check_folder_replaceable,
    check_parent,
    existing,
    extension,
    is_temporary,
    packing,
    replacing,
    replacing_folder,
    write_atomically,
)


def fail_while_writing(path):
    with replacing(path) as temporary:
        temporary.write_text("half")
        assert temporary.parent == path.parent and is_temporary(temporary.name)
        raise RuntimeError


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a.txt"
    with pytest.raises(RuntimeError):
        fail_while_writing(path)
    assert list(tmp_path.iterdir()) == []
    write_atomically(path, b"one")
    with pytest.raises(RuntimeError):
        fail_while_writing(path)
    assert path.read_bytes() == b"one" and list(tmp_path.iterdir()) == [path]
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two" and list(tmp_path.iterdir()) == [path]


def test_a_file_that_was_not_written_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "a.txt"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path):
    with replacing_folder(tmp_path / "run") as folder:
        (folder / "a").write_text("1")

    def fail():
        with replacing_folder(tmp_path / "run") as folder:
            (folder / "a").write_text("2")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert (tmp_path / "run" / "a").read_text() == "1"
    with replacing_folder(tmp_path / "run") as folder:
        (folder / "b").write_text("3")
    assert [p.name for p in tmp_path.rglob("*")] == ["run", "b"]


def test_the_old_folder_comes_back_if_the_last_rename_fails(tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "a").write_text("1")
    rename, calls = os.replace, []

    def second_call_fails(source, target):
        calls.append(source)
        if len(calls) == 2:
            raise OSError("the disk is gone")
        rename(source, target)

    monkeypatch.setattr(os, "replace", second_call_fails)
    with pytest.raises(OSError, match="the disk is gone"), replacing_folder(tmp_path / "run"):
        pass
    assert (tmp_path / "run" / "a").read_text() == "1" and [p.name for p in tmp_path.iterdir()] == ["run"]


def test_a_link_to_a_folder_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with replacing_folder(tmp_path / "link") as folder:
        (folder / "a").write_text("1")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real" / "a").read_text() == "1"


def test_a_file_needs_a_folder_and_a_name_of_its_own(tmp_path):
    check_parent(tmp_path / "a.txt")
    with pytest.raises(FileNotFoundError, match="there is no folder .*absent"):
        check_parent(tmp_path / "absent" / "a.txt")
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        check_parent(tmp_path)


def test_a_folder_that_cannot_be_replaced_is_refused_at_once(tmp_path, monkeypatch):
    check_folder_replaceable(tmp_path / "new" / "run")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.chdir(tmp_path)
    for path in (Path(), tmp_path, Path("/")):
        with pytest.raises(ValueError, match="is the current folder or a mount point"):
            check_folder_replaceable(path)
    monkeypatch.setattr(Path, "mkdir", lambda *_, **__: (_ for _ in ()).throw(PermissionError("read-only")))
    with pytest.raises(PermissionError, match="read-only"):
        check_folder_replaceable(tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "suffix", "packed"),
    [
        ("rows.csv", ".csv", None),
        ("rows.CSV.GZ", ".csv.gz", "gzip"),
        ("v1.2.parquet", ".parquet", None),
        ("v1.2.json.gz", ".json.gz", "gzip"),
        ("rows", "", None),
        (".hidden", "", None),
        ("rows.gz", ".gz", "gzip"),
        ("rows.csv.zst", ".csv.zst", "zstd"),
        ("v1.2.JSONL.ZST", ".jsonl.zst", "zstd"),
        ("rows.zst.csv", ".csv", None),
    ],
)
def test_extensions(name, suffix, packed):
    assert extension(Path(name)) == suffix and packing(Path(name)) == packed


def test_a_path_that_does_not_exist_says_what_to_do(tmp_path, monkeypatch):
    assert existing(str(tmp_path), "Download it.") == tmp_path
    monkeypatch.setenv("HOME", str(tmp_path))
    assert existing("~", "Download it.") == tmp_path
    with pytest.raises(FileNotFoundError, match="absent does not exist. Download it.$"):
        existing(tmp_path / "absent", "Download it.")


def test_names_of_half_written_files():
    assert is_temporary(".writing-0123456789abcdef") and not is_temporary("model.json")
