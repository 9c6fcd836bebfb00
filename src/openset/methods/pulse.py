"""PULSE: label shift with one new class, by best-bin estimates (BBE) and a discriminator trained on kept rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import log_softmax

from openset._utils.params import check_number, takes_parameters_of
from openset.learn.batches import Batch, Rows
from openset.learn.bodies import DropoutMasks
from openset.learn.losses import class_loss, cvir_loss
from openset.learn.network import Network
from openset.learn.objective import KEEP_LATEST, Judgement, ScoreTarget, Validation
from openset.learn.primal_dual import Terms
from openset.methods._heads import FittedNetwork, HeadOutputs
from openset.methods._presets import PRESETS
from openset.methods.discriminator import (
    DiscriminatorObjective,
    DomainDiscriminator,
    bodies_for,
    joint_outputs,
)
from openset.problem import Decision, FitScores, Floats, Problem, State
from openset.stats.shares import NOT_IDENTIFIED, ShareEstimate, best_bin_share

if TYPE_CHECKING:
    from openset.persistence.onnx.graph import Value

SMALLEST_RATIO = 0.01
"""Class weights p_T(j)/p_S(j) are clipped to between this and its inverse."""


class PULSE(DomainDiscriminator):
    """PU learning under label shift: estimate the novel share, keep as many target rows, train on those.

    At every evaluation point after the warm-up, with q(x) = P(source | x) of the domain discriminator:

    1. BBE estimates the share of every known class in target from that class's probability. These give the
       shares r of the known classes.
    2. Source validation rows are resampled to r. The novel share is α = 1 − BBE(q on these rows, q on target
       validation rows).
    3. The α·n target training rows with the smallest q are kept as novel. The discriminator trains on source rows
       (weight 1 − α) against the kept rows only (weight α): CVIR.

    The score is the logit of 1 − q. Class probabilities are weighted by r divided by the source shares. It
    assumes label shift: p(x | y) is the same in source and target. Under background shift BBE counts shifted
    subtypes as novel (see :mod:`openset.stats.shares`); use it when only class shares changed.

    Parameters
    ----------
    warmup : share of ``max_steps`` that first trains a plain domain discriminator
    joint : learn the known classes on the same body (True) or on a second body, on source rows only (False)

    The other parameters are those of :class:`~openset.methods._network.NetworkClassifier`. Differences from the
    authors' code: resampling uses every row of a class equally often instead of drawing at random; class
    probabilities are not calibrated by vector scaling; training continues from the last discriminator of the
    warm-up, not from the best one; ``predict`` uses ``threshold_``, not q < ½.

    Attributes
    ----------
    class_shares_ : (members, k) estimated shares r of the known classes in target
    novel_fraction_, estimated_fraction_ : PULSE's estimate α; its interval is BBE's, the widest over members

    References
    ----------
    Garg, Balakrishnan and Lipton (2022), Domain adaptation under open set label shift.

    Examples
    --------
    >>> from openset import PULSE, make_background_shift
    >>> data = make_background_shift(n_features=20, shift=False, novel_fraction=0.2, random_state=0)
    >>> model = PULSE(max_steps=400, random_state=0).fit(data.X, data.y, data.X_target)
    >>> bool(abs(model.novel_fraction_.value - 0.2) < 0.08)
    True
    """

    class_shift_: NDArray[np.float32]
    estimated_fraction_: ShareEstimate

    _presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS["pulse"]

    @takes_parameters_of(DomainDiscriminator)
    def __init__(self, *, warmup: float = 0.125, **shared: Any) -> None:
        super().__init__(**shared)
        self.warmup = warmup

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("warmup", self.warmup, high=1, open_low=True, open_high=True)

    def _objective(self, problem: Problem) -> PulseObjective:
        return PulseObjective(
            bodies_for(problem.n_classes, 1, self.joint),
            members=self._n_members(),
            n_target=len(problem.target),
            warm_up=self.warmup,
        )

    def _fit(self, problem: Problem) -> State:
        equal = np.full((self._n_members(), problem.n_classes), 1 / problem.n_classes)
        unshifted = {"class_shares_": equal, "class_shift_": np.zeros(equal.shape, np.float32)}
        return {**unshifted, **super()._fit(problem)}

    def _learned_state(self, problem: Problem, objective: PulseObjective, network: FittedNetwork) -> State:
        shares = np.stack(objective.class_shares)
        given = np.bincount(problem.y, minlength=problem.n_classes) / len(problem.y)
        ratio = np.clip(shares / given, SMALLEST_RATIO, 1 / SMALLEST_RATIO)
        return {
            "class_shares_": shares,
            "class_shift_": np.log(ratio).astype(np.float32),
            "estimated_fraction_": mean_estimate(objective.novel),
        }

    def _decide(self, problem: Problem, scores: FitScores) -> Decision:
        return replace(super()._decide(problem, scores), fraction=self.estimated_fraction_)

    def _class_logits(self, outputs: HeadOutputs) -> Floats:
        return (outputs["classes"] + self.class_shift_[:, None, :]).astype(np.float64)

    def _onnx_class_logits(self, outputs: Mapping[str, Value]) -> Value:
        return outputs["classes"] + self.class_shift_[:, None, :].astype(np.float64)


def class_shares(
    source: NDArray[np.floating], y: NDArray[np.intp], target: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return the shares r of known classes in target by K-way BBE, from class logits of validation rows.

    A class with fewer than two validation rows keeps its source share.
    """
    n_classes = source.shape[1]
    given = np.bincount(y, minlength=n_classes) / len(y)
    if n_classes == 1:
        return given
    known, mixed = (log_softmax(logits.astype(np.float64), axis=1) for logits in (source, target))
    shares = np.array(
        [
            1 - best_bin_share(known[y == j, j], mixed[:, j]).value if (y == j).sum() > 1 else given[j]
            for j in range(n_classes)
        ]
    )
    return shares / shares.sum() if shares.sum() > 0 else given


