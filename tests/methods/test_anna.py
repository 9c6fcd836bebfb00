from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import check_estimator

import openset
from openset import ANNA, BODA, OpenSetClassifier, make_background_shift
from openset.errors import FitWarning
from openset.learn.architecture import Architecture
from openset.learn.batches import Batch
from openset.learn.bodies import DropoutMasks
from openset.learn.network import Network
from openset.learn.objective import Validation
from openset.methods.anna import AnnaObjective, domain_loss, mine_cells, mining_loss
from openset.methods.boda import adversarial_loss
from openset.shift.synthetic import make_feature_maps
from openset.stats.metrics import auroc

QUICK = {"max_steps": 40, "evaluate_every": 10, "batch_size": 32, "hidden": 12, "random_state": 0, "fpr": 0.1}
DEFAULTS = {"warm_up": 0.2, "top": 3, "mining_scale": 0.2, "domain_reversal": 0.1, "target_reversal": 0.5}


@pytest.fixture(scope="module")
def maps():
    table = make_background_shift(n_source=160, n_target=120, n_test=60, n_features=6, random_state=0)
    return make_feature_maps(table, n_cells=4, n_background=1, random_state=0)


def objective(n_classes=5, *, members=1, warm=True, **changes):
    made = AnnaObjective(n_classes, 0.5, members=members, **{**DEFAULTS, **changes})
    made._warm[:] = warm
    return made


# ---------------------------------------------------------------------- the formulas, by brute force


def mined_by_hand(classes, y, top):
    """The definition, cell by cell: §8 of METHODS.md."""
    known, unknown = np.zeros(classes.shape[:3], bool), np.zeros(classes.shape[:3], bool)
    for m, i, c in np.ndindex(classes.shape[:3]):
        ranked = np.argsort(-classes[m, i, c])
        known[m, i, c] = ranked[0] == y[m, i]
        unknown[m, i, c] = y[m, i] not in ranked[:top]
    for m, i in np.ndindex(y.shape):
        if not (known[m, i].any() and unknown[m, i].any() and known[m, i].sum() > unknown[m, i].sum()):
            known[m, i] = unknown[m, i] = False
    return known, unknown


@pytest.mark.parametrize(("n_classes", "top"), [(7, 3), (5, 3), (4, 3), (3, 2), (2, 1), (6, 1)])
def test_mining_marks_cells_as_defined(n_classes, top):
    random = np.random.default_rng(n_classes)
    y = random.integers(n_classes, size=(2, 60))
    classes = random.normal(size=(2, 60, 9, n_classes)) + 1.5 * np.eye(n_classes)[y][:, :, None]
    known, unknown = mine_cells(torch.tensor(classes), torch.tensor(y), top)
    expected = mined_by_hand(classes, y, top)
    assert expected[1].any() and not expected[1].any(axis=2).all(), "the example has maps of both sorts"
    np.testing.assert_array_equal(known, expected[0])
    np.testing.assert_array_equal(unknown, expected[1])


def test_with_one_class_nothing_is_mined():
    known, unknown = mine_cells(torch.randn(1, 5, 4, 1), torch.zeros(1, 5, dtype=torch.long), 0)
    assert not known.any() and not unknown.any()
    loss, share = mining_loss(torch.randn(1, 5, 4), known, unknown)
    assert loss.tolist() == [0] and share.tolist() == [0]


def test_mining_loss_is_the_binary_cross_entropy_to_one_and_the_share_of_unknown_cells():
    odds = torch.tensor(np.random.default_rng(0).normal(size=(2, 3, 4)))
    known, unknown = torch.zeros(2, 3, 4, dtype=torch.bool), torch.zeros(2, 3, 4, dtype=torch.bool)
    known[0, 0, :3], unknown[0, 0, 3], known[0, 2, 1:], unknown[0, 2, 0] = True, True, True, True
    known[1, 1, :2], unknown[1, 1, 3] = True, True
    loss, share = mining_loss(odds, known, unknown)
    np.testing.assert_allclose(share, [2 / 8, 1 / 3])
    for m in range(2):
        p = torch.tensor(expit(odds[m][unknown[m]].numpy()))
        expected = torch.nn.functional.binary_cross_entropy(p, torch.ones_like(p))
        assert loss[m].item() == pytest.approx(expected.item())


