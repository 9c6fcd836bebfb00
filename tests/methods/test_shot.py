from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cosine

import openset
from openset import SHOT, SourceOnly, make_background_shift
from openset.errors import FitWarning
from openset.learn.losses import class_loss
from openset.learn.objective import Validation
from openset.methods.shot import ShotObjective, information_maximisation, pseudo_labels
from openset.stats.groups import two_means
from openset.stats.metrics import evaluate
from openset.stats.scores import normalised_entropy_score

QUICK = {"max_steps": 60, "evaluate_every": 20, "random_state": 0, "fpr": 0.1}
GOLDEN = np.array([[3, 1, 0], [1, 1, 1], [0, 2, 1.9]])


def test_golden_numbers():
    logits = torch.tensor(GOLDEN)[None]
    known = torch.ones(1, 3, dtype=torch.bool)
    assert information_maximisation(logits, known).tolist() == [pytest.approx(-0.245311, abs=1e-5)]
    np.testing.assert_allclose(normalised_entropy_score(GOLDEN), [0.477208, 1, 0.810164], atol=1e-6)


def entropy(p):
    return -(p * np.log(p)).sum(axis=-1)


def test_the_target_loss_is_the_formula_for_each_member_with_unknown_rows_only_in_the_mean():
    random = np.random.default_rng(0)
    logits, rows = random.normal(size=(2, 6, 3)), np.array([[5, 0, 1, 2, 3, 4], [4, 4, 1, 3, 2, 0]])
    objective = ShotObjective(3, members=2, n_target=6, pseudo_weight=0.3)
    objective.labels = np.array([[0, 1, 2, 3, 0, 3], [3, 2, 1, 1, 0, 0]])
    loss = objective._target_loss(torch.tensor(logits), torch.tensor(rows))
    for member in range(2):
        p = np.exp(logits[member]) / np.exp(logits[member]).sum(axis=1, keepdims=True)
        labels = objective.labels[member][rows[member]]
        known = np.flatnonzero(labels < 3)
        expected = -0.3 * np.log(p[known, labels[known]]).mean() + entropy(p[known]).mean()
        assert loss[member].item() == pytest.approx(expected - entropy(p.mean(axis=0)))


