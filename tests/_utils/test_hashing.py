"""Digests are stored in manifests, models, caches and stores: the numbers here are those of openset 0.1."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from openset._utils import hashing
from openset._utils.hashing import arrays_sha256, digest, path_sha256, sha256

BIG = np.arange(3_000_000, dtype=np.float64).reshape(-1, 3)  # more than one block
TURNED = np.asfortranarray(np.arange(6).reshape(2, 3))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "a" / "one.txt").write_text("one")
    (tmp_path / "b.bin").write_bytes(bytes(range(256)) * 5000)
    return tmp_path


def test_text_and_bytes():
    assert sha256("Öl \ud800") == "e3000f932c9fb45eaec7b51aeef69b04d49ae4f857bdfbec32f6c2e3af82906b"
    assert sha256("Öl") == sha256("Öl".encode()) == hashlib.sha256("Öl".encode()).hexdigest()


def test_a_file_and_a_folder(folder):
    assert path_sha256(folder / "b.bin") == "7d471e4af16db5a30ce10aebbc29f5178b2edbad6c7dc2e8ff8ee6e4848a726f"
    assert path_sha256(folder) == "b0f9a17a6a31efdd1bc4f61a298f54f4121c16d6b5778f4b449da22dcd1c6c41"
    assert path_sha256(folder / "empty") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_a_folder_is_its_names_and_contents(folder):
    before = path_sha256(folder)
    (folder / "b.bin").rename(folder / "c.bin")
    renamed = path_sha256(folder)
    (folder / "c.bin").write_bytes(b"other")
    assert len({before, renamed, path_sha256(folder)}) == 3


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ([np.arange(12.0).reshape(3, 4)], "6a2897855af44b1d1f654dcad64b235552763fcaaaa0557b45dfcd18fe5c5dde"),
        (
            [np.array("abc"), np.arange(4, dtype=np.float16)],
            "21b736025f1b9352b6fdaa7f78021ef9b5a4aa627887ee15ab0dd9e03407184a",
        ),
        ([np.array(["a", None], object)], "df1c99c2e2dab430d527011663835301ff7e1edbb7df7bab9556e847a1202639"),
        ([TURNED, np.empty((0, 4))], "a8308e65e2f77ded8c84f54d3eecbadf2c04210326db4daa2db3159bebab7a9b"),
        ([BIG], "33c26c1418430b1af94573f0ddf99881b1bba743b6cf23c7d4696b01709b1713"),
        ([], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ],
)
def test_arrays(arrays, expected):
    assert arrays_sha256(*arrays) == expected


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (["a", "bc"], "a4d2502de3aca3ac159bba2d99ea81a8"),
        ([np.arange(12.0).reshape(3, 4)], "17b766edea39fa37669b527cd093b0d3"),
        (
            ["x", np.array(3), np.arange(5, dtype=np.int32)[::2], TURNED, np.empty((0, 4))],
            "426251c891389a870479622b10728824",
        ),
        ([np.array(["a", "bé"])], "b5177b43231ad0a7d17223ea0dce8f84"),
        ([BIG], "0a6397925e7f095522055611e64cae79"),
    ],
)
def test_texts_and_arrays_in_one_digest(parts, expected):
    assert digest(*parts) == expected


def test_digests_tell_content_shape_and_type_apart():
    x = np.arange(12.0).reshape(4, 3)
    seen = [digest(x), digest(x + 1), digest(x.reshape(3, 4)), digest(x.astype(np.float32)), digest("a", "b")]
    assert len({*seen, digest("ab"), digest(x, x), digest(np.array(1.0))}) == len(seen) + 3
    assert digest(x[::2]) == digest(x[::2].copy())


@given(hnp.arrays(np.int16, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6)), st.integers(1, 40))
def test_blocks_do_not_change_a_digest(array, block_bytes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashing, "_BLOCK_BYTES", block_bytes)
        in_blocks = digest(array), arrays_sha256(array)
    assert in_blocks == (digest(array), arrays_sha256(array))
    whole = f"{array.dtype}{array.shape}".encode() + array.tobytes()
    assert arrays_sha256(array) == hashlib.sha256(whole).hexdigest()
