"""nnPU: PU learning with a risk that is kept from becoming negative."""

from __future__ import annotations

from typing import Any, ClassVar

from openset._utils.params import check_number, takes_parameters_of
from openset.methods._presets import PRESETS
from openset.methods.pu import UPU


class NNPU(UPU):
    """Non-negative PU learning: uPU that steps back where over-fitting makes its risk negative.

    r = R_u⁻ − π·R_p⁻ estimates the risk on novel rows. A mini-batch with r ≥ −β takes uPU's step on π·R_p⁺ + r;
    one with r < −β takes a step on −γ·r only, as published. This is decided for each member separately. If r
    never falls below −β, it equals uPU. It assumes what uPU assumes; use it instead of uPU whenever the network
    can memorise the rows.

    Parameters
    ----------
    beta, gamma : r may fall to −beta; gamma is the weight of the step back

    The other parameters and the attributes are those of :class:`~openset.methods.pu.UPU`.

    References
    ----------
    Kiryo, Niu, du Plessis and Sugiyama (2017), Positive-unlabeled learning with non-negative risk estimator.

    Examples
    --------
    >>> from openset import NNPU, make_background_shift
    >>> data = make_background_shift(n_features=20, shift=False, random_state=0)
    >>> model = NNPU(max_steps=300, random_state=0).fit(data.X, data.y, data.X_target)
    >>> from openset.stats.metrics import auroc
    >>> bool(auroc(data.is_novel_test, model.novelty_score(data.X_test)) > 0.9)
    True
    """

    _presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS["nnpu"]
    _wide_dropout = 0.2

    @takes_parameters_of(UPU)
    def __init__(self, *, beta: float = 0.0, gamma: float = 1.0, **shared: Any) -> None:
        super().__init__(**shared)
        self.beta = beta
        self.gamma = gamma

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("beta", self.beta)
        check_number("gamma", self.gamma, open_low=True)

    def _non_negative(self) -> tuple[float, float]:
        return float(self.beta), float(self.gamma)
