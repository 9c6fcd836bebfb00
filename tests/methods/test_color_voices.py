"""CoLOR's score from heads and distances, on batches that moved and on others: fit, verdict, save, load.

In no single module: ``color.py``, ``_voices.py``, ``_distances.py`` and ``openset.align`` together.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import openset
from align_problems import make_classes, random_offsets
from openset import CoLOR
from openset.align import Coral
from openset.methods._voices import weigh
from openset.stats.metrics import auprc
from openset.stats.scaling import unscaled

pytestmark = pytest.mark.filterwarnings("ignore::openset.errors.FitWarning")
FOLDERS = Path(__file__).parents[1] / "net" / "folders" / "models"
STEPS = {"max_steps": 60, "evaluate_every": 20, "random_state": 0}
QUICK = {**STEPS, "members": 2, "groups": [(0.3,)], "fpr": 0.05}
N_NEW = 20


def moved_batch(*, with_new=True, move=2.5, n_columns=12):
    """Source, and a target whose classes moved by an offset each; its last rows are a small new group."""
    X, y = make_classes(400, n_columns=n_columns)
    rows, kinds = make_classes(300, n_columns=n_columns, seed=2)
    offsets = random_offsets(n_columns=n_columns, size=move)
    new = 8 * np.eye(n_columns)[6] + 0.7 * np.random.default_rng(5).normal(size=(N_NEW, n_columns))
    target = np.concatenate([rows + offsets[kinds], new + offsets.mean(axis=0)])
    return X, y, target if with_new else target[:-N_NEW]


def head_score(model, rows):
    """The mean logit of the chosen head, from which the score starts."""
    return model.head_scores(rows)[:, :, model.selected_.head].mean(axis=0)


@pytest.fixture(scope="module")
def moved():
    """CoLOR on a moved batch, and the batch."""
    X, y, target = moved_batch()
    return CoLOR(**QUICK).fit(X, y, target), target


IS_NEW = np.arange(300 + N_NEW) >= 300


@pytest.mark.parametrize("n_columns", [12, 50])
def test_a_moved_batch_is_stated_and_aligned_and_its_new_rows_rank_first(n_columns):
    X, y, target = moved_batch(n_columns=n_columns)
    model = CoLOR(**{**QUICK, "max_steps": 150, "evaluate_every": 50}).fit(X, y, target)
    assert model.alignment_.before.is_moved and not model.alignment_.after.is_moved
    assert model.resolved_parameters_["align"] == model.alignment_.name == "classes"
    trust = model.voices_.trust
    signs = (trust.coherence, trust.agreement, trust.containment, trust.mixing, trust.growth)
    assert trust == weigh(*signs, moved=True, undone=True) and trust.distances == 1
    assert model.novelty_test_.limit == "aligned" and model.novelty_test_.code in ("stands_out", "nothing")
    assert auprc(IS_NEW, model.novelty_score(target)) > 0.95
    stated = {entry.name: entry for entry in model.diagnostics_}
    lead = "distances to source" if trust.distances_lead else "the novelty heads"
    assert not stated["batch that moved"].ok and lead in stated["voices"].sentence
    assert {"constraint kept", "agreement of members"} <= stated.keys()


@pytest.mark.parametrize(("n_columns", "move"), [(12, 2.5), (12, 5.0), (50, 2.5)])
def test_nothing_is_found_in_a_moved_batch_without_a_new_class(n_columns, move):
    X, y, target = moved_batch(with_new=False, move=move, n_columns=n_columns)
    model = CoLOR(**QUICK).fit(X, y, target)
    assert model.alignment_.before.is_moved and model.novelty_test_.p_value > 0.05


def test_a_move_that_could_not_be_undone_is_stated():
    """Classes moved much farther than they lie apart, so their rows are taken for each other."""
    X, y, target = moved_batch(with_new=False, move=5.0, n_columns=50)
    model = CoLOR(**QUICK).fit(X, y, target)
    assert model.alignment_.after.is_moved
    assert (model.voices_.trust.heads, model.voices_.trust.distances) == (0, 1)
    stated = {entry.name: entry for entry in model.diagnostics_}["batch that moved"]
    assert not stated.ok and "did not undo this" in stated.sentence and "cannot tell" in stated.sentence


@pytest.mark.parametrize("with_new", [False, True])
def test_an_unmoved_batch_is_left_alone_and_distances_are_heard_if_they_found_a_group(with_new):
    X, y, target = moved_batch(with_new=with_new, move=0.0)
    model = CoLOR(**QUICK).fit(X, y, target)
    assert model.alignment_.name == "none" and not model.alignment_.before.is_moved
    trust = model.voices_.trust
    if with_new:
        assert trust.distances > 0 and auprc(IS_NEW, model.novelty_score(target)) > 0.9
    else:
        assert (trust.heads, trust.distances) == (1, 0)
        assert model.novelty_test_.p_value > 0.05
        assert {"constraint kept", "agreement of members"} <= {entry.name for entry in model.diagnostics_}


def test_scores_of_the_fit_are_those_of_novelty_score_and_of_rows_one_at_a_time(moved, small):
    unmoved = CoLOR(**QUICK).fit(small.X, small.y, small.X_target)
    for model, target in ((unmoved, small.X_target), moved):
        score = model.novelty_score(target)
        np.testing.assert_allclose(model.fit_scores_.target_score, score, rtol=1e-6, atol=1e-6)
        alone = np.concatenate([model.novelty_score(target[[i]]) for i in range(12)])
        np.testing.assert_allclose(alone, score[:12], rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(model.novelty_score(target[::-1]), score[::-1])


def test_a_saved_model_scores_and_aligns_as_before(moved, tmp_path):
    model, target = moved
    model.save(tmp_path / "model")
    again = openset.load(tmp_path / "model")
    np.testing.assert_array_equal(again.novelty_score(target), model.novelty_score(target))
    np.testing.assert_array_equal(again.predict_proba(target), model.predict_proba(target))
    np.testing.assert_array_equal(again.head_scores(target), model.head_scores(target))
    np.testing.assert_array_equal(again.representation(target), model.representation(target))
    assert again.voices_.trust == model.voices_.trust and again.alignment_.before == model.alignment_.before
    assert [voice.name for voice in again.voices_.distances] == [voice.name for voice in model.voices_.distances]
    assert again.diagnostics_ == model.diagnostics_ and again.align == "auto"


def test_networks_see_aligned_rows(moved):
    """Their outputs are those of a network that is given aligned rows, in training as in scoring."""
    model, target = moved
    X, y, _ = moved_batch()
    scaled = model.scaling_.apply(target)
    aligned = unscaled(model.scaling_, model.alignment_.alignment.transform_target(scaled))
    np.testing.assert_allclose(model._head_outputs(aligned)["novelty"], model.head_scores(target), rtol=1e-5)
    assert (model.predict_known(target[:300]) == make_classes(300, seed=2)[1]).mean() > 0.95
    given = CoLOR(**QUICK, align="none").fit(X, y, target)
    assert given.alignment_.name == "none" and given.voices_.trust.heads == 0
    assert not np.allclose(given.head_scores(target), model.head_scores(target), atol=1e-3)


def test_fast_does_not_align_unless_asked(tmp_path):
    X, y, target = moved_batch()
    fast = CoLOR(**STEPS, fpr=0.2, effort="fast").fit(X, y, target)
    assert fast.alignment_.name == "none" and not hasattr(fast, "voices_")
    assert fast.resolved_parameters_["align"] == "none"
    assert fast.alignment_.before.is_moved and fast.novelty_test_.code == "cannot_tell", "but the move is noticed"
    assert any(entry.name == "batch that moved" and not entry.ok for entry in fast.diagnostics_)
    asked = CoLOR(**STEPS, fpr=0.2, effort="fast", align="classes").fit(X, y, target)
    assert asked.alignment_.name == "classes" and not hasattr(asked, "voices_")
    assert "align" not in asked.resolved_parameters_
    np.testing.assert_allclose(asked.novelty_score(target), head_score(asked, target), rtol=1e-6)
    asked.save(tmp_path / "model")
    again = openset.load(tmp_path / "model")
    np.testing.assert_array_equal(again.novelty_score(target), asked.novelty_score(target))


def test_an_aligner_and_a_fitted_alignment_may_be_given_and_are_saved(tmp_path):
    X, y, target = moved_batch()
    by_name, by_aligner = (CoLOR(**QUICK, align=align).fit(X, y, target) for align in ("coral", Coral()))
    fitted_alignment = by_name.alignment_.alignment
    given = CoLOR(**QUICK, align=fitted_alignment).fit(X, y, target)
    for number, model in enumerate((by_aligner, given)):
        assert model.alignment_.name == "coral"
        np.testing.assert_array_equal(model.novelty_score(target), by_name.novelty_score(target))
        model.save(tmp_path / str(number))
        again = openset.load(tmp_path / str(number))
        np.testing.assert_array_equal(again.novelty_score(target), model.novelty_score(target))


def test_few_rows_have_no_voices_and_are_aligned_only_if_asked(small):
    X, y, target = small.X, small.y, small.X_target[:30]
    few = CoLOR(**QUICK).fit(X, y, target)
    assert few.alignment_ is None and not hasattr(few, "voices_")
    np.testing.assert_allclose(few.novelty_score(target), head_score(few, target), rtol=1e-6)
    asked = CoLOR(**QUICK, align="standardize").fit(X, y, target)
    assert asked.alignment_.name == "standardize" and not hasattr(asked, "voices_")


def test_a_second_fit_keeps_nothing_of_the_first(small):
    model = CoLOR(**QUICK).fit(*moved_batch())
    assert model.alignment_.name == "classes"
    model.fit(small.X, small.y)
    assert model.alignment_ is None and not hasattr(model, "voices_")
    model.set_params(effort="fast").fit(small.X, small.y, small.X_target)
    assert not hasattr(model, "voices_")
    np.testing.assert_allclose(model.novelty_score(small.X_test), head_score(model, small.X_test), rtol=1e-6)


def test_a_model_of_an_earlier_openset_scores_by_its_head(tmp_path):
    """It has neither ``voices_`` nor ``alignment_``; tests/net compares its scores with those of then."""
    model = openset.load(FOLDERS / "color")
    assert not hasattr(model, "voices_") and not hasattr(model, "alignment_")
    with np.load(FOLDERS.parent / "expected.npz") as expected:
        rows = expected["X"]
    np.testing.assert_allclose(model.novelty_score(rows), head_score(model, rows), rtol=1e-6)
    model.to_onnx(tmp_path / "model.onnx")
    found = onnxruntime.InferenceSession(tmp_path / "model.onnx").run(None, {"x": rows.astype(np.float32)})[0]
    np.testing.assert_allclose(found, model.novelty_score(rows), rtol=1e-4, atol=1e-4)
