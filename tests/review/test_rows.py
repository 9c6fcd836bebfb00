from __future__ import annotations

import numpy as np
import pytest

from openset.data.readers.records import Records
from openset.review.rows import Domain, Typical, original_columns


def test_original_columns_are_those_of_the_rows_that_were_read(tmp_path):
    (tmp_path / "rows.csv").write_text("x,town,kind\n1,Rome,a\n,Oslo,b\n3,Bern,c\n")
    records = Records(np.array([0, 2]))
    found = original_columns(str(tmp_path / "rows.csv"), records, {"kind"})
    assert list(found) == ["x", "town"] and found["town"] == ["Rome", "Bern"]


def test_a_data_frame_shows_its_features():
    records = Records(np.arange(2), feature_names=("x", "y"))
    domain = Domain(records, None, np.array([[1.0, 2.0], [3.0, 4.0]]), set())
    assert domain.columns == {"x": [1.0, 3.0], "y": [2.0, 4.0]}
    assert domain.text(0) is None and not domain.has_pictures
    with pytest.raises(LookupError, match="no pictures"):
        domain.picture(0)


def test_a_row_without_a_picture_says_so(tmp_path):
    from openset._utils.arrays import as_objects
    from openset.data.readers.images import ImageFiles

    images = ImageFiles(tmp_path, as_objects(["gone.jpg"]))
    domain = Domain(Records(np.arange(1), images=images), None, np.zeros((1, 2)), set())
    with pytest.raises(LookupError, match="row 0 has no picture that can be read"):
        domain.picture(0)


def test_unusual_columns_come_first_and_say_why():
    typical = Typical({"width": [1.0, 2.0, 3.0] * 10, "town": ["Rome"] * 29 + ["Oslo"], "flat": [5.0] * 30})
    found = typical.describe({"width": [2.0], "town": ["Bern"], "flat": [5.0]}, 0)
    assert [column.name for column in found] == ["town", "width", "flat"]
    assert found[0].note == "no known row has this" and found[1].note == "known rows: 2 ± 0.82"
    found = typical.describe({"width": [20.0], "town": ["Rome"], "flat": [None]}, 0)
    assert found[0].name == "width" and found[0].unusual > 5
    assert {column.name: column.value for column in found}["flat"] == ""


def test_original_columns_of_rows_in_any_order_and_of_broken_lines(tmp_path):
    lines = [f"{i},town {i}" if i % 10 else f"{i},town {i},too much" for i in range(1, 101)]
    (tmp_path / "rows.csv").write_text("x,town\n" + "\n".join(lines) + "\n")
    found = original_columns(str(tmp_path / "rows.csv"), Records(np.array([70, 3, 41])), set())
    assert found == {"x": [71.0, 4.0, 42.0], "town": ["town 71", "town 4", "town 42"]}
