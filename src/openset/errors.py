"""Exceptions and warnings of openset."""

from __future__ import annotations


class ModelFormatError(ValueError):
    """A folder is not a model, or not one that this version of openset can read."""


class FitWarning(UserWarning):
    """Fitting went on, but the result guarantees less than was asked for."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message names the extra that installs it."""

    def __init__(self, purpose: str, extra: str) -> None:
        super().__init__(f"{purpose} needs an optional dependency: pip install 'openset[{extra}]'")


class ManifestError(ValueError):
    """A manifest was altered, or the data is not the data that it was made from."""
