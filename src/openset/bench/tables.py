"""The tables of an experiment: methods, paired tests, heads, settings, and which of them a spec shows."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from openset.bench.natural_tables import natural_table, null_table
from openset.bench.oracle_table import oracle_table
from openset.bench.paper import paper_figures
from openset.bench.problems import get_source
from openset.bench.results import PAPER_RULE, UNRANKED, Block, Comparison, Results, Row, by_block, mean_and_sd
from openset.bench.runs import PlannedRun
from openset.bench.spec import METRICS, REFERENCE
from openset.bench.suite_tables import suite_table, suite_tests_table
from openset.bench.table_formats import Cell, Section, Table, p_text
from openset.shift.recipes import PAPER_SEEDS

TESTABLE_SPLITS = 6
"""With fewer pairs the p of a two-sided signed-rank test cannot be below .05 (2 / 2⁵ = .06)."""
_WITHOUT_WINS = ("top1", *UNRANKED)
"""The paper counts wins for the open-set metrics only."""
HEAD_QUANTITIES = {"recall": "target recall on validation rows", "fpr": "source FPR on validation rows",
                   "auroc": "AUROC", "auprc": "AUPRC", "oscr": "OSCR"}  # fmt: skip

Heads = Sequence[Mapping[str, Any]]
_SETTINGS_HEADINGS = (
    *("dataset", "shift of", "new classes", "new subtypes", "paper's subtypes"),
    *("splits", "novel fraction", "paper's fraction"),
)


def tables_of(results: Results) -> list[Table]:
    """The tables to show for an experiment: its spec's, paired tests where possible, and last the oracle's."""
    return [table for table in (*_own_tables(results), oracle_table(results)) if table is not None]


def _own_tables(results: Results) -> tuple[Table | None, ...]:
    if results.spec.table == "suite":
        return suite_table(results), suite_tests_table(results), main_table(results)
    if results.spec.table == "natural":
        return natural_table(results), null_table(results), main_table(results)
    if results.spec.table == "settings":
        return (settings_table(results),)
    heads = heads_table(results) if results.spec.table == "heads" else None
    return main_table(results), heads, comparison_table(results), paper_comparison_table(results)


def main_table(results: Results) -> Table:
    """Mean ± sd and wins of every method, a section for each dataset and setting."""
    metrics = results.spec.metrics
    headings = ["method"]
    for metric in metrics:
        headings += [METRICS[metric], *([] if metric in _WITHOUT_WINS else ["wins"])]
    panels: dict[str, list[Block]] = {}
    for block in results.blocks:
        panels.setdefault(block.panel, []).append(block)
    sections = [
        Section(
            f"{panel}: {_count(len(blocks[0].splits), 'split')}, novel fraction {_fractions(blocks)}",
            tuple(cells for block in blocks for row in block.rows for cells in _rows(row, metrics)),
        )
        for panel, blocks in panels.items()
    ]
    notes = [
        "Mean ± sd over novel classes and seeds; wins: splits on which a method is best, ties shared; "
        "s: mean CPU seconds of a run; best in bold.",
        *notes_of(results),
    ]
    return Table(title_of(results), (*headings, "s"), tuple(sections), tuple(notes))


def title_of(results: Results) -> str:
    """The experiment's title; it states if the data is a stand-in."""
    stand_in = " (on stand-in data)" if any(block.stand_in_for for block in results.blocks) else ""
    return f"{results.spec.title}{stand_in}"


def _fractions(blocks: Sequence[Block]) -> str:
    found = sorted({f"{block.novel_fraction:.2f}" for block in blocks})
    return found[0] if len(found) == 1 else f"{found[0]} to {found[-1]}"


def _rows(row: Row, metrics: Sequence[str]) -> Iterator[tuple[Cell, ...]]:
    cells = [Cell(row.label)]
    for metric in metrics:
        average = row.averages[metric]
        cells.append(Cell(average.text, bold=average.is_best))
        if metric not in _WITHOUT_WINS:
            cells.append(Cell(str(average.wins)))
    yield (*cells, Cell(_seconds(row.seconds)))
    if row.paper:
        printed = [Cell("  in the paper", dim=True)]
        for metric in metrics:
            printed.append(Cell(row.paper.get(metric, ""), dim=True))
            if metric not in _WITHOUT_WINS:
                printed.append(Cell(""))
        yield (*printed, Cell(""))


def _seconds(seconds: float) -> str:
    if math.isnan(seconds):
        return "–"
    return f"{seconds:.1f}" if seconds < 100 else f"{seconds:.0f}"


