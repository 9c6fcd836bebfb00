from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from openset._utils.arrays import as_objects
from openset.data.readers.cells import cells_of
from openset.data.readers.images import ImageFiles
from openset.data.readers.records import Drawn, Records, SeenIds, SkippedRow, concatenate
from openset.data.readers.tables import iter_batches, read_table


def test_batches_of_small_and_of_large_ids_are_joined_as_integers():
    parts = [Records(np.arange(1), ids=np.array([value])) for value in (7, 2**63 + 1)]
    assert concatenate(parts).ids.tolist() == [7, 2**63 + 1]
    parts = [Records(np.arange(1), ids=np.array([value])) for value in (-7, 2**63 + 1)]
    assert concatenate(parts).ids.tolist() == [-7, 2**63 + 1]


def test_seen_ids_agree_with_a_set():
    random = np.random.default_rng(0)
    for make in (
        lambda n: random.integers(0, 400, n),
        lambda n: random.integers(0, 400, n).astype(str).astype(object),
    ):
        seen, known = SeenIds(), set()
        for size in (1, 5, 50, 3, 200, 0, 7):
            ids = make(size)
            expected = []
            for one in ids.tolist():
                expected.append(one in known)
                known.add(one)
            assert seen.repeated(ids).tolist() == expected


def test_batches_are_joined_in_order():
    first = Records(np.array([0, 2]), X=np.eye(2), y=np.array(["a", "b"]), skipped=(SkippedRow(1, "bad"),))
    empty = Records(np.empty(0, np.int64), X=np.empty((0, 1)), y=np.empty(0), skipped=(SkippedRow(3, "worse"),))
    last = Records(np.array([4]), X=np.ones((1, 2)), y=np.array(["c"]))
    joined = concatenate([first, empty, last])
    assert joined.rows.tolist() == [0, 2, 4] and joined.y.tolist() == ["a", "b", "c"] and joined.ids is None
    assert joined.X.tolist() == [[1, 0], [0, 1], [1, 1]] and len(joined) == 3
    assert [bad.row for bad in joined.skipped] == [1, 3] and joined.n_skipped == 2
    assert concatenate([first]) is first
    assert len(concatenate([empty, empty])) == 0


def test_images_are_joined_by_their_paths(tmp_path):
    parts = [Records(np.array([i]), images=ImageFiles(tmp_path, as_objects([f"{i}.png"]))) for i in range(3)]
    joined = concatenate(parts)
    assert joined.images.paths.tolist() == ["0.png", "1.png", "2.png"] and joined.images.root == tmp_path


def test_ids_of_every_type_are_told_apart():
    for ids in ([1.5, -1.5, 1.5], [True, False, True], ["a", "b", "a"], [2**40, 1, 2**40]):
        assert SeenIds().repeated(np.array(ids)).tolist() == [False, False, True]


def test_the_kinds_of_all_columns_are_kept(tmp_path):
    table = pd.DataFrame({"x": [0.5, None, 2.5], "town": ["Rome", "Oslo", "Bern"], "size": [1, 2, 3]})
    table.to_csv(tmp_path / "table.csv", index=False)
    table.to_parquet(tmp_path / "table.parquet")
    for suffix, typed in (("csv", False), ("parquet", True)):
        records = read_table(tmp_path / f"table.{suffix}", features=["x"], skip_bad=True)
        assert records.kinds == {"x": "number", "town": "other", "size": "number"} and records.typed == typed
        assert len(records) == 2
        batches = list(iter_batches(tmp_path / f"table.{suffix}", features=["size"], batch_rows=1))
        joined = concatenate(batches)
        assert joined.kinds == batches[2].kinds == records.kinds and joined.typed == typed


def test_rows_are_taken_in_any_order_with_all_that_belongs_to_them(tmp_path):
    records = Records(
        np.arange(3),
        X=np.eye(3),
        ids=np.array([5, 6, 7]),
        texts=as_objects(["a", "b", "c"]),
        images=ImageFiles(tmp_path, as_objects(["a.jpg", "b.jpg", "c.jpg"])),
        table={"town": cells_of(["Ulm", None, "Bonn"]), "pay": cells_of([1.0, 2.0, 3.0])},
        carried={"note": pa.array(["x", "y", "z"])},
        skipped=(SkippedRow(9, "why"),),
        more_skipped=2,
        drawn=Drawn(10, np.arange(3), 3, {}, "id"),
    )
    taken = records.take(np.array([2, 1]))
    assert taken.rows.tolist() == [2, 1] and taken.ids.tolist() == [7, 6] and taken.X[:, 2].tolist() == [1, 0]
    assert taken.texts.tolist() == ["c", "b"] and taken.images.paths.tolist() == ["c.jpg", "b.jpg"]
    assert taken.table["town"].values.to_pylist() == ["Bonn", None] and taken.table["pay"].values[0] == 3.0
    assert taken.carried["note"].to_pylist() == ["z", "y"]
    assert taken.n_skipped == records.n_skipped == 3 and taken.drawn is None
