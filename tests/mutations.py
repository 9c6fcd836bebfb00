"""Every way to damage plain content by one step: a field dropped, of another type, or added, at each path."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

OTHER_VALUES = (None, True, 3, 0.5, "text", [], [1], {}, {"some": "name"})


class Mutation(NamedTuple):
    what: str
    path: tuple[Any, ...]
    content: Any

    @property
    def field(self) -> str:
        """The path as a sentence writes it."""
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return "".join(steps).removeprefix(".")


def mutations(content: Any, *, others: tuple[Any, ...] = OTHER_VALUES) -> Iterator[Mutation]:
    """Content with one thing changed; of a list its first entry stands for all."""
    for path in _paths(content):
        value = _at(content, path)
        if path:
            yield Mutation("drop", path, _changed(content, path, drop=True))
        if isinstance(value, dict):
            yield Mutation("add", (*path, "wrd"), _changed(content, (*path, "wrd"), 3))
        for other in others:
            if _kind(other) != _kind(value):
                yield Mutation("retype", path, _changed(content, path, other))


def outcome(read: Callable[..., Any], *arguments: Any) -> tuple[Any, str]:
    """What reading gives and no message, or nothing and the message of the ValueError: any other error passes."""
    try:
        return read(*arguments), ""
    except ValueError as error:
        return None, str(error)


def as_toml(value: Any) -> str:
    """A value as TOML writes it, tables inline."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {as_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return json.dumps(value)


def toml_file(content: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(key)} = {as_toml(value)}\n" for key, value in content.items())


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for step, item in items:
        yield from _paths(item, (*path, step))


def _at(content: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        content = content[step]
    return content


def _changed(content: Any, path: tuple[Any, ...], value: Any = None, *, drop: bool = False) -> Any:
    if not path:
        return value
    changed = copy.deepcopy(content)
    parent = _at(changed, path[:-1])
    if drop:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return changed


def _kind(value: Any) -> str:
    """Integers may serve for numbers, but no other type for another."""
    return "number" if type(value) in (int, float) else type(value).__name__
