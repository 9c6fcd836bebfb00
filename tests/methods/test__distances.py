from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from align_problems import make_classes
from openset.learn.batches import ScaledRows
from openset.learn.network import Network
from openset.methods import _distances
from openset.methods._distances import (
    COMPONENTS,
    FOLDS,
    NEIGHBOUR,
    HiddenDistance,
    RowDistance,
    Space,
    Views,
    listen,
    thinned,
)
from openset.stats.components import find_components
from openset.stats.scaling import fit_scaling, moments

SEED = np.random.SeedSequence(0)
WIDE = max(COMPONENTS) + 10


def as_given(rows):
    return Views(rows, rows)


def heard_in(X, y, target, aligned=None):
    """Every voice by its name."""
    source = as_given(X)
    views = as_given(target) if aligned is None else Views(target, aligned)
    scaling = fit_scaling(moments(X), moments(target), "auto")
    space = Space.of(scaling, X.shape[1]).along_components(source, views, max(COMPONENTS))
    return {each.voice.name: each for each in listen(source, views, y, scaling, space, SEED)}


@pytest.fixture(scope="module")
def wide():
    """Rows with more columns than components: source, classes, target, and the voices."""
    X, y = make_classes(150, n_columns=WIDE)
    target = make_classes(90, n_columns=WIDE, seed=1)[0] + 3
    return X, y, target, heard_in(X, y, target)


def kth_by_all_pairs(references, rows):
    return np.sort(cdist(rows, references), axis=1)[:, NEIGHBOUR - 1]


# ---------------------------------------------------------------------- spaces


def test_a_space_is_the_scaling_then_the_limit_then_the_axes():
    X, target = np.random.default_rng(0).normal(size=(2, 50, 4)) * [1, 2, 3, 4] + 5
    scaling = fit_scaling(moments(X), moments(target), "feature")
    space = Space.of(scaling, 4)
    np.testing.assert_allclose(space.apply(as_given(X)), scaling.apply(X), rtol=1e-12)
    cut = Space(space.centre, space.factor, 0.5, None, takes_aligned=False)
    np.testing.assert_allclose(cut.apply(as_given(X)), np.clip(scaling.apply(X), -0.5, 0.5), rtol=1e-12)
    axes = np.eye(4)[:, :2] * 3
    along = Space(space.centre, space.factor, 0.5, axes, takes_aligned=False)
    np.testing.assert_allclose(along.apply(as_given(X)), 3 * cut.apply(as_given(X))[:, :2], rtol=1e-12)


def test_rows_without_scaling_keep_their_units():
    X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    space = Space.of(fit_scaling(moments(X), None, None), 3)
    np.testing.assert_array_equal(space.apply(as_given(X)), X.astype(np.float64))


def test_a_space_takes_rows_as_they_are_or_aligned():
    views, scaling = Views(np.zeros((2, 3)), np.ones((2, 3))), fit_scaling(moments(np.eye(3)), None, None)
    assert views.is_aligned and not as_given(views.rows).is_aligned
    for takes_aligned in (False, True):
        found = Space.of(scaling, 3, takes_aligned=takes_aligned).apply(views)
        assert (found == takes_aligned).all()


def test_components_are_those_of_both_domains_or_all_columns_if_there_are_no_more(wide):
    X, _, target, _ = wide
    space = Space.of(fit_scaling(moments(X), moments(target), "auto"), WIDE)
    along = space.along_components(as_given(X), as_given(target), 5)
    scaled = [space.apply(as_given(rows)) for rows in (X, target)]
    np.testing.assert_array_equal(along.axes, find_components(*scaled, 5, seed=0).axes)
    assert along.apply(as_given(X)).shape == (150, 5)
    for number in (WIDE, WIDE + 1):
        assert space.along_components(as_given(X), as_given(target), number) is space
    few = as_given(X[:3])
    assert space.along_components(few, few, 6) is space, "three rows of each domain have no seventh component"


# ---------------------------------------------------------------------- voices


def test_there_is_a_voice_for_each_space_and_one_for_what_labels_teach(wide):
    heard = wide[3]
    assert list(heard) == ["rows", "columns", *(f"{n} components" for n in COMPONENTS), "hidden layer"]
    assert [heard[f"{n} components"].voice.space.axes.shape for n in COMPONENTS] == [
        (WIDE, n) for n in COMPONENTS
    ]
    assert isinstance(heard["hidden layer"].voice, HiddenDistance)
    assert not any(each.voice.takes_aligned for each in heard.values())


