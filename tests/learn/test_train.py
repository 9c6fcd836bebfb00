from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from openset.learn.batches import ScaledRows, head_outputs
from openset.learn.network import Network
from openset.learn.train import MemberPlan, Settings, paper_epoch, train
from openset.methods._color_objective import PaperObjective
from openset.methods._known_classes import ClassObjective
from openset.methods._presets import Group
from openset.methods.discriminator import bodies_for
from openset.stats.folds import make_folds
from openset.stats.scaling import fit_scaling, moments

SETTINGS = Settings(
    hidden=16, optimizer="adam", learning_rate=1e-3, momentum=0.9, l2=1e-4, clip=5.0,
    batch_size=64, max_steps=150, evaluate_every=25, tol=0.0, device="cpu",
)  # fmt: skip


def color_objective(joint=True, grid=(0.05, 0.1, 0.3), members=1):
    group = Group(sharpness=1.2)
    return PaperObjective(bodies_for(3, len(grid), joint), np.array(grid), [group], members, fpr=0.05)


def make_plans(data, members, dropout=(0.2,)):
    random = np.random.default_rng(5)
    source = make_folds(data.y, members=members, share=0.2, random=random)
    target = make_folds(np.zeros(len(data.X_target), int), members=members, share=0.2, random=random)
    return [
        MemberPlan(
            np.random.SeedSequence(100 + m),
            s.train,
            s.validation,
            t.train,
            t.validation,
            dropout=dropout[m % len(dropout)],
        )
        for m, (s, t) in enumerate(zip(source, target, strict=True))
    ]


def rows_of(data):
    scaling = fit_scaling(moments(data.X), moments(data.X_target), "global")
    return ScaledRows(data.X, scaling), ScaledRows(data.X_target, scaling)


