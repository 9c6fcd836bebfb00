"""What all networks have in common beside the contract."""

from __future__ import annotations

import pytest
import torch

from openset import ANNA, ARPL, BODA, CAC, MSP, NNPU, PULSE, SHOT, UPU, DomainDiscriminator, SourceOnly
from openset.shift.synthetic import make_background_shift, make_feature_maps

WIDE = {
    **dict.fromkeys((ARPL, BODA, CAC, MSP, PULSE, UPU, DomainDiscriminator, SourceOnly), 0.4),
    NNPU: 0.2,
    SHOT: 0.0,
}


@pytest.mark.parametrize("method", WIDE, ids=lambda m: m.__name__)
@pytest.mark.parametrize("n_features", [255, 256])
def test_wide_features_are_trained_with_dropout(method, n_features):
    data = make_background_shift(n_source=60, n_target=50, n_features=n_features, random_state=0)
    model = method(fpr=0.2, max_steps=4, evaluate_every=2, random_state=0).fit(data.X, data.y, data.X_target)
    assert model.architecture_.dropout == (WIDE[method] if n_features == 256 else 0)
    assert model.get_params()["dropout"] == "auto"


def test_anna_goes_by_the_width_of_a_cell():
    model = ANNA(fpr=0.2, max_steps=4, evaluate_every=2, random_state=0)
    for n_cells, n_features, dropout in ((4, 256, 0.3), (256, 4, 0.0)):
        table = make_background_shift(n_source=60, n_target=50, n_features=n_features, random_state=0)
        data = make_feature_maps(table, n_cells=n_cells, random_state=0)
        assert model.fit(data.X, data.y, data.X_target).architecture_.dropout == dropout


def test_a_dropout_that_was_given_is_kept():
    data = make_background_shift(n_source=60, n_target=50, n_features=256, random_state=0)
    model = DomainDiscriminator(dropout=0.1, fpr=0.2, max_steps=4, evaluate_every=2)
    assert model.fit(data.X, data.y, data.X_target).architecture_.dropout == 0.1


def test_a_backbone_brings_its_own_dropout():
    model = DomainDiscriminator(backbone=torch.nn.Identity())
    model.n_features_in_ = 300
    assert model._groups()[0].dropout == 0


def test_another_word_for_dropout_is_an_error(small):
    with pytest.raises(ValueError, match="dropout='some'"):
        DomainDiscriminator(dropout="some").fit(small.X, small.y, small.X_target)
