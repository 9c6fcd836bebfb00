"""Groups trained apart end with the bits that they have together, and stop at the same step."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from openset import CoLOR
from openset.learn.architecture import Architecture
from openset.learn.groups import GroupData, GroupState, advance, groups_trained_by, train_by_group
from openset.learn.ledger import Choice
from openset.learn.train import Trained
from openset.shift.synthetic import make_background_shift


class Apart:
    """Carries out tasks one by one, each as if it came from another process; notes them."""

    def __init__(self):
        self.rounds = []

    def __call__(self, data, tasks):
        self.rounds.append([(task.group, task.earliest) for task in tasks])
        copies = [pickle.loads(pickle.dumps((data, task))) for task in tasks]
        return [advance(*copy) for copy in copies]


def fitted(data, folder, **parameters):
    settings = {"members": 2, "evaluate_every": 5, "hidden": 20, "random_state": 0, **parameters}
    model = CoLOR(**settings)
    model.fit(data.X, data.y, data.X_target).save(folder)
    return model


def stored(folder):
    """The bytes of the arrays, and the rest without the time of saving."""
    content = json.loads((folder / "model.json").read_text())
    del content["saved"], content["sha256"]
    return [path.read_bytes() for path in folder.glob("*.safetensors")], content


CASES = {
    "odd sizes": (8, {"max_steps": 60, "batch_size": 33}),
    "dropout in some groups": (
        8,
        {"max_steps": 40, "groups": [(0.1, 0.0, 1.0), (0.3, 0.2, 0.6), (0.1, 0.2, 1.0)]},
    ),
    "dropout in all groups": (8, {"max_steps": 40, "groups": [(0.1, 0.2, 1.0), (0.3, 0.2, 0.6)]}),
    "stops early": (300, {"max_steps": 200, "groups": [(0.1, 0.0, 1.0), (0.3, 0.2, 0.6)]}),
}


@pytest.mark.filterwarnings("ignore::openset.errors.FitWarning")
@pytest.mark.parametrize("case", CASES)
def test_apart_is_together_bit_for_bit(case, tmp_path):
    n_features, parameters = CASES[case]
    data = make_background_shift(n_source=240, n_target=200, n_features=n_features, random_state=1)
    together = fitted(data, tmp_path / "together", **parameters)
    runner = Apart()
    with groups_trained_by(runner):
        apart = fitted(data, tmp_path / "apart", **parameters)
    assert stored(tmp_path / "apart") == stored(tmp_path / "together")
    assert apart.history_ == together.history_ and apart.stop_reason_ == together.stop_reason_
    np.testing.assert_array_equal(apart.heads_, together.heads_)
    n_groups = len(set(together.heads_["bound"].tolist()) if "groups" not in parameters else parameters["groups"])
    assert [group for group, _ in runner.rounds[0]] == list(range(n_groups))
    if case == "stops early":
        assert together.stop_reason_ == "converged" and together.n_steps_ < 200


@pytest.mark.filterwarnings("ignore::openset.errors.FitWarning")
def test_one_group_is_trained_here_and_a_checkpoint_is_refused(small, tmp_path):
    runner = Apart()
    with groups_trained_by(runner):
        CoLOR(effort="fast", max_steps=20, random_state=0).fit(small.X, small.y, small.X_target)
        assert runner.rounds == []
        with pytest.raises(ValueError, match="a checkpoint is for a fit on one machine"):
            CoLOR(max_steps=20, checkpoint=tmp_path / "c", random_state=0).fit(small.X, small.y, small.X_target)


def test_groups_go_on_until_all_would_stop_at_the_same_step():
    would_stop = [(3, 7, 9), (5, 9), (9,)]
    asked = []

    def runner(data, tasks):
        asked.append([(task.group, task.earliest, task.before and task.before.step) for task in tasks])
        return [state_at(next(s for s in would_stop[t.group] if s >= t.earliest), t.group) for t in tasks]

    def state_at(step, group):
        heads = {"member": np.zeros(2, int), "step": np.array([1, step]), "value": np.full(2, float(group))}
        history = [{"step": step, "member": 0.0, "loss": 1.0}]
        part = Trained(Architecture({}, 1, 1, 0.0, 1), {"w": np.full((1, 2), group)}, [Choice(step, 0, 1.0)],
                       history, heads, "", step)  # fmt: skip
        return GroupState(step, 20, True, part, {})

    data = GroupData([(1, None)] * 3, (), None, None, None, None)
    trained = train_by_group(runner, data)
    assert asked == [[(0, 0, None), (1, 0, None), (2, 0, None)], [(0, 9, 3), (1, 9, 5)]]
    would_stop[2] = (4, 9)
    asked.clear()
    train_by_group(runner, data)
    assert asked[1:] == [[(0, 5, 3), (2, 5, 4)], [(0, 9, 7), (1, 9, 5)]]
    assert trained.weights["w"].tolist() == [[0, 0], [1, 1], [2, 2]] and trained.n_steps == 9
    assert trained.heads["step"].tolist() == [1, 1, 1, 9, 9, 9]
    assert trained.heads["member"].tolist() == [0, 1, 2, 0, 1, 2] == trained.heads["value"].tolist()
    assert [entry["member"] for entry in trained.history] == [0, 1, 2] and trained.stop_reason == "converged"