def test_few_columns_have_no_components_and_one_class_teaches_nothing():
    X, y = make_classes(60, n_columns=5)
    assert list(heard_in(X, np.zeros(60, np.intp), X + 1)) == ["rows", "columns"]
    assert list(heard_in(X, y, X + 1)) == ["rows", "columns", "hidden layer"]


def test_aligned_rows_are_heard_in_components_or_by_a_voice_of_their_own(wide):
    X, y, target, _ = wide
    heard = heard_in(X, y, target, target - 3)
    by_components = {f"{n} components" for n in COMPONENTS}
    assert {name for name, each in heard.items() if each.voice.takes_aligned} == by_components
    heard = heard_in(X[:, :5], y, target[:, :5], target[:, :5] - 3)
    assert list(heard) == ["rows", "columns", "aligned rows", "hidden layer"]
    views = Views(target[:, :5], target[:, :5] - 3)
    own, aligned = (heard[name].voice.apply(views) for name in ("rows", "aligned rows"))
    np.testing.assert_array_equal(aligned, heard["rows"].voice.apply(as_given(target[:, :5] - 3)))
    assert np.median(own) > 1.3 * np.median(aligned)


def test_a_row_distance_is_that_to_the_fifth_nearest_source_row(wide):
    X, _, target, heard = wide
    for each in heard.values():
        if isinstance(each.voice, RowDistance):
            space = each.voice.space
            known, rows = space.apply(as_given(X)), space.apply(as_given(target))
            np.testing.assert_allclose(
                each.voice.apply(as_given(target)), kth_by_all_pairs(known, rows), rtol=1e-5
            )


def test_source_rows_are_scored_without_their_own_fold(wide):
    """One fold at a time is left out of the references, so no row is measured to itself."""
    X, y, _, heard = wide
    random = np.random.default_rng(_distances.child_seed(SEED, 0))
    folds = _distances.make_folds(y, members=FOLDS, share=1 / FOLDS, random=random)
    assert sorted(np.concatenate([fold.validation for fold in folds])) == list(range(len(X)))
    for name in ("rows", "columns"):
        voice, own = heard[name].voice, heard[name].source
        rows = voice.space.apply(as_given(X))
        for fold in folds:
            others = np.setdiff1d(np.arange(len(X)), fold.validation)
            expected = kth_by_all_pairs(rows[others], rows[fold.validation])
            np.testing.assert_allclose(own[fold.validation], expected, rtol=1e-9)
        assert (own > voice.apply(as_given(X))).all(), "the row itself is nearer than any other"


@pytest.mark.parametrize("name", ["rows", "columns", "hidden layer"])
def test_copies_of_a_row_in_its_own_fold_do_not_make_it_near(name, monkeypatch):
    """A class with few rows, all copies of one: the references of its fold do not have it, and it is far."""
    X, y = make_classes(90, n_columns=5)
    X[:5], y[:5] = 30 * np.eye(5)[4], 0
    folds = [np.setdiff1d(np.arange(90)[f::3], np.arange(5)) for f in range(3)]
    folds[0] = np.concatenate([np.arange(5), folds[0]])
    made = [_distances.Fold(np.setdiff1d(np.arange(90), rows), rows) for rows in folds]
    monkeypatch.setattr(_distances, "make_folds", lambda *given, **named: made)
    heard = heard_in(X, y, X + 1)[name]
    assert heard.source[:5].min() > heard.source[folds[0][5:]].max()
    if name != "hidden layer":  # its members have no row of their own fold as a reference
        assert heard.voice.apply(as_given(X[:5])) == pytest.approx(0, abs=1e-4)


def test_a_wild_column_does_not_decide_and_a_constant_one_does_not_count():
    X, y = make_classes(120, n_columns=5)
    target = make_classes(100, n_columns=5, seed=1)[0]
    X, target = (np.column_stack([rows, np.full(len(rows), 7.0), rows[:, 0]]) for rows in (X, target))
    target[3, 6], far = 1e6, target.copy()
    far[3, 6] = 2e6
    voice = heard_in(X, y, target)["columns"].voice
    assert voice.space.factor[5] == 0 and np.isfinite(voice.apply(as_given(target))).all()
    np.testing.assert_array_equal(voice.apply(as_given(far)), voice.apply(as_given(target)))


