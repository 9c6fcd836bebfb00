"""A fit that is killed and called again ends with the same weights, bit for bit; any other is refused."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys

import numpy as np
import pytest
from safetensors import safe_open

import openset
from openset import NNPU, PULSE, UPU, CoLOR, DomainDiscriminator, PaperCoLOR
from openset.learn import train as loop
from openset.learn.batches import ScaledRows
from openset.learn.checkpoint import FILE, Checkpoint, fingerprint_of, remove_checkpoint
from openset.methods._known_classes import ClassObjective
from openset.registry import get_method
from openset.stats.metrics import auroc
from openset.stats.scaling import NO_SCALING

pytestmark = pytest.mark.filterwarnings("ignore::openset.errors.FitWarning")

SHORT = {"max_steps": 60, "evaluate_every": 10, "hidden": 16, "fpr": 0.1, "random_state": 0}

KILLED = """
import json, os, signal, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
from openset.learn.checkpoint import Checkpoint
from openset.methods._known_classes import ClassObjective
from openset.registry import get_method

data = np.load(sys.argv[1])
kept = Checkpoint.save

def fit(method, parameters, points):
    left = [points]
    def save_and_die(self, state, *, last=False):
        kept(self, state, last=True)  # however short ago the one before was
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
    Checkpoint.save = save_and_die
    get_method(method).make(**parameters).fit(data["X"], data["y"], data["X_target"])

for case in json.loads(sys.argv[2]):
    child = os.fork()
    if not child:
        fit(*case)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def kill_fits(X, y, X_target, cases, folder):
    """Run fits (method, parameters, evaluation points to live) in processes that kill themselves."""
    np.savez(folder / "data.npz", X=X, y=y, X_target=X_target)
    command = [sys.executable, "-c", KILLED, str(folder / "data.npz"), json.dumps(cases)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(-signal.SIGKILL)] * len(cases), done.stderr


def assert_same_fit(one, other):
    assert one.weights_.keys() == other.weights_.keys()
    for name, weights in one.weights_.items():
        np.testing.assert_array_equal(weights, other.weights_[name], err_msg=name)
    np.testing.assert_equal(one.history_, other.history_)
    assert (one.threshold_, one.novel_fraction_) == (other.threshold_, other.novel_fraction_)
    for name in ("heads_", "prior_", "class_shares_"):
        if hasattr(one, name):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.fixture
def steps(monkeypatch):
    """Counts the steps that are really taken with a target; CoLOR's classifiers of known classes have none."""
    taken = []
    step = loop._Run.step
    monkeypatch.setattr(
        loop._Run, "step", lambda self: (taken.append(1) if self.target is not None else None) or step(self)
    )
    return taken


CASES = {
    "color": {"groups": [[0.1, 0.2], [0.3, 0.2], [1.0, 0.2]], "members": 2},
    "dd": {"optimizer": "sgd", "joint": False},
    "pulse": {"members": 2},
    "upu": {"prior_estimator": "en"},
}


@pytest.mark.slow
def test_a_killed_fit_goes_on_and_ends_with_the_same_weights(small, tmp_path, steps):
    points = {name: 1 + secrets.randbelow(5) for name in CASES}
    parameters = {name: {**SHORT, **CASES[name]} for name in CASES}
    cases = [(n, {**parameters[n], "checkpoint": str(tmp_path / n)}, points[n]) for n in CASES]
    kill_fits(small.X, small.y, small.X_target, cases, tmp_path)
    for name, with_checkpoint, killed_at in cases:
        assert (tmp_path / name / FILE).exists()
        steps.clear()
        resumed = get_method(name).make(**with_checkpoint).fit(small.X, small.y, small.X_target)
        assert len(steps) <= 60 - 10 * (killed_at - 1), f"{name}, killed at point {killed_at}, did not go on"
        assert not (tmp_path / name).exists()
        whole = get_method(name).make(**parameters[name]).fit(small.X, small.y, small.X_target)
        assert_same_fit(resumed, whole)


class Stop(Exception):
    """Ends a fit from outside."""


def interrupt(monkeypatch, model, data, points):
    """Fit until a number of checkpoints was written."""
    save, left = Checkpoint.save, [points]

    def save_and_stop(self, state, *, last=False):
        save(self, state, last=True)
        left[0] -= 1
        if not left[0]:
            raise Stop

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", save_and_stop)
        with pytest.raises(Stop):
            model.fit(data.X, data.y, data.X_target)


