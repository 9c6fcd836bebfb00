"""Optional dependencies: found, or an error that names the extra that brings them."""

from __future__ import annotations

from typing import Any

from openset.errors import MissingExtraError


def require_pyarrow(purpose: str) -> Any:
    """The pyarrow package, or an error that names the extra."""
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError(purpose, "data") from None
    return pyarrow
