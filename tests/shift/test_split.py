from __future__ import annotations

import numpy as np
import pytest

from openset.errors import ManifestError
from openset.shift import Manifest, background_shift, rebuild
from openset.shift.manifest import PARTS, encode_rows


@pytest.fixture
def animals():
    return {"label": np.repeat(["cat", "dog", "eel"], 2000), "subtype": np.tile(["young", "old"], 3000)}


def test_effective_size_is_that_of_the_weights(animals):
    split = background_shift(**animals, novel="eel", subtype_shares={"young": 0.9, "old": 0.2})
    weight = np.where(animals["subtype"] == "young", 0.1 / 0.9, 0.8 / 0.2)[split.source]
    assert split.effective_size == pytest.approx(weight.sum() ** 2 / (weight**2).sum(), rel=1e-9)
    even = background_shift(**animals, novel="eel")
    assert even.effective_size == len(even.source)


def test_a_known_subtype_without_source_rows_is_named(animals):
    shares = {"young": 0.75, "old": 0.5, ("dog", "old"): 0.0}
    split = background_shift(**animals, novel="eel", subtype_shares=shares)
    assert split.unseen_subtypes == [("dog", "old")]
    assert "Known subtypes without a row in source: old of dog." in str(split)
    assert background_shift(**animals, novel="eel").unseen_subtypes == []


def test_a_split_describes_itself(split):
    sizes = f"{len(split.source)} source and {len(split.target)} target rows"
    novel = f"{split.novel_fraction:.1%} of the target new."
    assert str(split).startswith(f"background_shift, seed 4: {sizes}, {novel} For testing ")
    assert "350 rows were left out as copies of others." in str(split)


def test_a_saved_manifest_rebuilds_the_same_split(split, columns, tmp_path):
    split.manifest.save(tmp_path / "split.json")
    assert Manifest.load(tmp_path / "split.json") == split.manifest
    for manifest in (split.manifest, tmp_path / "split.json", str(tmp_path / "split.json")):
        again = rebuild(manifest, **columns)
        assert all(np.array_equal(getattr(again, part), getattr(split, part)) for part in PARTS)
        assert np.array_equal(again.label, split.label)
        assert (again.novel_label, again.novel_fraction) == (split.novel_label, split.novel_fraction)
        assert again.manifest.checksum == split.manifest.checksum


@pytest.mark.parametrize("column", ["label", "subtype", "content"])
def test_other_data_is_refused(split, columns, column):
    changed = columns[column].copy()
    changed[[0, -1]] = changed[[-1, 0]]
    with pytest.raises(ManifestError, match=f"column {column} is not the one .* checksum differs"):
        rebuild(split.manifest, **columns | {column: changed if column != "subtype" else changed[::-1]})


def test_missing_and_further_columns_are_refused(split, columns):
    with pytest.raises(ManifestError, match="made from the columns label, subtype, content, but got label"):
        rebuild(split.manifest, label=columns["label"])
    with pytest.raises(ManifestError, match="pass the same columns by name"):
        rebuild(split.manifest, **columns, score=np.zeros(700))


def forged(manifest, **changes):
    """A manifest with a valid checksum of its own, but wrong rows."""
    return Manifest(**{**vars(manifest), **changes})


def test_rows_in_two_parts_or_out_of_range_are_refused_even_with_a_valid_checksum(split, columns):
    rows = dict(split.manifest.rows)
    with pytest.raises(ManifestError, match="the parts share rows"):
        rebuild(forged(split.manifest, rows=rows | {"target": rows["source"]}), **columns)
    with pytest.raises(ManifestError, match="row 700 is in a part, but the data has 700 rows"):
        rebuild(forged(split.manifest, rows=rows | {"target": encode_rows(np.array([700]))}), **columns)
    with pytest.raises(ManifestError, match="states 3 rows but holds"):
        rebuild(forged(split.manifest, rows=rows | {"target": rows["target"] | {"n": 3}}), **columns)
    with pytest.raises(ManifestError, match="unknown type"):
        rebuild(forged(split.manifest, rows=rows | {"target": rows["target"] | {"type": "f8"}}), **columns)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_take_and_rebuild_accept_data_frames(split, columns, library):
    module = pytest.importorskip(library)
    make = module.table if library == "pyarrow" else module.DataFrame
    frame = make({"row": np.arange(700), **columns})
    parts = split.take(frame)
    assert isinstance(parts.X, type(frame)) and np.array_equal(parts.X_test["row"], split.test_target)
    again = rebuild(split.manifest, **{name: frame[name] for name in columns})
    assert np.array_equal(again.label, split.label)


def test_missing_values_of_pandas_are_counted(split, columns):
    pandas = pytest.importorskip("pandas")
    label = pandas.Series(columns["label"], dtype="string")
    label[3:5] = pandas.NA
    with pytest.raises(ValueError, match="label has 2 missing values"):
        rebuild(split.manifest, **columns | {"label": label})


@pytest.mark.parametrize("kind", ["memmap", "array", "texts", "images"])
def test_take_gives_rows_and_their_labels(split, tmp_path, kind):
    X = np.arange(1400.0).reshape(700, 2)
    if kind == "memmap":
        np.save(tmp_path / "x.npy", X)
        X = np.load(tmp_path / "x.npy", mmap_mode="r")
    elif kind == "texts":
        X = [f"text {i}" for i in range(700)]
    elif kind == "images":
        X = np.zeros((700, 3, 3, 1), np.uint8) + np.arange(700, dtype=np.uint8)[:, None, None, None]
    parts = split.take(X)
    rows = np.asarray(X)
    for part, x, y in (
        (split.source, parts.X, parts.y),
        (split.target, parts.X_target, parts.y_target),
        (split.test_target, parts.X_test, parts.y_test),
        (split.test_source, parts.X_test_source, parts.y_test_source),
    ):
        assert np.array_equal(x, rows[part]) and np.array_equal(y, split.label[part])
    with pytest.raises(ValueError, match="X has 3 rows, but the split was made for 700"):
        split.take(rows[:3])
