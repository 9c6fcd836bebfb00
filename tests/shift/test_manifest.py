from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.errors import ManifestError
from openset.shift import Manifest, background_shift
from openset.shift.manifest import PARTS, column_checksum, decode_rows, encode_rows


@given(st.sets(st.integers(0, 10**7)), st.integers(0, 3))
def test_rows_come_back_as_they_went(rows, scale):
    ascending = np.array(sorted(rows), np.intp) * 10**scale
    assert decode_rows(json.loads(json.dumps(encode_rows(ascending)))).tolist() == ascending.tolist()


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


def test_checksums_depend_on_values_not_on_types():
    assert column_checksum(np.array(["a", "bb"])) == column_checksum(np.array(["a", "bb"], object))
    assert column_checksum([1, 2]) != column_checksum(["1", "2"])
    assert column_checksum(["a", "b"]) != column_checksum(["ab", ""])
