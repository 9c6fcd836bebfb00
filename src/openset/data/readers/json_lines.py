"""JSON lines, plain or gzipped, one line at a time."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from openset._utils.files import is_packed


def read_json_lines(path: Path) -> Iterator[dict[str, Any] | str]:
    """For each line that is not blank its object, or what is wrong with it as text."""
    try:
        with gzip.open(path) if is_packed(path) else path.open("rb") as lines:
            for line in lines:
                if line.strip():
                    yield _parse(line)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is not a whole gzip file ({error}): download or write it again.") from None


def _parse(line: bytes) -> dict[str, Any] | str:
    try:
        value = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return "it is not UTF-8 text"
    except (json.JSONDecodeError, RecursionError) as error:
        return f"it is not JSON ({error})"
    return value if isinstance(value, dict) else f"it holds a {type(value).__name__}, not an object {{…}}"
