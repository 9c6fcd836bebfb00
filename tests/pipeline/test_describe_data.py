"""What is told of the data of a run: digests of files and patterns, and every column with what became of it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd

from openset._utils.hashing import path_sha256
from openset.data.readers.cells import cells_of
from openset.data.readers.records import Records, SkippedRow
from openset.features.fitted import Block, FittedFeatures
from openset.features.table.fit import fit_table
from openset.features.table.fitted import TableColumn
from openset.pipeline.data_used import ColumnUse, EncodedColumn, Origin
from openset.pipeline.describe_data import describe_data, digest_of
from openset.pipeline.load import RunData
from openset.pipeline.settings import RunSettings


def test_every_column_is_told_with_what_became_of_it(tmp_path):
    path = tmp_path / "source.csv"
    path.write_text("pay\n1\n")
    table = {
        "pay": cells_of(np.arange(40.0)),
        "town": cells_of(["Ulm", "Bonn"] * 20),
        "nr": cells_of([f"k{i}" for i in range(40)]),
    }
    fitted = FittedFeatures([Block("table"), Block("text", "review", 0.5)], fit_table(table))
    records = Records(np.arange(40), table=table, skipped=(SkippedRow(3, "no label"),))
    settings = RunSettings(source=str(path), label="kind", id="ticket", text="review")
    unread = [TableColumn("gone", "not in target", note="not used: not in target")]
    encoders = {"text": SimpleNamespace(name="minilm", fingerprint="c0ffee")}
    found = describe_data(RunData(settings, records, replace(records, skipped=()), unread), fitted, encoders)
    assert found.source == Origin(str(path), 40, 1, path_sha256(path)) and found.target == Origin(
        None, 40, 0, None
    )
    assert (found.label, found.id, found.features) == ("kind", "ticket", ["pay", "town", "review"])
    assert found.left_out == ["nr", "gone"]
    assert found.encoded == [EncodedColumn("text", "review", "minilm", "c0ffee")]
    nr = "not used: nearly every value occurs once; pass --id, or --as nr=category"
    assert found.columns == [
        ColumnUse("pay", "number", "as it is", 1),
        ColumnUse("town", "category", "2 levels, a column each", 3),
        ColumnUse("nr", "id", nr, 0),
        ColumnUse("gone", "not in target", "not used: not in target", 0),
    ]
    assert found.features_text == "4, made of 2 columns: pay, town; text column 'review' through minilm"


def test_vectors_alone():
    records = Records(np.arange(4), X=np.eye(4), feature_names=("e",))
    data = RunData(RunSettings(label="kind"), records, records)
    found = describe_data(data, FittedFeatures([Block("vector", "e")]), {})
    assert (found.features, found.columns, found.left_out, found.encoded) == (["e"], [], [], [])


def test_the_digest_of_a_pattern_changes_with_any_of_its_files(tmp_path):
    for name in ("a", "b"):
        pd.DataFrame({"x": [1, 2]}).to_csv(tmp_path / f"{name}.csv", index=False)
    one, pattern = tmp_path / "a.csv", str(tmp_path / "*.csv")
    assert digest_of(str(one)) == path_sha256(one) and digest_of(str(tmp_path)) == path_sha256(tmp_path)
    first = digest_of(pattern)
    assert first == digest_of(pattern) and first not in (digest_of(str(one)), digest_of(str(tmp_path)))
    (tmp_path / "b.csv").rename(tmp_path / "c.csv")
    renamed = digest_of(pattern)
    (tmp_path / "c.csv").write_text("x\n3\n")
    changed = digest_of(pattern)
    (tmp_path / "d.csv").write_text("x\n3\n")
    assert len({first, renamed, changed, digest_of(pattern)}) == 4
