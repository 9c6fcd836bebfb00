"""Plain content as typed values; what is wrong is one sentence that names the file and the field."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from openset._utils.typed import Number, Scalar, plain, read_as, read_json, read_toml


@dataclass(frozen=True)
class Part:
    word: str
    share: float = 0.0

    def __post_init__(self) -> None:
        if self.share > 1:
            raise ValueError(f"share={self.share} is not valid: expected at most 1.")


@dataclass(frozen=True)
class Whole:
    part: Part
    rows: int
    parts: list[Part] = field(default_factory=list)
    mix: dict[str, Part] = field(default_factory=dict)
    by_name: dict[str, list[Number]] = field(default_factory=dict)
    columns: list[str] | Part | None = None
    ratio: Number | None = None
    ok: bool = True
    label: Scalar = None
    anything: Any = None


GOOD = {"part": {"word": "a"}, "rows": 3}


def test_content_becomes_nested_values():
    found = read_as(Whole, {**GOOD, "parts": [{"word": "b", "share": 1}], "mix": {"x": {"word": "c"}}}, "f.json")
    assert found == Whole(Part("a"), 3, parts=[Part("b", 1.0)], mix={"x": Part("c")})
    assert read_as(Whole, {**GOOD, "columns": ["a"]}, "f").columns == ["a"]
    assert read_as(Whole, {**GOOD, "columns": {"word": "a"}}, "f").columns == Part("a")


@pytest.mark.parametrize("value", [8, 8.0, None])
def test_numbers_stay_as_they_were_written(value):
    found = read_as(Whole, {**GOOD, "ratio": value}, "f").ratio
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"part": {"word": 3}}, "f.json: part.word is a whole number, expected text."),
        ({"part": {"word": None}}, "f.json: part.word is null, expected text."),
        ({"part": "a"}, "f.json: part is text, expected a table of names and values."),
        ({"part": {}}, "f.json: part.word is missing."),
        ({"rows": 3.5}, "f.json: rows is a number, expected a whole number."),
        ({"rows": True}, "f.json: rows is true or false, expected a whole number."),
        ({"rows": "3"}, "f.json: rows is text, expected a whole number."),
        ({"parts": [{"word": "a"}, {"word": []}]}, "f.json: parts[1].word is a list, expected text."),
        ({"parts": {"word": "a"}}, "f.json: parts is a table of names and values, expected a list."),
        ({"mix": {"x": {"word": "a"}, "y.z": {"word": 1.5}}}, "f.json: mix.y.z.word is a number, expected text."),
        ({"by_name": {"a": [1], "b": [1, "x"]}}, "f.json: by_name.b[1] is text, expected a number."),
        ({"columns": 3}, "f.json: columns is a whole number, expected a table of names and values or a list."),
        ({"ratio": "8"}, "f.json: ratio is text, expected a number."),
        ({"ok": 1}, "f.json: ok is a whole number, expected true or false."),
        ({"label": [1]}, "f.json: label is a list, expected true or false or a number or text."),
        ({"part": {"word": "a", "share": 2}}, "f.json: part: share=2.0 is not valid: expected at most 1."),
        ({"part": {"word": "a", "share": 10**400}}, "f.json: part.share: Number out of range."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_sentence(change, sentence):
    with pytest.raises(ValueError, match="f.json") as caught:
        read_as(Whole, {**GOOD, **change}, "f.json")
    assert str(caught.value) == sentence and caught.value.__cause__ is None


def test_content_that_is_no_table_or_lacks_a_field():
    for content, sentence in (
        ([], "f.json is a list, expected a table"),
        ({"rows": 3}, "f.json: part is missing."),
    ):
        with pytest.raises(ValueError, match=sentence):
            read_as(Whole, content, "f.json")
    with pytest.raises(ValueError, match=r"f.json: settings\.part\.word is missing\."):
        read_as(Whole, {"part": {}}, "f.json", at="settings")
    with pytest.raises(ValueError, match="f.json: settings is a list, expected a table"):
        read_as(Whole, [], "f.json", at="settings")


def test_unknown_names_are_ignored_or_refused_with_the_nearest():
    more = {**GOOD, "rwos": 3}
    assert read_as(Whole, more, "f") == read_as(Whole, GOOD, "f")
    with pytest.raises(ValueError, match=r"^f: 'rwos' is unknown\. Did you mean 'rows'\?$"):
        read_as(Whole, more, "f", refuse_unknown=True)
    with pytest.raises(ValueError, match=r"^f: 'at\.zzz' is unknown\. Known are part, rows, .*anything\.$"):
        read_as(Whole, {**GOOD, "zzz": 1}, "f", at="at", refuse_unknown=True)


@pytest.mark.parametrize(
    "content",
    [b"{", b"\xff\xfe\x00", b'{"a": NaN}', b'{"a": -Infinity}', b"[" * 100_000, b"9" * 5000, b""],
    ids=["open", "binary", "nan", "infinity", "deep", "long number", "empty"],
)
def test_a_file_that_is_no_json(tmp_path, content):
    path = tmp_path / "result.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"result\.json is damaged: it is not JSON \(.+\)\.$"):
        read_json(path)


@pytest.mark.parametrize(
    "content", [b"a =", b"a = '\xe9'", b"a = " + b"[" * 100_000], ids=["open", "binary", "deep"]
)
def test_text_that_is_no_toml(content):
    with pytest.raises(ValueError, match=r"^s\.toml is not valid TOML: .+[^.]\.$"):
        read_toml(content, "s.toml")
    assert read_toml(b"a = 1", "s.toml") == {"a": 1}


def test_plain_values_are_what_json_holds():
    records = np.rec.fromarrays([np.array([1, 2]), np.array([0.5, np.nan])], names="step,loss")
    found = plain(
        {
            1: np.float32(0.5),
            "records": records,
            "record": records[0],
            "matrix": np.eye(2, dtype=int),
            "inf": [np.inf, -np.inf],
            "names": np.array(["a", "b"]),
            "flag": np.bool_(True),
            "object": Part,
            "nothing": None,
        }
    )
    assert found == {
        "1": 0.5,
        "records": [{"step": 1, "loss": 0.5}, {"step": 2, "loss": None}],
        "record": [1, 0.5],
        "matrix": [[1, 0], [0, 1]],
        "inf": [None, None],
        "names": ["a", "b"],
        "flag": True,
        "object": str(Part),
        "nothing": None,
    }
    assert json.loads(json.dumps(found, allow_nan=False)) == found
