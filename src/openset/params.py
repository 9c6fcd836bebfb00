"""Plain checks of parameters: each error says what was received and what is expected."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from types import FunctionType
from typing import Any


def check_integer(name: str, value: Any, *, low: int = 1, optional: bool = False) -> None:
    """Raise unless ``value`` is an integer of at least ``low`` (or None where that is allowed)."""
    if optional and value is None:
        return
    if not isinstance(value, Integral) or isinstance(value, bool) or value < low:
        raise ValueError(f"{name}={value!r} is not valid: expected an integer of at least {low}.")


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
        raise ValueError(
            f"{name}={value!r} is not valid: expected a number in {left}{low:g}, {high:g}{right}"
            + (" or None." if optional else ".")
        )


def check_choice(name: str, value: Any, choices: Iterable[Any]) -> None:
    """Raise unless ``value`` is one of the choices."""
    allowed = list(choices)
    # `in` alone would let 1 pass for True
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in allowed):
        raise ValueError(f"{name}={value!r} is not valid: expected one of {', '.join(map(repr, allowed))}.")


def check_flag(name: str, value: Any) -> None:
    """Raise unless ``value`` is True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name}={value!r} is not valid: expected True or False.")


def with_defaults(init: Any, **defaults: Any) -> Any:
    """An ``__init__`` like the given one with other defaults, visible in its signature.

    scikit-learn reads parameters off the signature, so a subclass that differs in one default would otherwise
    have to repeat all of them.
    """
    copied = FunctionType(init.__code__, init.__globals__, init.__name__, init.__defaults__, init.__closure__)
    copied.__kwdefaults__ = {**init.__kwdefaults__, **defaults}
    copied.__annotations__ = dict(init.__annotations__)
    return copied


def fitted_attributes(model: Any) -> list[str]:
    """The names of what fitting left behind: scikit-learn's convention of a trailing underscore."""
    return [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
