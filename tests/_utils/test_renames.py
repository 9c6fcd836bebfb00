from __future__ import annotations

import os

import pytest

from openset._utils import renames
from openset._utils.renames import exchange, holding, is_held, sync, sync_tree


def test_two_folders_change_places(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / f"from {name}").touch()
    assert exchange(tmp_path / "a", tmp_path / "b")
    assert os.listdir(tmp_path / "a") == ["from b"] and os.listdir(tmp_path / "b") == ["from a"]
    with pytest.raises(FileNotFoundError):
        exchange(tmp_path / "a", tmp_path / "absent")


def test_a_system_without_exchange_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(renames, "_renameat2", lambda: None)
    assert not exchange(tmp_path, tmp_path)


def test_files_and_folders_are_synced(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.readlink(f"/proc/self/fd/{descriptor}")))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").touch()
    sync_tree(tmp_path)
    assert synced == [str(tmp_path / "in" / "a"), str(tmp_path / "in"), str(tmp_path)]


def test_a_file_system_that_syncs_no_folders_is_no_error(tmp_path, monkeypatch):
    def refuse(error):
        def fsync(descriptor):
            raise OSError(error, "no")

        return fsync

    monkeypatch.setattr(os, "fsync", refuse(22))
    sync(tmp_path)
    monkeypatch.setattr(os, "fsync", refuse(5))
    with pytest.raises(OSError, match="no"):
        sync(tmp_path)


def test_a_lock_is_seen_and_ends_with_its_process(tmp_path):
    assert not is_held(tmp_path)
    with holding(tmp_path):
        assert is_held(tmp_path)
    assert not is_held(tmp_path)
    read, write = os.pipe()
    if not (child := os.fork()):
        with holding(tmp_path):
            os.write(write, b"1")
            os.kill(os.getpid(), 9)
    os.read(read, 1)
    os.waitpid(child, 0)
    assert not is_held(tmp_path)
    assert is_held(tmp_path / "absent"), "it cannot be told"
