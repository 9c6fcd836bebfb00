from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from table_files import write_table

from openset.data import iter_batches, read_table
from openset.data.readers.numpy_files import open_npy, open_npz


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


@settings(max_examples=20)
@given(
    x=hnp.arrays(
        np.float32, hnp.array_shapes(min_dims=2, max_dims=4, max_side=5), elements=st.floats(-9, 9, width=32)
    )
)
def test_npy(x):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npy"
        np.save(path, x)
        records = read_table(path)
        np.testing.assert_array_equal(records.X, x)
        assert isinstance(records.X, np.memmap)
        np.testing.assert_array_equal(np.concatenate([b.X for b in iter_batches(path, batch_rows=2)]), x)
        del records


def test_stored_npz_is_mapped_and_packed_is_not(tmp_path):
    table = {"x": np.asfortranarray(np.arange(6.0).reshape(3, 2)), "y": np.array(["a", "b", "a"])}
    stored = read_table(write_table(tmp_path / "t.stored.npz", table), label="y")
    packed = read_table(write_table(tmp_path / "t.packed.npz", table), label="y")
    assert isinstance(stored.X, np.memmap) and not isinstance(packed.X, np.memmap)
    np.testing.assert_array_equal(stored.X, packed.X)
    assert stored.y.tolist() == ["a", "b", "a"]


def test_each_array_of_an_npz_is_a_column(tmp_path):
    arrays = {"x": np.ones((2, 3)), "n": np.arange(2), "t": np.array(["a", "b"]), "empty": np.empty((0, 2))}
    np.savez(tmp_path / "t.npz", **arrays, scalar=np.array(5.0))
    opened = open_npz(tmp_path / "t.npz")
    assert opened.kinds == {"x": "vector", "n": "number", "t": "other", "empty": "vector"}
    (chunk,) = opened.chunks(["x", "n"], None)
    np.testing.assert_array_equal(chunk.columns["x"], arrays["x"])
    assert isinstance(chunk.columns["n"], np.memmap)


def test_an_npy_file_is_one_column(tmp_path):
    np.save(tmp_path / "t.npy", np.arange(12).reshape(4, 3))
    opened = open_npy(tmp_path / "t.npy")
    assert opened.kinds == {"array": "vector"}
    assert [chunk.columns["array"].tolist() for chunk in opened.chunks(["array"], 3)] == [
        [[0, 1, 2], [3, 4, 5], [6, 7, 8]],
        [[9, 10, 11]],
    ]