def notes_of(results: Results) -> Iterator[str]:
    """Notes on the paper's figures, on datasets without an oracle, and on runs that are not in the table."""
    if any("?" in figure for block in results.blocks for row in block.rows for figure in row.paper.values()):
        yield "?: a figure of the paper that cannot be right, by its other tables."
    if any("/" in figure for block in results.blocks for row in block.rows for figure in row.paper.values()):
        yield "a/b: figures of the paper for each novel class; it prints no mean."
    for dataset in dict.fromkeys(planned.run.dataset for planned, stored in results.plan if stored is not None):
        if reason := get_source(dataset).no_oracle:
            yield f"No oracle of {dataset}: {reason}"
    of_mcm = [planned.run for planned, _ in results.plan if planned.run.method == "mcm"]
    if any(not json.loads(run.options).get("names") for run in of_mcm):
        yield "mcm compares rows with the means of the known classes here, not with their names."
    for name, needs in results.spec.needs_of_left_out.items():
        yield f"Not in the table: {name}, which needs {needs}."
    missing = sum(stored is None for _, stored in results.plan)
    if missing:
        yield f"{missing} of {len(results.plan)} runs are not stored yet: the table shows the others."
    yield from _failures(results)
    for block in results.blocks:
        if not block.same_data:
            yield f"{block.title}: runs of one split used different rows (the data folder changed between them)."


def _failures(results: Results) -> Iterator[str]:
    """The first failed run of each kind: a fault in every split would otherwise fill the screen."""
    alike: dict[tuple[str, str], list[PlannedRun]] = {}
    for planned, stored in results.plan:
        if stored is not None and stored.result.failure:
            reason = stored.result.failure.strip().splitlines()[-1]
            alike.setdefault((planned.label, reason), []).append(planned)
    for (_, reason), (first, *others) in alike.items():
        yield f"Failed: {first.run}: {reason}" + (f" (and {len(others)} more like it)" if others else "")


def comparison_table(results: Results) -> Table | None:
    """The reference against every other method: mean difference, Holm-corrected p; None with too few splits."""
    return _comparison_table(results.comparisons, results.spec.metrics, REFERENCE)


def paper_comparison_table(results: Results) -> Table | None:
    """The same for Algorithm 1, which the paper's claims are about."""
    return _comparison_table(results.paper_comparisons, results.spec.metrics, PAPER_RULE)


def _comparison_table(comparisons: Sequence[Comparison], metrics: Sequence[str], name: str) -> Table | None:
    found = [c for c in comparisons if c.n >= TESTABLE_SPLITS]
    if not found:
        return None
    headings = ["against", *(text for metric in metrics for text in (f"Δ {METRICS[metric]}", "p"))]
    sections = []
    for block in dict.fromkeys(c.block for c in found):
        by_other: dict[str, dict[str, Comparison]] = {}
        for c in (c for c in found if c.block == block):
            by_other.setdefault(c.other, {})[c.metric] = c
        rows = []
        for other, by_metric in by_other.items():
            cells = [Cell(other)]
            for metric in metrics:
                tested = by_metric.get(metric)
                cells += _tested(tested) if tested is not None else (Cell("–"), Cell("–"))
            rows.append(tuple(cells))
        sections.append(Section(block, tuple(rows)))
    notes = [
        "Δ: mean of reference − other over splits. p: Wilcoxon's signed-rank test over splits, two-sided, exact, "
        "Holm-corrected over the methods; bold below .05.",
        *_beyond_reach(found),
    ]
    references = {c.reference for c in found}  # in a sweep every block has its own reference
    reference = references.pop() if len(references) == 1 else name
    return Table(f"{reference} against every method", tuple(headings), tuple(sections), tuple(notes))


