"""Experiments as data: a TOML file names problems and methods.

::

    title = "Digits under background shift"
    note = "One seed: a look, no result." # stands on the page of results
    table = "methods"                     # the default; "heads": all of CoLOR's heads, the selected ones marked;
                                          # "settings": what shifts, how many classes are new, how large they are;
                                          # "natural": a line for each problem, with and without its new class

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
    parameters = { align = "none" }
    preset = "none"                       # another preset than the problem's, or the library's defaults
    sweep = { fpr = [0.01, 0.05] }        # one variant for each value; problems sweep an option alike

    [figure]
    kind = "lines"                        # over the swept value; "bars": over novel classes
    metrics = ["auroc"]
    x_label = "FPR budget"
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from openset._utils.params import check_choice, check_number
from openset._utils.typed import Number, read_as, read_toml
from openset.bench.paper import paper_tables
from openset.bench.problems import SETTINGS, Setting, get_source, has_source, source_for
from openset.methods._presets import PRESETS
from openset.registry import methods as registered_methods
from openset.shift.recipes import PAPER_SEEDS

T = TypeVar("T")

METRICS = {"auroc": "AUROC", "auprc": "AUPRC", "oscr": "OSCR", "top1": "top-1", "hos": "HOS", "unk": "UNK",
           "os": "OS", "os_star": "OS*", "fpr_at_95_tpr": "FPR@95", "best_head_auprc": "best head",
           "called": "called", "estimated_low": "at least", "p_value": "p"}  # fmt: skip
"""Metrics and their headings. The last three are what a method said: the share of target rows that it called
novel, the lower end of its estimate of the novel share, and the p-value of its test of a new class."""
FIGURES = ("bars", "lines")
TABLES = ("methods", "heads", "settings", "suite", "natural")
REFERENCE = "color"
"""The label of the method that is judged, and that paired tests compare with every other."""
NO_PRESET = "none"
PLAIN_NEEDS = ("nothing", "target rows")
"""What the registry says of methods that need a table of features and nothing else."""
OPTIONS_FOR = {"names": "names = true", "cells": "cells = 3"}
"""The option of a problem that brings what some methods need, by their kind of input."""
LARGEST_SEED = 2**63 - 1
"""SQLite holds no larger integer."""


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
    """The value of this variant on the horizontal axis of a line figure."""
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
        options = [_described(key, value) for key, value in self.options.items() if key != self.swept]
        extras = [*([self.encoder] if self.encoder else []), *options]
        return f"{self.dataset} ({', '.join(extras)})" if extras else self.dataset

    @property
    def given(self) -> dict[str, Any]:
        """All that is handed to the source: its options, and the encoder."""
        return {**self.options, **({"encoder": self.encoder} if self.encoder else {})}

    def takes(self, method: str) -> bool:
        """Whether it has what a method needs: a table always, cells and names where an option asks for them."""
        needed = {found.name: found.input for found in registered_methods()}.get(method, "table")
        return needed == "table" or bool(self.options.get(needed))

    def resolved(self, data_dir: Path | None) -> ProblemSpec:
        """This problem as it can be built here: with the source's new classes, or on the stand-in altogether.

        A stand-in has an encoder and a name of its own, and its own new classes unless it has some of those asked
        for. It keeps the preset, unless it brings a closer one, and says which. Where names are compared with
        rows, it keeps the encoder, which must be one for both.
        """
        source = source_for(self.dataset, data_dir)
        if source.name == self.dataset:
            return replace(self, novel=self.novel or source.novel)
        preset = source.preset or self.preset
        novel = tuple(name for name in self.novel if name in source.novel) or source.novel
        encoder = self.encoder if self.options.get("names") else None
        own = replace(self, dataset=source.name, encoder=encoder, novel=novel)
        stand_in = replace(own, preset=preset, label="")
        settings = f", settings of {preset}" if preset else ""
        return replace(stand_in, label=f"{stand_in.title}{settings}")


def _described(option: str, value: Any) -> str:
    return f"{option} by class" if isinstance(value, Mapping) else f"{option}={value}"


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
    """How to draw an experiment, as ``[figure]`` says it; without metrics those of its table."""

    kind: str
    metrics: tuple[str, ...] = ()
    x_label: str = "novel class"

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, FIGURES)
        _check_metrics(self.metrics)


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
    note: str = ""
    """What a reader of its results must know, such as what differs from a paper's setting."""
    path: Path | None = None
    """The file that the spec was read from; None for a built-in one."""

    @property
    def argument(self) -> str:
        """What the command line calls it: its name, or its file."""
        return self.name if self.path is None else shlex.quote(str(self.path))

    @property
    def left_out(self) -> list[str]:
        """The methods it names that need cells or names, which none of its problems has."""
        return [m.name for m in self.methods if not any(problem.takes(m.name) for problem in self.problems)]

    @property
    def needs_of_left_out(self) -> dict[str, str]:
        """What those methods need, with the option of a problem that brings it."""
        found = {method.name: method for method in registered_methods()}
        return {
            name: f"{found[name].needs} ({OPTIONS_FOR[found[name].input]} in the options of a [[problem]])"
            for name in self.left_out
        }

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

    def missing_datasets(self, data_dir: Path | None) -> list[str]:
        """The datasets whose files the data folder lacks, each with the stand-in that would do."""
        names = dict.fromkeys(p.dataset for p in self.problems if has_source(p.dataset))
        lacking = [name for name in names if _missing(name, data_dir)]
        return [f"{name} or {stand_in}" if (stand_in := get_source(name).stand_in) else name for name in lacking]

    def stand_ins(self, data_dir: Path | None) -> dict[str, str]:
        """The datasets that a stand-in replaces here, with its name."""
        names = dict.fromkeys(p.dataset for p in self.problems if has_source(p.dataset))
        found = {name: source_for(name, data_dir).name for name in names}
        return {name: stand_in for name, stand_in in found.items() if name != stand_in}

    def partly_here(self, data_dir: Path | None) -> dict[str, str]:
        """The replaced datasets of which some files are in the data folder, with those that are missing."""
        missing = {name: get_source(name).missing_files(data_dir) for name in self.stand_ins(data_dir)}
        return {name: ", ".join(m) for name, m in missing.items() if len(m) < len(get_source(name).files)}


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
    specs = [parse_spec(file.read_bytes(), file.name.removesuffix(".toml")) for file in files]
    return {spec.name: spec for spec in specs}


