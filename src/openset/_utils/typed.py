"""Files as typed values, checked by msgspec: what is wrong becomes one sentence that names the file and field."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from openset._utils.text import did_you_mean

if TYPE_CHECKING:
    from msgspec import ValidationError

T = TypeVar("T")

Number = int | float
"""A number that is kept as it was written: a field of type ``float`` would read 8 as 8.0."""
Scalar = bool | int | float | str | None

_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
    "array": "a list",
    "object": "a table of names and values",
}
_MISTYPED = re.compile(r"Expected `(.+?)`, got `(.+?)`")
_MISSING = re.compile(r"Object missing required field `(.+?)`")
_PLACE = re.compile(r" - at `\$(.*)`$")
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_ANY_KEY = "..."


def read_json(path: Path) -> Any:
    """The content of a JSON file, or a ValueError that says what is wrong with it."""
    try:
        return json.loads(path.read_bytes(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:  # of bytes that are no text, no JSON, or nested without end
        raise ValueError(f"{path} is damaged: it is not JSON ({error}).") from None


def read_toml(text: bytes, where: str) -> dict[str, Any]:
    """The content of a TOML file, or a ValueError that says what is wrong with it."""
    try:
        return tomllib.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where} is not valid TOML: {str(error).rstrip('.')}.") from None


def read_as(kind: type[T], content: Any, where: str, *, at: str = "", refuse_unknown: bool = False) -> T:
    """Plain content as a value of a dataclass; a ValueError names ``where`` and the field that is wrong.

    Fields that ``kind`` does not have are ignored, as another version may have written them; with
    ``refuse_unknown`` those at the top are an error that names the nearest field. ``at`` is the path of the
    content in its file.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Verdict:
    ...     word: str
    >>> read_as(Verdict, {"word": "clear"}, "result.json").word
    'clear'
    >>> read_as(Verdict, {"word": 3}, "result.json", at="verdict")
    Traceback (most recent call last):
    ...
    ValueError: result.json: verdict.word is a whole number, expected text.
    """
    import msgspec  # 5 ms, and only where a file is read

    if refuse_unknown and isinstance(content, Mapping):
        known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
        for name in content:
            if name not in known:
                hint = did_you_mean(name, known) or f" Known are {', '.join(known)}."
                raise ValueError(f"{where}: {_path([at, name])!r} is unknown.{hint}")
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"{where}{_sentence(error, kind, content, at)}") from None


def _sentence(error: ValidationError, kind: type[Any], content: Any, at: str) -> str:
    """What msgspec found, in words: the path of the field, what is there and what was expected."""
    message = str(error)
    place = _PLACE.search(message)
    steps = [at, *(_with_keys(message, place[1], kind, content) if place else [])]
    path = _path(steps)
    if (mistyped := _MISTYPED.match(message)) is not None:
        found, expected = _WORDS.get(mistyped[2], mistyped[2]), _expected(mistyped[1])
        return f"{f': {path}' if path else ''} is {found}, expected {expected}."
    if (missing := _MISSING.match(message)) is not None:
        return f": {_path([*steps, missing[1]])} is missing."
    reason = str(error.__cause__ or _PLACE.sub("", message)).rstrip(".")  # a check of the dataclass's own
    return f": {path}: {reason}." if path else f": {reason}."


def _expected(types: str) -> str:
    """
    >>> _expected("int | float | null"), _expected("object | array")
    ('a number', 'a table of names and values or a list')
    """
    names = [name for name in types.split(" | ") if name != "null"] or ["null"]
    if {"int", "float"} <= set(names):
        names.remove("int")
    return " or ".join(_WORDS.get(name, name) for name in names)


def _with_keys(message: str, place: str, kind: type[Any], content: Any) -> list[str | int]:
    """The steps to a field. msgspec writes ``[...]`` for any key: the key is found by keeping one at a time."""
    import msgspec

    steps: list[str | int] = []
    for name, index in _STEP.findall(place):
        if index != _ANY_KEY:
            steps.append(int(index) if index else name)
            continue
        for key, reduced in _with_one_key(content, steps):
            try:
                msgspec.convert(reduced, kind)
            except msgspec.ValidationError as error:
                if str(error) == message:
                    steps.append(key)
                    content = reduced
                    break
        else:
            return [*steps, _ANY_KEY]
    return steps


def _with_one_key(content: Any, steps: list[str | int]) -> Iterator[tuple[str, Any]]:
    """For each key of the mapping at the end of ``steps`` the content with that key alone there."""
    if not steps:
        for key, value in content.items():
            yield key, {key: value}
        return
    first, *rest = steps
    for key, reduced in _with_one_key(content[first], rest):
        if isinstance(content, Mapping):
            yield key, {**content, first: reduced}
        else:
            yield key, [reduced if index == first else item for index, item in enumerate(content)]


def _path(steps: list[str | int]) -> str:
    """
    >>> _path(["groups", 1, "share"])
    'groups[1].share'
    """
    parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps if step != "")
    return "".join(parts).removeprefix(".")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number in JSON")


def plain(value: Any) -> Any:
    """Values as JSON holds them: arrays as lists, record arrays as lists of objects, no NaN or infinity.

    >>> import numpy as np
    >>> plain({"a": np.array([1.0, np.inf]), "b": (np.int64(2),)})
    {'a': [1.0, None], 'b': [2]}
    """
    if hasattr(value, "tolist"):  # numpy's, told without importing it
        names, items = getattr(value.dtype, "names", None), value.tolist()
        if names and isinstance(items, list):
            return [dict(zip(names, map(plain, row), strict=True)) for row in items]
        return plain(items)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
