"""Optional dependencies."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from openset.errors import MissingExtraError


def require(module: str, purpose: str, extra: str) -> Any:
    """Import an optional module; if it is missing, raise an error that names the extra to install.

    >>> require("json", "Reading JSON", "data").loads("[1]")
    [1]
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(purpose, extra) from error