def load_spec(name_or_path: str) -> Spec:
    """A built-in spec by its name, or your own by the path of its TOML file.

    >>> load_spec("quick").problems[0].dataset
    'digits'
    """
    path = Path(name_or_path)
    if path.suffix == ".toml":
        if not path.is_file():
            raise ValueError(f"there is no spec file {name_or_path!r}.")
        return replace(parse_spec(path.read_bytes(), path.stem, where=str(path)), path=path)
    check_choice("spec", name_or_path, names := built_in_specs())
    return names[name_or_path]


@dataclass(frozen=True)
class SpecFile:
    """The file as a whole; its entries are read one by one, so that an error can say which one it is."""

    title: str | None = None
    note: str = Spec.note
    table: str = Spec.table
    metrics: tuple[str, ...] = Spec.metrics
    problem: list[Any] = field(default_factory=list)
    method: list[Any] = field(default_factory=list)
    figure: Any = None

    def __post_init__(self) -> None:
        check_choice("table", self.table, TABLES)
        _check_metrics(self.metrics)
        for name, entries in (("problem", self.problem), ("method", self.method)):
            if not entries:
                raise ValueError(f"it needs at least one [[{name}]].")


@dataclass(frozen=True)
class ProblemEntry:
    """One ``[[problem]]``."""

    dataset: str
    label: str = ""
    encoder: str | None = None
    settings: tuple[str, ...] = SETTINGS
    novel: tuple[str, ...] = ()
    seeds: tuple[int, ...] = PAPER_SEEDS
    options: dict[str, Any] = field(default_factory=dict)
    preset: str | None = None
    paper: str | None = None
    x: Number | None = None
    sweep: dict[str, list[Number]] | None = None

    def __post_init__(self) -> None:
        for setting in self.settings:
            check_choice("setting", setting, SETTINGS)
        for seed in self.seeds:
            if not 0 <= seed <= LARGEST_SEED:
                raise ValueError(f"seed {seed} is not valid: expected an integer from 0 to {LARGEST_SEED}.")
        if self.preset is not None:
            known = dict.fromkeys(name for presets in PRESETS.values() for name in presets)
            check_choice("preset", self.preset, (NO_PRESET, *known))
        if self.paper is not None:
            check_choice("paper", self.paper, paper_tables())
        _check_json("options", self.options)
        _check_axis(self.x, self.sweep)

    def variants(self) -> list[ProblemSpec]:
        """The problem, once for each value of a swept option."""
        spec = ProblemSpec(**{name: value for name, value in vars(self).items() if name != "sweep"})
        return [
            replace(spec, options={**spec.options, name: value}, x=float(value), swept=name)
            for name, value in _swept(self.sweep)
        ] or [spec]


@dataclass(frozen=True)
class MethodEntry:
    """One ``[[method]]`` with a name of the registry."""

    name: str
    label: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    preset: str | None = None
    x: Number | None = None
    sweep: dict[str, list[Number]] | None = None

    def __post_init__(self) -> None:
        if self.preset is not None:
            check_choice("preset", self.preset, (NO_PRESET, *PRESETS.get(self.name, {})))
        _check_json("parameters", self.parameters)
        _check_axis(self.x, self.sweep)

    def variants(self) -> list[MethodSpec]:
        """The method, once for each value of a swept parameter."""
        described = ", ".join(f"{key}={value}" for key, value in self.parameters.items())
        label = self.label or f"{self.name} {described}".strip()
        spec = MethodSpec(self.name, label, self.parameters, self.x, self.preset)
        return [
            replace(spec, parameters={**self.parameters, name: value}, x=float(value))
            for name, value in _swept(self.sweep)
        ] or [spec]


