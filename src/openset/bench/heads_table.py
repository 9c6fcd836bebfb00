"""All of CoLOR's heads, the selected one marked, and what the paper prints for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from openset.bench.summary import paper_figures
from openset.bench.tables import Cell, Results, Section, Table
from openset.shift.recipes import PAPER_SEEDS

HEAD_QUANTITIES = {"recall": "held-out target recall", "fpr": "held-out source FPR", "auroc": "AUROC",
                   "auprc": "AUPRC", "oscr": "OSCR"}  # fmt: skip

Heads = Sequence[Mapping[str, Any]]


def heads_table(results: Results) -> Table | None:
    """Every head of the kept networks, a column a seed; the selected one in bold; None without any."""
    seeds = tuple(dict.fromkeys(planned.run.seed for planned, _ in results.plan))
    networks: dict[str, dict[int, Heads]] = {}
    printed: dict[str, dict[str, dict[str, str]]] = {}
    for planned, stored in results.plan:
        tested = [head for head in stored.result.heads if "auroc" in head] if stored else []
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
        Section(f"{name}: {about}", tuple(_rows(by_seed, seeds, quantity, printed[about].get(quantity, {}))))
        for about, by_seed in networks.items()
        for quantity, name in HEAD_QUANTITIES.items()
    ]
    headings = ("α̂", *(f"seed {seed}" for seed in seeds))
    return Table(
        "All heads of the network that was kept", headings, tuple(sections), ("Bold: the selected head.",)
    )


def _rows(
    by_seed: Mapping[int, Heads], seeds: Sequence[int], quantity: str, printed: Mapping[str, str]
) -> Iterator[tuple[Cell, ...]]:
    """A line for each candidate recall, and below it the paper's, which has a value for each of its seeds."""
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
