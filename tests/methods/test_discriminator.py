from __future__ import annotations

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier

from openset import DomainDiscriminator, make_background_shift
from openset.stats.metrics import auroc


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_without_shift_it_is_as_good_as_scikit_learns_network(seed):
    # few dimensions and a far new class: nothing to over-fit, so that both must find it
    data = make_background_shift(shift=False, n_features=20, novel_distance=8.0, random_state=seed)
    ours = DomainDiscriminator(random_state=0).fit(data.X, data.y, data.X_target)
    stacked = np.concatenate([data.X, data.X_target])
    domain = np.repeat([0, 1], [len(data.X), len(data.X_target)])
    theirs = MLPClassifier((128,), early_stopping=True, random_state=0).fit(stacked, domain)
    own = auroc(data.is_novel_test, ours.novelty_score(data.X_test))
    other = auroc(data.is_novel_test, theirs.predict_proba(data.X_test)[:, 1])
    assert min(own, other) >= 0.95 and abs(own - other) <= 0.02
