"""A small run, and made-up results whose every figure can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace

from openset.bench.results import results_of
from openset.bench.runs import Run, RunResult, expand
from openset.bench.spec import parse_spec
from openset.bench.store import Store

RUN = Run(
    dataset="synthetic",
    encoder=None,
    options='{"n_features":5,"n_source":90,"n_target":60,"n_test":40}',
    setting="shift",
    novel="novel",
    seed=0,
    method="color",
    parameters='{"evaluate_every":10,"grid":[0.05,0.1],"max_steps":20}',
)

SPEC = """
title = "Made up"
metrics = ["auroc", "fpr_at_95_tpr", "top1"]
[[problem]]
dataset = "synthetic"
settings = ["shift"]
seeds = [0, 1, 2, 3, 4, 5]
paper = "cifar100"
[[method]]
name = "color_paper"
label = "color"
[[method]]
name = "dd"
[[method]]
name = "knn"
label = "k_NN"
[figure]
kind = "bars"
metrics = ["auroc"]
"""
AUROC = {
    "color_paper": [0.9, 0.8, 0.9, 0.7, 0.9, 0.6],
    "dd": [0.8, 0.7, 0.9, 0.6, 0.8, 0.5],
    "knn": [0.5, 0.85, 0.4, 0.3, 0.2, 0.1],
}
PAGE = """# A page

## Table

### toys, with shift: 2 splits

| method | AUROC | wins | AUPRC |
|---|---:|---:|---:|
| color | **0.90±0.10** | 2 | 0.50 |
|   in the paper | 0.80 | | |
| dd | 0.80±0.10 | 0 | 0.52 |
| upu | 0.85 | 0 | 0.10 |

### toys, without shift: 2 splits

| method | AUROC |
|---|---:|
| dd | 0.95 |

## color against every method

### toys, with shift

| against | Δ AUROC | p | Δ AUPRC | p |
|---|---:|---:|---:|---:|
| dd | +0.10 | .006 | -0.02 | **.001** |
| upu | +0.05 | .200 | +0.40 | **<.001** |
"""


def fill(path, text=SPEC, *, failing=(), **changes):
    """A store in which seed i of a method has the i-th AUROC above, and half of it as FPR."""
    spec, store = parse_spec(text, "made-up"), Store(path)
    for planned in expand(spec):
        run = planned.run
        value = AUROC[run.method][run.seed]
        metrics = {"auroc": value, "fpr_at_95_tpr": value / 2, "top1": 0.75, "novel_fraction": 0.1}
        result = RunResult(metrics, {"fit": 2.0, "score": 0.9, "cpu": 2.5}, manifest_checksum=f"split {run.seed}")
        if (run.method, run.seed) in failing:
            result = RunResult(failure="Traceback\nValueError: too few rows")
        store.put(run, replace(result, **changes), spec=spec.name)
    return results_of(spec, store)
