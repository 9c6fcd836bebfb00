"""Checks of parameters: each error says what was received and what was expected."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from typing import Any, NoReturn, TypeVar, cast

from openset._utils.text import did_you_mean
from openset.errors import Parameter, ParameterError

Init = TypeVar("Init", bound=Callable[..., None])


def check_integer(name: str, value: Any, *, low: int = 1, optional: bool = False) -> None:
    """Raise unless ``value`` is an integer of at least ``low`` (or None where that is allowed)."""
    if optional and value is None:
        return
    if not isinstance(value, Integral) or isinstance(value, bool) or value < low:
        _refuse(name, value, f"an integer of at least {low}")


def check_number(
    name: str,
    value: Any,
    *,
    low: float = 0.0,
    high: float = math.inf,
    open_low: bool = False,
    open_high: bool = False,
    optional: bool = False,
) -> None:
    """Raise unless ``value`` is a finite number in the interval (or None where that is allowed)."""
    if optional and value is None:
        return
    is_number = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if (
        not is_number
        or value < low
        or value > high
        or (open_low and value == low)
        or (open_high and value == high)
    ):
        left, right = "(" if open_low else "[", ")" if open_high or high == math.inf else "]"
        _refuse(name, value, f"a number in {left}{low:g}, {high:g}{right}{' or None' if optional else ''}")


def check_numbers(name: str, values: Any, expected: str, *, high: float = math.inf) -> None:
    """Raise unless ``values`` is a non-empty list of numbers in (0, high); ``expected`` describes it in words."""
    if isinstance(values, str) or not isinstance(values, Iterable) or not list(values):
        _refuse(name, values, expected)
    for value in values:
        try:
            check_number("entry", value, high=high, open_low=True, open_high=True)
        except ParameterError as error:
            raise ParameterError(Parameter(name), f" {error}") from None


def check_list(name: str, value: Any) -> None:
    """Raise where ``value`` is one text: as a list it would be its letters."""
    if isinstance(value, str):
        _refuse(name, value, f"a list, such as [{value!r}]")


def check_choice(name: str, value: Any, choices: Iterable[Any]) -> None:
    """Raise unless ``value`` is one of the choices."""
    allowed = list(choices)
    # `in` alone would accept 1 for True
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in allowed):
        hint = did_you_mean(value, filter(_is_text, allowed)) if isinstance(value, str) else ""
        _refuse(name, value, f"one of {', '.join(map(repr, allowed))}", hint)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def check_flag(name: str, value: Any) -> None:
    """Raise unless ``value`` is True or False."""
    if not isinstance(value, bool):
        _refuse(name, value, "True or False")


def _refuse(name: str, value: Any, expected: str, hint: str = "") -> NoReturn:
    raise ParameterError(Parameter(name, value), f" is not valid: expected {expected}.{hint}")


def takes_parameters_of(
    *parents: type, former: Mapping[str, str] | None = None, **defaults: Any
) -> Callable[[Init], Init]:
    """Add the parents' parameters to the signature of an ``__init__(self, *, own, **shared)``.

    scikit-learn reads the parameters from the signature, so without this a subclass must repeat those of its
    parents. ``defaults`` replaces some of the parents' defaults. ``former`` maps the name of a removed parameter
    to a sentence that says what to use instead.

    >>> class Plain:
    ...     def __init__(self, *, size=1): self.size = size
    >>> class Coloured(Plain):
    ...     @takes_parameters_of(Plain, size=2)
    ...     def __init__(self, *, colour="red", **shared):
    ...         super().__init__(**shared)
    ...         self.colour = colour
    >>> inspect.signature(Coloured)
    <Signature (*, colour='red', size=2)>
    >>> Coloured().size, Coloured(size=3).size
    (2, 3)
    """
    inherited = {name: p for parent in parents for name, p in inspect.signature(parent).parameters.items()}
    for name, value in defaults.items():
        inherited[name] = inherited[name].replace(default=value)

    def decorate(init: Init) -> Init:
        own = [p for p in inspect.signature(init).parameters.values() if p.kind is not p.VAR_KEYWORD]
        parameters = {p.name: p for p in (*own, *inherited.values())}

        @functools.wraps(init)
        def checked_init(self: Any, **given: Any) -> None:
            # a class between this one and its parents may take what this one does not
            unknown = given.keys() - parameters.keys() if type(self).__init__ is checked_init else ()
            for name in unknown:
                hint = f" {former[name]}" if former and name in former else did_you_mean(name, parameters)
                raise TypeError(f"{type(self).__name__} has no parameter {name!r}.{hint}")
            init(self, **{**defaults, **given})

        checked_init.__signature__ = inspect.Signature([*parameters.values()])  # type: ignore[attr-defined]
        return cast("Init", checked_init)

    return decorate


def fitted_attributes(model: Any) -> list[str]:
    """The names of the attributes that fitting set: by scikit-learn's convention they end with an underscore."""
    return [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
