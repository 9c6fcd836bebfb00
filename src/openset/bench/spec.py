"""Experiments as data: a TOML file names problems and methods, nothing more.

::

    title = "Digits under background shift"
    table = "methods"                     # the default; "heads": all of CoLOR's heads, the selected ones marked;
                                          # "settings": what shifts, how many classes are new, how large they are

    [[problem]]
    dataset = "digits"                    # a problem source; `openset bench list` names them; "table": your own
    settings = ["shift", "no-shift"]      # both is the default
    novel = ["9"]                         # the source's own list is the default
    seeds = [0, 8, 103]                   # the paper's five are the default
    options = { test_fraction = 0.3 }     # handed to the source
    label = "digits, small"               # its name in tables
    preset = "amazon_reviews"             # the paper's hyper-parameters, for methods that have them
    encoder = "minilm"                    # handed to the source too; first looked for in DATA/encoders/
    paper = "cifar100"                    # the paper's figures stand beside ours, if the data is the paper's

    [[method]]
    name = "all"                          # every registered method that takes plain tables
    but = ["conop"]                       # without these

    [[method]]
    name = "color"
    label = "CoLOR, all grids"
    parameters = { joint = false }
    preset = "none"                       # another preset than the problem's, or the library's defaults
    sweep = { fpr = [0.01, 0.05] }        # one variant for each value; problems sweep an option alike

    [figure]
    kind = "lines"                        # over the swept value; "bars": over novel classes
    metrics = ["auroc"]
    x_label = "FPR budget"
"""

from __future__ import annotations

import functools
import json
import math
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from openset._utils.params import check_choice, check_number
from openset.bench.problems import SETTINGS, Setting, get_source, has_source, source_for
from openset.methods._presets import PRESETS
from openset.registry import methods as registered_methods
from openset.shift.recipes import PAPER_SEEDS

METRICS = {"auroc": "AUROC", "auprc": "AUPRC", "oscr": "OSCR", "top1": "top-1", "hos": "HOS", "unk": "UNK",
           "os": "OS", "os_star": "OS*", "fpr_at_95_tpr": "FPR@95", "best_head_auprc": "best head"}  # fmt: skip
FIGURES = ("bars", "lines")
TABLES = ("methods", "heads", "settings", "suite")
REFERENCE = "color"
"""The label of the method that is judged, and that paired tests compare with every other."""
NO_PRESET = "none"
PLAIN_NEEDS = ("nothing", "target rows")
"""What the registry says of methods that need a table of features and nothing else."""
LARGEST_SEED = 2**63 - 1
"""SQLite holds no larger integer."""
_KINDS = {str: "a string", int: "an integer", list: "a list", dict: "a table"}


@dataclass(frozen=True)
class ProblemSpec:
    """A dataset with the settings, novel classes and seeds to run it in."""

    dataset: str
    encoder: str | None = None
    settings: tuple[Setting, ...] = SETTINGS
    novel: tuple[str, ...] = ()
    seeds: tuple[int, ...] = PAPER_SEEDS
    options: Mapping[str, Any] = field(default_factory=dict)
    preset: str | None = None
    x: float | None = None
    """Where this variant stands on the horizontal axis of a line figure."""
    paper: str | None = None
    """The table of the paper (a name in ``paper.toml``) that has figures for the same data."""
    label: str = ""

    swept: str = ""
    """The option that ``x`` is a value of."""

    @property
    def title(self) -> str:
        """The label, or the dataset with what sets it apart; the same for all values of a swept option."""
        if self.label:
            return self.label
        options = [f"{key}={value}" for key, value in self.options.items() if key != self.swept]
        extras = [*([self.encoder] if self.encoder else []), *options]
        return f"{self.dataset} ({', '.join(extras)})" if extras else self.dataset

    def resolved(self, data_dir: Path | None) -> ProblemSpec:
        """This problem as it can be built here: with the source's new classes, or on the stand-in altogether.

        A stand-in has features and a name of its own, and its own new classes unless it has some of those asked
        for. It keeps the preset, unless it brings a closer one, and says which.
        """
        source = source_for(self.dataset, data_dir)
        if source.name == self.dataset:
            return replace(self, novel=self.novel or source.novel)
        preset = source.preset or self.preset
        novel = tuple(name for name in self.novel if name in source.novel) or source.novel
        stand_in = replace(self, dataset=source.name, encoder=None, novel=novel, preset=preset, label="")
        settings = f", settings of {preset}" if preset else ""
        return replace(stand_in, label=f"{stand_in.title}{settings}")


