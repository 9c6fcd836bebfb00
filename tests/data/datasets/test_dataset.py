from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from openset._utils.arrays import as_objects
from openset.data import Dataset, ImageFiles


@pytest.fixture
def data(tmp_path):
    return Dataset(
        "toy",
        "A toy",
        "nobody",
        label=np.array(["a", "a", "b"]),
        features=np.arange(6.0).reshape(3, 2),
        images=ImageFiles(tmp_path, as_objects(["0.png", "1.png", "2.png"])),
        columns={"stars": np.array([1, 2, 3])},
        notes=("nothing is missing",),
    )


@pytest.mark.parametrize("rows", [[2, 0], np.array([2, 0]), [-1, 0]])
def test_rows_are_taken_from_every_column(data, rows):
    taken = data.take(rows)
    assert len(data) == 3 and len(taken) == 2
    assert taken.label.tolist() == ["b", "a"] and taken.features.tolist() == [[4, 5], [0, 1]]
    assert taken.images.paths.tolist() == ["2.png", "0.png"] and taken.columns["stars"].tolist() == [3, 1]
    assert taken.texts is None and (taken.name, taken.notes) == (data.name, data.notes)


def test_a_mask_takes_where_it_is_true(data):
    assert data.take(data.label == "a").columns["stars"].tolist() == [1, 2]
    assert len(data.take(np.zeros(3, dtype=bool))) == 0


def test_columns_must_be_of_one_length():
    with pytest.raises(ValueError, match="label 2, features 3"):
        Dataset("x", "X", "nobody", np.array(["a", "b"]), features=np.eye(3))
    with pytest.raises(ValueError, match="label 2, stars 1.*do not belong together"):
        Dataset("x", "X", "nobody", np.array(["a", "b"]), columns={"stars": np.array([1])})


def test_a_dataset_does_not_change(data):
    with pytest.raises(FrozenInstanceError):
        data.name = "other"