def test_hidden_layers_have_length_1_and_their_distances_a_common_unit(wide):
    _, _, target, heard = wide
    voice, own = heard["hidden layer"].voice, heard["hidden layer"].source
    network = Network.from_arrays(voice.architecture, voice.weights, None, "cpu")
    layers = _distances._unit_layers(network, ScaledRows(target, voice.scaling))
    assert len(layers) == len(voice.references) == len(voice.centres) == FOLDS
    for layer, references in zip(layers, voice.references, strict=True):
        np.testing.assert_allclose(np.linalg.norm(layer, axis=1), 1, rtol=1e-9)
        np.testing.assert_allclose(np.linalg.norm(references, axis=1), 1, rtol=1e-5)
    # of each member's unseen source rows the median is 0 and the ninth decile 1
    assert np.median(own) == pytest.approx(0, abs=0.1) and np.quantile(own, 0.9) == pytest.approx(1, abs=0.3)
    by_member = [kth_by_all_pairs(r, layer) for r, layer in zip(voice.references, layers, strict=True)]
    expected = np.mean((np.transpose(by_member) - voice.centres) / voice.scales, axis=1)
    np.testing.assert_allclose(voice.apply(as_given(target)), expected, rtol=1e-4, atol=1e-5)


def test_a_row_has_the_same_distance_alone_and_in_company(wide):
    _, _, target, heard = wide
    for each in heard.values():
        together = each.voice.apply(as_given(target))
        alone = [each.voice.apply(as_given(target[[i]]))[0] for i in range(10)]
        np.testing.assert_allclose(alone, together[:10], rtol=1e-9, atol=1e-12)


def test_the_seed_decides_the_folds_and_the_networks(wide):
    X, y, target, heard = wide
    again = heard_in(X, y, target)
    for name, each in heard.items():
        np.testing.assert_array_equal(each.source, again[name].source)


def test_many_rows_are_thinned_evenly(monkeypatch):
    assert thinned(7).tolist() == list(range(7))
    monkeypatch.setattr(_distances, "MOST_ROWS", 50)
    assert thinned(50).tolist() == list(range(50))
    kept = thinned(120)
    assert len(set(kept)) == 50 and kept[[0, -1]].tolist() == [0, 119] and np.diff(kept).max() <= 3


def test_blocks_change_nothing(wide, monkeypatch):
    _, _, target, heard = wide
    views = Views(target, target - 3)
    whole = [each.voice.apply(views) for each in heard.values()]
    monkeypatch.setattr(_distances, "_BLOCK", 7)
    for each, expected in zip(heard.values(), whole, strict=True):
        np.testing.assert_allclose(each.voice.apply(views), expected, rtol=1e-9, atol=1e-12)


def test_some_views_are_aligned_as_all_are():
    views = Views(np.arange(6.0).reshape(3, 2), np.ones((3, 2)))
    some = views.take(np.array([2, 0]))
    assert some.rows.tolist() == [[4, 5], [0, 1]] and (some.aligned == 1).all() and some.is_aligned
    assert not as_given(views.rows).take(slice(1, 2)).is_aligned


def test_rows_that_are_never_held_out_are_measured_without_themselves():
    """A class of one row is in every training set: its distance is to the other rows."""
    random = np.random.default_rng(0)
    rows = random.normal(size=(90, 3))
    y = np.r_[np.arange(88) % 2, 2, 3]
    views, scaling = Views(rows, rows), fit_scaling(moments(rows), moments(rows), "none")
    space = Space.of(scaling, 3)
    heard = listen(views, views, y, scaling, space, np.random.SeedSequence(0))
    scaled = space.apply(views)
    distances = np.sort(np.linalg.norm(scaled[:, None] - scaled, axis=2), axis=1)
    np.testing.assert_allclose(heard[0].source[88:], distances[88:, 5])
    assert all(np.isfinite(each.source).all() for each in heard)


def test_a_source_with_one_class_for_each_row_has_no_hidden_layer():
    rows = np.random.default_rng(0).normal(size=(60, 3))
    views, scaling = Views(rows, rows), fit_scaling(moments(rows), moments(rows), "none")
    heard = listen(views, views, np.arange(60), scaling, Space.of(scaling, 3), np.random.SeedSequence(0))
    assert "hidden layer" not in {each.voice.name for each in heard}
    assert all(np.isfinite(each.source).all() for each in heard)
