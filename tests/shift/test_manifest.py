from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.errors import ManifestError
from openset.shift import Manifest, background_shift, rebuild
from openset.shift.manifest import PARTS, column_checksum, decode_rows, encode_rows


@pytest.fixture
def columns():
    label = np.repeat(["cat", "dog", "eel"], [300, 300, 100])
    return {"label": label, "subtype": np.tile(["young", "old"], 350), "content": np.arange(700) // 2 * 2}


@pytest.fixture
def split(columns):
    return background_shift(**columns, novel="eel", concentration=1.0, random_state=4)


@given(st.sets(st.integers(0, 10**7)), st.integers(0, 3))
def test_rows_come_back_as_they_went(rows, scale):
    ascending = np.array(sorted(rows), np.intp) * 10**scale
    assert decode_rows(json.loads(json.dumps(encode_rows(ascending)))).tolist() == ascending.tolist()


def test_a_saved_manifest_rebuilds_the_same_split(split, columns, tmp_path):
    split.manifest.save(tmp_path / "split.json")
    assert Manifest.load(tmp_path / "split.json") == split.manifest
    for manifest in (split.manifest, tmp_path / "split.json", str(tmp_path / "split.json")):
        again = rebuild(manifest, **columns)
        assert all(np.array_equal(getattr(again, part), getattr(split, part)) for part in PARTS)
        assert np.array_equal(again.label, split.label)
        assert (again.novel_label, again.novel_fraction) == (split.novel_label, split.novel_fraction)
        assert again.manifest.checksum == split.manifest.checksum


def test_one_seed_gives_one_split(columns, split):
    again = background_shift(**columns, novel="eel", concentration=1.0, random_state=4)
    other = background_shift(**columns, novel="eel", concentration=1.0, random_state=5)
    assert again.manifest.checksum == split.manifest.checksum != other.manifest.checksum


def test_what_is_on_record(split):
    record = json.loads(split.manifest.to_json())
    assert record["recipe"] == "background_shift" and record["seed"] == 4
    assert record["parameters"]["concentration"] == 1.0
    assert set(record["columns"]) == {"label", "subtype", "content"}
    assert record["sizes"]["source"] == len(split.source)
    assert record["novel_fraction"] == split.novel_fraction
    assert record["duplicates"] == {"left_out": 350, "under_several_labels": 0}
    assert record["label"] == {"column": "label", "novel": {"label": ["eel"]}, "novel_label": "novel"}
    for part in PARTS:
        assert (
            sum(cell[part] for cell in record["proportions"])
            == (split.label[getattr(split, part)] != "novel").sum()
        )


@pytest.mark.parametrize("column", ["label", "subtype", "content"])
def test_other_data_is_refused(split, columns, column):
    changed = columns[column].copy()
    changed[[0, -1]] = changed[[-1, 0]]
    with pytest.raises(ManifestError, match=f"column {column} is not the one .* checksum differs"):
        rebuild(split.manifest, **columns | {column: changed if column != "subtype" else changed[::-1]})


def test_missing_and_further_columns_are_refused(split, columns):
    with pytest.raises(ManifestError, match="made from the columns label, subtype, content, but label came"):
        rebuild(split.manifest, label=columns["label"])
    with pytest.raises(ManifestError, match="pass the same ones by name"):
        rebuild(split.manifest, **columns, score=np.zeros(700))


@pytest.mark.parametrize(
    "key", ["seed", "n_rows", "novel_fraction", "checksum", "rows", "columns", "proportions"]
)
def test_an_altered_manifest_is_refused(split, key):
    record = json.loads(split.manifest.to_json())
    record[key] = 7
    with pytest.raises(ManifestError, match="was altered"):
        Manifest.from_json(json.dumps(record))


def test_a_moved_row_is_noticed(split):
    record = json.loads(split.manifest.to_json())
    rows = decode_rows(record["rows"]["target"])
    record["rows"]["source"] = encode_rows(np.sort(np.append(split.source, rows[0])))
    with pytest.raises(ManifestError, match="was altered"):
        Manifest.from_json(json.dumps(record))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read as JSON"),
        ("[]", "not a manifest"),
        ('{"format": "other"}', "not a manifest"),
        ('{"format": "openset shift manifest 1", "seed": 3}', "missing or unknown fields"),
    ],
)
def test_what_is_no_manifest_is_refused(text, message):
    with pytest.raises(ManifestError, match=message):
        Manifest.from_json(text)


def forged(manifest, **changes):
    """A manifest with a valid checksum of its own, but wrong rows."""
    return Manifest(**{**vars(manifest), **changes})


def test_rows_in_two_parts_or_out_of_range_are_refused_even_with_a_valid_checksum(split, columns):
    rows = dict(split.manifest.rows)
    with pytest.raises(ManifestError, match="the parts share rows"):
        rebuild(forged(split.manifest, rows=rows | {"target": rows["source"]}), **columns)
    with pytest.raises(ManifestError, match="row 700 is in a part, but the data has 700 rows"):
        rebuild(forged(split.manifest, rows=rows | {"target": encode_rows(np.array([700]))}), **columns)
    with pytest.raises(ManifestError, match="names 3 rows but holds"):
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


def test_checksums_depend_on_values_not_on_types():
    assert column_checksum(np.array(["a", "bb"])) == column_checksum(np.array(["a", "bb"], object))
    assert column_checksum([1, 2]) != column_checksum(["1", "2"])
    assert column_checksum(["a", "b"]) != column_checksum(["ab", ""])


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