def resample(y: NDArray[np.intp], shares: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return rows, int(r_j·n) of each class j, every row of a class equally often instead of at random."""
    taken = []
    for j, share in enumerate(shares):
        rows, wanted = np.flatnonzero(y == j), int(share * len(y))
        taken.append(rows[np.arange(wanted) * len(rows) // max(wanted, 1)] if len(rows) else rows)
    chosen = np.concatenate(taken)
    return chosen if len(chosen) > 1 else np.arange(len(y))


def kept_as_novel(novelty: NDArray[np.floating], novel: float) -> NDArray[np.bool_]:
    """Mark the int(α·n) rows with the highest novelty; none if that is 0."""
    kept = np.zeros(len(novelty), bool)
    kept[np.argsort(-novelty, kind="stable")[: int(novel * len(novelty))]] = True
    return kept


def mean_estimate(estimates: list[ShareEstimate]) -> ShareEstimate:
    """Return the mean over members, with the widest interval."""
    value = float(np.mean([e.value for e in estimates]))
    low, high = min(e.low for e in estimates), max(e.high for e in estimates)
    return ShareEstimate(value, low, high, min(e.confidence for e in estimates), "PULSE")


class PulseObjective(DiscriminatorObjective):
    """The domain discriminator's loss and, after the warm-up, that of the rows kept as novel."""

    adapts = True

    def __init__(
        self, bodies: Mapping[str, Mapping[str, int]], *, members: int, n_target: int, warm_up: float
    ) -> None:
        super().__init__(bodies)
        self.warm_up = warm_up
        self.novel: list[ShareEstimate] = [NOT_IDENTIFIED] * members
        self.class_shares: list[NDArray[np.float64]] = [np.empty(0)] * members
        self.kept = np.zeros((members, n_target), bool)
        self._warm = np.zeros(members, bool)

    def terms(self, network: Network, batch: Batch, masks: DropoutMasks) -> Terms:
        """Return the discriminator's loss in the warm-up, and CVIR after it."""
        if not self._warm.all():
            return super().terms(network, batch, masks)
        classes, novelty = joint_outputs(network, batch, masks)
        logit = novelty[:, :, 0]
        kept = torch.from_numpy(self.kept).to(logit.device).gather(1, batch.target_rows)
        # a member that keeps no row has no domain loss; otherwise it would learn that all rows are known
        novel = logit.new_tensor([e.value * k.any() for e, k in zip(self.novel, self.kept, strict=True)])
        domain = cvir_loss(batch.source(logit), batch.target(logit), kept, novel)
        return Terms(class_loss(batch.source(classes), batch.y) + domain)

    def adapt(self, validation: Validation, target_rows: Rows, score_target: ScoreTarget) -> bool:
        """Estimate class shares and the novel share, and keep the rows that look most novel."""
        if validation.step < self.warm_up * validation.max_steps:
            return True
        member, first = validation.member, not self._warm[validation.member]
        shares = class_shares(validation.source["classes"], validation.y, validation.target["classes"])
        known = (-part["novelty"][:, 0].astype(np.float64) for part in (validation.source, validation.target))
        source, target = known
        novel = best_bin_share(source[resample(validation.y, shares)], target)
        self.class_shares[member], self.novel[member] = shares, novel
        self.kept[member] = False
        self.kept[member, target_rows] = kept_as_novel(score_target()["novelty"][:, 0], novel.value)
        self._warm[member] = True
        return first

    def state(self) -> dict[str, Any]:
        """Return the estimates, and the rows kept as novel."""
        return {"novel": self.novel, "class_shares": self.class_shares, "kept": self.kept, "warm": self._warm}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what ``state()`` returned."""
        self.novel, self.class_shares = state["novel"], state["class_shares"]
        self.kept, self._warm = state["kept"], state["warm"]

    def judge_member(self, validation: Validation) -> Judgement:
        """Keep the latest network, and record the estimated novel share."""
        novel = self.novel[validation.member].value if self._warm[validation.member] else float("nan")
        return Judgement(KEEP_LATEST, {**super().judge_member(validation).metrics, "novel_fraction": novel})
