"""What would cooper-optim cost as the engine of constrained training? Its step over ours, on the same problem.

    python benchmarks/constrained_engine.py

Network, batch and loss are the same; both run simultaneous primal–dual updates with Adam on both sides. cooper
calls nothing between backward and step, so L2 and clipping per member are a hook of the primal optimiser.
"""

from __future__ import annotations

import cooper
import torch

from openset.learn.primal_dual import PrimalDual, make_optimizer
from train_step import make_run, time_in_turn


class CooperProblem(cooper.ConstrainedMinimizationProblem):
    """CoLOR's problem, with the constraints of all members as one vector."""

    def __init__(self, run, batch) -> None:
        super().__init__()
        self.run, self.batch = run, batch
        count = len(run.plans) * run.objective.n_constraints
        self.recall = cooper.Constraint(
            constraint_type=cooper.ConstraintType.INEQUALITY,
            formulation_type=cooper.formulations.Lagrangian,
            multiplier=cooper.multipliers.DenseMultiplier(init=torch.ones(count)),
        )

    def compute_cmp_state(self) -> cooper.CMPState:
        """One evaluation."""
        self.run.network.workspace.reset()
        terms = self.run.objective.terms(self.run.network, self.batch, self.run.masks)
        state = cooper.ConstraintState(
            violation=terms.proxy_violation.float().flatten(), strict_violation=terms.violation.float().flatten()
        )
        return cooper.CMPState(loss=terms.objective.sum(), observed_constraints={self.recall: state})


def cooper_step(run):
    """A function that does one step of cooper on a fixed batch."""
    problem = CooperProblem(run, run.batches.next())
    primal = make_optimizer("adam", list(run.network.parameters()), 1e-3)
    ours = PrimalDual(run.network.parameter_groups(), primal, l2=1e-4, clip=5.0)

    def before_step(*_) -> None:
        with torch.no_grad():
            for group in run.network.parameter_groups():
                ours._add_l2(group)
                ours._clip_per_member(group)

    primal.register_step_pre_hook(before_step)
    dual = torch.optim.Adam(problem.dual_parameters(), lr=0.02, maximize=True)
    return cooper.optim.SimultaneousOptimizer(cmp=problem, primal_optimizers=primal, dual_optimizers=dual).roll


def our_step(run):
    """A function that does one step of ours on a fixed batch."""
    batch = run.batches.next()

    def step() -> None:
        run.network.workspace.reset()
        run.stepper.step(lambda: run.objective.terms(run.network, batch, run.masks))

    return step


def main() -> None:
    print(f"cooper {cooper.__version__}" if hasattr(cooper, "__version__") else "cooper")
    for size in (768, 128):
        for members in (1, 8):
            ours, theirs = make_run(size, size, members), make_run(size, size, members)
            t = time_in_turn({"ours": our_step(ours), "cooper": cooper_step(theirs)}, 40)
            print(
                f"d = hidden = {size}, members = {members}: cooper's step over ours {t['cooper'] / t['ours']:.2f}"
                f"  (+{1e3 * (t['cooper'] - t['ours']):.2f} ms on {1e3 * t['ours']:.2f} ms)"
            )


if __name__ == "__main__":
    main()