@pytest.mark.parametrize("is_source", [True, False])
def test_domain_loss_is_the_weighted_binary_cross_entropy(is_source):
    random = np.random.default_rng(1)
    logits, p_u = random.normal(size=(2, 2, 11)), random.random((2, 11))
    found = domain_loss(torch.tensor(logits), torch.tensor(p_u), is_source=is_source)
    p_source = expit(logits)
    right = np.log(p_source if is_source else 1 - p_source)
    expected = -((1 - p_u) * right[:, 0]).mean(axis=1) - (p_u * right[:, 1]).mean(axis=1)
    np.testing.assert_allclose(found, expected)


# ---------------------------------------------------------------------- the whole loss and its gradients


def example(made, *, n_classes=5, members=1, rows=24, cells=5):
    network = Network(Architecture(made.bodies, 6, 8, 0.0, members=members, kinds=made.head_kinds))
    network.initialise([np.random.SeedSequence(3 + m) for m in range(members)])
    random = torch.Generator().manual_seed(0)
    y = (torch.arange(rows) % n_classes).expand(members, rows)
    x = torch.randn(members, 2 * rows, cells, 6, generator=random)
    # labels that most cells agree with, so that there is something to mine
    with torch.no_grad():
        y = network.represent(x[:, :rows], "shared") @ network.heads["shared"].weight
        y = (y + network.heads["shared"].bias)[..., :n_classes].argmax(dim=-1)
    return network, Batch(x, y, target_rows=torch.zeros(members, rows, dtype=torch.long))


def parts_by_hand(made, network, batch):
    """The four parts of the loss in plain torch, and how they depend on body and head."""
    body, heads = network.bodies["shared"], network.heads["shared"]
    w, b, v, c = (p.detach().clone().requires_grad_() for p in (body.weight, body.bias, heads.weight, heads.bias))
    n, k = batch.y.shape[1], made.bodies["shared"]["classes"]
    logits = (batch.x.mean(dim=2) @ w + b).relu() @ v + c
    cells = (batch.x @ w[:, None] + b[:, None]).relu()
    of_cells = cells @ v[:, None] + c[:, None]
    class_term = torch.nn.functional.cross_entropy(logits[0, :n], batch.y[0])
    boundary = adversarial_loss(logits[:, n:, :k], logits[:, n:, k:])[0]
    p_u = of_cells.softmax(dim=-1)[..., k]
    known, unknown = mined_by_hand(of_cells[:, :n, :, :k].detach().numpy(), batch.y.numpy(), made._top)
    share = unknown.sum() / (unknown.sum() + known.sum())
    mining = -p_u[:, :n][torch.tensor(unknown)].log().mean()
    alignment = 0
    for d, weight in ((0, 1 - p_u.detach()), (1, p_u.detach())):
        h = cells
        for layer in range(3):
            h = h if layer == 0 else torch.nn.functional.leaky_relu(h, 0.2)
            h = h @ heads.domains.weights[layer][:, d][:, None] + heads.domains.biases[layer][:, d][:, None]
        p = h.sigmoid()[..., 0]
        source, target = weight[:, :n] * p[:, :n].log(), weight[:, n:] * (1 - p[:, n:]).log()
        alignment = alignment - source.mean() - target.mean()
    return class_term, mining, boundary, alignment, share, (w, v)


def test_the_loss_is_the_sum_of_its_parts_and_each_gradient_is_scaled_or_reversed_as_said():
    made = objective()
    network, batch = example(made)
    terms = made.terms(network, batch, DropoutMasks([np.random.SeedSequence(0)]))
    class_term, mining, boundary, alignment, share, (w, v) = parts_by_hand(made, network, batch)
    assert 0 < share < 0.5, "something is mined in this example"
    expected = (1 - share) * class_term + share * mining + boundary + alignment
    assert terms.objective.item() == pytest.approx(expected.item(), rel=1e-5)

    terms.objective.sum().backward()
    into_body = (1 - share) * class_term + 0.2 * share * mining - 0.5 * boundary - 0.1 * alignment
    into_head = (1 - share) * class_term + share * mining + boundary
    (of_body,) = torch.autograd.grad(into_body, w, retain_graph=True)
    (of_head,) = torch.autograd.grad(into_head, v, retain_graph=True)
    of_domains = torch.autograd.grad(alignment, list(network.heads["shared"].domains.parameters()))
    np.testing.assert_allclose(network.bodies["shared"].weight.grad, of_body, atol=1e-6)
    np.testing.assert_allclose(network.heads["shared"].weight.grad, of_head, atol=1e-6)
    for parameter, gradient in zip(network.heads["shared"].domains.parameters(), of_domains, strict=True):
        np.testing.assert_allclose(parameter.grad, gradient, atol=1e-6)


