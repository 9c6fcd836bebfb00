"""The data of a run in ``result.json`` and in words."""

from __future__ import annotations

from dataclasses import asdict, replace

from openset._utils.typed import read_as
from openset.pipeline.data_used import MOST_COLUMNS, ColumnUse, Data, EncodedColumn, Origin

ORIGIN = Origin("a.csv", 60, 2, "9f86")
ENCODED = EncodedColumn("text", "review", "minilm", "c0ffee")


def data(*uses, features=None, encoded=()):
    uses = [ColumnUse(*use) for use in uses]
    named = [use.name for use in uses if use.features] if features is None else features
    left_out = [use.name for use in uses if not use.features]
    return Data(ORIGIN, ORIGIN, "kind", "nr", named, left_out, uses, list(encoded))


def test_features_in_a_few_words():
    plain = data(("a", "number", "as it is", 1), ("b", "number", "as it is", 1))
    assert plain.features_text == "2: a, b"
    made = data(("a", "number", "as it is", 1), ("town", "category", "3 levels", 4), ("nr", "id", "not used", 0))
    assert made.features_text == "5, made of 2 columns: a, town"
    both = data(("town", "category", "…", 4), features=["town", "review"], encoded=[ENCODED])
    assert both.features_text == "4, made of 1 column: town; text column 'review' through minilm"
    assert data(features=["review"], encoded=[ENCODED]).features_text == "text column 'review' through minilm"
    many = data(*((f"c{i}", "number", "as it is", 1) for i in range(10)))
    assert many.features_text == "10: c0, c1, c2, c3, c4, c5, c6, c7 and 2 more"


def test_numbers_that_stay_as_they_are_have_no_lines():
    assert data(("a", "number", "as it is", 1)).column_lines() == [] == data().column_lines()


def test_every_other_column_has_a_line():
    lines = data(
        ("a", "number", "as it is", 1),
        ("town", "category", "3 levels, a column each", 4),
        ("b", "number", "as it is", 1),
        ("", "row numbers", "not used: row numbers", 0),
        ("gone", "not in target", "not used: not in target", 0),
    ).column_lines()
    assert [" ".join(line.split()) for line in lines] == [
        "What became of the columns",
        "town category 3 levels, a column each",
        "'' row numbers not used: row numbers",
        "gone not in target not used: not in target",
        "2 more columns of numbers, as they are",
    ]
    starts = {
        line.index(text) for line, text in zip(lines[1:4], ("3 levels", "not used", "not used"), strict=True)
    }
    assert len(starts) == 1, "in columns"


def test_lines_fit_a_terminal_and_are_not_endless():
    lines = data(*((f"name\n{i} " * 9, "category", "many words " * 20, 2) for i in range(50))).column_lines()
    assert max(map(len, lines)) <= 80
    assert lines[-1] == f"  and {50 - MOST_COLUMNS} more; result.json has them all"
    assert sum("category" in line for line in lines) == MOST_COLUMNS


def test_read_again_as_it_was_and_as_an_earlier_openset_wrote_it():
    whole = data(("town", "category", "3 levels", 4), features=["town", "review"], encoded=[ENCODED])
    assert read_as(Data, asdict(whole), "result.json") == whole
    content = asdict(data(("a", "number", "as it is", 1)))
    for name in ("columns", "encoded"):
        content.pop(name)
    earlier = read_as(Data, content, "result.json")
    assert earlier.columns == earlier.encoded == [] and earlier.features_text == "1: a"
    encoded = read_as(Data, {**content, "features": asdict(ENCODED)}, "result.json")
    assert encoded.encoded == [ENCODED] and encoded.features == ["review"]
    assert encoded.features_text == "text column 'review' through minilm" and encoded.column_lines() == []


def test_a_sample_says_its_size_its_reason_and_what_is_about_it():
    whole = data(("a", "number", "as it is", 1))
    assert whole.sample_text == "" and not whole.is_sample and ORIGIN.fitted_text("source") == "60 source rows"
    large = Origin("s.parquet", 5_000_000, 0, "9f86", 100_350, "id", 350)
    source_only = replace(whole, source=large)
    assert source_only.is_sample and "Fitted on 100350 of 5000000 source rows, drawn" in source_only.sample_text
    assert "350 source rows more than their share" in source_only.sample_text
    assert "can be up to 0.35 % higher" in source_only.sample_text and "All target" not in source_only.sample_text
    numbered = replace(large, fitted=100_000, drawn_by="row number", more_of_rare=0)
    both = replace(whole, source=large, target=numbered)
    assert (
        "hash of the id and row number" in both.sample_text and "All target rows are scored" in both.sample_text
    )
    assert "Rare classes" not in replace(whole, target=numbered).sample_text
    assert read_as(Data, asdict(both), "result.json") == both
