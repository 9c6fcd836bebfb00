"""How a row is shown: an excerpt of its text, a thumbnail, or its most unusual columns."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

EXCERPT = 300
MAX_LABEL = 40
THUMBNAIL = 64
THUMBNAIL_BUDGET = 800_000
"""Characters for all thumbnails of a page together; rows after that have only a file name."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def excerpt(value: Any, limit: int = EXCERPT) -> str:
    """One line of readable text: no control characters, single spaces, at most ``limit`` characters.

    >>> excerpt(" a  long\\n\\n text ", 6)
    'a lon…'
    """
    start = str(value)[: 4 * limit]  # a row may be megabytes long
    text = " ".join(_CONTROL.sub(" ", start).split())
    return text if len(text) <= limit and len(start) < 4 * limit else text[: limit - 1].rstrip() + "…"


def label_text(label: Any) -> str:
    """The name of a class on the page."""
    return excerpt(label, MAX_LABEL)


def novel_name(label: Any) -> str:
    """The name of the new class on the page; a label such as -1 is explained.

    >>> novel_name("novel"), novel_name(-1)
    ('novel', 'novel (-1)')
    """
    text = label_text(label)
    return text if text == "novel" else f"novel ({text})"


def thumbnails(images: Any, rows: Sequence[int]) -> list[str]:
    """Small JPEGs as ``data:`` URLs; empty for files that cannot be read or are beyond the budget."""
    from PIL import Image

    made: list[str] = []
    left = THUMBNAIL_BUDGET
    for row in rows:
        try:
            picture = Image.fromarray(images[int(row)]) if left > 0 else None
        except (OSError, ValueError):  # one unreadable image must not prevent the report
            picture = None
        address = _jpeg_address(picture) if picture is not None else ""
        left -= len(address)
        made.append(address if left >= 0 else "")
    return made


def _jpeg_address(picture: Any) -> str:
    picture.thumbnail((THUMBNAIL, THUMBNAIL))
    buffer = BytesIO()
    picture.save(buffer, "JPEG", quality=70, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()


def unusual_columns(
    rows: NDArray[np.floating], source: NDArray[np.floating], names: Sequence[str], *, top: int = 3
) -> list[str]:
    """For each row, the columns farthest from the source mean, in source standard deviations.

    >>> source = np.array([[0.0, 1.0], [2.0, 1.0], [1.0, 1.0]])
    >>> unusual_columns(np.array([[9.0, 1.0]]), source, ["amount", "rate"], top=1)
    ['amount = 9 (source 1 ± 0.816)']
    """
    mean, sd = source.mean(axis=0, dtype=np.float64), source.std(axis=0, dtype=np.float64)
    distance = np.abs(rows - mean) / np.maximum(sd, np.finfo(np.float64).tiny)
    order = np.argsort(-distance, axis=1, kind="stable")[:, :top]
    return [
        "; ".join(f"{names[j]} = {row[j]:.3g} (source {mean[j]:.3g} ± {sd[j]:.3g})" for j in columns)
        for row, columns in zip(rows, order, strict=True)
    ]
