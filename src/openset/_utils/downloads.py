"""Whether models may be downloaded: what is read, such as a run, can name any model, but never allows it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "OPENSET_ALLOW_DOWNLOAD"
"""Downloads are allowed where this variable is 1; worker processes inherit it."""


def are_downloads_allowed() -> bool:
    """Whether the network may be asked for models."""
    return os.environ.get(VARIABLE) == "1"


@contextmanager
def downloads(allow_download: bool) -> Iterator[None]:
    """Allow downloads of models in the block, or with False change nothing.

    >>> with downloads(True):
    ...     are_downloads_allowed()
    True
    """
    before = os.environ.get(VARIABLE)
    if allow_download:
        os.environ[VARIABLE] = "1"
    try:
        yield
    finally:
        if before is not None:
            os.environ[VARIABLE] = before
        else:
            os.environ.pop(VARIABLE, None)