@dataclass(frozen=True)
class MethodSpec:
    """A method of the registry with the parameters that differ from its defaults."""

    name: str
    label: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    x: float | None = None
    preset: str | None = None
    """Another preset than the problem's, or "none"."""

    def parameters_for(self, problem: ProblemSpec) -> dict[str, Any]:
        """The preset's parameters with the method's own over them."""
        preset = self.preset or problem.preset or NO_PRESET
        return {**PRESETS.get(self.name, {}).get(preset, {}), **self.parameters}


@dataclass(frozen=True)
class FigureSpec:
    """How to draw an experiment."""

    kind: str
    metrics: tuple[str, ...]
    x_label: str


@dataclass(frozen=True)
class Spec:
    """One experiment."""

    name: str
    title: str
    problems: tuple[ProblemSpec, ...]
    methods: tuple[MethodSpec, ...]
    metrics: tuple[str, ...] = ("auroc", "auprc", "oscr", "top1")
    figure: FigureSpec | None = None
    table: str = "methods"
    path: Path | None = None
    """The file that one's own spec was read from; None for one that comes with openset."""

    @property
    def argument(self) -> str:
        """What the command line calls it: its name, or its file."""
        return self.name if self.path is None else shlex.quote(str(self.path))

    @property
    def left_out(self) -> list[str]:
        """The methods it names that take something else than a table of features: problems have nothing else."""
        inputs = {method.name: method.input for method in registered_methods()}
        return [m.name for m in self.methods if inputs.get(m.name, "table") != "table"]

    @property
    def unavailable(self) -> list[str]:
        """The datasets and methods it names that are not registered here."""
        known = {method.name for method in registered_methods()}
        datasets = dict.fromkeys(p.dataset for p in self.problems if not has_source(p.dataset))
        missing = dict.fromkeys(m.name for m in self.methods if m.name not in known)
        return [*(f"dataset {name}" for name in datasets), *(f"method {name}" for name in missing)]

    def missing_files(self, data_dir: Path | None) -> list[str]:
        """What the data folder lacks: files of the available datasets, with those of stand-ins that would do."""
        names = dict.fromkeys(p.dataset for p in self.problems if has_source(p.dataset))
        return [text for text in (_missing(name, data_dir) for name in names) if text]

    def stand_ins(self, data_dir: Path | None) -> dict[str, str]:
        """The datasets that a stand-in takes the place of here, with its name."""
        names = dict.fromkeys(p.dataset for p in self.problems if has_source(p.dataset))
        found = {name: source_for(name, data_dir).name for name in names}
        return {name: stand_in for name, stand_in in found.items() if name != stand_in}


def _missing(name: str, data_dir: Path | None) -> str:
    source, found = get_source(name), source_for(name, data_dir)
    missing = ", ".join(found.missing_files(data_dir))
    if not missing or found is source:
        return missing
    own = ", ".join(source.missing_files(data_dir))
    return f"{own} (or, for {found.name} to stand in for {name}, {missing})"


def built_in_specs() -> dict[str, Spec]:
    """The specs that come with openset, by name."""
    folder = resources.files("openset.bench") / "specs"
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    specs = [parse_spec(file.read_text("utf-8"), file.name.removesuffix(".toml")) for file in files]
    return {spec.name: spec for spec in specs}


def load_spec(name_or_path: str) -> Spec:
    """A built-in spec by its name, or one's own by the path of its TOML file.

    >>> load_spec("quick").problems[0].dataset
    'digits'
    """
    path = Path(name_or_path)
    if path.suffix == ".toml":
        if not path.is_file():
            raise ValueError(f"there is no spec file {name_or_path!r}.")
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not valid TOML, which is UTF-8 text: {error}.") from None
        return replace(parse_spec(text, path.stem), path=path)
    check_choice("spec", name_or_path, names := built_in_specs())
    return names[name_or_path]