@pytest.mark.parametrize("joint", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("optimizer", ["adam", pytest.param("sgd", marks=pytest.mark.slow)])
@pytest.mark.parametrize("dropout", [(0.2,), (0.0, 0.2, 0.5)], ids=["alike", "own"])
def test_four_members_together_are_four_runs_of_one(small, joint, optimizer, dropout):
    source, target = rows_of(small)
    plans = make_plans(small, 4, dropout)
    settings = replace(SETTINGS, optimizer=optimizer, learning_rate=1e-3 if optimizer == "adam" else 0.05)
    together = train(color_objective(joint, members=4), plans, source, small.y, target, settings)
    scores = head_outputs(Network.from_arrays(together.architecture, together.weights), target)
    for member, plan in enumerate(plans):
        alone = train(color_objective(joint), [plan], source, small.y, target, settings)
        assert alone.choices[0].step == together.choices[member].step
        assert alone.choices[0].head == together.choices[member].head
        own = head_outputs(Network.from_arrays(alone.architecture, alone.weights), target)
        for head in ("classes", "novelty"):
            np.testing.assert_allclose(own[head][0], scores[head][member], rtol=0, atol=1e-5)


def test_the_kept_network_is_the_best_evaluation_point_of_the_table(small):
    source, target = rows_of(small)
    trained = train(color_objective(members=2), make_plans(small, 2), source, small.y, target, SETTINGS)
    table = trained.heads
    for member, choice in enumerate(trained.choices):
        own = table["member"] == member
        feasible = own & table["feasible"]
        if feasible.any():
            best = np.flatnonzero(feasible)[table["recall"][feasible].argmax()]
        else:
            best = np.flatnonzero(own)[table["fpr"][own].argmin()]
        assert (table["step"][best], table["head"][best]) == (choice.step, choice.head)
    # and the weights are of that point: scoring the validation rows again gives the stored rates
    plan, choice = make_plans(small, 2)[1], trained.choices[1]
    network = Network.from_arrays(trained.architecture, trained.weights)
    again = head_outputs(network, target, plan.target_validation)["novelty"][1, :, choice.head]
    row = (table["member"] == 1) & (table["step"] == choice.step) & (table["head"] == choice.head)
    assert (again > 0).mean() == pytest.approx(table["recall"][row][0])


def test_every_head_reaches_the_recall_it_is_asked_for(shifted):
    source, target = rows_of(shifted)
    settings = replace(SETTINGS, max_steps=800, batch_size=200)
    asked = (0.05, 0.3, 0.6)
    trained = train(
        color_objective(grid=asked), make_plans(shifted, 1, (0.0,)), source, shifted.y, target, settings
    )
    late = trained.heads["step"] > 400
    for head, candidate in enumerate(asked):
        reached = trained.heads["recall"][late & (trained.heads["head"] == head)].mean()
        assert reached == pytest.approx(candidate, abs=0.1)


def test_training_stops_when_everything_has_settled(small):
    source, _ = rows_of(small)
    plans = [
        replace(p, target_train=p.target_train[:0], target_validation=p.target_validation[:0])
        for p in make_plans(small, 1, (0.0,))
    ]
    settings = replace(SETTINGS, max_steps=5000, tol=1e-2, l2=1e-2)
    trained = train(ClassObjective(3), plans, source, small.y, None, settings)
    assert trained.stop_reason == "converged"
    assert trained.n_steps < 5000
    assert train(ClassObjective(3), plans, source, small.y, None, SETTINGS).stop_reason == "max_steps"


def test_the_papers_epoch_counts_batches_of_the_smaller_domain():
    assert paper_epoch(2000, 950, 200) == 5
    assert paper_epoch(2000, 0, 200) == 10
    assert paper_epoch(3, 3, 200) == 1


def test_progress_is_reported_at_the_start_and_every_evaluation_point(small):
    source, target = rows_of(small)
    seen = []
    train(
        color_objective(), make_plans(small, 1), source, small.y, target, SETTINGS,
        on_progress=lambda p: seen.append((p.step, p.max_steps)),
    )  # fmt: skip
    assert seen == [(step, 150) for step in range(0, 151, 25)]


def test_a_backbone_must_give_one_vector_or_one_map_a_row(small):
    source, target = rows_of(small)
    with pytest.raises(ValueError, match="one vector a row"):
        train(
            color_objective(), make_plans(small, 1), source, small.y, target, SETTINGS,
            backbone=torch.nn.Unflatten(1, (1, 2, 2, 2)),
        )  # fmt: skip


class Adapting(ClassObjective):
    """Watches when and with what it is asked to adapt."""

    adapts = True
    warm_up = 0.1

    def __init__(self, changes=False):
        super().__init__(3)
        self.seen, self._changes = [], changes

    def adapt(self, validation, target_rows, score_target):
        assert score_target()["classes"].shape == (len(target_rows), 3)
        self.seen.append((validation.step, validation.member, validation.max_steps, target_rows))
        return self._changes


def test_an_adaptive_objective_is_asked_at_every_point_and_after_its_warm_up(small):
    source, target = rows_of(small)
    plans, objective = make_plans(small, 2), Adapting()
    trained = train(objective, plans, source, small.y, target, replace(SETTINGS, max_steps=60))
    assert [seen[:3] for seen in objective.seen] == [(s, m, 60) for s in (6, 25, 50, 60) for m in (0, 1)]
    assert [record["step"] for record in trained.history] == [6, 6, 25, 25, 50, 50, 60, 60]
    for _, member, _, rows in objective.seen:
        np.testing.assert_array_equal(rows, plans[member].target_train)


def test_nothing_has_settled_while_the_loss_still_changes_its_meaning(small):
    source, target = rows_of(small)
    settings = replace(SETTINGS, max_steps=400, evaluate_every=10, tol=10.0)
    reasons = [
        train(Adapting(changes), make_plans(small, 1), source, small.y, target, settings).stop_reason
        for changes in (False, True)
    ]
    assert reasons == ["converged", "max_steps"]
