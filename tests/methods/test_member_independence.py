"""Members trained together are runs of one, for objectives with heads or losses of their own."""

from __future__ import annotations

import numpy as np
import pytest

from openset import SourceOnly
from openset.learn.batches import ScaledRows, head_outputs
from openset.learn.network import Network
from openset.learn.train import MemberPlan, train
from openset.methods.anna import AnnaObjective
from openset.methods.arpl import ArplObjective
from openset.methods.boda import BodaObjective
from openset.methods.cac import CacObjective
from openset.methods.discriminator import bodies_for
from openset.methods.pu import PUObjective
from openset.methods.pulse import PulseObjective
from openset.methods.shot import ShotObjective
from openset.shift.synthetic import make_feature_maps
from openset.stats.folds import make_folds
from openset.stats.scaling import fit_scaling, moments

OBJECTIVES = {
    "boda": lambda **_: BodaObjective(3, 0.5),
    "arpl": lambda **_: ArplObjective(3, 0.1),
    "cac": lambda **_: CacObjective(3, 10.0, 0.1),
    "pulse": lambda **sizes: PulseObjective(bodies_for(3, 1, joint=True), warm_up=0.3, **sizes),
    "upu": lambda members, **_: PUObjective(
        bodies_for(3, 1, joint=False),
        members=members,
        prior=None,
        estimator="bbe",
        warm_up=0.3,
        loss="sigmoid",
        non_negative=(0.0, 1.0),
    ),
    "shot": lambda **sizes: ShotObjective(3, **sizes),
    "anna": lambda members, **_: AnnaObjective(
        3, 0.5, members=members, warm_up=0.2, top=2, mining_scale=0.2, domain_reversal=0.1, target_reversal=0.5
    ),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_members_together_are_runs_of_one(small, name):
    scaling = fit_scaling(moments(small.X), moments(small.X_target), "global")
    data = make_feature_maps(small, n_cells=4, n_background=1, random_state=0) if name == "anna" else small
    source, target = ScaledRows(data.X, scaling), ScaledRows(data.X_target, scaling)
    folds = make_folds(small.y, members=3, share=0.2, random=np.random.default_rng(5))
    rows = np.arange(len(small.X_target))
    plans = [
        MemberPlan(np.random.SeedSequence(m), fold.train, fold.validation, rows, rows, dropout=0.2)
        for m, fold in enumerate(folds)
    ]
    settings = SourceOnly(max_steps=50, evaluate_every=25, hidden=16)._settings()

    def run(chosen):
        objective = OBJECTIVES[name](members=len(chosen), n_target=len(target))
        trained = train(objective, chosen, source, small.y, target, settings)
        return head_outputs(Network.from_arrays(trained.architecture, trained.weights), target)

    together = run(plans)
    for member, plan in enumerate(plans):
        for head, values in run([plan]).items():
            np.testing.assert_allclose(values[0], together[head][member], atol=1e-4)
