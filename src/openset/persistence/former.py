"""Models saved by an earlier openset: their method and parameters in the current version.

Before, one class was both CoLORs (``selection="pooled"`` or ``"paper"``), and its groups of networks were three
parallel sequences. Later CoLOR could still train two bodies (``joint=False``). Scores are computed from fitted
arrays, which have not changed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

PAPER_GRID = (0.02, 0.05, 0.10, 0.15, 0.20, 0.25, 0.30, 0.35, 0.40, 0.45)
LOW_GRID = (0.002, 0.005, 0.01, 0.02, 0.04, 0.06, 0.09, 0.13, 0.18, 0.25)

_AUTO: dict[str, dict[str, Any]] = {
    "paper": {
        "grid": PAPER_GRID,
        "members": 1,
        "learning_rate": 1e-3,
        "max_steps": 3000,
        "evaluate_every": 250,
        "logit_multiplier": 1.0,
    },
    "pooled": {"grid": LOW_GRID, "learning_rate": 3e-3, "max_steps": 1500, "evaluate_every": 125},
}
"""Values of "auto" that no longer exists; where it still exists it is not listed."""
_FIXED: dict[str, Any] = {
    "optimizer": "adam",
    "momentum": 0.9,
    "tol": 1e-3,
    "dual_optimizer": "adam",
    "dual_learning_rate": 0.02,
    "class_loss_weight": 1.0,
    "joint": True,
}
"""Parameters that CoLOR no longer has, and the values that it uses."""
_WIDE = 256


def modernise(method: str, parameters: Mapping[str, Any], n_features: int) -> tuple[str, dict[str, Any]]:
    """Return the current method and parameters of a saved model; those of current models are unchanged.

    >>> modernise("color", {"selection": "paper", "grid": "auto", "multiplier_bounds": "auto"}, 8)[0]
    'color_paper'
    """
    if method == "color" and "selection" not in parameters:  # saved after the class was split in two
        return method, _without_fixed(parameters)
    if method not in ("color", "conop") or "selection" not in parameters:
        return method, dict(parameters)
    given = dict(parameters)
    rule = given.pop("selection")
    for name, value in _AUTO[rule].items():
        if isinstance(given.get(name), str) and given[name] == "auto":
            given[name] = value
    if rule == "paper":
        given.pop("multiplier_bounds", None)
        for name in ("dropout", "logit_multiplier"):  # a sequence had one value, for the one group
            if isinstance(given.get(name), Iterable) and not isinstance(given[name], str):
                (given[name],) = given[name]
        return ("color_paper" if method == "color" else "conop"), given
    given = _without_fixed(given)
    has_backbone = given.get("backbone") is not None
    three = [given.pop(name, "auto") for name in ("multiplier_bounds", "dropout", "logit_multiplier")]
    return "color", {**given, "groups": _groups(*three, n_features=n_features, has_backbone=has_backbone)}


def _without_fixed(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters that CoLOR still has, and warn of values of others that a new fit would not use."""
    lost = {name: given[name] for name, value in _FIXED.items() if given.get(name, value) != value}
    if lost:
        listed = ", ".join(f"{name}={value!r}" for name, value in lost.items())
        warnings.warn(
            f"this model was fitted with {listed}, which CoLOR no longer has: scores are unchanged, but a new "
            "fit would differ.",
            UserWarning,
            stacklevel=5,
        )
    return {name: value for name, value in given.items() if name not in _FIXED}


def _groups(bounds: Any, dropout: Any, sharpness: Any, *, n_features: int, has_backbone: bool) -> Any:
    """Return groups from the three parallel sequences, with "auto" resolved as before."""
    if not has_backbone and all(isinstance(value, str) for value in (bounds, dropout, sharpness)):
        return "auto"  # which has not changed; with a backbone the bound was another
    auto: tuple[Any, Any, Any] = ((0.1, 0.3, 1.0), 0.0, 0.6)
    if has_backbone:
        auto = ((0.2,), 0.0, 1.0)
    elif n_features >= _WIDE:
        is_own = not (isinstance(bounds, str) and isinstance(dropout, str))
        auto = ((0.1, 0.3, 1.0), 0.0, 1.0) if is_own else ((0.1, 0.3, 0.1), (0.0, 0.2, 0.2), (1.0, 0.6, 1.0))
    bounds, dropout, sharpness = (
        default if isinstance(value, str) else value
        for value, default in zip((bounds, dropout, sharpness), auto, strict=True)
    )
    each = [value if isinstance(value, Iterable) else [value] * len(bounds) for value in (dropout, sharpness)]
    return [tuple(map(float, group)) for group in zip(bounds, *each, strict=True)]
