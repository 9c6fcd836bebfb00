from __future__ import annotations

from dataclasses import replace

from bench.made_up import RUN, fill
from openset.bench.execute import execute
from openset.bench.oracle_table import oracle_table
from openset.bench.results import Results, summarise
from openset.bench.tables import tables_of


def with_oracle(results, values):
    """The results with an oracle's AUROC and AUPRC by seed."""
    plan = []
    for planned, stored in results.plan:
        oracle = dict(zip(("oracle_auroc", "oracle_auprc"), values.get(planned.run.seed, ()), strict=False))
        metrics = {**stored.result.metrics, **oracle}
        plan.append((planned, replace(stored, result=replace(stored.result, metrics=metrics))))
    return Results(results.spec, plan, summarise(plan, results.spec.metrics), results.comparisons)


def test_a_line_says_whether_both_areas_are_above_the_papers_criterion(tmp_path):
    plain = fill(tmp_path / "runs.sqlite")
    assert oracle_table(plain) is None
    ideal = dict.fromkeys(range(6), (0.99, 0.985))
    for values, answer in (
        (ideal, "yes"),
        ({**ideal, 3: (0.999, 0.5)}, "in 5 of 6 splits"),
        (dict.fromkeys(range(6), (0.97, 0.99)), "no"),
    ):
        results = with_oracle(plain, values)
        assert tables_of(results)[-1].title.startswith("The oracle")
        (section,) = oracle_table(results).sections
        (line,) = section.rows
        assert [cell.text for cell in line][:2] == ["novel", "6"] and line[-1].text == answer
    assert [cell.text for cell in line][2:4] == ["0.97±0.00", "0.99±0.00"]


def test_a_run_stores_the_oracles_areas_once_a_split(monkeypatch):
    calls = []
    from openset.bench import execute as module

    real = module.separability
    monkeypatch.setattr(module, "separability", lambda *a, **k: calls.append(1) or real(*a, **k))
    module.forget_problems()
    first, second = execute(RUN, None), execute(replace(RUN, method="knn", parameters="{}"), None)
    assert len(calls) == 1
    for name in ("oracle_auroc", "oracle_auprc"):
        assert 0.5 < first.metrics[name] == second.metrics[name] <= 1