@pytest.mark.parametrize("point", [1, 2, 6])
@pytest.mark.parametrize(
    "make",
    [
        lambda **more: NNPU(warmup=0.3, **more),
        lambda **more: UPU(members=3, **more),
        lambda **more: PULSE(dropout=0.3, **more),
        lambda **more: CoLOR(members=2, **{**more, "max_steps": 150}),
        lambda **more: PaperCoLOR(tol=0.5, members=2, dual_optimizer="sgd", **{**more, "max_steps": 150}),
    ],
)
def test_any_evaluation_point_will_do(small, tmp_path, monkeypatch, make, point):
    interrupt(monkeypatch, make(**SHORT, checkpoint=tmp_path / "c"), small, point)
    resumed = make(**SHORT, checkpoint=tmp_path / "c").fit(small.X, small.y, small.X_target)
    assert_same_fit(resumed, make(**SHORT).fit(small.X, small.y, small.X_target))


def test_only_the_same_fit_goes_on(small, tmp_path, monkeypatch):
    folder = tmp_path / "c"
    interrupt(monkeypatch, CoLOR(**SHORT, checkpoint=folder), small, 2)
    X, y, target = small.X, small.y, small.X_target
    other_y = np.where(np.arange(len(y)) == 0, (y[0] + 1) % 3, y)
    touched = target.copy()
    touched[-1, -1] += 1e-3
    for parameters, data, part in [
        ({"learning_rate": 2e-3}, (X, y, target), "parameters"),
        ({"grid": (0.1, 0.2)}, (X, y, target), "parameters"),
        ({"random_state": 1}, (X, y, target), "seed"),
        ({}, (X, other_y, target), "labels"),
        ({}, (X[::-1], y, target), "source rows"),
        ({}, (X, y, touched), "target rows"),
    ]:
        with pytest.raises(ValueError, match=f"of another fit: it differs in .*{part}"):
            CoLOR(**{**SHORT, **parameters}, checkpoint=folder).fit(*data)
    with pytest.raises(ValueError, match="another fit"):
        DomainDiscriminator(**SHORT, checkpoint=folder).fit(X, y, target)
    CoLOR(**SHORT, checkpoint=folder, verbose=False).fit(X, y, target)
    assert not folder.exists()


def test_a_checkpoint_is_tensors_and_json(small, tmp_path, monkeypatch):
    interrupt(monkeypatch, PaperCoLOR(**SHORT, checkpoint=tmp_path), small, 2)
    assert os.listdir(tmp_path) == [FILE]
    with safe_open(tmp_path / FILE, framework="np") as stored:
        content = json.loads(stored.metadata()["openset"])
    assert content["state"]["ledger"]["step"] == 20 and len(content["state"]["ledger"]["history"]) == 2
    (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes()[:-100])
    with pytest.raises(ValueError, match="cannot be read as a checkpoint"):
        CoLOR(**SHORT, checkpoint=tmp_path).fit(small.X, small.y, small.X_target)


def test_a_checkpoint_needs_a_folder_and_a_seed(small):
    with pytest.raises(ValueError, match="checkpoint=3 is not valid"):
        CoLOR(checkpoint=3, random_state=0).fit(small.X, small.y)
    with pytest.raises(ValueError, match="random_state=None is not valid with checkpoint='c'"):
        CoLOR(checkpoint="c").fit(small.X, small.y)


class Hiding(ClassObjective):
    """Adapts, and does not say what."""

    adapts = True

    def adapt(self, validation, target_rows, score_target):
        return False


def test_an_objective_that_hides_what_it_adapted_is_refused(small, tmp_path, monkeypatch):
    monkeypatch.setattr(DomainDiscriminator, "_objective", lambda self, problem: Hiding(problem.n_classes))
    with pytest.raises(ValueError, match="Hiding adapts in training but has no state"):
        DomainDiscriminator(**SHORT, checkpoint=tmp_path / "c").fit(small.X, small.y, small.X_target)


