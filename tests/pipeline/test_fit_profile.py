"""The profile in a run's folder: what is stored, read again, and refused in one sentence where it is damaged."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import load, save

from mutations import mutations, outcome
from openset.data.readers.records import Records
from openset.features.maker import MadeFeatures
from openset.pipeline.fit_profile import Columns, make_profile, read_profile, write_profile
from openset.pipeline.result import PROFILE


def make(X, X_target, names=("a", "b"), **about):
    records = [Records(np.arange(len(rows)), **about) for rows in (X, X_target)]
    return make_profile(*(MadeFeatures(rows, rows if names else None, names) for rows in (X, X_target)), *records)


@pytest.fixture
def profile():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(900, 2)) * [1, 1000] + [0, 5000]
    return make(rows[:700], rows[700:] + 1, kinds={"a": "number", "b": "number", "town": "other"})


def same(one, other):
    assert one.columns == other.columns and one.scaling.rule == other.scaling.rule
    assert one.ranges.n_rows == other.ranges.n_rows and one.ranges.precision == other.ranges.precision
    for name in ("source_rows", "target_rows", "ranges.low", "ranges.high", "scaling.mean", "scaling.factor"):
        arrays = [eval(f"it.{name}", {"it": it}) for it in (one, other)]
        np.testing.assert_array_equal(*arrays)
        assert arrays[0].dtype == arrays[1].dtype


def test_written_and_read_again(profile, tmp_path):
    write_profile(profile, tmp_path / PROFILE)
    same(read_profile(tmp_path / PROFILE), profile)
    write_profile(profile, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / PROFILE).read_bytes()
    assert read_profile(tmp_path / "none") is None


def test_what_is_stored_of_the_rows(profile):
    assert len(profile.source_rows) == 500 and len(profile.target_rows) == 200
    assert profile.source_rows.dtype == np.float32 and profile.ranges.n_rows == 900
    for rows in (profile.source_rows, profile.target_rows):  # scaled together, whatever the units
        assert (rows.std(axis=0) > 0.7).all() and (rows.std(axis=0) < 1.3).all() and np.abs(rows).max() < 5
    assert profile.feature_names == ["a", "b"] and profile.scaling.rule == "feature"


def test_a_run_has_the_profile_of_its_data(result, problem_files, tmp_path):
    result.save(tmp_path / "run")
    found = read_profile(tmp_path / "run" / PROFILE)
    rows = np.concatenate([result.features_source, result.features_target])
    np.testing.assert_array_equal([found.ranges.low, found.ranges.high], [rows.min(axis=0), rows.max(axis=0)])
    assert found.columns.features == ["width", "height", "weight"] and found.columns.typed
    assert set(found.columns.of_source) == {"width", "height", "weight", "kind", "rid", "town"}
    assert found.columns.of_target == {"width": "number", "height": "number", "weight": "number", "rid": "other"}
    same(found, read_profile(problem_files / "run" / PROFILE))  # equal fits store the same
    result.save(tmp_path / "run", overwrite=True)  # a run with a profile is a run to replace


def test_a_column_of_vectors_and_rows_without_columns():
    rows = np.random.default_rng(0).normal(size=(90, 3)).astype(np.float16)
    vectors = make(rows[:50], rows[50:], names=("e",))
    assert vectors.feature_names == ["e[0]", "e[1]", "e[2]"] and vectors.ranges.precision == np.float16
    encoded = make(rows[:50], rows[50:], names=())
    assert encoded.ranges is None and encoded.feature_names == []
    images = np.random.default_rng(0).integers(0, 255, (60, 4, 4, 3), dtype=np.uint8)
    pixels = make(images[:30], images[30:], names=("array",))
    assert pixels.ranges is None and pixels.source_rows.shape == (30, 48)
    assert pixels.scaled(images[:2]).shape == (2, 48)


def test_ranges_are_of_values_and_samples_of_features():
    values = np.array([[1.0, 0], [1000, 1], [30, 0], [7, 1]])
    made = [MadeFeatures(np.arcsinh(rows), rows, ("pay", "is new")) for rows in (values[:2], values[2:])]
    found = make_profile(*made, *(Records(np.arange(2)) for _ in range(2)))
    assert (found.ranges.low.tolist(), found.ranges.high.tolist()) == ([1, 0], [1000, 1])
    assert found.feature_names == ["pay", "is new"]
    np.testing.assert_array_equal(found.source_rows, found.scaled(np.arcsinh(values[:2])))


def test_profiles_without_ranges_are_read_again(tmp_path):
    rows = np.random.default_rng(0).normal(size=(90, 3))
    write_profile(make(rows[:50], rows[50:], names=()), tmp_path / PROFILE)
    found = read_profile(tmp_path / PROFILE)
    assert found.ranges is None and found.target_rows.shape == (40, 3) and found.columns == Columns()


def test_rows_of_many_features_are_fewer():
    wide = make(np.ones((600, 3000), np.float32), np.zeros((600, 3000), np.float32), names=("e",))
    assert len(wide.source_rows) == len(wide.target_rows) == 2**20 // 3000


def test_a_wild_value_does_not_spoil_the_rest():
    rows = np.random.default_rng(0).normal(size=(100, 2))
    rows[7, 1] = 1e200
    wild = make(rows[:60], rows[60:])
    assert np.isfinite(wild.source_rows).all() and wild.ranges.high[1] == 1e200
    assert np.abs(make(rows[:5], rows[60:]).scaled(rows)).max() <= 1e4


def test_new_and_changed_columns():
    columns = Columns(["x"], ["x", "kind"], {"x": "number", "town": "other", "size": "number"}, typed=True)
    kinds = {"x": "number", "kind": "other", "town": "number", "size": "other", "age": "number", "zip": "other"}
    assert columns.new_in(kinds) == ["age", "zip"]
    assert columns.changed_in(kinds, True) == {"town": ("other", "number"), "size": ("number", "other")}
    assert columns.changed_in(kinds, False) == {}  # a CSV file: the same values may look different
    assert Columns().new_in(kinds) == [] and Columns().changed_in(kinds, True) == {}


def test_a_header_with_one_thing_changed_is_read_or_refused_in_one_sentence(profile, tmp_path):
    path = tmp_path / PROFILE
    write_profile(profile, path)
    tensors, about = load(path.read_bytes()), header(path)
    read = refused = 0
    for mutation in mutations(about):
        path.write_bytes(save(tensors, metadata={"openset_profile": json.dumps(mutation.content)}))
        found, message = outcome(read_profile, path)
        if message:
            refused += 1
            assert message.startswith(f"{path} is damaged: ") and message.endswith("comparison with the fit.")
            assert "\n" not in message
            continue
        read += 1
        assert found.feature_names and found.columns.new_in({"q": "number"}) in (["q"], [])
    assert refused > 40 and read > 5


def header(path):
    size = int.from_bytes(path.read_bytes()[:8], "little")
    return json.loads(json.loads(path.read_bytes()[8 : 8 + size])["__metadata__"]["openset_profile"])


def test_arrays_that_do_not_fit_together_are_refused(profile, tmp_path):
    path = tmp_path / PROFILE
    write_profile(profile, path)
    tensors, about = load(path.read_bytes()), json.dumps(header(path))
    whole = path.read_bytes()
    for change, words in [
        ({"low": np.zeros(3)}, "not of the same features"),
        ({"source_rows": np.zeros((5, 3), np.float32)}, "not of the same features"),
        ({"target_rows": np.zeros(2, np.float32)}, "not of the same features"),
        ({"target_rows": np.zeros((0, 2), np.float32)}, "not of the same features"),
        ({"mean": np.array([np.nan, 0])}, "NaN or infinity"),
    ]:
        path.write_bytes(save({**tensors, **change}, metadata={"openset_profile": about}))
        with pytest.raises(ValueError, match=words):
            read_profile(path)
    del tensors["high"]
    path.write_bytes(save(tensors, metadata={"openset_profile": about}))
    with pytest.raises(ValueError, match="'high' is missing"):
        read_profile(path)
    for content in (whole[: len(whole) // 2], b"", b"{}", save({"x": np.zeros(3)})):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is damaged: .*delete it to score without"):
            read_profile(path)


def test_a_profile_of_a_later_openset(profile, tmp_path):
    path = tmp_path / PROFILE
    write_profile(profile, path)
    about = json.dumps({**header(path), "format_version": 9, "openset_version": "7.0"})
    path.write_bytes(save(load(path.read_bytes()), metadata={"openset_profile": about}))
    with pytest.raises(ValueError, match="openset 7.0 wrote it in a later format: upgrade openset"):
        read_profile(path)
