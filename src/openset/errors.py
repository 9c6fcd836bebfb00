"""The exceptions and warnings that openset raises of its own."""

from __future__ import annotations


class ModelFormatError(ValueError):
    """A folder is not a model that this version of openset can read."""


class FitWarning(UserWarning):
    """Fitting went on, but the result promises less than was asked for."""


class MissingExtraError(ImportError):
    """An optional dependency is absent; the message names the extra that brings it."""

    def __init__(self, purpose: str, extra: str) -> None:
        super().__init__(f"{purpose} needs an optional dependency: pip install 'openset[{extra}]'")


class ManifestError(ValueError):
    """A manifest was altered, or the data at hand is not the data it was made from."""