def test_the_warm_up_is_source_cross_entropy_alone():
    made = objective(warm=False)
    network, batch = example(made)
    terms = made.terms(network, batch, DropoutMasks([np.random.SeedSequence(0)]))
    class_term = parts_by_hand(made, network, batch)[0]
    assert terms.objective.item() == pytest.approx(class_term.item(), rel=1e-5)
    terms.objective.sum().backward()
    assert all(parameter.grad is None for parameter in network.heads["shared"].domains.parameters())


def test_each_member_mines_for_itself():
    made = objective(members=2)
    network, batch = example(made, members=2)
    both = made.terms(network, batch, DropoutMasks([np.random.SeedSequence(m) for m in range(2)])).objective
    for m in range(2):
        alone = Batch(batch.x[m : m + 1], batch.y[m : m + 1], batch.target_rows[m : m + 1])
        network_alone = network.member(m)
        one = objective().terms(network_alone, alone, DropoutMasks([np.random.SeedSequence(m)])).objective
        assert both[m].item() == pytest.approx(one.item(), rel=1e-5)


def test_a_network_of_the_warm_up_is_kept_only_if_there_is_no_other():
    random = np.random.default_rng(0)
    outputs = {"classes": random.normal(size=(9, 5)), "unknown": random.normal(size=(9, 1))}
    made = objective(warm=False)

    def at(step):
        validation = Validation(outputs, np.arange(9) % 5, outputs, np.empty(0), 0, step, 100)
        new_loss = made.adapt(validation, np.arange(9), dict)
        return new_loss, made._warm.all(), made.judge_member(validation).key

    assert at(10) == (True, False, -np.inf)
    assert at(20) == (True, True, -np.inf), "trained on source alone up to here"
    restarted, warm, key = at(30)
    assert not restarted and warm and np.isfinite(key)


# ---------------------------------------------------------------------- the estimator


def test_it_finds_a_new_class_that_hides_in_the_background_of_source():
    """Cells of the new class stand in source maps, unlabelled: what ANNA assumes."""
    table = make_background_shift(
        n_source=400, n_target=400, n_test=400, n_features=10, n_classes=5, n_subtypes=1, subtype_distance=0,
        novel_distance=6, novel_fraction=0.2, shift=False, random_state=0,
    )  # fmt: skip
    hidden = np.stack([table.X_target[table.is_novel_target].mean(axis=0), np.full(10, 2.0)])
    data = make_feature_maps(table, n_cells=5, n_background=2, backgrounds=hidden, random_state=0)
    model = ANNA(**{**QUICK, "max_steps": 250, "hidden": 32}).fit(data.X, data.y, data.X_target)
    assert auroc(data.is_novel_test, model.novelty_score(data.X_test)) > 0.9
    assert (model.predict_known(data.X_test) == data.y_test)[~data.is_novel_test].mean() > 0.9


def test_the_score_is_p_u_of_the_mean_cell_on_the_logit_scale(maps):
    model = ANNA(**QUICK).fit(maps.X, maps.y, maps.X_target)
    w, b, v, c = (model.weights_[name][0] for name in (
        "bodies.shared.weight", "bodies.shared.bias", "heads.shared.weight", "heads.shared.bias"))  # fmt: skip
    mean_cell = model.scaling_.apply(maps.X_test).mean(axis=1)
    logits = np.maximum(mean_cell @ w + b, 0) @ v + c
    p_u = np.exp(logits[:, 3]) / np.exp(logits).sum(axis=1)
    np.testing.assert_allclose(expit(model.novelty_score(maps.X_test)), p_u, atol=1e-5)
    np.testing.assert_array_equal(model.predict_known(maps.X_test), logits[:, :3].argmax(axis=1))


def test_all_cells_share_one_scaling_and_their_order_does_not_matter(maps):
    model = ANNA(**QUICK).fit(maps.X, maps.y, maps.X_target)
    assert model.scaling_.mean.shape == (6,)
    both = np.concatenate([maps.X.mean(axis=(0, 1))[None], maps.X_target.mean(axis=(0, 1))[None]])
    np.testing.assert_allclose(model.scaling_.mean, both.mean(axis=0))
    turned = maps.X_test[:, ::-1]
    np.testing.assert_allclose(model.novelty_score(turned), model.novelty_score(maps.X_test), atol=1e-5)


def test_members_score_every_target_row_out_of_fold_and_survive_saving(maps, tmp_path):
    model = ANNA(**QUICK, members=5).fit(maps.X, maps.y, maps.X_target)
    assert not np.isnan(model.target_novelty_score_).any()
    model.save(tmp_path)
    loaded = openset.load(tmp_path)
    np.testing.assert_array_equal(loaded.novelty_score(maps.X_test), model.novelty_score(maps.X_test))
    assert loaded.row_kind_ == {"shape": [4, 6], "bytes": False}
    assert "| features | 4 × 6 |" in (tmp_path / "README.md").read_text()


