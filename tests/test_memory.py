"""Training memory: interpreter + data + 6 × parameters + a few batches."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import json, warnings
from functools import partial
import numpy as np
warnings.simplefilter("ignore")
from openset import PaperCoLOR
random = np.random.default_rng(0)

def problem(rows, d):
    return random.standard_normal((rows, d), dtype=np.float32), np.arange(rows) % 3

def peak():  # of this process alone; getrusage remembers the process it was forked from
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))

X, y = problem(60, 5)
one = partial(PaperCoLOR, evaluate_every=2, dropout=0.2, random_state=0)  # one network
one(max_steps=4, hidden=4).fit(X, y, X)  # loads torch
d, hidden, rows = 2500, 3000, 600
X, y = problem(rows, d)
before = peak()
one(max_steps=6, hidden=hidden).fit(X, y, X[::-1])
print(json.dumps({"extra": peak() - before, "parameters": 4 * d * hidden, "batch": 4 * 400 * (d + hidden)}))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc to measure memory")
@pytest.mark.slow
def test_training_memory_stays_within_its_bound():
    out = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True).stdout
    used = json.loads(out)
    assert used["extra"] <= 6 * used["parameters"] + 8 * used["batch"], used
    assert used["extra"] >= 3 * used["parameters"], "the measurement itself looks wrong"
