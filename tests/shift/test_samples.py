from __future__ import annotations

import csv

import numpy as np
import pytest
from sklearn.datasets import load_digits

from openset.data import read_table
from openset.shift.digits import digits_rows
from openset.shift.samples import BATCH, DIGITS_SEED, KNOWN, SAMPLES, TRUTH, make_sample, write_sample
from openset.stats.thresholds import rows_for_threshold_after_choice


@pytest.fixture(scope="module", params=list(SAMPLES))
def sample(request):
    return make_sample(request.param)


def test_a_sample_is_the_same_every_time_and_has_no_row_twice(sample, request):
    again = make_sample(request.node.callspec.params["sample"])
    assert np.array_equal(sample.X_target, again.X_target) and sample.ids == again.ids
    assert len(set(sample.ids)) == len(sample.ids) == len(sample.X_target) == len(sample.y_target)
    assert len(sample.X) == len(sample.y) and sample.X.shape[1] == len(set(sample.feature_names))
    assert set(sample.known_classes) == set(sample.y_target.tolist()) - set(sample.new_classes)


def test_files_are_read_back_exactly(sample, tmp_path):
    write_sample(sample, tmp_path / "a" / "b")
    known = read_table(tmp_path / "a" / "b" / KNOWN, label=sample.label)
    batch = read_table(tmp_path / "a" / "b" / BATCH, id="id")
    truth = read_table(tmp_path / "a" / "b" / TRUTH, label=sample.label, id="id")
    assert list(known.feature_names) == list(batch.feature_names) == sample.feature_names
    assert np.array_equal(known.X, sample.X) and known.y.tolist() == sample.y.tolist()
    assert np.array_equal(batch.X, sample.X_target) and batch.ids.tolist() == sample.ids
    assert np.array_equal(truth.X, batch.X) and truth.ids.tolist() == sample.ids
    assert truth.y.tolist() == sample.y_target.tolist()
    assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == sorted([KNOWN, BATCH, TRUTH])


def test_labels_are_not_in_the_batch(sample, tmp_path):
    write_sample(sample, tmp_path)
    with (tmp_path / BATCH).open(encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == ["id", *sample.feature_names] and len(rows) == len(sample.X_target)
    new = np.isin(sample.y_target, sample.new_classes)
    assert not sample.n_new or 0.25 < np.flatnonzero(new).mean() / len(new) < 0.75  # new rows are spread over it


def test_what_is_new():
    counts = {name: (make_sample(name).new_classes, make_sample(name).n_new) for name in SAMPLES}
    assert counts == {
        "digits": ([9], 180),
        "digits-known": ([], 0),
        "breast-cancer": (["malignant"], 27),
        "wine": (["class_2"], 20),
    }


def test_ids_tell_the_row_of_scikit_learns_data():
    sample = make_sample("digits")
    rows = [int(name.removeprefix("image-")) for name in sample.ids]
    assert np.array_equal(load_digits().data[rows], sample.X_target)
    assert np.array_equal(load_digits().target[rows], sample.y_target)


def test_all_digits_are_used_and_the_known_ones_shift():
    sample = make_sample("digits")
    assert len(sample.X) + len(sample.X_target) == 1797
    in_source, in_target = (np.bincount(y[y < 9]) / (y < 9).sum() for y in (sample.y, sample.y_target))
    assert np.abs(in_target / in_source - 1).max() > 0.5
    known = make_sample("digits-known")
    assert np.array_equal(known.X, sample.X)
    assert len(known.X_target) == len(sample.X_target) - sample.n_new


def test_the_split_of_the_digits_is_the_first_with_enough_source_rows():
    digit = load_digits().target
    needed = rows_for_threshold_after_choice(0.01, n_compared=360)  # the heads of CoLOR's default
    sizes = [len(digits_rows(digit, seed, 0.0).source) for seed in range(DIGITS_SEED + 1)]
    assert max(sizes[:-1]) < needed <= sizes[-1]


def test_files_with_other_content_are_not_replaced_without_a_word(tmp_path):
    sample = make_sample("wine")
    write_sample(sample, tmp_path)
    write_sample(sample, tmp_path)  # the same files are fine
    (tmp_path / KNOWN).write_text("mine")
    (tmp_path / BATCH).unlink()
    with pytest.raises(ValueError, match="known.csv is there already with other content .* overwrite=True"):
        write_sample(sample, tmp_path)
    assert (tmp_path / KNOWN).read_text() == "mine" and not (tmp_path / BATCH).exists()
    write_sample(sample, tmp_path, overwrite=True)
    assert len(read_table(tmp_path / KNOWN, label="cultivar")) == 77
    assert not list(tmp_path.glob(".writing-*"))
    with pytest.raises(ValueError, match="known.csv, .*batch.csv, .*truth.csv are there already"):
        write_sample(make_sample("digits"), tmp_path)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="file is a file"):
        write_sample(make_sample("wine"), tmp_path / "file")


def test_unknown_names_are_told_and_the_nearest_is_offered():
    with pytest.raises(ValueError, match="no sample 'digit': choose one of digits, .*Did you mean 'digits'"):
        make_sample("digit")
    with pytest.raises(ValueError, match="wine.$"):
        make_sample("zzz")
