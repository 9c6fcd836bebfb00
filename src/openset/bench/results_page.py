"""A page of results for ``docs/results``: commands, date and versions, then the tables, then times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from openset.bench.problems import get_source
from openset.bench.results import Results
from openset.bench.store import StoredRun
from openset.bench.table_formats import Cell, Section, Table, markdown
from openset.bench.tables import tables_of, title_of

_JOBS = 2
_ONE_CLASSIFIER = ("source_only", "msp", "entropy", "mls", "energy")


def results_page(
    results: Results,
    path: Path,
    data_dir: Path | None,
    store: Path | None = None,
    code: str | None = None,
) -> str:
    """The page as Markdown; ``path`` is the file that it will be written to.

    Its commands have the data folder, the store if it is not the default, and the code version if one was chosen.
    """
    stored = [run for _, run in results.plan if run is not None]
    tables = tables_of(results)
    head = [f"# {title_of(results)}", "", *_notice(results), "Made by", ""]
    head += [f"    {command}" for command in _commands(results, path, data_dir, store, code)]
    head += [
        "",
        f"on {max(run.finished_at for run in stored)[:10]} with openset {results.code} ({_versions(stored)}).",
        "",
    ]
    if results.spec.figure is not None:
        head += [f"![{results.spec.title}]({_figure_of(path).name})", ""]
    parts = [markdown(table, level=2) for table in (*tables, _times(results))]
    return "\n".join([*head, *parts])


def _figure_of(page: Path) -> Path:
    """The file of a page's figure, beside the page."""
    return page.with_suffix(".svg")


def _notice(results: Results) -> Iterator[str]:
    if results.spec.note:
        yield f"**Note**: {results.spec.note}"
        yield ""
    replaced: dict[str, dict[str, None]] = {}
    for block in results.blocks:
        if block.stand_in_for:
            replaced.setdefault(block.stand_in_for, {})[block.problem] = None
    for original, problems in replaced.items():
        *others, last = problems
        named = f"{'; '.join(others)} and {last} are" if others else f"{last} is"
        yield f"**Stand-in data**: {named} not {original}; the paper's figures are on other data."
        yield ""
    for dataset in dict.fromkeys(planned.run.dataset for planned, stored in results.plan if stored is not None):
        if caveat := get_source(dataset).caveat:
            yield f"**Caveat** ({dataset}): {caveat}"
            yield ""


def _commands(
    results: Results, path: Path, data_dir: Path | None, store: Path | None, code: str | None
) -> Iterator[str]:
    spec = results.spec.argument
    paths = _option("data", data_dir) + _option("store", store)
    chosen = paths + _option("code", code)
    yield f"openset bench run {spec}{paths} --jobs {_JOBS}"
    yield f"openset bench table {spec}{chosen}{_option('out', path)}"
    if results.spec.figure is not None:
        yield f"openset bench figure {spec}{chosen}{_option('out', _figure_of(path))}"


def _option(name: str, value: Path | str | None) -> str:
    return "" if value is None else f" --{name} {quote(str(value))}"


def _versions(stored: list[StoredRun]) -> str:
    """What all runs have in common, then what some have, such as another kind of processor."""
    seen = dict.fromkeys(item for run in stored for item in run.result.environment.items())
    environments = [run.result.environment for run in stored]
    common = [item for item in seen if all(made.get(item[0]) == item[1] for made in environments)]
    others = [item for item in seen if item not in common]
    return "; ".join(filter(None, (_named(common), *(_named([item]) for item in others))))


def _named(items: list[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {version}" for name, version in items)


def _times(results: Results) -> Table:
    """CPU seconds of every method: on one thread that is its time on an idle machine."""
    seconds: dict[str, list[float]] = {}
    for planned, stored in results.plan:
        if stored is not None and not stored.result.failure:
            seconds.setdefault(planned.label, []).append(stored.result.seconds["cpu"])
    rows = [
        (
            Cell(label),
            Cell(str(len(values))),
            Cell(f"{sum(values) / len(values):.1f}"),
            Cell(f"{sum(values):.0f}"),
        )
        for label, values in seconds.items()
    ]
    total = sum(map(sum, seconds.values()))
    section = Section(f"{total:.0f} CPU seconds in total, one thread per run", tuple(rows))
    sharing = [name for name in _ONE_CLASSIFIER if any(p.run.method == name for p, _ in results.plan)]
    note = f"{', '.join(sharing)} share one training, which counts in full for each of them."
    notes = (note,) if len(sharing) > 1 else ()
    return Table("Time", ("method", "runs", "CPU s per run", "CPU s in total"), (section,), notes)
