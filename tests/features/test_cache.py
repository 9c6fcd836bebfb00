from __future__ import annotations

import hashlib
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.features import FeatureCache
from openset.features.cache import default_directory


def key(name):
    return hashlib.sha256(str(name).encode()).digest()


def rows(names, width=8):
    return {key(n): np.random.default_rng(abs(hash(n))).standard_normal(width).astype(np.float32) for n in names}


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) and a[k].dtype == np.float32 for k in a)


def read_then_write(cache, kept):
    with cache.open() as opened:
        return opened.get(kept), opened.put(kept)


def test_what_was_put_is_got_in_another_session(tmp_path):
    kept = rows(range(1200))
    with FeatureCache(tmp_path).open() as cache:
        assert cache.get(kept) == {}
        assert same(cache.put(kept), kept)
    with FeatureCache(tmp_path).open() as cache:
        assert same(cache.get(kept), kept)
        assert cache.get([key("absent")]) == {}


@pytest.mark.slow
@given(st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=6), max_size=6))
def test_the_first_to_write_a_row_is_believed(tmp_path_factory, calls):
    believed = {}
    with FeatureCache(tmp_path_factory.mktemp("cache")).open() as cache:
        for number, names in enumerate(calls):
            given_ = {key(name): np.full(3, number, np.float32) for name in names}
            returned = cache.put(given_)
            believed = {**given_, **believed}
            assert same(returned, {k: believed[k] for k in given_})
        assert same(cache.get([key(n) for n in range(13)]), believed)


def test_the_least_recently_used_go_first_and_the_limit_holds(tmp_path):
    limit = 2**20
    cache = FeatureCache(tmp_path, limit=limit)
    old, used, new = rows("abcdef", 20_000), rows("uvw", 20_000), rows("123", 20_000)
    for part in (used, old):
        with cache.open() as opened:
            opened.put(part)
    with cache.open() as opened:
        assert same(opened.get(used), used)
    with cache.open() as opened:
        for k, vector in rows(range(100, 800), 256).items():  # 0.7 MB more than fits
            opened.put({k: vector})
            assert opened.size() <= limit
        opened.get(used)
    assert cache.file.stat().st_size <= limit
    with cache.open() as opened:
        assert not opened.get(old)
        opened.put(new)
        assert opened.size() <= limit
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= limit


def test_a_used_row_outlives_an_unused_one(tmp_path):
    cache = FeatureCache(tmp_path, limit=2**20)
    first, second = rows(range(300), 256), rows(range(300, 600), 256)
    for part in (first, second):
        with cache.open() as opened:
            opened.put(part)
    with cache.open() as opened:
        opened.get(first)
    with cache.open() as opened:
        opened.put(rows(range(600, 900), 256))
        assert len(opened.get(first)) > 2 * len(opened.get(second))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE features SET data = substr(data, 1, 8)",
        "UPDATE features SET data = zeroblob(32)",
        "UPDATE features SET data = 'text'",
        "UPDATE features SET checksum = zeroblob(16)",
        "DELETE FROM features",
        "UPDATE features SET (checksum, data) = (SELECT checksum, data FROM features f WHERE f.id = 2)",
    ],
)
def test_a_changed_entry_is_not_trusted(tmp_path, change):
    kept = rows(range(4))
    cache = FeatureCache(tmp_path)
    with cache.open() as opened:
        opened.put(kept)
    connection = sqlite3.connect(cache.file)
    connection.execute(change + " WHERE id = 1")
    connection.commit()
    connection.close()
    with cache.open() as opened:
        found = opened.get(kept)
        assert len(found) == 3 and same(found, {k: kept[k] for k in found})
        assert same(opened.put(kept), kept)
        assert same(opened.get(kept), kept)


@pytest.mark.parametrize("damage", ["garbage", "truncated", "holes"])
def test_a_damaged_file_starts_anew(tmp_path, damage):
    kept = rows(range(200), 64)
    cache = FeatureCache(tmp_path)
    with cache.open() as opened:
        opened.put(kept)
    content = cache.file.read_bytes()
    if damage == "garbage":
        cache.file.write_bytes(b"no database at all, and long enough to be looked at " * 200)
    elif damage == "truncated":
        cache.file.write_bytes(content[: len(content) // 2 + 100])
    else:
        cache.file.write_bytes(content[:4096] + b"\x5a" * (len(content) - 4096))
    with pytest.warns(UserWarning, match="damaged: a new one is started"):
        found, stored = read_then_write(cache, kept)
    assert same(found, {k: kept[k] for k in found}) and same(stored, kept)
    with cache.open() as opened:
        assert same(opened.get(kept), kept)


def test_clear_forgets_everything(tmp_path):
    cache = FeatureCache(tmp_path)
    with cache.open() as opened:
        opened.put(rows("a"))
    cache.clear()
    assert list(tmp_path.iterdir()) == []
    cache.clear()


def test_bad_places_and_limits_are_told(tmp_path):
    with pytest.raises(ValueError, match="at least 1 MiB"):
        FeatureCache(tmp_path, limit=1000)
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(ValueError, match="cannot open the feature cache .*OPENSET_CACHE"),
        FeatureCache(tmp_path / "file").open(),
    ):
        pass


def test_the_default_place(monkeypatch):
    monkeypatch.setenv("OPENSET_CACHE", "/somewhere")
    assert default_directory() == Path("/somewhere")
    monkeypatch.delenv("OPENSET_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    monkeypatch.setattr(sys, "platform", "linux")
    assert default_directory() == Path("/xdg/openset")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_directory() == Path.home() / ".cache" / "openset"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert default_directory() == Path.home() / "Library" / "Caches" / "openset"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert default_directory() == Path("/local/openset/Cache")