@dataclass(frozen=True)
class AllMethods:
    """The ``[[method]]`` named "all": every method that needs a table of features and nothing else."""

    name: str
    but: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.but:
            check_choice("but", name, self._plain())

    @staticmethod
    def _plain() -> list[str]:
        return [method.name for method in registered_methods() if method.needs in PLAIN_NEEDS]

    def variants(self) -> list[MethodSpec]:
        """Each of them with its defaults."""
        return [MethodSpec(name, name) for name in self._plain() if name not in self.but]


def parse_spec(text: str | bytes, name: str, *, where: str = "") -> Spec:
    """Read a spec from TOML; an error names the file (``where``), the entry and the field that is wrong.

    >>> spec = parse_spec('[[problem]]\\ndataset = "digits"\\n[[method]]\\nname = "dd"', "mine")
    >>> spec.problems[0].settings, spec.methods[0].label
    (('shift', 'no-shift'), 'dd')
    """
    where = where or f"spec {name!r}"
    file = _read(SpecFile, read_toml(text.encode() if isinstance(text, str) else text, where), where)
    problems = [
        variant
        for number, entry in enumerate(file.problem, 1)
        for variant in _read(ProblemEntry, entry, f"{where}, problem {number}").variants()
    ]
    methods = [
        variant
        for number, entry in enumerate(file.method, 1)
        for variant in _read_method(entry, f"{where}, method {number}").variants()
    ]
    figure = None if file.figure is None else _read(FigureSpec, file.figure, f"{where}, figure")
    if figure is not None and not figure.metrics:
        figure = replace(figure, metrics=file.metrics)
    _check_titles(problems, where)
    _check_labels(methods, where)
    if file.table == "suite":
        _check_suite(problems, methods, where)
    title = name if file.title is None else file.title
    return Spec(name, title, tuple(problems), tuple(methods), file.metrics, figure, file.table, file.note)


def _read_method(entry: Any, where: str) -> MethodEntry | AllMethods:
    if isinstance(entry, Mapping) and entry.get("name") == "all":
        return _read(AllMethods, entry, f"{where} (all)")
    return _read(MethodEntry, entry, where)


def _read(kind: type[T], entry: Any, where: str) -> T:
    """A table of the file as its dataclass; an unknown name is an error, and so is a list without an entry."""
    found = read_as(kind, entry, where, refuse_unknown=True)
    for name, value in entry.items():
        if value == []:
            raise ValueError(f"{where}: {name} is empty: name at least one, or leave it out.")
    return found


def _check_metrics(names: Sequence[str]) -> None:
    for name in names:
        check_choice("metric", name, METRICS)


def _check_axis(x: Number | None, sweep: Mapping[str, Sequence[Number]] | None) -> None:
    check_number("x", x, low=-math.inf, optional=True)
    if sweep is not None and (len(sweep) != 1 or not all(sweep.values())):
        raise ValueError(f"sweep={sweep!r} is not valid: expected one name with a list of numbers.")
    for name, value in _swept(sweep):
        check_number(f"an entry of sweep {name}", value, low=-math.inf)


def _swept(sweep: Mapping[str, Sequence[Number]] | None) -> list[tuple[str, Number]]:
    return [(name, value) for name, values in (sweep or {}).items() for value in values]


def _check_json(name: str, values: Mapping[str, Any]) -> None:
    """Runs are stored with these as JSON, which has no dates and times."""
    for key, value in values.items():
        try:
            json.dumps(value)
        except TypeError:
            expected = "a number, a string, true or false, or a list of them"
            raise ValueError(f"{name} {key} = {value!r} is not valid: expected {expected}.") from None


def _check_labels(methods: Sequence[MethodSpec], where: str) -> None:
    labels = [(method.label, method.x) for method in methods]
    for number, (label, x) in enumerate(labels):
        if (label, x) in labels[:number]:
            raise ValueError(f"{where}: two methods are called {label!r}: give one of them a label of its own.")


def _check_suite(problems: Sequence[ProblemSpec], methods: Sequence[MethodSpec], where: str) -> None:
    if REFERENCE not in (method.label for method in methods):
        raise ValueError(f"{where}: table = 'suite' judges a method called {REFERENCE!r}: give one that label.")
    if {p.x for p in problems} | {m.x for m in methods} != {None}:
        raise ValueError(f"{where}: table = 'suite' has no room for a sweep or an x: leave out one of them.")


def _check_titles(problems: Sequence[ProblemSpec], where: str) -> None:
    """Problems of one title at one value of x share a block of a table, so they must differ in splits only."""
    seen: dict[tuple[str, float | None, str], tuple[Any, ...]] = {}
    for problem in problems:
        what = (problem.dataset, problem.encoder, problem.options, problem.preset, problem.paper)
        for setting in problem.settings:
            if seen.setdefault((problem.title, problem.x, setting), what) != what:
                raise ValueError(
                    f"{where}: two different problems are called {problem.title!r}: give each a label of its own."
                )
