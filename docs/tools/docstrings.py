"""Docstrings as Markdown, for the page of the Python interface."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import griffe

_UNDERLINE = re.compile(r"^-{3,}$")
_ROLE = re.compile(r":\w+:`~?(?:[\w.]*\.)?(\w+)`")


class MarkdownDocstrings(griffe.Extension):
    """Sections become bold words, parameters a list, doctests code."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Rewrite the docstring of an object after it was read."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """Return a docstring as Markdown.

    >>> print(as_markdown("Add.\\n\\nParameters\\n----------\\na, b : numbers\\n    or arrays"))
    Add.
    <BLANKLINE>
    **Parameters**
    <BLANKLINE>
    - `a, b` – numbers
      or arrays
    """
    return "\n".join(_lines(_ROLE.sub(r"`\1`", text).expandtabs().splitlines()))


def _lines(lines: list[str]) -> Iterator[str]:
    in_list = in_code = False
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if in_code and not line.strip():
            in_code = False
            yield "```"
        if _UNDERLINE.match(line):
            continue
        if _UNDERLINE.match(following):
            in_list = line.split()[0] in ("Parameters", "Attributes")
            yield from (f"**{line}**", "")
        elif line.startswith(">>> ") and not in_code:
            in_code = True
            yield from ("```pycon", line)
        elif in_list and not in_code and re.match(r"[\w*][\w*, ]* : ", line):
            names, _, meaning = line.partition(" : ")
            yield f"- `{names}` – {meaning}"
        elif in_list and line.startswith("    "):
            yield line[2:]
        else:
            yield line
    if in_code:
        yield "```"
