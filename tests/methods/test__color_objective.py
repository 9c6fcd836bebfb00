from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from openset.learn.architecture import Architecture
from openset.learn.batches import Batch
from openset.learn.bodies import DropoutMasks
from openset.learn.losses import class_loss, known_loss, soft_rate
from openset.learn.network import Network
from openset.learn.objective import Validation
from openset.methods._color_objective import PaperObjective, PooledObjective
from openset.methods._presets import Group
from openset.methods.discriminator import bodies_for
from openset.stats.selection import penalised_recall

GRID = np.array([0.05, 0.2, 0.5])
GROUPS = [Group(0.1, 0.0, 0.6), Group(0.3, 0.0, 2.0)]


def paper(**options):
    return PaperObjective(bodies_for(4, 3, True), GRID, [Group(sharpness=1.3)], 2, fpr=0.3, **options)


def pooled(groups=GROUPS, members=2):
    return PooledObjective(
        bodies_for(4, 3, True), GRID, groups, members, fpr=0.3, max_density_ratio=4.0, patience=4
    )


def on_a_batch(objective, members, joint=True):
    seeds = [np.random.SeedSequence(m) for m in range(members)]
    network = Network(Architecture(objective.bodies, 6, 8, 0.0, members=members)).initialise(seeds)
    x = torch.randn(members, 24, 6, generator=torch.Generator().manual_seed(0))
    y = (torch.arange(12) % 4).expand(members, 12)
    terms = objective.terms(network, Batch(x, y, y), DropoutMasks(seeds))
    with torch.no_grad():
        bodies = ("shared", "shared") if joint else ("known", "novelty")
        classes, novelty = network(x, bodies[0])["classes"], network(x, bodies[1])["novelty"]
    return terms, classes, novelty, y


@pytest.mark.parametrize("weight", [1.0, 0.25])
def test_the_papers_terms_are_the_losses_on_source_and_the_violations_on_target(weight):
    terms, classes, novelty, y = on_a_batch(paper(class_loss_weight=weight), members=2)
    objective = weight * class_loss(classes[:, :12], y) + known_loss(novelty[:, :12]).sum(dim=1)
    np.testing.assert_allclose(terms.objective.detach(), objective, rtol=1e-5)
    soft = torch.from_numpy(GRID) - soft_rate(novelty[:, 12:], 1.3)
    np.testing.assert_allclose(terms.proxy_violation.detach(), soft, rtol=1e-5, atol=1e-7)
    hard = GRID - (novelty[:, 12:].numpy() > 0).mean(axis=1)
    np.testing.assert_allclose(terms.violation, hard, atol=1e-12)


def test_two_bodies_give_the_same_formula():
    objective = PaperObjective(bodies_for(4, 3, False), GRID, [Group(sharpness=1.0)], 1, fpr=0.3)
    terms, classes, novelty, y = on_a_batch(objective, members=1, joint=False)
    expected = class_loss(classes[:, :12], y) + known_loss(novelty[:, :12]).sum(dim=1)
    np.testing.assert_allclose(terms.objective.detach(), expected, rtol=1e-5)


def test_each_group_has_its_own_sharpness_and_multipliers_follow_the_soft_recall():
    terms, _, novelty, _ = on_a_batch(pooled(), members=4)
    assert terms.violation is None
    for member, sharpness in enumerate((0.6, 0.6, 2.0, 2.0)):
        soft = GRID - soft_rate(novelty[member : member + 1, 12:], sharpness).numpy()[0]
        np.testing.assert_allclose(terms.proxy_violation[member].detach(), soft, rtol=1e-5, atol=1e-7)


def validation(member, source, target):
    random = np.random.default_rng(member)
    outputs = {"classes": random.normal(size=(len(source), 4)), "novelty": np.asarray(source, float)}
    y = np.arange(len(source)) % 4
    return Validation(
        outputs, y, {"novelty": np.asarray(target, float)}, np.full(3, 0.1 * member), member, 10, 100
    )


def drawn(member, n_source=20, n_target=30):
    random = np.random.default_rng(100 + member)
    source, target = random.normal(-1.5, 1, (n_source, 3)), random.normal(-1, 1.5, (n_target, 3))
    target[:6] += [4, 6, 1]
    return validation(member, source, target)


def test_algorithm_1_takes_the_highest_recall_among_heads_within_the_budget():
    source = [[1, -1, -1]] * 4 + [[-1, -1, 1]] * 6  # FPR .4, 0, .6
    target = [[1, 1, 1]] * 2 + [[1, -1, 1]] * 8  # recall 1, .2, 1
    judgement = paper().judge_member(validation(0, source, target))
    assert judgement.head == 1 and judgement.key == pytest.approx(1.2)
    assert judgement.heads["feasible"].tolist() == [False, True, False]
    assert judgement.heads["fpr"].tolist() == [0.4, 0.0, 0.6] and judgement.heads["recall"].tolist() == [
        1.0,
        0.2,
        1.0,
    ]
    assert judgement.heads["candidate_recall"].tolist() == GRID.tolist()
    assert {"fpr": 0.0, "recall": 0.2}.items() <= judgement.metrics.items()


def test_where_no_head_keeps_the_budget_the_lowest_rate_is_taken():
    judgement = paper().judge_member(validation(0, [[1, 1, 1]] * 5 + [[1, -1, 1]] * 5, [[1, 1, 1]] * 10))
    assert judgement.head == 1 and judgement.key == -0.5 and not judgement.heads["feasible"].any()


def test_a_group_is_judged_by_penalised_recall_on_all_its_members_rows():
    parts = [drawn(member) for member in range(4)]
    judged = pooled().judge(parts)
    for group, members in ((0, parts[:2]), (1, parts[2:])):
        source = np.concatenate([member.source["novelty"] for member in members])
        target = np.concatenate([member.target["novelty"] for member in members])
        value = [penalised_recall(source[:, head], target[:, head], 4.0) for head in range(3)]
        first, second = judged[2 * group : 2 * group + 2]
        assert first.key == second.key == max(value) and first.head == second.head == int(np.argmax(value))
        assert (
            first.heads["value"].tolist() == value
            and first.heads["fpr"].tolist() == (source > 0).mean(0).tolist()
        )
        assert first.heads["multiplier"].tolist() == pytest.approx(
            [np.mean([m.multipliers[0] for m in members])] * 3
        )
        assert first.heads["sharpness"].tolist() == [GROUPS[group].sharpness] * 3
        assert first.heads["bound"].tolist() == [GROUPS[group].bound] * 3
        assert second.heads == {}, "the table has a group's heads once"
        assert first.metrics["class_loss"] != second.metrics["class_loss"], "classes are each member's"


def test_a_head_that_separates_nothing_is_worth_nothing():
    source = target = np.random.default_rng(0).normal(-3, 1, (50, 3))
    (judgement,) = pooled(GROUPS[:1], members=1).judge([validation(0, source, target)])
    assert judgement.key <= 1e-3 and not (judgement.heads["value"] > 0.01).any()
    assert judgement.heads["feasible"].tolist() == (judgement.heads["value"] > 0).tolist()


def test_members_of_the_pooled_problem_stop_together_and_the_papers_apart():
    assert pooled().patience == 4 and paper().patience is None
    assert paper().n_constraints == 3 and math.isinf(Group().bound)
