"""``simulate``: two files to a table of simulations, which :mod:`openset.pipeline.tune` makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from openset.features.maker import FeatureMaker
from openset.pipeline.load import read_data
from openset.pipeline.run import keep_scales, make_estimator
from openset.pipeline.settings import RunSettings
from openset.pipeline.tune import AS_IT_IS, TuneResult, tune

SHARES = (0.05, 0.1)


def simulate(
    settings: RunSettings,
    source: Any,
    target: Any,
    *,
    novel_fractions: Sequence[float] = SHARES,
    progress: bool = False,
) -> TuneResult:
    """Each known class treated as new, at every share of ``novel_fractions``, with the method of the settings."""
    estimator = make_estimator(settings, progress=False)  # one bar for all fits
    data = read_data(settings, source, target)
    made, made_target, fitted = FeatureMaker(settings.encoder, progress).fit(
        data.source, data.target, text=data.settings.text, image=data.settings.image, kinds=settings.kinds
    )
    keep_scales(estimator, settings, fitted)
    return tune(
        made.X,
        data.source.y,
        made_target.X,
        estimator=estimator,
        grids={AS_IT_IS: {}},
        novel_fractions=tuple(novel_fractions),
        random_state=settings.seed,
        progress=progress,
    )
