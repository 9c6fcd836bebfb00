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
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np
import torch

from openset.bench.provenance import environment
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


def compare_stores(one: Path, other: Path) -> None:
    """Print by how much the metrics of runs differ that are in both stores, made by different kernels."""
    before, after = (
        {item.key: item.result for item in Store(path, read_only=True).all()} for path in (one, other)
    )
    pairs = [  # a key has the code, so these differ by the machine only
        (result, after[key])
        for key, result in before.items()
        if key in after and result.environment != after[key].environment
    ]
    if not pairs:
        raise SystemExit(f"No run is in both {one} and {other}, made by different kernels.")
    kinds = ["; ".join(sorted({r.environment["processor"] for r in made})) for made in zip(*pairs, strict=True)]
    ratios = [new.seconds["cpu"] / old.seconds["cpu"] for old, new in pairs if old.seconds["cpu"] > 1]
    print(f"{len(pairs)} runs on {kinds[0]}, again on {kinds[1]}: CPU time × {median(ratios):.2f}")
    for name in METRICS:
        found = np.array([new.metrics[name] - old.metrics[name] for old, new in pairs])
        sizes = np.abs(found)
        print(
            f"{name:>6}  mean {found.mean():+.4f}  difference of a run: median {np.median(sizes):.4f}, "
            f"of nine in ten at most {np.quantile(sizes, 0.9):.4f}, largest {sizes.max():.4f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("mkl_on_amd.so"), help="the library to write")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--stores", type=Path, nargs=2, metavar=("A", "B"), help="compare their runs instead")
    parser.add_argument("--speeds", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.speeds:
        print(*(speed(*shape) for shape in SHAPES))
    elif arguments.stores:
        compare_stores(*arguments.stores)
    else:
        write_library(arguments.out)
        compare_speeds(arguments.out, arguments.rounds)


if __name__ == "__main__":
    main()
