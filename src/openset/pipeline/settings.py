"""The settings of a run: from keyword arguments, flags or a TOML file, and stored so that it can be repeated."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from typing import Any

from openset._utils.params import check_flag, check_integer, check_number
from openset._utils.text import did_you_mean
from openset._utils.typed import Number, plain, read_as, read_toml
from openset.errors import Parameter, ParameterError

_SETTING_OF = {"fpr": "fpr", "max_density_ratio": "max_density_ratio", "random_state": "seed"}
"""Parameters of methods that a run has settings for."""
LISTS, TABLES = ("features", "drop", "carry"), ("kinds", "parameters")
"""Settings that are lists of columns, and those that are tables."""
FIT_ROWS, FEWEST_ROWS, ALL_ROWS = 100_000, 20, "all"
"""Rows of source and of target that a fit takes at most, the least that it takes, and the word for every row."""
KINDS = ("category", "number", "date", "text", "id")
"""What a person may say that a column holds."""


@dataclass(frozen=True)
class RunSettings:
    """The settings of :func:`openset.run`.

    Features are made of ``text`` and ``image`` (columns put through an encoder) and of the columns ``features``
    beside them; None for all but ``label``, ``id`` and those that ``drop`` names (``*`` stands for any text).
    ``kinds`` says what columns are where that is not to be guessed; ``carry`` names columns of the target that
    the scored table has too. ``fit_rows`` is the number of source and of target rows from which on a sample is
    fitted on, or "all".
    """

    source: str | None = None
    target: str | None = None
    label: str | None = None
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None
    image: str | None = None
    id: str | None = None
    carry: tuple[str, ...] | None = None
    encoder: str | None = None
    method: str = "color"
    fpr: Number = 0.01
    fdr: Number | None = None
    max_density_ratio: Number | None = None
    seed: int = 0
    fit_rows: int | str = FIT_ROWS
    skip_bad: bool = False
    ignore_target_labels: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("source", "target", "label", "text", "image", "id", "encoder", "method"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise ParameterError(Parameter(name, value), " is not valid: expected text.")
        for name in LISTS:
            value = getattr(self, name)
            if isinstance(value, str):
                object.__setattr__(self, name, (value,))
            elif value is not None:
                object.__setattr__(self, name, tuple(map(str, value)) or None)
        if self.encoder is not None and self.features is not None and self.text is None and self.image is None:
            raise ParameterError(
                "an encoder is given for features that are numbers: name a column with ",
                Parameter("text", ...),
                " or ",
                Parameter("image", ...),
                ".",
            )
        self._check_kinds()
        check_number("fdr", self.fdr, high=1, open_low=True, open_high=True, optional=True)
        check_number("max_density_ratio", self.max_density_ratio, low=1, optional=True)
        check_integer("seed", self.seed, low=0)
        self._check_fit_rows()
        check_flag("skip_bad", self.skip_bad)
        check_flag("ignore_target_labels", self.ignore_target_labels)
        if not isinstance(self.parameters, Mapping):
            raise ParameterError(
                Parameter("parameters", self.parameters), " is not valid: expected names and values."
            )
        for name, setting in _SETTING_OF.items():
            if name in self.parameters:
                own = Parameter(setting)
                raise ParameterError(f"parameters has {name}: use ", own, " of the run instead.")

    @property
    def most_rows(self) -> int | None:
        """Rows of source and of target that the fit takes at most; None for all."""
        return None if isinstance(self.fit_rows, str) else self.fit_rows

    def _check_fit_rows(self) -> None:
        given: Any = self.fit_rows
        rows = int(given) if isinstance(given, str) and given.isdecimal() else given  # a flag is text
        is_whole = isinstance(rows, Integral) and not isinstance(rows, bool)
        if rows != ALL_ROWS and not (is_whole and rows >= FEWEST_ROWS):
            expected = f"an integer of at least {FEWEST_ROWS}, or {ALL_ROWS!r}"
            raise ParameterError(Parameter("fit_rows", given), f" is not valid: expected {expected}.")
        object.__setattr__(self, "fit_rows", rows)

    def _check_kinds(self) -> None:
        if not isinstance(self.kinds, Mapping):
            raise ParameterError(Parameter("kinds", self.kinds), " is not valid: expected columns and kinds.")
        for column, kind in self.kinds.items():
            if kind not in KINDS:
                hint = did_you_mean(str(kind), KINDS) or f" Known are {', '.join(KINDS)}."
                raise ParameterError(Parameter("kinds", {column: kind}), f" is not valid.{hint}")
        kinds = Parameter("kinds", dict(self.kinds))
        for role in ("text", "id"):
            named = [column for column, kind in self.kinds.items() if kind == role]
            if len(named) > 1:
                raise ParameterError(kinds, f" names {len(named)} columns as {role}: name one.")
            if named and getattr(self, role) not in (None, named[0]):
                raise ParameterError(kinds, " contradicts ", Parameter(role, getattr(self, role)), ".")
            if named:
                object.__setattr__(self, role, named[0])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as files hold them, without those that are not set."""
        return {name: plain(value) for name, value in vars(self).items() if value is not None and value != {}}

    def as_stored(self) -> RunSettings:
        """The settings as they come back from a file: numpy's numbers as Python's, tuples as lists."""
        return replace(self, **{name: plain(value) for name, value in vars(self).items()})