def _beyond_reach(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """A note where there are too few splits for the number of methods to find any difference."""
    methods = Counter((c.block, c.metric) for c in comparisons)
    splits = {(c.block, c.metric): c.n for c in sorted(comparisons, key=lambda c: c.n)}  # the most of a family
    for n, others in dict.fromkeys((splits[family], others) for family, others in methods.items()):
        least = others * 2 / 2**n
        if least >= 0.05:
            yield f"With {n} splits and {others} methods to compare with, no p can be below {p_text(least)}."


def _tested(comparison: Comparison) -> tuple[Cell, Cell]:
    p = comparison.p_holm
    return Cell(f"{comparison.difference:+.2f}"), Cell(p_text(p), bold=p < 0.05)


def _count(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


def heads_table(results: Results) -> Table | None:
    """All heads of the networks that were kept, one column per seed, the selected one in bold; None if none."""
    seeds = tuple(dict.fromkeys(planned.run.seed for planned, _ in results.plan))
    networks: dict[str, dict[int, Heads]] = {}
    printed: dict[str, dict[str, dict[str, str]]] = {}
    for planned, stored in results.plan:
        tested = stored.result.tested_heads if stored else []
        if stored is None or not tested:
            continue
        setting = "with" if planned.run.setting == "shift" else "without"
        x = "" if planned.x is None else f" at {planned.x:g}"
        original = stored.result.stand_in_for
        stand_in = f" (stand-in for {original})" if original else ""
        about = f"{planned.label}{x} on {planned.problem}, {setting} shift, novel {planned.run.novel}{stand_in}"
        kept = [head for head in tested if head["member"] == tested[0]["member"]]
        networks.setdefault(about, {})[planned.run.seed] = kept
        printed[about] = {} if original else paper_figures(planned.paper, planned.run.setting)
    if not networks:
        return None
    sections = [
        Section(f"{name}: {about}", tuple(_head_rows(by_seed, seeds, quantity, printed[about].get(quantity, {}))))
        for about, by_seed in networks.items()
        for quantity, name in HEAD_QUANTITIES.items()
    ]
    headings = ("α̂", *(f"seed {seed}" for seed in seeds))
    return Table(
        "All heads of the network that was kept", headings, tuple(sections), ("Bold: the selected head.",)
    )


def _head_rows(
    by_seed: Mapping[int, Heads], seeds: Sequence[int], quantity: str, printed: Mapping[str, str]
) -> Iterator[tuple[Cell, ...]]:
    """A line for each candidate recall, and below it the paper's values, which are by seed."""
    candidates = sorted({head["candidate_recall"] for heads in by_seed.values() for head in heads})
    for candidate in candidates:
        name = f"{candidate:.2f}"
        cells = [Cell(name)]
        for seed in seeds:
            found = [head for head in by_seed.get(seed, ()) if head["candidate_recall"] == candidate]
            cells.append(Cell(f"{found[0][quantity]:.2f}", bold=found[0]["selected"]) if found else Cell("–"))
        yield tuple(cells)
        if name in printed:
            of_paper = dict(zip(PAPER_SEEDS, printed[name].split("/"), strict=True))
            yield Cell("  in the paper", dim=True), *(Cell(of_paper.get(seed, ""), dim=True) for seed in seeds)


def settings_table(results: Results) -> Table:
    """What the problems are: a line for each dataset, a section for each setting, the paper's novel fractions."""
    sections: dict[str, list[tuple[Cell, ...]]] = {}
    planned_for = by_block(results.plan)
    for block in results.blocks:
        runs = planned_for[block.problem, block.x, block.setting]
        dataset = runs[0][0].run.dataset
        by_split = {
            planned.run.split: stored.result.metrics
            for planned, stored in runs
            if stored is not None and not stored.result.failure
        }
        printed = paper_figures(runs[0][0].paper, block.setting)
        texts = (
            block.name if block.x is None else f"{block.name}, at {block.x:g}",
            get_source(dataset).shift_of if block.setting == "shift" else "nothing",
            str(len({novel for novel, _ in by_split})),
            _new_subtypes(by_split),
            printed.get("new_subtypes", {}).get(dataset, ""),
            str(len(by_split)),
            mean_and_sd([metrics["novel_fraction"] for metrics in by_split.values()]),
            printed.get("novel_fraction", {}).get(dataset, ""),
        )
        title = "With shift" if block.setting == "shift" else "Without shift"
        sections.setdefault(title, []).append(tuple(map(Cell, texts)))
    of_paper = [line[-1].text for lines in sections.values() for line in lines]
    notes = [
        "New subtypes: those of all new classes, in splits of one seed; the paper calls them novel classes. "
        "Novel fraction: share of the target, mean ± sd over splits."
    ]
    if any(text.endswith("?") for text in of_paper):
        notes.append("?: cannot be right: the paper's summary swaps CIFAR-100 and Amazon.")
    notes += notes_of(results)
    return Table(
        title_of(results),
        _SETTINGS_HEADINGS,
        tuple(Section(title, tuple(lines)) for title, lines in sections.items()),
        tuple(notes),
    )


def _new_subtypes(by_split: Mapping[tuple[str, int], Mapping[str, float]]) -> str:
    """The number of subtypes of all new classes; empty where runs were stored without it."""
    if not all("new_subtypes" in metrics for metrics in by_split.values()):
        return ""
    of_class = {novel: metrics["new_subtypes"] for (novel, _), metrics in by_split.items()}
    return f"{sum(of_class.values()):.0f}"
