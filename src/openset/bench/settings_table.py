"""What the problems of an experiment are: what shifts, how many classes are new, how large they are."""

from __future__ import annotations

from openset.bench.problems import get_source
from openset.bench.summary import by_block, mean_and_sd, paper_figures
from openset.bench.tables import Cell, Results, Section, Table, notes_of, title_of

_HEADINGS = ("dataset", "shift of", "new classes", "splits", "novel fraction", "in the paper")


def settings_table(results: Results) -> Table:
    """A line for each dataset, a section for each setting; the paper's novel fractions beside ours."""
    sections: dict[str, list[tuple[Cell, ...]]] = {}
    planned_for = by_block(results.plan)
    for block in results.blocks:
        runs = planned_for[block.problem, block.x, block.setting]
        dataset = runs[0][0].run.dataset
        fractions = {
            planned.run.split: stored.result.metrics["novel_fraction"]
            for planned, stored in runs
            if stored is not None and not stored.result.failure
        }
        printed = paper_figures(runs[0][0].paper, block.setting).get("novel_fraction", {})
        texts = (
            block.name if block.x is None else f"{block.name}, at {block.x:g}",
            get_source(dataset).shift_of if block.setting == "shift" else "nothing",
            str(len({novel for novel, _ in fractions})),
            str(len(fractions)),
            mean_and_sd(list(fractions.values())),
            printed.get(dataset, ""),
        )
        title = "With shift" if block.setting == "shift" else "Without shift"
        sections.setdefault(title, []).append(tuple(map(Cell, texts)))
    of_paper = [line[-1].text for lines in sections.values() for line in lines]
    notes = ["Novel fraction: of the target, mean ± sd over splits."]
    if any(text.endswith("?") for text in of_paper):
        notes.append("?: can't be right: the paper's summary has CIFAR-100's and Amazon's the other way round.")
    notes += notes_of(results)
    return Table(
        title_of(results),
        _HEADINGS,
        tuple(Section(title, tuple(lines)) for title, lines in sections.items()),
        tuple(notes),
    )
