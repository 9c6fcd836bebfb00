"""The development suite's tables: a line per cell, families, and where the default is worse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from openset.bench.results import Block, Results, Row, results_of
from openset.bench.spec import parse_spec
from openset.bench.store import Store
from openset.bench.suite_tables import paired_p, suite_table, suite_tests_table
from openset.bench.sweep import sweep
from openset.bench.table_formats import p_text
from openset.bench.tables import tables_of


@pytest.mark.slow
def test_the_suite_has_a_line_per_cell_and_the_mean_gain(tmp_path):
    spec = parse_spec(
        """
        table = "suite"
        metrics = ["auprc", "best_head_auprc", "oscr"]
        [[problem]]
        dataset = "synthetic"
        label = "small"
        seeds = [0, 1]
        settings = ["shift"]
        options = { n_source = 90, n_target = 60, n_test = 60, n_features = 5, novel_fraction = 0.1 }
        [[problem]]
        dataset = "synthetic"
        label = "large"
        seeds = [0]
        settings = ["shift"]
        options = { n_source = 90, n_target = 60, n_test = 60, n_features = 5, novel_fraction = 0.3 }
        [[method]]
        name = "color"
        label = "color"
        parameters = { effort = "fast", max_steps = 20, evaluate_every = 10, grid = [0.05, 0.1] }
        [[method]]
        name = "knn"
        """,
        "s",
    )
    store = Store(tmp_path / "s.sqlite")
    sweep(spec, store)
    suite, paired, *_ = tables_of(results_of(spec, store))
    assert suite.headings == ("cell", "color", "knn", "best head", "Δ knn")
    assert [[row[0].text for row in section.rows] for section in suite.sections] == [
        ["small", "mean"],
        ["large", "mean"],
    ]
    for section in suite.sections:
        _, color, knn, best, gain = (cell.text for cell in section.rows[0])
        assert float(best) >= float(color), "CoLOR hears its heads alone"
        assert float(gain) == pytest.approx(float(color) - float(knn), abs=2e-3)
    assert paired.headings == ("cell", "Δ AUPRC", "p", "Δ OSCR", "p")
    assert [row[2].text for row in paired.sections[0].rows[-1:]] == [""]
    assert paired.sections[1].rows[0][2].text == "–"  # one seed: no test
    stored = {(run.run.seed, run.run.method): run.result.metrics["auprc"] for run in store.all()
              if '"novel_fraction":0.1' in run.run.options}  # fmt: skip
    gains = [stored[seed, "color"] - stored[seed, "knn"] for seed in (0, 1)]
    assert paired.sections[0].rows[0][1].text == f"{np.mean(gains):+.3f}"
    assert paired.sections[0].rows[0][2].text == p_text(ttest_1samp(gains, 0).pvalue)


def test_the_suite_marks_cells_where_the_default_is_worse():
    rng = np.random.default_rng(0)
    other = rng.uniform(0.4, 0.6, 5)
    blocks = [suite_block("a, 0.1 novel", other - 0.2 + rng.normal(0, 0.01, 5), other),
              suite_block("b, 0.1 novel", other + 0.2 + rng.normal(0, 0.01, 5), other),
              suite_block("b, 0.05 novel", other, other)]  # fmt: skip
    spec = parse_spec(
        """
        table = "suite"
        metrics = ["auprc"]
        [[problem]]
        dataset = "synthetic"
        [[method]]
        name = "color"
        """,
        "s",
    )
    results = Results(spec, [], blocks, [])
    below, above, equal, mean = suite_tests_table(results).sections[0].rows
    assert below[2].bold and not above[2].bold and above[2].text == "<.001" and equal[2].text == "1.000"
    assert mean[1].text.startswith("-0.00") or mean[1].text.startswith("+0.00")
    families = suite_table(results).sections[-1]
    assert families.title.endswith("means by family") and [row[0].text for row in families.rows] == ["a", "b"]
    assert float(families.rows[1][4].text) == pytest.approx(0.1, abs=0.01)
    alone = [replace(block, rows=block.rows[:1]) for block in blocks]
    assert suite_tests_table(Results(spec, [], alone, [])) is None, "there is nothing to compare with"


def suite_block(problem, default, other):
    def row(label, values):
        return Row(label, "color", None, {}, {"auprc": values, "best_head_auprc": values}, 1.0, 0, 0)

    return Block(problem, None, "shift", (), (row("color", default), row("rule", other)), 0.1, "", True)


def test_a_suite_needs_what_it_judges():
    text = 'table = "suite"\n[[problem]]\ndataset = "digits"\n[[method]]\nname = "dd"'
    with pytest.raises(ValueError, match="judges a method called 'color': give one that label"):
        parse_spec(text, "s")


def test_paired_p_values():
    gains = np.array([0.1, 0.2, -0.05, 0.3])
    assert paired_p(gains) == pytest.approx(ttest_1samp(gains, 0).pvalue)
    assert np.isnan(paired_p(gains[:1])) and paired_p(np.zeros(3)) == 1 and paired_p(np.ones(3)) == 0
