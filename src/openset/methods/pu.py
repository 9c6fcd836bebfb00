"""uPU: learning from positive (source) and unlabelled (target) rows with the unbiased risk; the PU objective."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from openset._utils.params import check_choice, check_flag, check_number, takes_parameters_of
from openset.learn.batches import Batch, Rows
from openset.learn.bodies import DropoutMasks
from openset.learn.losses import class_loss, non_negative_risk, pu_risks
from openset.learn.network import Network
from openset.learn.objective import KEEP_LATEST, Judgement, ScoreTarget, Validation
from openset.learn.primal_dual import Terms
from openset.methods._heads import FittedNetwork, HeadOutputs
from openset.methods._network import NetworkClassifier
from openset.methods._presets import PRESETS
from openset.methods.discriminator import DiscriminatorObjective, bodies_for, joint_outputs
from openset.problem import Problem, State
from openset.stats.shares import SHARE_FROM_LOGITS

if TYPE_CHECKING:
    from openset.persistence.onnx.graph import Value

SMALLEST_PRIOR = 0.01
"""An estimated prior is kept this far from 0 and from 1, where nothing can be learned."""


class UPU(NetworkClassifier):
    """Unbiased PU learning: the risk of "known against novel", written with source and target rows only.

    One logit g, positive for known. With π the share of known rows in target, ℓ(z) = σ(−z), R_p⁺ = mean_S ℓ(g),
    R_p⁻ = mean_S ℓ(−g) and R_u⁻ = mean_T ℓ(−g), it minimises

        π·R_p⁺ + R_u⁻ − π·R_p⁻        (plus the cross entropy of known classes)

    and scores a row by −g. It assumes that known rows have the same distribution in source and target, and it is
    only as good as π: under background shift estimates of π fail, and so does the method. A flexible network
    makes the risk negative by over-fitting; use :class:`~openset.methods.nnpu.NNPU` then. Use it with a known π.

    Parameters
    ----------
    prior : π, the share of *known* rows in target; None to estimate it
    prior_estimator : "bbe", "en" or "dedpul" (see :mod:`openset.stats.shares`), on validation rows
    warmup : share of ``max_steps`` that trains a domain discriminator, from which π is estimated; no effect if
        ``prior`` is given
    loss : ℓ, "sigmoid" or "logistic", softplus(−z)
    joint : learn the known classes on the same body (True) or on a second body, on source rows only (False)

    The other parameters are those of :class:`~openset.methods._network.NetworkClassifier`. The last network is
    kept, as the authors do.

    Attributes
    ----------
    prior_ : π of every member in training; only if fitted with a target

    References
    ----------
    du Plessis, Niu and Sugiyama (2015), Convex formulation for learning from positive and unlabeled data.

    Examples
    --------
    >>> from openset import UPU, make_background_shift
    >>> data = make_background_shift(n_features=20, shift=False, random_state=0)
    >>> model = UPU(prior=0.9, max_steps=300, random_state=0).fit(data.X, data.y, data.X_target)
    >>> from openset.stats.metrics import auroc
    >>> bool(auroc(data.is_novel_test, model.novelty_score(data.X_test)) > 0.9)
    True
    """

    _presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS["upu"]

    @takes_parameters_of(NetworkClassifier)
    def __init__(
        self,
        *,
        prior: float | None = None,
        prior_estimator: str = "bbe",
        warmup: float = 0.25,
        loss: str = "sigmoid",
        joint: bool = True,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.prior = prior
        self.prior_estimator = prior_estimator
        self.warmup = warmup
        self.loss = loss
        self.joint = joint

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("prior", self.prior, high=1, open_low=True, open_high=True, optional=True)
        check_choice("prior_estimator", self.prior_estimator, SHARE_FROM_LOGITS)
        check_number("warmup", self.warmup, high=1, open_low=True, open_high=True)
        check_choice("loss", self.loss, ("sigmoid", "logistic"))
        check_flag("joint", self.joint)

    def _objective(self, problem: Problem) -> PUObjective:
        return PUObjective(
            bodies_for(problem.n_classes, 1, self.joint),
            members=self._n_members(),
            prior=self.prior,
            estimator=self.prior_estimator,
            warm_up=self.warmup,
            loss=self.loss,
            non_negative=self._non_negative(),
        )

    def _non_negative(self) -> tuple[float, float] | None:
        """Return β and γ of nnPU; None for the unbiased risk."""
        return None

    def _learned_state(self, problem: Problem, objective: PUObjective, network: FittedNetwork) -> State:
        return {"prior_": objective.priors.copy()}

    def _member_scores(self, outputs: HeadOutputs) -> NDArray[np.floating]:
        return outputs["novelty"][:, :, 0]

    def _onnx_scores(self, outputs: Mapping[str, Value]) -> Value:
        return outputs["novelty"].take(0, axis=2)


class PUObjective(DiscriminatorObjective):
    """The discriminator's loss until every member has its prior, then the PU risk; always plus the class loss."""

    adapts = True

    def __init__(
        self,
        bodies: Mapping[str, Mapping[str, int]],
        *,
        members: int,
        prior: float | None,
        estimator: str,
        warm_up: float,
        loss: str,
        non_negative: tuple[float, float] | None,
    ) -> None:
        super().__init__(bodies)
        self.priors = np.full(members, np.nan if prior is None else prior)
        self.warm_up = warm_up if prior is None else 0.0
        self._estimate, self._loss, self._non_negative = SHARE_FROM_LOGITS[estimator], loss, non_negative

    def terms(self, network: Network, batch: Batch, masks: DropoutMasks) -> Terms:
        """Return the loss; the novelty logit is −g, so warm-up and PU learning share it."""
        if np.isnan(self.priors).any():
            return super().terms(network, batch, masks)
        classes, novelty = joint_outputs(network, batch, masks)
        g = -novelty[:, :, 0]
        return Terms(class_loss(batch.source(classes), batch.y) + self._risk(batch.source(g), batch.target(g)))

    def _risk(self, known: Tensor, mixed: Tensor) -> Tensor:
        prior = known.new_tensor(self.priors)
        known_risk, rest = pu_risks(known, mixed, prior, self._loss)
        if self._non_negative is None:
            return known_risk + rest
        step, reported = non_negative_risk(known_risk, rest, *self._non_negative)
        return step + (reported - step).detach()  # the gradient of ``step``, the value of ``reported``

    def adapt(self, validation: Validation, target_rows: Rows, score_target: ScoreTarget) -> bool:
        """Estimate a member's prior on its validation rows, once, after the warm-up."""
        if not np.isnan(self.priors[validation.member]):
            return False
        if validation.step >= self.warm_up * validation.max_steps:
            known = (-part["novelty"][:, 0].astype(np.float64) for part in (validation.source, validation.target))
            prior = 1 - self._estimate(*known).value
            self.priors[validation.member] = np.clip(prior, SMALLEST_PRIOR, 1 - SMALLEST_PRIOR)
        return True

    def state(self) -> dict[str, Any]:
        """Return the priors estimated so far."""
        return {"priors": self.priors}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what ``state()`` returned."""
        self.priors = state["priors"]

    def judge_member(self, validation: Validation) -> Judgement:
        """Keep the latest network, and record the domain loss of validation rows and the prior."""
        metrics = {**super().judge_member(validation).metrics, "prior": float(self.priors[validation.member])}
        return Judgement(key=KEEP_LATEST, metrics=metrics)
