from __future__ import annotations

import numpy as np
import pytest

from openset.data import load_dataset


def test_amazon_of_fdu_mtl(shared_data):
    data = load_dataset("amazon_fdu_mtl", shared_data / "amazon_reviews")
    assert len(data) == 25859 and data.stand_in_for == "Amazon Reviews 2018" and "stand-in" in data.title
    assert data.features.shape == (25859, 384) and data.features.dtype == np.float16
    assert isinstance(data.features, np.memmap)
    assert np.bincount(data.sentiment).tolist() == [12334, 13525]
    rows = [(data.label == name).sum() for name in np.unique(data.label)]
    assert len(rows) == 14 and sum(rows) == 25859
    assert set(data.split) == {"train", "test"} and all(isinstance(text, str) for text in data.texts[:100])


def test_sun_scenes(shared_data):
    data = load_dataset("sun_scenes", shared_data / "sun_scenes")
    assert len(data) == 2983 and data.stand_in_for == "SUN397" and "stand-in" in data.title
    assert data.features.shape == (2983, 1280)
    groups = {label: len(set(data.subtype[data.label == label])) for label in np.unique(data.label)}
    assert groups == {"indoor": 4, "outdoor_manmade": 6, "outdoor_natural": 4}
    image = data.images[2982]
    assert image.dtype == np.uint8 and image.shape[2] == 3 and min(image.shape[:2]) <= 160
    chosen = data.take([5, 2])
    np.testing.assert_array_equal(chosen.images[1], data.images[2])
    assert data.images.problem(0) is None


def test_clinc150(shared_data):
    data = load_dataset("clinc150", shared_data / "clinc150")
    assert len(data) == 23700 and data.stand_in_for is None
    assert (data.label == "oos").sum() == 1200
    per_domain = [len(set(data.subtype[data.label == name])) for name in set(data.label) - {"oos"}]
    assert per_domain == [15] * 10


@pytest.mark.parametrize("name", ["amazon_fdu_mtl", "sun_scenes", "clinc150"])
def test_a_stand_in_that_is_not_there_says_so(tmp_path, name):
    with pytest.raises(FileNotFoundError, match="lacks .*docs/data.md"):
        load_dataset(name, tmp_path)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load_dataset(name, tmp_path / "absent")


def test_a_damaged_stand_in_says_so(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    import pyarrow as pa

    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "queries.parquet")
    with pytest.raises(ValueError, match="lacks the columns intent, domain, split; it has text"):
        load_dataset("clinc150", tmp_path)