@pytest.mark.parametrize("flatten", [False, True])
def test_a_convolutional_backbone_gives_the_map(flatten, tmp_path):
    random = np.random.default_rng(0)
    y = np.arange(120) % 2
    images = random.normal(size=(120, 1, 4, 4)) + 3 * (y[:, None, None, None] - 0.5)
    target = random.normal(size=(60, 1, 4, 4))

    def backbone():
        torch.manual_seed(0)
        cells = [torch.nn.Flatten(2), Transpose()] if flatten else []
        return torch.nn.Sequential(torch.nn.Conv2d(1, 5, 2), torch.nn.ReLU(), *cells)

    model = ANNA(**QUICK, backbone=backbone()).fit(images, y, target)
    assert model.architecture_.hidden == 5
    assert (model.predict_known(images) == y).mean() > 0.9
    model.save(tmp_path)
    loaded = openset.load(tmp_path, backbone=backbone())
    np.testing.assert_array_equal(loaded.novelty_score(target), model.novelty_score(target))
    # a backbone that returns maps serves every other method too, by their mean
    assert BODA(**QUICK, backbone=backbone()).fit(images, y, target).architecture_.hidden == 5


class Transpose(torch.nn.Module):
    def forward(self, x):
        return x.transpose(1, 2)


def test_vectors_are_refused_with_the_reason(maps):
    vectors = maps.X.mean(axis=1)
    with pytest.raises(ValueError, match=r"X has shape \(160, 6\).*disagree with the image's label.*BODA"):
        ANNA().fit(vectors, maps.y, vectors)
    with pytest.raises(ValueError, match=r"X_target has shape \(160, 6\)"):
        ANNA().fit(maps.X, maps.y, vectors)
    with pytest.raises(ValueError, match=r"X has shape \(160, 6\)"):
        ANNA().fit(vectors, maps.y)
    with pytest.raises(ValueError, match=r"reshape\(n, d, h \* w\)"):
        ANNA().fit(maps.X[:, :, None], maps.y, maps.X_target)
    with pytest.raises(ValueError, match="returned 6 numbers a row"):
        ANNA(backbone=torch.nn.Linear(6, 6)).fit(vectors, maps.y, vectors)
    with pytest.raises(ValueError, match=r"the backbone returned shape \(2, 1, 1, 4, 6\)"):
        ANNA(backbone=torch.nn.Unflatten(1, (1, 1, 4))).fit(maps.X, maps.y, maps.X_target)


def test_maps_of_another_shape_are_refused(maps):
    with pytest.raises(ValueError, match=r"X_target has rows of shape \(3, 6\).*\(4, 6\)"):
        ANNA().fit(maps.X, maps.y, maps.X_target[:, :3])
    model = ANNA(**QUICK).fit(maps.X, maps.y, maps.X_target)
    with pytest.raises(ValueError, match=r"X has rows of shape \(4, 5\).*\(4, 6\)"):
        model.predict(maps.X_test[..., :5])
    with pytest.raises(ValueError, match=r"X has shape \(60, 6\)"):
        model.novelty_score(maps.X_test[:, 0])


@pytest.mark.parametrize(
    "wrong",
    [
        {"warmup": 0}, {"warmup": 1.0}, {"top": 0}, {"top": 2.5}, {"mining_scale": -1}, {"domain_reversal": None},
        {"target_reversal": "half"}, {"t": 1},
    ],
)  # fmt: skip
def test_parameters_are_checked(maps, wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"^{name}="):
        ANNA(**wrong).fit(maps.X, maps.y, maps.X_target)


class AnnaOnTables(ANNA):
    """Reads a table's row as a map of one cell, for scikit-learn's suite, which knows tables only."""

    def _accepts_nd(self):
        return False

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = True, False
        return tags

    def _check_rows(self, X, name, *, reset):
        return OpenSetClassifier._check_rows(self, X, name, reset=reset)[:, None, :]


@pytest.mark.slow
def test_all_else_keeps_scikit_learns_contract():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        warnings.simplefilter("ignore", FitWarning)
        results = check_estimator(AnnaOnTables(max_steps=100), on_fail=None)
    failed = {r["check_name"]: repr(r["exception"]) for r in results if r["status"] not in ("passed", "skipped")}
    assert not failed
    assert sum(r["status"] == "passed" for r in results) >= 45
