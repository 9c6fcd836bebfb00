"""nnPU: PU learning with a risk that may not become negative."""

from __future__ import annotations

from typing import Any, ClassVar

from openset.methods.presets import PRESETS
from openset.methods.pu import UPU
from openset.params import check_number


class NNPU(UPU):
    """Non-negative PU learning: uPU that climbs back where its risk is negative, which only over-fitting can do.

    With r = R_u⁻ − π·R_p⁻, an estimate of the risk on novel rows, a mini-batch with r ≥ −β takes uPU's step on
    π·R_p⁺ + r; one with r < −β steps on −γ·r alone, as published. Each member decides by itself. Where r never
    falls below −β it equals uPU. It assumes what uPU does; use it rather than uPU whenever the network can
    memorise the rows.

    Parameters
    ----------
    beta, gamma : how far r may fall, and the size of the step back

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

    def __init__(
        self,
        *,
        beta: float = 0.0,
        gamma: float = 1.0,
        prior: float | None = None,
        prior_estimator: str = "bbe",
        warmup: float = 0.25,
        loss: str = "sigmoid",
        joint: bool = True,
        fpr: float = 0.01,
        members: int = 1,
        hidden: int = 128,
        dropout: float = 0.0,
        optimizer: str = "adam",
        learning_rate: float = 1e-3,
        momentum: float = 0.9,
        l2: float = 1e-4,
        clip: float | None = 5.0,
        batch_size: int = 200,
        max_steps: int | None = 3000,
        evaluate_every: int | None = 250,
        tol: float = 1e-3,
        validation_fraction: float = 0.2,
        standardize: str | None = "auto",
        backbone: Any = None,
        novel_label: Any = None,
        device: str = "cpu",
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            prior=prior,
            prior_estimator=prior_estimator,
            warmup=warmup,
            loss=loss,
            joint=joint,
            fpr=fpr,
            members=members,
            hidden=hidden,
            dropout=dropout,
            optimizer=optimizer,
            learning_rate=learning_rate,
            momentum=momentum,
            l2=l2,
            clip=clip,
            batch_size=batch_size,
            max_steps=max_steps,
            evaluate_every=evaluate_every,
            tol=tol,
            validation_fraction=validation_fraction,
            standardize=standardize,
            backbone=backbone,
            novel_label=novel_label,
            device=device,
            verbose=verbose,
            random_state=random_state,
        )
        self.beta = beta
        self.gamma = gamma

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("beta", self.beta)
        check_number("gamma", self.gamma, open_low=True)

    def _non_negative(self) -> tuple[float, float]:
        return float(self.beta), float(self.gamma)
