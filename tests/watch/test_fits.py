from __future__ import annotations

import numpy as np
import pytest

from openset.methods.mahalanobis import Mahalanobis
from openset.stats.e_process import FEWEST_ROWS
from openset.watch.fits import WatchedRun, fit_model, pack_model, reference_rows, unpack_model
from product_files import make_rows


def test_half_of_every_class_is_set_aside_and_an_only_row_is_not():
    y = np.array(["a"] * 100 + ["b"] * 40 + ["c"])
    found = reference_rows(y)
    assert [int(found[y == name].sum()) for name in "abc"] == [50, 20, 0]
    assert (found == reference_rows(y)).all() and (found != reference_rows(y, seed=1)).any()


def test_reference_rows_change_nothing_in_the_model():
    """What the thresholds come from was not fitted on: other reference rows give the same model."""
    random = np.random.default_rng(0)
    X, y = make_rows(random, {"cat": 200, "dog": 200})
    target, _ = make_rows(random, {"cat": 100, "dog": 100})
    other = np.where(reference_rows(y)[:, None], X + 50, X)
    models = [Mahalanobis(random_state=0), Mahalanobis(random_state=0)]
    first, second = (fit_model(model, rows, y, target) for model, rows in zip(models, (X, other), strict=True))
    np.testing.assert_array_equal(models[0].novelty_score(target), models[1].novelty_score(target))
    assert models[0].threshold_ == models[1].threshold_ and second.thresholds[0] > first.thresholds[0]


def test_a_small_source_is_refused():
    X, y = make_rows(np.random.default_rng(0), {"cat": 30, "dog": 30})
    with pytest.raises(ValueError, match=f"the source has 60 rows, .* at least {2 * FEWEST_ROWS + 1}"):
        fit_model(Mahalanobis(), X, y, X)


def test_a_model_is_packed_and_unpacked():
    X, y = make_rows(np.random.default_rng(0), {"cat": 100, "dog": 100})
    model = Mahalanobis(fpr=0.05, random_state=0).fit(X, y, X)
    again = unpack_model(pack_model(model))
    np.testing.assert_array_equal(again.novelty_score(X), model.novelty_score(X))


def test_a_run_reads_its_source_and_target_again(run):
    watched = WatchedRun(run)
    X, y = watched.source
    assert X.shape == (1200, 3) and sorted(set(y)) == ["cat", "dog"] and watched.target().shape == (365, 3)
    assert watched.max_density_ratio == 1.0
    fitted = watched.fit(watched.target(), number=3, after=2, names=["a", "b"])
    record = fitted.record
    assert (record.number, record.after, record.target, record.target_rows) == (3, 2, ["a", "b"], 365)
    assert record.n_reference == 600 and 0 < record.called_share < 0.2 and record.limit == ""
    assert record.references.count_above([np.inf]) == (1,) * len(record.thresholds)


def test_a_run_without_a_profile_is_refused(run, tmp_path):
    import shutil

    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    (copy / "profile.safetensors").unlink()
    with pytest.raises(ValueError, match="no profile of its rows"):
        WatchedRun(copy)
