from __future__ import annotations

import os
from pathlib import Path

import pytest

from openset._utils import files
from openset._utils.files import (
    check_folder_replaceable,
    check_not_input,
    check_parent,
    existing,
    extension,
    is_temporary,
    packing,
    recover,
    replacing,
    replacing_folder,
    write_atomically,
    written_paths,
)
from openset._utils.renames import holding


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
    with replacing_folder(tmp_path / "run", overwrite=True) as folder:
        (folder / "a").write_text("1")

    def fail():
        with replacing_folder(tmp_path / "run", overwrite=True) as folder:
            (folder / "a").write_text("2")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert (tmp_path / "run" / "a").read_text() == "1"
    with replacing_folder(tmp_path / "run", overwrite=True) as folder:
        (folder / "b").write_text("3")
    assert [p.name for p in tmp_path.rglob("*")] == ["run", "b"]


def old_run(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "a").write_text("1")
    return tmp_path / "run"


def test_where_folders_cannot_be_exchanged_the_old_one_comes_back_after_a_failure(tmp_path, monkeypatch):
    path, rename, calls = old_run(tmp_path), os.rename, []

    def second_call_fails(source, target):
        calls.append(source)
        if len(calls) == 2:
            raise OSError("the disk is gone")
        rename(source, target)

    monkeypatch.setattr(files, "exchange", lambda one, other: False)
    monkeypatch.setattr(os, "rename", second_call_fails)
    with pytest.raises(OSError, match="the disk is gone"), replacing_folder(path, overwrite=True):
        pass
    assert (path / "a").read_text() == "1" and [p.name for p in tmp_path.iterdir()] == ["run"]
    with replacing_folder(path, overwrite=True) as folder:
        (folder / "a").write_text("2")
    assert (path / "a").read_text() == "2" and [p.name for p in tmp_path.iterdir()] == ["run"]


def test_a_kill_between_the_two_steps_is_recovered_from(tmp_path, monkeypatch):
    path, rename = old_run(tmp_path), os.rename

    def killed(source, target):
        if target == path:
            os._exit(9)
        rename(source, target)

    if not (child := os.fork()):
        monkeypatch.setattr(files, "exchange", lambda one, other: False)
        monkeypatch.setattr(os, "rename", killed)
        with replacing_folder(path, overwrite=True):
            pass
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert not path.exists()
    (tmp_path / "link").symlink_to(path)
    recover(tmp_path / "link")
    assert (path / "a").read_text() == "1"
    recover(tmp_path / ("x" * 255))  # too long a name for anything beside it


def test_a_folder_that_appears_meanwhile_is_not_replaced(tmp_path):
    def write():
        with replacing_folder(tmp_path / "run", overwrite=False) as folder:
            (folder / "a").write_text("mine")
            old_run(tmp_path)

    with pytest.raises(ValueError, match="written by another process meanwhile"):
        write()
    assert (tmp_path / "run" / "a").read_text() == "1" and [p.name for p in tmp_path.iterdir()] == ["run"]


def test_a_link_to_a_file_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_atomically(tmp_path / "link", b"1")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_bytes() == b"1"


def test_what_a_dead_writer_left_is_swept_and_what_a_living_one_writes_is_not(tmp_path):
    dead, young, alive = (tmp_path / f".writing-{name}" for name in ("dead", "young", "alive"))
    for folder in (dead, young, alive):
        folder.mkdir()
        (folder / "half").touch()
    for folder in (dead, alive):
        os.utime(folder, (0, 0))
    with holding(alive):
        write_atomically(tmp_path / "a", b"1")
    assert {p.name for p in tmp_path.iterdir()} == {"a", young.name, alive.name}


def test_an_output_that_is_read_is_refused(tmp_path):
    (tmp_path / "run" / "model").mkdir(parents=True)
    (tmp_path / "run" / "result.json").touch()
    (tmp_path / "data.csv").touch()
    (tmp_path / "link").symlink_to(tmp_path / "run")
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "data.csv")
    inputs = (tmp_path / "run", str(tmp_path / "data.csv"), {"a": "frame"}, None, tmp_path / "absent")
    with pytest.raises(ValueError, match="is read"):
        check_not_input(tmp_path / "data.csv", tmp_path / "d*.csv")
    for bad in ("data.csv", "hard.csv", "run", "run/result.json", "link/result.json", "run/model", "."):
        with pytest.raises(ValueError, match="is read"):
            check_not_input(tmp_path / bad, *inputs)
    for good in ("new.csv", "run/new.csv", "other/run"):
        check_not_input(tmp_path / good, *inputs)


def test_what_was_written_is_noted(tmp_path):
    before = len(written_paths())
    write_atomically(tmp_path / "a", b"1")
    with replacing_folder(tmp_path / "run", overwrite=False) as folder:
        write_atomically(folder / "b", b"2")
    assert written_paths()[before:] == (tmp_path / "a", tmp_path / "run")


def test_a_link_to_a_folder_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with replacing_folder(tmp_path / "link", overwrite=True) as folder:
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