def read_settings(path: Path) -> RunSettings:
    """The settings in a TOML file: names as in :class:`RunSettings`; kinds and parameters are tables."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist. Give the path of a TOML file with settings.") from None
    given = read_toml(text, str(path))
    if isinstance(given.get("parameters"), dict):
        given["parameters"] = {name: _none_or(value) for name, value in given["parameters"].items()}
    return settings_of(given, str(path))


def settings_of(given: Any, where: str, *, at: str = "") -> RunSettings:
    """Settings from the plain content of a file, or of its part ``at``; an unknown name is an error.

    >>> settings_of({"methd": "dd"}, "a.toml")
    Traceback (most recent call last):
    ...
    ValueError: a.toml: 'methd' is unknown. Did you mean 'method'?
    """
    if isinstance(given, Mapping):
        lists = {name: [given[name]] for name in LISTS if isinstance(given.get(name), str)}
        given = {**given, **lists}
    return read_as(RunSettings, given, where, at=at, refuse_unknown=True)


def merged(file: RunSettings, flags: Mapping[str, Any]) -> RunSettings:
    """Settings of a file with those of flags on top; a flag that is None was not given.

    >>> merged(RunSettings(method="dd", parameters={"hidden": 64}), {"method": "color", "fpr": None}).method
    'color'
    """
    given = {name: value for name, value in flags.items() if value is not None}
    tables = {name: {**getattr(file, name), **given.get(name, {})} for name in TABLES}
    return replace(file, **{**given, **tables})


def parse_assignments(assignments: Sequence[str]) -> dict[str, Any]:
    """``NAME=VALUE`` with values as TOML writes them; what is no TOML value is text.

    >>> parse_assignments(["max_steps=500", "optimizer=sgd", "grid=[0.1, 0.2]", "clip=none"])
    {'max_steps': 500, 'optimizer': 'sgd', 'grid': [0.1, 0.2], 'clip': None}
    """
    found: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"{assignment!r} is not a parameter: write NAME=VALUE, such as max_steps=500.")
        try:
            found[name.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[name.strip()] = _none_or(value.strip())
    return found


def to_toml(settings: RunSettings) -> str:
    """The settings as a TOML file that :func:`read_settings` reads back.

    >>> print(to_toml(RunSettings(label="kind", parameters={"max_steps": 100})))
    label = "kind"
    method = "color"
    fpr = 0.01
    seed = 0
    fit_rows = 100000
    skip_bad = false
    ignore_target_labels = false
    <BLANKLINE>
    [parameters]
    max_steps = 100
    <BLANKLINE>
    """
    values = settings.to_dict()
    tables = {name: values.pop(name, {}) for name in TABLES}
    lines = _toml_pairs(values)
    for name, table in tables.items():
        if table:
            lines += ["", f"[{name}]", *_toml_pairs(table)]
    return "\n".join(lines) + "\n"


def _none_or(value: Any) -> Any:
    """TOML has no null: the text "none" is read as None."""
    return None if value == "none" else value


def _toml_pairs(values: Mapping[str, Any]) -> list[str]:
    names = [name if name.isidentifier() and name.isascii() else _toml_value(name) for name in values]
    return [f"{name} = {_toml_value(value)}" for name, value in zip(names, values.values(), strict=True)]


def _toml_value(value: Any) -> str:
    if value is None:
        return '"none"'
    if isinstance(value, Mapping):
        return "{" + ", ".join(_toml_pairs(value)) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    if isinstance(value, str):  # JSON's escapes are TOML's; DEL alone must be escaped in TOML only
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)
