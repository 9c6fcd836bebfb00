"""How fast is a CoLOR training step? Ratios from one run, since these machines are shared and noisy.

    python benchmarks/train_step.py [--rounds 40] [--sizes 768,384,128]

All quantities are timed in turn, round after round, and their medians are compared, so that a slow minute of the
machine affects all of them. "Bare products" are only the matrix products of a step (forward and backward of body
and heads), on the same shapes, into memory allocated beforehand: no training of this network can be faster.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import torch
from torch.nn import functional as F

from openset.learn.batches import ScaledRows
from openset.learn.train import MemberPlan, Settings, _Run
from openset.methods._color_objective import PaperObjective
from openset.methods._presets import PAPER_GRID, Group
from openset.methods.discriminator import bodies_for
from openset.stats.scaling import Scaling

ROWS, BATCH, CLASSES = 2500, 200, 5
RATE = 0.2


def make_run(
    d: int, hidden: int, members: int, grid: tuple[float, ...] = PAPER_GRID, dropout: float = RATE
) -> _Run:
    """A training run on random rows, ready to step."""
    random = np.random.default_rng(0)
    source, target = (random.standard_normal((ROWS, d)).astype(np.float32) for _ in range(2))
    scaling = Scaling(np.zeros(d), np.ones(d), "global")
    rows = np.arange(ROWS)
    plans = [
        MemberPlan(np.random.SeedSequence(m), rows[:2000], rows[2000:], rows[:2000], rows[2000:], dropout=dropout)
        for m in range(members)
    ]
    settings = Settings(
        hidden=hidden, optimizer="adam", learning_rate=1e-3, momentum=0.9, l2=1e-4, clip=5.0,
        batch_size=BATCH, max_steps=1000, evaluate_every=1000, tol=0.0, device="cpu",
    )  # fmt: skip
    bodies = bodies_for(CLASSES, len(grid), joint=True)
    objective = PaperObjective(bodies, np.array(grid), [Group(sharpness=1.2)], members, fpr=0.01)
    y = random.integers(0, CLASSES, ROWS)
    return _Run(objective, plans, ScaledRows(source, scaling), y, ScaledRows(target, scaling), settings, None)


def bare_products(d: int, hidden: int, members: int) -> Callable[[], None]:
    """The matrix products of one step, and nothing else."""
    rows, width = 2 * BATCH, CLASSES + len(PAPER_GRID)
    x, w = torch.randn(members, rows, d), torch.randn(members, d, hidden)
    h, v = torch.randn(members, rows, hidden), torch.randn(members, hidden, width)
    logits = torch.randn(members, rows, width)
    out_h, out_l, out_v = torch.empty_like(h), torch.empty_like(logits), torch.empty_like(v)
    out_dh, out_w = torch.empty_like(h), torch.empty_like(w)

    def products() -> None:
        torch.bmm(x, w, out=out_h)
        torch.bmm(h, v, out=out_l)
        torch.bmm(h.transpose(1, 2), logits, out=out_v)
        torch.bmm(logits, v.transpose(1, 2), out=out_dh)
        torch.bmm(x.transpose(1, 2), h, out=out_w)

    return products


class PlainLoop:
    """The same computation in plain PyTorch: modules, autograd, and a Python loop over heads.

    ``shared=True`` runs the body once for all heads; ``shared=False`` has a forward and a backward pass for each
    head and sums the gradients, as a loop over candidate recalls does.
    """

    def __init__(self, d: int, hidden: int, *, shared: bool) -> None:
        self.body = torch.nn.Sequential(
            torch.nn.Dropout(RATE), torch.nn.Linear(d, hidden), torch.nn.ReLU(), torch.nn.Dropout(RATE)
        )
        self.classes = torch.nn.Linear(hidden, CLASSES)
        self.heads = torch.nn.ModuleList(torch.nn.Linear(hidden, 1) for _ in PAPER_GRID)
        self.multipliers = [torch.ones((), requires_grad=True) for _ in PAPER_GRID]
        modules = torch.nn.ModuleList([self.body, self.classes, self.heads])
        self.parameters = list(modules.parameters())
        self.primal = torch.optim.Adam(self.parameters, lr=1e-3)
        self.dual = torch.optim.Adam(self.multipliers, lr=0.02, maximize=True)
        self.shared = shared
        self.source, self.target = torch.randn(ROWS, d), torch.randn(ROWS, d)
        self.y = torch.randint(0, CLASSES, (ROWS,))

    def head_loss(self, index: int, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        head, wanted = self.heads[index], PAPER_GRID[index]
        h_target = head(target)
        violation = wanted - (1.2 * h_target).sigmoid().mean()
        self.multipliers[index].grad = wanted - (h_target > 0).float().mean().detach()
        return F.softplus(head(source)).mean() + self.multipliers[index].detach() * violation

    def step(self) -> None:
        s, t = torch.randint(0, 2000, (BATCH,)), torch.randint(0, 2000, (BATCH,))
        xs, xt, y = self.source[s], self.target[t], self.y[s]
        self.primal.zero_grad()
        if self.shared:
            zs, zt = self.body(xs), self.body(xt)
            loss = F.cross_entropy(self.classes(zs), y)
            for index in range(len(PAPER_GRID)):
                loss = loss + self.head_loss(index, zs, zt)
            (loss + 1e-4 * sum((p**2).sum() for p in self.parameters)).backward()
        else:
            (
                F.cross_entropy(self.classes(self.body(xs)), y)
                + 1e-4 * sum((p**2).sum() for p in self.parameters)
            ).backward()
            for index in range(len(PAPER_GRID)):
                self.head_loss(index, self.body(xs), self.body(xt)).backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 5.0)
        self.primal.step()
        self.dual.step()
        with torch.no_grad():
            for multiplier in self.multipliers:
                multiplier.clamp_(min=0)


def time_in_turn(actions: dict[str, Callable[[], object]], rounds: int, block: int = 25) -> dict[str, float]:
    """Median seconds of each action, timed in turn in blocks of calls; the first call of a block is not timed."""
    seconds: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(rounds):
        for name, action in actions.items():
            action()
            for _ in range(block):
                start = time.perf_counter()
                action()
                seconds[name].append(time.perf_counter() - start)
    return {name: median(values) for name, values in seconds.items()}


def measure(size: int, rounds: int) -> None:
    single, eight = make_run(size, size, 1), make_run(size, size, 8)
    one_head = make_run(size, size, 1, grid=PAPER_GRID[:1])
    t = time_in_turn(
        {
            "bare 1": bare_products(size, size, 1),
            "step 1": single.step,
            "bare 8": bare_products(size, size, 8),
            "step 8": eight.step,
            "one head": one_head.step,
            "plain loop": PlainLoop(size, size, shared=False).step,
            "plain loop, shared body": PlainLoop(size, size, shared=True).step,
        },
        rounds,
    )
    setting = f"d = hidden = {size}, {BATCH} + {BATCH} rows, {len(PAPER_GRID)} heads"
    print(f"\n{setting}   (step {1e3 * t['step 1']:.2f} ms)")
    rows = [
        ("step over bare products, 1 member", t["step 1"] / t["bare 1"], "<= 1.5"),
        ("step over bare products, 8 members", t["step 8"] / t["bare 8"], "<= 1.5"),
        ("cost per member at 8 over a single model", t["step 8"] / 8 / t["step 1"], "<= 0.7"),
        ("the same for the bare products (their floor)", t["bare 8"] / 8 / t["bare 1"], ""),
        ("10 single-head models over 10 heads at once", 10 * t["one head"] / t["step 1"], ">= 6"),
        ("plain per-head loop over our step", t["plain loop"] / t["step 1"], ">= 4"),
        ("the same with the body run once for all heads", t["plain loop, shared body"] / t["step 1"], ""),
    ]
    for label, ratio, aim in rows:
        print(f"  {label:<46} {ratio:6.2f}   {aim}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--sizes", default="768,384,128", help="comma-separated d = hidden")
    arguments = parser.parse_args()
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {os.cpu_count()} cores")
    for size in arguments.sizes.split(","):
        measure(int(size), arguments.rounds)


if __name__ == "__main__":
    main()