def parse_spec(text: str, name: str) -> Spec:
    """Read a spec from TOML, with an error that names the place for anything that does not belong there.

    >>> spec = parse_spec('[[problem]]\\ndataset = "digits"\\n[[method]]\\nname = "dd"', "mine")
    >>> spec.problems[0].settings, spec.methods[0].label
    (('shift', 'no-shift'), 'dd')
    """
    try:
        table = tomllib.loads(text)
    except ValueError as error:
        raise ValueError(f"spec {name!r} is not valid TOML: {error}.") from None
    where = f"spec {name!r}"
    _check_keys(table, ("title", "table", "metrics", "problem", "method", "figure"), where)
    check_choice(f"{where}: table", table.get("table", Spec.table), TABLES)
    problems = [p for place, entry in _entries(table, "problem", where) for p in _problems(entry, place)]
    _check_titles(problems, where)
    methods = [m for place, entry in _entries(table, "method", where) for m in _methods(entry, place)]
    labels = [(method.label, method.x) for method in methods]
    twice = [label for label, _ in (labels[i] for i in range(len(labels)) if labels[i] in labels[:i])]
    if twice:
        raise ValueError(f"{where}: two methods are called {twice[0]!r}: give one of them a label of its own.")
    if table.get("table") == "suite" and REFERENCE not in (label for label, _ in labels):
        raise ValueError(f"{where}: table = 'suite' judges a method called {REFERENCE!r}: give one that label.")
    if table.get("table") == "suite" and {p.x for p in problems} | {m.x for m in methods} != {None}:
        raise ValueError(f"{where}: table = 'suite' has no room for a sweep or an x: leave out one of them.")
    metrics = _metrics(table, Spec.metrics, where)
    figure = _figure(table["figure"], metrics, f"{where}, figure") if "figure" in table else None
    return Spec(
        name=name,
        title=_typed(table.get("title", name), str, "title", where),
        problems=tuple(problems),
        methods=tuple(methods),
        metrics=metrics,
        figure=figure,
        table=table.get("table", Spec.table),
    )


def _problems(entry: dict[str, Any], where: str) -> list[ProblemSpec]:
    keys = (
        "dataset",
        "label",
        "encoder",
        "settings",
        "novel",
        "seeds",
        "options",
        "preset",
        "paper",
        "x",
        "sweep",
    )
    _check_keys(entry, keys, where, required="dataset")
    settings = _list(entry, "settings", str, list(SETTINGS), where)
    for setting in settings:
        check_choice(f"{where}: setting", setting, SETTINGS)
    if "preset" in entry:
        known = dict.fromkeys(name for presets in PRESETS.values() for name in presets)
        check_choice(f"{where}: preset", entry["preset"], (NO_PRESET, *known))
    if "paper" in entry:
        check_choice(f"{where}: paper", entry["paper"], _paper_tables())
    spec = ProblemSpec(
        dataset=_typed(entry["dataset"], str, "dataset", where),
        encoder=_optional(entry, "encoder", where),
        settings=tuple(settings),
        novel=tuple(_list(entry, "novel", str, [], where)),
        seeds=_seeds(entry, where),
        options=_plain(entry, "options", where),
        preset=entry.get("preset"),
        x=_x(entry, where),
        paper=entry.get("paper"),
        label=_optional(entry, "label", where) or "",
    )
    return [
        replace(spec, options={**spec.options, key: value}, x=x, swept=key)
        for key, value, x in _sweep(entry, where)
    ] or [spec]


def _methods(entry: dict[str, Any], where: str) -> list[MethodSpec]:
    is_all = entry.get("name") == "all"
    keys = ("name", "but") if is_all else ("name", "label", "parameters", "preset", "x", "sweep")
    _check_keys(entry, keys, f"{where} (all)" if is_all else where, required="name")
    name = _typed(entry["name"], str, "name", where)
    if is_all:
        plain = [m.name for m in registered_methods() if m.needs in PLAIN_NEEDS]
        but = _list(entry, "but", str, [], where)
        for one in but:
            check_choice(f"{where}: but", one, plain)
        return [MethodSpec(one, one) for one in plain if one not in but]
    parameters = _plain(entry, "parameters", where)
    described = ", ".join(f"{key}={value}" for key, value in parameters.items())
    label = _optional(entry, "label", where) or f"{name} {described}".strip()
    if "preset" in entry:
        check_choice(f"{where}: preset", entry["preset"], (NO_PRESET, *PRESETS.get(name, {})))
    spec = MethodSpec(name, label, parameters, _x(entry, where), entry.get("preset"))
    return [
        replace(spec, parameters={**parameters, key: value}, x=x) for key, value, x in _sweep(entry, where)
    ] or [spec]


def _sweep(entry: Mapping[str, Any], where: str) -> list[tuple[str, Any, float]]:
    if "sweep" not in entry:
        return []
    sweep = _typed(entry["sweep"], dict, "sweep", where)
    if len(sweep) != 1 or any(not isinstance(values, list) or not values for values in sweep.values()):
        raise ValueError(f"{where}: sweep={sweep!r} is not valid: expected one name with a list of numbers.")
    ((key, values),) = sweep.items()
    for value in values:
        check_number(f"{where}: an entry of sweep {key}", value, low=-math.inf)
    return [(key, value, float(value)) for value in values]


