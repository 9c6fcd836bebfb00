"""The oracle: can the features tell the new class at all? A line for each new class of every problem."""

from __future__ import annotations

from openset.bench.results import Plan, Results, by_block, mean_and_sd
from openset.bench.table_formats import Cell, Section, Table
from openset.shift.problem_checks import IDEAL

_HEADINGS = ("new class", "splits", "oracle's AUROC", "oracle's AUPRC", "separable")


def oracle_table(results: Results) -> Table | None:
    """AUROC and AUPRC of a classifier that is given the labels; None where no stored run has them."""
    planned_for = by_block(results.plan)
    sections = [
        Section(block.title, tuple(_line(novel, values) for novel, values in found.items()))
        for block in results.blocks
        if (found := _by_novel(planned_for.get((block.problem, block.x, block.setting), [])))
    ]
    if not sections:
        return None
    note = (
        "Not a method: a logistic regression that is given the true labels of source and target, scored out of "
        f"fold on the target. Separable, as the paper has it: both above {IDEAL} in every split. Below that, "
        "part of what methods miss is not in the features."
    )
    return Table("The oracle: how well the features separate the new class", _HEADINGS, tuple(sections), (note,))


def _by_novel(items: Plan) -> dict[str, dict[int, tuple[float, float]]]:
    """AUROC and AUPRC of every split that has them, by new class and seed."""
    found: dict[str, dict[int, tuple[float, float]]] = {}
    for planned, stored in items:
        if stored is not None and "oracle_auroc" in stored.result.metrics:
            metrics = stored.result.metrics
            values = metrics["oracle_auroc"], metrics["oracle_auprc"]
            found.setdefault(planned.run.novel, {})[planned.run.seed] = values
    return found


def _line(novel: str, values: dict[int, tuple[float, float]]) -> tuple[Cell, ...]:
    areas, precisions = zip(*values.values(), strict=True)
    separable = sum(min(pair) > IDEAL for pair in values.values())
    answer = {0: "no", len(values): "yes"}.get(separable, f"in {separable} of {len(values)} splits")
    texts = (novel, str(len(values)), mean_and_sd(areas), mean_and_sd(precisions), answer)
    return tuple(map(Cell, texts))
