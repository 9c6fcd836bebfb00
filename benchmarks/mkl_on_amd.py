"""How fast are torch's matrix products on an AMD processor, and how fast if MKL is told that it is Intel's?

    python benchmarks/mkl_on_amd.py [--out mkl_on_amd.so]
    LD_PRELOAD=$PWD/mkl_on_amd.so openset bench run SPEC --data DATA

MKL, which torch's packages for x86 contain, asks who made the processor and takes slower kernels if it was not
Intel. The library that this writes (two functions in C; it needs ``cc``) answers for it. The other kernels round
differently, so a run stores "MKL as on Intel" beside its processor. With ``--spec``, stored runs of a spec are
computed again by the kernels that this process has, and their numbers are compared with the stored ones.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from statistics import fmean, median

import numpy as np
import torch

from openset.bench.execute import execute_on_one_thread
from openset.bench.provenance import environment
from openset.bench.runs import expand
from openset.bench.spec import load_spec
from openset.bench.store import Store

ANSWERS = "int mkl_serv_intel_cpu(void) { return 1; }\nint mkl_serv_intel_cpu_true(void) { return 1; }\n"
SHAPES = ((400, 1280, 1280), (1280, 400, 1280), (400, 384, 768))
"""Rows, inputs and outputs: forward and backward of a body on scenes, forward of one on reviews."""
METRICS = ("auroc", "auprc", "oscr", "top1")


def write_library(path: Path) -> None:
    """Compile the library."""
    command = ["cc", "-shared", "-fPIC", "-O2", "-x", "c", "-", "-o", str(path)]
    subprocess.run(command, input=ANSWERS.encode(), check=True)


def speed(rows: int, inputs: int, outputs: int, repeats: int = 60) -> float:
    """GFLOPS of a product on one thread, by the median of repeats."""
    torch.set_num_threads(1)
    x, w, out = torch.randn(rows, inputs), torch.randn(inputs, outputs), torch.empty(rows, outputs)
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        torch.mm(x, w, out=out)
        times.append(time.perf_counter() - started)
    return 2e-9 * rows * inputs * outputs / median(times)


def compare_speeds(library: Path, rounds: int) -> None:
    """Print both speeds. The two processes take turns, so a slow minute of the machine affects both."""
    measured: dict[str, list[list[float]]] = {"": [], str(library.absolute()): []}
    for _ in range(rounds):
        for preload, found in measured.items():
            told = {**os.environ, "LD_PRELOAD": preload, "OMP_NUM_THREADS": "1"}
            answer = subprocess.run(
                [sys.executable, __file__, "--speeds"], env=told, check=True, capture_output=True, text=True
            )
            found.append([float(word) for word in answer.stdout.split()])
    print(f"{environment()['processor']}, torch {torch.__version__}, one thread, GFLOPS")
    before, after = (np.median(found, axis=0) for found in measured.values())
    for shape, old, new in zip(SHAPES, before, after, strict=True):
        print(f"{' × '.join(map(str, shape)):>20}  {old:4.0f}  as on Intel {new:4.0f}  ratio {new / old:.2f}")


def compare_runs(arguments: argparse.Namespace) -> None:
    """Compute a sample of stored runs again, and print by how much their metrics differ."""
    spec, here = load_spec(arguments.spec), environment()["processor"]
    stored = Store(arguments.store, read_only=True).get(
        planned.run.key for planned in expand(spec, arguments.data)
    )
    others = [item for item in stored.values() if item.result.environment["processor"] != here]
    differences: dict[str, list[float]] = {name: [] for name in METRICS}
    ratios = []
    for item in random.Random(0).sample(others, min(arguments.sample, len(others))):
        again = execute_on_one_thread(item.run, arguments.data)
        for name, found in differences.items():
            found.append(again.metrics[name] - item.result.metrics[name])
        ratios.append(again.seconds["cpu"] / item.result.seconds["cpu"])
        moved = "  ".join(f"{name} {found[-1]:+.4f}" for name, found in differences.items())
        print(f"{item.run}: {moved}  CPU time × {ratios[-1]:.2f}", flush=True)
    if not ratios:
        print(f"no run of {arguments.spec} was made by other kernels than those of this process ({here})")
        return
    print(f"\n{len(ratios)} runs made elsewhere, again on {here}; CPU time × {median(ratios):.2f}")
    for name, found in differences.items():
        sizes = np.abs(found)
        print(
            f"{name:>6}  mean {fmean(found):+.4f}  |difference|: median {np.median(sizes):.4f}, "
            f"largest {sizes.max():.4f}, at most .005 in {np.mean(sizes <= 0.005):.0%}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("mkl_on_amd.so"), help="the library to write")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--spec", help="compare stored runs of this spec instead")
    parser.add_argument("--store", type=Path, default=Path("openset-bench.sqlite"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sample", type=int, default=30)
    parser.add_argument("--speeds", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.speeds:
        print(*(speed(*shape) for shape in SHAPES))
    elif arguments.spec:
        compare_runs(arguments)
    else:
        write_library(arguments.out)
        compare_speeds(arguments.out, arguments.rounds)


if __name__ == "__main__":
    main()
