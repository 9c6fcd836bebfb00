from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from openset.learn.objective import KEEP_LATEST, Judgement, Objective, Validation
from openset.learn.primal_dual import Terms
from openset.methods.anna import AnnaObjective
from openset.methods.pu import PUObjective
from openset.methods.pulse import PulseObjective
from openset.methods.shot import ShotObjective


class Plain(Objective):
    """The least that an objective needs."""

    bodies = {"shared": {"classes": 2}}  # noqa: RUF012  as subclasses write it

    def terms(self, network, batch, masks):
        return Terms(torch.zeros(1))

    def judge_member(self, validation):
        return Judgement(float(validation.member), {"step": float(validation.step)})


def validation(member=0, step=1):
    return Validation({}, np.empty(0, np.intp), {}, np.empty(0), member, step, 10)


def test_bodies_terms_and_a_judgement_are_enough():
    plain = Plain()
    assert plain.head_kinds == plain.body_kinds == {} and plain.n_constraints == 0
    assert plain.warm_up == 0 and plain.patience is None and not plain.adapts
    assert not plain.adapt(validation(), np.arange(3), dict)
    for missing in ("terms", "judge_member"):
        incomplete = type("Incomplete", (Plain,), {missing: getattr(Objective, missing)})
        with pytest.raises(TypeError, match=missing):
            incomplete()


def test_members_are_judged_one_by_one_in_their_order():
    judged = Plain().judge([validation(member, step=5) for member in (2, 0, 1)])
    assert [judgement.key for judgement in judged] == [2, 0, 1]
    assert judged[0].metrics == {"step": 5} and judged[0].head == 0 and judged[0].heads == {}


def test_the_latest_network_beats_every_other_key():
    assert math.inf == KEEP_LATEST


def test_without_adapting_there_is_nothing_to_store():
    plain = Plain()
    plain.check_can_be_stored()
    plain.restore(plain.state())
    assert plain.state() == {}


def test_what_adapts_must_say_what_a_checkpoint_stores():
    hiding = type("Hiding", (Plain,), {"adapts": True})()
    with pytest.raises(ValueError, match="Hiding adapts in training but has no state.*fit without checkpoint"):
        hiding.check_can_be_stored()
    type("Telling", (Plain,), {"adapts": True, "state": lambda self: {"kept": 1}})().check_can_be_stored()


@pytest.mark.parametrize(
    "make",
    [
        lambda: AnnaObjective(
            3, 0.5, members=2, warm_up=0.2, top=2, mining_scale=0.2, domain_reversal=0.1, target_reversal=0.5
        ),
        lambda: PUObjective(
            Plain.bodies, members=2, prior=0.3, estimator="bbe", warm_up=0.1, loss="sigmoid", non_negative=None
        ),
        lambda: PulseObjective(Plain.bodies, members=2, n_target=5, warm_up=0.1),
        lambda: ShotObjective(3, members=2, n_target=5),
    ],
    ids=["anna", "pu", "pulse", "shot"],
)
def test_every_adaptive_objective_restores_what_it_stored(make):
    one, other = make(), make()
    assert one.adapts
    one.check_can_be_stored()
    state = one.state()
    assert state
    other.restore(state)
    for name, value in other.state().items():
        np.testing.assert_array_equal(value, state[name])