def _x(entry: Mapping[str, Any], where: str) -> float | None:
    if "x" in entry:
        check_number(f"{where}: x", entry["x"], low=-math.inf)
    return entry.get("x")


def _seeds(entry: Mapping[str, Any], where: str) -> tuple[int, ...]:
    seeds = _list(entry, "seeds", int, list(PAPER_SEEDS), where)
    for seed in seeds:
        if not 0 <= seed <= LARGEST_SEED:
            raise ValueError(f"{where}: seed {seed} is not valid: expected an integer from 0 to {LARGEST_SEED}.")
    return tuple(seeds)


def _plain(entry: Mapping[str, Any], key: str, where: str) -> dict[str, Any]:
    """A table of what runs are stored with as JSON: TOML's dates and times are not."""
    values: dict[str, Any] = _typed(entry.get(key, {}), dict, key, where)
    for name, value in values.items():
        try:
            json.dumps(value)
        except TypeError:
            expected = "a number, a string, true or false, or a list of them"
            raise ValueError(f"{where}: {key} {name} = {value!r} is not valid: expected {expected}.") from None
    return values


def _check_titles(problems: Sequence[ProblemSpec], where: str) -> None:
    """Problems of one name at one place stand in one block of a table, so they must differ in splits only."""
    seen: dict[tuple[str, float | None, str], tuple[Any, ...]] = {}
    for problem in problems:
        what = (problem.dataset, problem.encoder, problem.options, problem.preset, problem.paper)
        for setting in problem.settings:
            if seen.setdefault((problem.title, problem.x, setting), what) != what:
                raise ValueError(
                    f"{where}: two different problems are called {problem.title!r}: give each a label of its own."
                )


@functools.cache
def _paper_tables() -> tuple[str, ...]:
    """The tables of the paper that a problem may stand beside."""
    from openset.bench.summary import SYNTHETIC_TABLES  # it is built on this module

    text = (resources.files("openset.bench") / "paper.toml").read_text("utf-8")
    return (*tomllib.loads(text), *SYNTHETIC_TABLES)


def _figure(entry: Any, metrics: tuple[str, ...], where: str) -> FigureSpec:
    _check_table(entry, where)
    _check_keys(entry, ("kind", "metrics", "x_label"), where, required="kind")
    check_choice(f"{where}: kind", entry["kind"], FIGURES)
    x_label = _optional(entry, "x_label", where)
    chosen = _metrics(entry, metrics, where)
    return FigureSpec(entry["kind"], chosen, "novel class" if x_label is None else x_label)


def _metrics(entry: Mapping[str, Any], default: tuple[str, ...], where: str) -> tuple[str, ...]:
    names = _list(entry, "metrics", str, list(default), where)
    for name in names:
        check_choice(f"{where}: metric", name, METRICS)
    return tuple(names)


def _entries(table: Mapping[str, Any], key: str, where: str) -> list[tuple[str, dict[str, Any]]]:
    entries = table.get(key)
    if not isinstance(entries, list) or not entries:
        raise ValueError(f"{where} needs at least one [[{key}]].")
    places = [(f"{where}, {key} {i}", entry) for i, entry in enumerate(entries, start=1)]
    for place, entry in places:
        _check_table(entry, place)
    return places


def _check_table(value: Any, where: str) -> None:
    if not isinstance(value, dict):
        raise ValueError(f"{where}: {value!r} is not valid: expected a table with keys of its own.")


def _check_keys(table: Mapping[str, Any], allowed: Sequence[str], where: str, required: str = "") -> None:
    unknown = [key for key in table if key not in allowed]
    if unknown:
        raise ValueError(f"{where}: unknown key {unknown[0]!r}: expected some of {', '.join(allowed)}.")
    if required and required not in table:
        raise ValueError(f"{where}: the key {required!r} is missing.")


def _list(entry: Mapping[str, Any], key: str, kind: type, default: list[Any], where: str) -> list[Any]:
    values = _typed(entry.get(key, default), list, key, where)
    if key in entry and not values:
        raise ValueError(f"{where}: {key} is empty: name at least one, or leave it out.")
    return [_typed(value, kind, f"an entry of {key}", where) for value in values]


def _optional(entry: Mapping[str, Any], key: str, where: str) -> str | None:
    text: str | None = _typed(entry[key], str, key, where) if key in entry else None
    return text


def _typed(value: Any, kind: type, name: str, where: str) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{where}: {name} = {value!r} is not valid: expected {_KINDS[kind]}.")
    return value