def test_writing_takes_a_small_share_of_the_time(tmp_path, monkeypatch):
    now, written = [0.0], []
    monkeypatch.setattr("openset.learn.checkpoint.time.monotonic", lambda: now[0])

    def state():
        written.append(now[0])
        now[0] += 2.0  # a slow disk
        return {"step": 1}

    checkpoint = Checkpoint(tmp_path, {})
    for _ in range(100):
        now[0] += 1.0
        checkpoint.save(state)
    assert len(written) == 1 + int((now[0] - 3) // 22)
    checkpoint.save(state, last=True)
    assert now[0] - written[-1] == 2.0


@pytest.mark.slow
def test_resnet18_on_cifar100_learns_and_goes_on_after_a_kill(shared_data, tmp_path, steps):
    """Two known classes of CIFAR-100 and a new one, at an eighth of the published width, for 40 steps.

    Chance is .5 for accuracy over 200 test images and for AUROC over 200 known and 100 novel ones, with standard
    deviations of .035 each: five of them above is beyond chance.
    """
    stored = np.load(shared_data / "cifar100" / "cifar100_26classes.npz")
    images, fine, split = stored["images"], stored["fine"], stored["split"]
    known, novel = ("sunflower", "dolphin"), "streetcar"

    def rows(name, part, start, stop):
        return np.flatnonzero((fine == name) & (split == part))[start:stop]

    source = np.concatenate([rows(name, "train", 0, 150) for name in known])
    target = np.concatenate([*(rows(name, "train", 150, 230) for name in known), rows(novel, "train", 0, 100)])
    test = np.concatenate([rows(name, "test", 0, 100) for name in (*known, novel)])
    parameters = {
        "backbone": "resnet18(width=8)", "augment": "crop_flip", "batch_size": 50, "max_steps": 40,
        "evaluate_every": 8, "learning_rate": 3e-3, "grid": [0.1, 0.2, 0.3], "fpr": 0.1, "random_state": 0,
    }  # fmt: skip
    data = images[source], fine[source], images[target]
    folder = tmp_path / "checkpoint"
    killed_at = 1 + secrets.randbelow(4)
    kill_fits(*data, [("color", {**parameters, "checkpoint": str(folder)}, killed_at)], tmp_path)
    resumed = CoLOR(**parameters, checkpoint=folder).fit(*data)
    assert len(steps) == 40 - 8 * killed_at
    whole = CoLOR(**parameters).fit(*data)
    assert_same_fit(resumed, whole)

    is_novel = fine[test] == novel
    correct = resumed.predict_known(images[test]) == fine[test]
    assert correct[~is_novel].mean() > 0.5 + 5 * 0.035
    assert auroc(is_novel, resumed.novelty_score(images[test])) > 0.5 + 5 * 0.035
    resumed.save(tmp_path / "model")
    again = openset.load(tmp_path / "model")
    np.testing.assert_array_equal(again.novelty_score(images[test][:20]), whole.novelty_score(images[test][:20]))


# ---------------------------------------------------------------------- the file by itself


def test_a_state_comes_back_from_the_folder_and_the_folder_goes_when_it_is_empty(tmp_path):
    folder = tmp_path / "deep" / "c"
    checkpoint = Checkpoint(folder, {"seed": "a"})
    assert checkpoint.load() is None
    checkpoint.save(lambda: {"step": 3, "w": np.arange(4.0)})
    stored = Checkpoint(folder, {"seed": "a"}).load()
    assert stored["step"] == 3 and stored["w"].tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="of another fit: it differs in seed"):
        Checkpoint(folder, {"seed": "b"}).load()
    (folder / "mine.txt").write_text("keep")
    remove_checkpoint(folder)
    assert os.listdir(folder) == ["mine.txt"]
    (folder / "mine.txt").unlink()
    remove_checkpoint(folder)
    assert not folder.exists()
    remove_checkpoint(folder)  # and again, where there is nothing


def test_a_fingerprint_names_the_part_that_differs(small):
    def fingerprint(parameters="p", X=small.X, y=small.y, target=small.X_target, seed=0, weight=1.0):
        rows = np.arange(5)
        plan = loop.MemberPlan(np.random.SeedSequence(seed), rows, rows, rows, rows)
        source = ScaledRows(X, NO_SCALING)
        scaled = None if target is None else ScaledRows(target, NO_SCALING)
        return fingerprint_of(parameters, source, y, scaled, [plan], {"w": np.array([weight])})

    same = fingerprint()
    assert fingerprint() == same
    for changed, part in [
        ({"parameters": "q"}, "parameters"), ({"X": small.X * 2}, "source rows"), ({"y": small.y * 2}, "labels"),
        ({"target": None}, "target rows"), ({"seed": 1}, "seed"), ({"weight": 2.0}, "initial weights"),
    ]:  # fmt: skip
        other = fingerprint(**changed)
        assert [name for name in same if same[name] != other[name]] == [part]
