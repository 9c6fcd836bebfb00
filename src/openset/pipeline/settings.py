"""All that a run is told, from keyword arguments, flags or a TOML file, and kept so that it can be repeated."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from openset._utils.params import check_flag, check_integer, check_number


@dataclass(frozen=True)
class RunSettings:
    """What :func:`openset.run` was asked for.

    Rows become features in one of three ways: ``features`` (columns of numbers, or one of vectors; None for all
    columns of numbers but ``label`` and ``id``), ``text`` or ``image`` (a column put through ``encoder``).
    """

    source: str | None = None
    target: str | None = None
    label: str | None = None
    features: tuple[str, ...] | None = None
    text: str | None = None
    image: str | None = None
    id: str | None = None
    encoder: str | None = None
    method: str = "color"
    fpr: float = 0.01
    fdr: float | None = None
    max_density_ratio: float | None = None
    seed: int = 0
    skip_bad: bool = False
    ignore_target_labels: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("source", "target", "label", "text", "image", "id", "encoder", "method"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise ValueError(f"{name}={value!r} is not valid: expected text.")
        if isinstance(self.features, str):
            object.__setattr__(self, "features", (self.features,))
        elif self.features is not None:
            object.__setattr__(self, "features", tuple(map(str, self.features)))
        given = [name for name in ("features", "text", "image") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} are given together: features come from one of them.")
        if self.encoder is not None and self.features is not None:
            raise ValueError("an encoder is given for features that are numbers: name a text or image column.")
        check_number("fdr", self.fdr, high=1, open_low=True, open_high=True, optional=True)
        check_number("max_density_ratio", self.max_density_ratio, low=1, optional=True)
        check_integer("seed", self.seed, low=0)
        check_flag("skip_bad", self.skip_bad)
        check_flag("ignore_target_labels", self.ignore_target_labels)
        if not isinstance(self.parameters, Mapping):
            raise ValueError(f"parameters={self.parameters!r} is not valid: expected names and values.")
        doubled = {"fpr", "max_density_ratio", "random_state"} & self.parameters.keys()
        if doubled:
            names = ", ".join(sorted(doubled))
            raise ValueError(f"parameters has {names}: use fpr, max_density_ratio and seed of the run instead.")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as JSON holds them; those not set are left out."""
        values = {name: value for name, value in asdict(self).items() if value is not None and value != {}}
        return values | ({"features": list(self.features)} if self.features is not None else {})


def read_settings(path: Path) -> dict[str, Any]:
    """The settings in a TOML file: names as in :class:`RunSettings`, and a table ``[parameters]``."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist. Give the path of a TOML file with settings.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a readable TOML file: {error}") from None
    settings = known_settings(given, str(path))
    if isinstance(settings.get("parameters"), dict):
        settings["parameters"] = {name: _none_or(value) for name, value in settings["parameters"].items()}
    return settings


def known_settings(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The same mapping, if all its names are settings; else an error that names the nearest.

    >>> known_settings({"methd": "dd"}, "a.toml")
    Traceback (most recent call last):
    ...
    ValueError: a.toml has an unknown setting 'methd'. Did you mean 'method'?
    """
    names = [f.name for f in fields(RunSettings)]
    for name in given:
        if name not in names:
            close = get_close_matches(name, names, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else f" Known are {', '.join(names)}."
            raise ValueError(f"{where} has an unknown setting {name!r}.{hint}")
    return dict(given)


def merged(file: Mapping[str, Any], flags: Mapping[str, Any]) -> RunSettings:
    """Settings of a file with those of flags on top; a flag that is None was not given.

    >>> merged({"method": "dd", "parameters": {"hidden": 64}}, {"method": "color", "fpr": None}).method
    'color'
    """
    given = {name: value for name, value in flags.items() if value is not None}
    if any(given.get(name) is not None for name in ("features", "text", "image")):
        file = {name: value for name, value in file.items() if name not in ("features", "text", "image")}
    base = RunSettings(**file)
    return replace(base, **{**given, "parameters": {**base.parameters, **given.get("parameters", {})}})


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
    skip_bad = false
    ignore_target_labels = false
    <BLANKLINE>
    [parameters]
    max_steps = 100
    <BLANKLINE>
    """
    values = settings.to_dict()
    parameters = values.pop("parameters", {})
    lines = [f"{name} = {_toml_value(value)}" for name, value in values.items()]
    if parameters:
        lines += ["", "[parameters]", *(f"{name} = {_toml_value(value)}" for name, value in parameters.items())]
    return "\n".join(lines) + "\n"


def _none_or(value: Any) -> Any:
    """TOML has no null: the text "none" stands for it."""
    return None if value == "none" else value


def _toml_value(value: Any) -> str:
    if value is None:
        return '"none"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    if isinstance(value, str):  # JSON's escapes are TOML's; DEL alone must be escaped in TOML only
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)


def with_features(settings: RunSettings, names: Sequence[str]) -> RunSettings:
    """The settings with the columns that were found named, so that other data is read alike."""
    return replace(settings, features=tuple(names))
