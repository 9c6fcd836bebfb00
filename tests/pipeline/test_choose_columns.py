"""Which columns are used for what, and what is said where that cannot be told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from openset.data.readers.open import open_source
from openset.data.readers.source import Source
from openset.errors import ParameterError
from openset.pipeline.choose_columns import (
    ChosenColumns,
    carried_columns,
    choose_columns,
    likely_labels,
    refuse_missing_label,
)
from openset.pipeline.settings import RunSettings


def source(*names, vectors=(), name="source.csv", defaults=None):
    """A source that is never read, with these columns."""
    kinds = {column: "vector" if column in vectors else "other" for column in names}
    return Source(name, Path(), kinds, None, defaults=defaults or {})


def choose(settings, known, batch):
    return choose_columns(
        settings, source(*known) if isinstance(known, list) else known, source(*batch, name="new")
    )


def test_all_columns_of_both_but_those_with_a_role():
    settings = RunSettings(label="kind", id="nr", text="note", image="photo")
    found = choose(
        settings, ["a", "kind", "nr", "note", "photo", "b"], ["b", "extra", "a", "nr", "note", "photo"]
    )
    assert found == ChosenColumns(("a", "b"))
    assert choose(RunSettings(label="k"), ["b", "k", "a"], ["a", "b"]).table == ("b", "a"), (
        "in the source's order"
    )


def test_columns_that_are_not_read_say_why():
    found = choose(
        RunSettings(label="k", drop=("in*", "x")), ["k", "a", "in_1", "in_2", "x", "", "gone"], ["a", "x", "in_1"]
    )
    assert found.table == ("a",)
    assert {column.name: (column.kind, column.became, column.is_used) for column in found.unread} == {
        "in_1": ("dropped", "not used: dropped", False),
        "in_2": ("dropped", "not used: dropped", False),
        "x": ("dropped", "not used: dropped", False),
        "": ("row numbers", "not used: row numbers", False),
        "gone": ("not in target", "not used: not in target", False),
    }


def test_columns_that_are_named_are_used():
    settings = RunSettings(label="k", features=("b", "Unnamed: 0"), drop=("c",))
    assert choose(settings, ["a", "b", "Unnamed: 0", "c", "k"], ["a"]) == ChosenColumns(("b", "Unnamed: 0"))
    dropped = RunSettings(label="k", features=("a", "b"), drop=("a",))
    assert choose(dropped, ["a", "b", "k"], ["a", "b"]).table == ("b",)


def test_one_column_of_vectors_stands_beside_the_others():
    both = source("a", "e", "k", vectors=("e",))
    assert choose(RunSettings(label="k"), both, ["a", "e"]) == ChosenColumns(("a",), ("e",))
    assert choose(RunSettings(label="k", drop=("a",)), both, ["a", "e"]).features == ("e",)
    two = source("e", "f", "k", vectors=("e", "f"))
    with pytest.raises(ParameterError, match="source.csv: 'e', 'f' hold whole vectors, and only one such column"):
        choose(RunSettings(label="k"), two, ["e", "f"])
    assert choose(RunSettings(label="k", features="f"), two, ["e", "f"]).features == ("f",)


def test_text_or_images_alone_need_no_other_column():
    assert choose(RunSettings(label="k", text="t"), ["k", "t"], ["t"]) == ChosenColumns()
    folder = source("image", "label", defaults={"image": "image", "label": "label", "id": "image"})
    assert choose(RunSettings(label="label", image="image", id="image"), folder, ["image"]) == ChosenColumns()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"features": ("widht",)}, "features='widht' is no column of source.csv. Did you mean 'width'?"),
        ({"features": ("zzz",)}, "features='zzz' is no column of source.csv. It has width, kind."),
        ({"drop": ("widht",)}, "drop='widht' is no column of source.csv. Did you mean 'width'?"),
        ({"kinds": {"widht": "number"}}, "kinds='widht' is no column of source.csv. Did you mean 'width'?"),
        ({"drop": ("w*",)}, r"drop=\['w\*'\] leaves no feature"),
    ],
)
def test_columns_that_are_not_there_are_named(settings, words):
    with pytest.raises(ParameterError, match=words):
        choose(RunSettings(label="kind", **settings), ["width", "kind"], ["width"])
    # a pattern that fits nothing, and an id of the target alone, are no mistakes
    fine = RunSettings(label="kind", drop=("in*",), kinds={"rid": "id"})
    assert choose(fine, ["width", "kind"], ["width", "rid"]).table == ("width",)


def test_nothing_left_to_use_is_told():
    with pytest.raises(ValueError, match="no column of source.csv is in the target: it lacks 'a', 'b'"):
        choose(RunSettings(label="k"), ["a", "b", "k"], ["c"])
    with pytest.raises(
        ValueError, match="source.csv has no columns for features; it has k. Name a text or image"
    ):
        choose(RunSettings(label="k"), ["k"], ["c"])


def test_carried_columns():
    batch = source("a", "nr", "note", name="new.csv")
    assert carried_columns(RunSettings(), batch) == ()
    assert carried_columns(RunSettings(carry="all", id="nr"), batch) == ("a", "note")
    assert carried_columns(RunSettings(carry=("note", "nr", "a"), id="nr"), batch) == ("note", "a")
    assert carried_columns(RunSettings(carry="all"), source("all", "a")) == ("all",), "a column of this name"
    with pytest.raises(ParameterError, match="carry='nte' is no column of new.csv. Did you mean 'note'?"):
        carried_columns(RunSettings(carry=("a", "nte")), batch)


def test_likely_labels_are_in_source_alone_have_few_values_and_a_usual_name():
    known = pd.DataFrame(
        {
            "size": np.linspace(0, 1, 60),
            "sex": ["f", "m"] * 30,
            "class_of_animal": list("abc") * 20,
            "note": [f"n{i}" for i in range(60)],
            "one": "x",
            "grade": list("abcd") * 15,
            "Unnamed: 0": [0, 1] * 30,
            "vector": [[1.0, 2.0]] * 60,
            "Species": list("ab") * 30,
        }
    )
    batch = known[["size", "sex", "Species", "note"]]
    found = likely_labels(open_source(known), open_source(batch))
    assert found == ["class_of_animal", "grade", "Species", "sex"]
    assert likely_labels(open_source(known[["size", "note"]]), open_source(batch)) == []


def test_no_more_than_five_are_likely():
    known = pd.DataFrame({f"c{i}": ["a", "b"] * 10 for i in range(9)})
    assert len(likely_labels(open_source(known), open_source(known))) == 5


def test_a_label_that_is_not_named():
    known = open_source(pd.DataFrame({"x": range(8), "kind": ["a", "b"] * 4}))
    batch = open_source(pd.DataFrame({"x": range(8)}))
    with pytest.raises(
        ParameterError, match=r"no label column is named: pass label=\.\.\., .*Likely ones: 'kind'\.$"
    ):
        refuse_missing_label(RunSettings(), known, batch)
    with pytest.raises(ParameterError, match="the column of the source that holds the known class.$"):
        refuse_missing_label(RunSettings(), batch, batch)
    refuse_missing_label(RunSettings(label="kind"), known, batch)
    refuse_missing_label(RunSettings(), source("image", "label", defaults={"label": "label"}), batch)


def test_files_that_were_swapped():
    known, batch = source("x", "kind", name="known.csv"), source("x", name="new.csv")
    words = (
        "new.csv has no column 'kind', and known.csv has one: source and target seem to be swapped. "
        "Give the labelled file first."
    )
    with pytest.raises(ParameterError, match=words):
        refuse_missing_label(RunSettings(label="kind"), batch, known)
    refuse_missing_label(RunSettings(label="kind"), known, batch)
    refuse_missing_label(RunSettings(label="kind"), known, known)  # a labelled target is told elsewhere
