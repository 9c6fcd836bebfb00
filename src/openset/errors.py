"""Exceptions and warnings of openset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class ModelFormatError(ValueError):
    """A folder is not a model, or not one that this version of openset can read."""


class UnreadableError(ValueError):
    """A file cannot be read: it is damaged, is not what its extension says, or asks for too much."""


class DataWarning(UserWarning):
    """Rows were read, but something about the file looks wrong."""


class FitWarning(UserWarning):
    """Fitting went on, but the result guarantees less than was asked for."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message names the extra that installs it."""

    def __init__(self, purpose: str, extra: str) -> None:
        super().__init__(f"{purpose} needs an optional dependency: pip install 'openset[{extra}]'")


class ManifestError(ValueError):
    """A manifest was altered, or the data is not the data that it was made from."""


class Parameter:
    """A parameter that a message names, alone or with a value; a value of ``...`` leaves open what to pass.

    >>> [str(Parameter("fdr")), str(Parameter("skip_bad", True)), str(Parameter("label", ...))]
    ['fdr', 'skip_bad=True', 'label=...']
    """

    def __init__(self, name: str, *value: Any) -> None:
        self.name = name
        self.value = value

    def __str__(self) -> str:
        return "=".join([self.name, *("..." if value is ... else repr(value) for value in self.value)])


class ParameterError(ValueError):
    """A message of texts and parameters in turn: each interface writes the parameters its own way.

    >>> error = ParameterError("leave such rows out with ", Parameter("skip_bad", True), ".")
    >>> str(error)
    'leave such rows out with skip_bad=True.'
    >>> error.written(lambda parameter: "--" + parameter.name.replace("_", "-"))
    'leave such rows out with --skip-bad.'
    """

    def __init__(self, *parts: str | Parameter) -> None:
        super().__init__(*parts)

    def __str__(self) -> str:
        return self.written(str)

    def written(self, write: Callable[[Parameter], str]) -> str:
        """The message with every parameter as ``write`` writes it."""
        return "".join(write(part) if isinstance(part, Parameter) else str(part) for part in self.args)


class BadRowsError(ParameterError):
    """Rows cannot be used; the first part of the message says which."""

    @property
    def found(self) -> str:
        """Which rows, and why, without advice."""
        return str(self.args[0])
