"""Samples of a stream of rows: which rows they have, and that they are the same however the rows are read."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.data.readers.cells import cells_of
from openset.data.readers.records import Records, SkippedRow, concatenate
from openset.data.readers.sampled import FEWEST_OF_A_CLASS, RARE, id_keys, sample_rows
from openset.stats.row_sample import row_keys


def records_of(rows, ids=None, y=None):
    rows = np.asarray(rows)
    return Records(
        rows,
        X=np.column_stack([rows, -rows]).astype(np.float32),
        y=None if y is None else np.asarray(y, object)[rows],
        ids=None if ids is None else np.asarray(ids)[rows],
        table={"n": cells_of(rows.astype(float)), "t": cells_of([f"t{row}" for row in rows])},
        carried={"note": pa.array([f"note {row}" for row in rows])},
    )


def cut_up(rows, cuts):
    return np.split(rows, sorted(set(cuts)))


@given(
    n=st.integers(30, 400),
    most=st.integers(20, 60),
    cuts=st.lists(st.integers(0, 400), max_size=6),
    other=st.lists(st.integers(0, 400), max_size=6),
    shuffled=st.randoms(use_true_random=False),
    texts=st.booleans(),
)
def test_the_sample_depends_neither_on_batches_nor_on_the_order_of_parts(n, most, cuts, other, shuffled, texts):
    ids = [f"k{i}" for i in range(n)] if texts else np.arange(n) * 7 - 50
    y = [("rare", "a", "b")[0 if i % 40 == 0 else 1 + i % 2] for i in range(n)]
    batches = [records_of(part, ids, y) for part in cut_up(np.arange(n), cuts)]
    again = [records_of(part, ids, y) for part in cut_up(np.arange(n), other)]
    shuffled.shuffle(again)
    one, two = sample_rows(batches, most), sample_rows(again, most)
    if n <= most:
        np.testing.assert_array_equal(one.X, records_of(np.arange(n)).X)
        assert one.drawn is None and sorted(two.ids.tolist()) == sorted(one.ids.tolist())
        return
    assert one.ids.tolist() == two.ids.tolist() and one.y.tolist() == two.y.tolist()
    assert one.drawn.classes == two.drawn.classes and one.drawn.n_rows == n
    # the definition: the smallest keys of all, and the smallest of each class
    keys = id_keys(np.asarray(ids), 0)
    order = np.argsort(keys)
    fewest = max(int(0.1 * most / 3), FEWEST_OF_A_CLASS)
    expected = {*order[:most].tolist()}
    for label in ("rare", "a", "b"):
        expected |= {*[i for i in order.tolist() if y[i] == label][:fewest]}
    assert one.rows.tolist() == [i for i in order.tolist() if i in expected]
    # every column is of the same rows, and the positions are those among all rows in the order of reading
    np.testing.assert_array_equal(one.X[:, 0], one.rows)
    np.testing.assert_array_equal(one.table["n"].values, one.rows)
    assert one.table["t"].values.to_pylist() == [f"t{row}" for row in one.rows]
    assert one.carried["note"].to_pylist() == [f"note {row}" for row in one.rows]
    assert one.drawn.index.tolist() == one.rows.tolist()
    everything = concatenate(again)
    assert everything.rows[two.drawn.index].tolist() == two.rows.tolist()


@given(cuts=st.lists(st.integers(0, 300), max_size=5), seed=st.integers(0, 3))
def test_without_ids_it_is_drawn_by_row_numbers(cuts, seed):
    found = sample_rows([records_of(part) for part in cut_up(np.arange(300), cuts)], 40, seed=seed)
    order = np.argsort(row_keys(np.arange(300), seed))
    assert found.rows.tolist() == order[:40].tolist() and found.drawn.by == "row number"
    assert found.drawn.classes == {} and found.drawn.n_alike == len(found) == 40


def test_another_seed_is_another_sample_of_the_same_size():
    batches = [records_of(np.arange(1000), np.arange(1000))]
    one, two = (set(sample_rows(batches, 100, seed=seed).ids.tolist()) for seed in (0, 1))
    assert len(one) == len(two) == 100 and 0 < len(one & two) < 40


def test_a_rare_class_does_not_vanish_and_is_counted_in_all_rows():
    y = np.array(["common"] * 60_000, object)
    y[::200] = "rare"  # 300 rows
    y[1::20_000] = "handful"  # 3 rows
    batches = [records_of(part, np.arange(60_000), y) for part in np.split(np.arange(60_000), 12)]
    found = sample_rows(batches, 10_000)
    labels, counts = np.unique(found.y.astype(str), return_counts=True)
    kept = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    assert kept["rare"] == RARE and kept["handful"] == 3
    assert found.drawn.classes == {"rare": 300, "common": 59_697, "handful": 3}
    assert found.drawn.n_alike == 10_000 < len(found) < 10_000 + RARE


def test_many_classes_get_fewer_rows_each_so_that_the_shares_stay_near():
    y = np.array([f"c{i % 100}" if i < 2000 else "common" for i in range(50_000)], object)
    found = sample_rows([records_of(np.arange(50_000), np.arange(50_000), y)], 5000)
    counts = np.unique(found.y.astype(str), return_counts=True)[1]
    assert len(counts) == 101 and counts.min() == 4  # a tenth of 5000 rows for 101 classes
    assert len(found) <= 1.1 * 5000


def test_skipped_rows_are_counted_and_only_some_are_listed():
    skipped = [tuple(SkippedRow(i, "no label") for i in range(start, start + 900)) for start in (0, 900)]
    batches = [
        Records(np.arange(50), skipped=skipped[0]),
        Records(np.arange(50, 100), skipped=skipped[1]),
    ]
    for most in (20, 100):
        found = sample_rows(batches, most)
        assert found.n_skipped == 1800 and len(found.skipped) == 1000


def test_keys_of_ids_are_the_same_in_every_process():
    numbers = id_keys(np.array([3, -1]), 0)
    assert numbers.tolist() == row_keys(np.array([3, -1]), 0).tolist()
    (text,) = id_keys(np.array(["é"], object), 0).tolist()
    digest = int.from_bytes(hashlib.blake2b("é".encode(), digest_size=8).digest(), "little")
    assert text == row_keys(np.array([digest], np.uint64), 0).tolist()[0]
    mixed = id_keys(np.array([2**63 + 1, -1], object), 0)
    assert mixed.tolist() == [*id_keys(np.array([2**63 + 1], np.uint64), 0), numbers[1]]
    assert len(set(id_keys(np.array([0.5, 1.5, 2.5]), 0).tolist())) == 3


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint8, np.uint64])
def test_the_width_of_integers_does_not_matter(kind):
    assert id_keys(np.array([1, 200], kind), 5).tolist() == id_keys(np.array([1, 200]), 5).tolist()