def test_without_known_rows_there_is_nothing_to_learn():
    objective = ShotObjective(3, members=1, n_target=4)
    logits = torch.randn(1, 4, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    objective._target_loss(logits, torch.arange(4)[None]).sum().backward()
    assert (logits.grad == 0).all()


def test_extreme_logits_keep_a_finite_gradient():
    logits = torch.tensor([[[500.0, 0.0], [400.0, -400.0]]], requires_grad=True)
    information_maximisation(logits, torch.ones(1, 2, dtype=torch.bool)).sum().backward()
    assert torch.isfinite(logits.grad).all()


def brute_force_labels(logits, features, split):
    """Step 2 of METHODS.md §7 by loops, one row and one class at a time."""
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    k = logits.shape[1]
    e = entropy(p) / np.log(k)
    known = [i for i in range(len(p)) if e[i] <= split]
    f = {i: np.append(features[i], 1) / np.linalg.norm(np.append(features[i], 1)) for i in known}
    weights = {c: {i: p[i, c] for i in known} for c in {int(p[i].argmax()) for i in known}}
    for _ in range(2):
        centroids = {c: sum(w[i] * f[i] for i in w) / sum(w.values()) for c, w in weights.items()}
        nearest = {i: min(sorted(centroids), key=lambda c: cosine(f[i], centroids[c])) for i in known}
        weights = {c: {i: 1.0 for i in known if nearest[i] == c} for c in set(nearest.values())}
    return np.array([nearest.get(i, k) for i in range(len(p))])


@given(st.integers(0, 10_000), st.integers(2, 40), st.integers(2, 5), st.integers(1, 6))
def test_pseudo_labels_are_those_of_brute_force(seed, n, k, width):
    random = np.random.default_rng(seed)
    logits, features = 3 * random.normal(size=(n, k)), random.normal(size=(n, width))
    split = two_means(normalised_entropy_score(logits)).split
    found = pseudo_labels(logits, features, split)
    np.testing.assert_array_equal(found, brute_force_labels(logits, features, split))
    assert (found == k).any() and (found < k).any()


def test_a_class_that_loses_all_its_rows_is_dropped():
    """Row 0 leans to class 0, but its features are those of class 1."""
    logits = np.array([[1.0, 0.9, -9], [-9, 9, -9], [-9, 9, -9]])
    features = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    labels = pseudo_labels(logits, features, split=1.0)
    assert len(set(labels.tolist())) == 1


def test_one_class_is_all_known_and_scores_0(small):
    assert pseudo_labels(np.ones((4, 1)), np.ones((4, 2)), two_means(np.zeros(4)).split).tolist() == [0] * 4
    model = SHOT(**QUICK).fit(small.X, np.zeros(len(small.X), int), small.X_target)
    assert (model.novelty_score(small.X_test) == 0).all() and (model.predict(small.X_test) == 0).all()
    assert all(np.isfinite(values).all() for values in model.weights_.values())


class Watched(ShotObjective):
    """Remembers weights at the first step of the target stage, and after it."""

    def terms(self, network, batch, masks):
        if self.in_target_stage and not hasattr(self, "before"):
            self.before = {name: values.copy() for name, values in network.arrays().items()}
        self.network = network
        return super().terms(network, batch, masks)


@pytest.mark.parametrize("settings", [{}, {"optimizer": "sgd", "learning_rate": 0.01}, {"members": 2, "l2": 0.1}])
def test_in_the_target_stage_the_head_stays_bit_for_bit_and_the_bottleneck_moves(small, settings, monkeypatch):
    seen = []

    def watched(self, problem):
        seen.append(Watched(3, members=self.members, n_target=len(problem.X_target)))
        return seen[0]

    monkeypatch.setattr(SHOT, "_objective", watched)
    model = SHOT(**QUICK, **settings).fit(small.X, small.y, small.X_target)
    after = seen[0].network.arrays()
    for name, before in seen[0].before.items():
        assert np.array_equal(before, after[name]) == name.startswith("heads."), name
        assert np.array_equal(after[name], model.weights_[name])  # the last network is the one kept


def test_a_restored_objective_goes_on_in_the_same_stage_with_the_same_labels():
    random = np.random.default_rng(0)
    outputs = {"classes": random.normal(size=(9, 3)), "shared": random.normal(size=(9, 4))}
    objective, again = (ShotObjective(3, members=1, n_target=9) for _ in range(2))
    validation = Validation(outputs, np.arange(9) % 3, outputs, np.empty(0), 0, 5, 10)
    assert not objective.in_target_stage
    assert objective.adapt(validation, np.arange(9), lambda representation: outputs)  # the loss changes
    assert not objective.adapt(validation, np.arange(9), lambda representation: outputs)  # only labels do
    again.restore(objective.state())
    assert again.in_target_stage and objective.in_target_stage
    logits, rows = torch.tensor(outputs["classes"])[None], torch.arange(9)[None]
    assert torch.equal(again._target_loss(logits, rows), objective._target_loss(logits, rows))


def test_the_source_stage_is_smoothed_cross_entropy_on_source_rows_alone():
    logits, y = torch.tensor(GOLDEN, dtype=torch.float64)[None], torch.tensor([[0, 1, 2]])
    log_p = logits[0].log_softmax(dim=1)
    smoothed = 0.9 * torch.eye(3, dtype=torch.float64)[y[0]] + 0.1 / 3
    expected = -(smoothed * log_p).sum(dim=1).mean()
    assert class_loss(logits, y, 0.1).item() == pytest.approx(expected.item())


def test_stages_follow_source_share_and_labels_are_renewed_at_evaluation_points(small):
    model = SHOT(**QUICK, source_share=0.3).fit(small.X, small.y, small.X_target)
    stages = {record["step"]: np.isfinite(record["unknown"]) for record in model.history_}
    assert stages == {18: True, 20: True, 40: True, 60: True}
    late = SHOT(**QUICK, source_share=0.9).fit(small.X, small.y, small.X_target)
    assert [np.isfinite(r["unknown"]) for r in late.history_] == [False, False, True, True]
    assert late.history_[2]["step"] == 54


def test_the_split_is_that_of_the_final_network_on_the_rows_it_trained_on(small):
    model = SHOT(**QUICK).fit(small.X, small.y, small.X_target)
    validation = ~np.isnan(model.target_novelty_score_)
    outputs = model._head_outputs(small.X_target[~validation])
    expected = two_means(normalised_entropy_score(outputs["classes"][0])).split
    assert model.entropy_split_.shape == (1,) and model.entropy_split_[0] == pytest.approx(expected, abs=1e-6)


def moved(seed, distance):
    """Three classes and a new one; all target rows are moved by one vector of the given length.

    Classes lie at 6 from the origin, so a move of twice that in any direction carries rows over boundaries that
    source draws. Centring by the target's own statistics undoes it, which is what SHOT's bottleneck can do.
    """
    data = make_background_shift(
        n_source=500, n_target=500, n_test=500, n_features=20, n_subtypes=1, subtype_distance=0, shift=False,
        random_state=seed,
    )  # fmt: skip
    direction = np.random.default_rng(1000 + seed).standard_normal(20)
    return data, distance * direction / np.linalg.norm(direction)


@pytest.mark.slow
def test_it_raises_top1_over_source_only_where_the_target_moved_and_loses_nothing_where_not():
    for distance, gain in ((12, 0.1), (0, -0.01)):
        reached = {SHOT: [], SourceOnly: []}
        for seed in range(3):
            data, move = moved(seed, distance)
            for method, metrics in reached.items():
                model = method(max_steps=300, fpr=0.1, random_state=0).fit(data.X, data.y, data.X_target + move)
                metrics.append(evaluate(model, data.X_test + move, data.y_test))
        top1, source_top1 = (np.mean([m.top1 for m in metrics]) for metrics in reached.values())
        novelty, source_novelty = (np.mean([m.auroc for m in metrics]) for metrics in reached.values())
        assert top1 > 0.95 and top1 > source_top1 + gain
        assert novelty > source_novelty + gain


def test_members_are_pooled_and_score_every_target_row_out_of_fold(small, tmp_path):
    model = SHOT(**QUICK, members=5).fit(small.X, small.y, small.X_target)
    assert not np.isnan(model.target_novelty_score_).any() and model.entropy_split_.shape == (5,)
    model.save(tmp_path)
    again = openset.load(tmp_path)
    assert np.array_equal(again.novelty_score(small.X_test), model.novelty_score(small.X_test))
    assert np.array_equal(again.entropy_split_, model.entropy_split_)
    assert again.weights_["bodies.shared.running_mean"].shape == (5, 1, 128)


def test_a_backbone_takes_the_bottlenecks_place(small):
    torch.manual_seed(0)
    backbone = torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.BatchNorm1d(12))
    model = SHOT(**QUICK, backbone=backbone).fit(small.X, small.y, small.X_target)
    order = np.random.default_rng(0).permutation(len(small.X_test))
    scores = model.novelty_score(small.X_test)
    assert np.array_equal(model.novelty_score(small.X_test[order]), scores[order])


@pytest.mark.parametrize(
    "wrong",
    [
        {"source_share": 0}, {"source_share": 1}, {"source_share": "half"}, {"label_smoothing": 1},
        {"label_smoothing": -0.1}, {"pseudo_weight": -1}, {"pseudo_weight": None}, {"batch_size": 1},
    ],
)  # fmt: skip
def test_bad_parameters_are_named(small, wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"{name}="):
        SHOT(**wrong).fit(small.X, small.y, small.X_target)


def test_presets_are_the_authors_own(small):
    for name in ("amazon_reviews", "cifar100", "sun397_resnet50", "sun397_vitl14"):
        model = SHOT.preset(name)
        assert (model.optimizer, model.learning_rate, model.hidden, model.dropout) == ("sgd", 1e-2, 256, 0.0)
        assert (model.label_smoothing, model.pseudo_weight) == (0.1, 0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        SHOT.preset("cifar100", max_steps=20).fit(small.X, small.y, small.X_target)
