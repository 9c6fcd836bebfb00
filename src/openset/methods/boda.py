"""BODA: open-set domain adaptation by backpropagation (OSBP), an adversarial boundary of the unknown class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit, logsumexp
from torch import Tensor

from openset._utils.params import check_number, takes_parameters_of
from openset.learn.batches import Batch
from openset.learn.bodies import DropoutMasks
from openset.learn.losses import class_loss, reverse_gradient
from openset.learn.network import Network
from openset.learn.objective import Judgement, Objective, Validation
from openset.learn.primal_dual import Terms
from openset.methods._heads import HeadOutputs
from openset.methods._known_classes import class_metrics
from openset.methods._network import NetworkClassifier
from openset.methods._presets import PRESETS
from openset.problem import Problem

if TYPE_CHECKING:
    from openset.persistence.onnx.graph import Value

_BODY = "shared"
_EPSILON = 1e-6
"""Added inside logarithms, as the authors do, to bound the loss where p_u is 0 or 1."""


class BODA(NetworkClassifier):
    """A softmax over k + 1 classes, trained adversarially between head and body on target rows.

    With p_u the probability of class k + 1, source rows add their cross entropy over all k + 1 logits, and
    target rows add −t log p_u − (1 − t) log(1 − p_u). The head minimises both. The body, behind a reversed
    gradient, minimises the first and maximises the second: it moves every target row away from p_u = t, to the
    known or to the unknown side. The score is log p_u / (1 − p_u), for both AUROC and OSCR.

    It assumes that target rows of known classes can be aligned with source rows and novel ones cannot, and that
    the new class is not rare: t acts as a prior on its share. Use it where the new class is about a third of the
    target and resembles a known class, so that the classifier's own uncertainty does not show it. Under
    background shift it loses much (AUROC .86 and .79 on ``make_background_shift()``, 1.0 without shift).

    Parameters
    ----------
    t : the probability of "unknown" that the head aims at on target rows

    The other parameters are those of :class:`~openset.methods._network.NetworkClassifier`. The network with the
    lowest cross entropy over k + 1 classes on source validation rows is kept, as in the CoLOR paper. Keeping the
    last one made no clear difference: AUROC .998 against .999 over two seeds of
    ``make_background_shift(shift=False)``, .864 against .863 over three splits of the digits.

    References
    ----------
    Saito, Yamamoto, Ushiku and Harada (2018), Open set domain adaptation by backpropagation.

    Examples
    --------
    >>> from openset import BODA, make_background_shift
    >>> data = make_background_shift(shift=False, novel_fraction=0.3, random_state=0)
    >>> model = BODA(max_steps=300, random_state=0).fit(data.X, data.y, data.X_target)
    >>> from openset.stats.metrics import auroc
    >>> bool(auroc(data.is_novel_test, model.novelty_score(data.X_test)) > 0.9)
    True
    """

    _presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS["boda"]

    @takes_parameters_of(NetworkClassifier)
    def __init__(self, *, t: float = 0.5, **shared: Any) -> None:
        super().__init__(**shared)
        self.t = t

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("t", self.t, high=1, open_low=True, open_high=True)

    def _objective(self, problem: Problem) -> BodaObjective:
        return BodaObjective(problem.n_classes, float(self.t))

    def _member_scores(self, outputs: HeadOutputs) -> NDArray[np.float64]:
        return unknown_log_odds(outputs["classes"], outputs["unknown"])

    def _onnx_scores(self, outputs: Mapping[str, Value]) -> Value:
        return outputs["unknown"].take(0, axis=2) - outputs["classes"].over("LogSumExp", -1)


def unknown_log_odds(classes: NDArray[Any], unknown: NDArray[Any]) -> NDArray[np.float64]:
    """Return log p_u / (1 − p_u) of a softmax over (..., k) class logits and (..., 1) unknown logits."""
    odds: NDArray[np.float64] = unknown[..., 0].astype(np.float64) - logsumexp(
        classes.astype(np.float64), axis=-1
    )
    return odds


def adversarial_loss(classes: Tensor, unknown: Tensor, t: float = 0.5) -> Tensor:
    """Return the mean of −t log p_u − (1 − t) log(1 − p_u) over rows, (members,).

    ``classes`` is (members, rows, k), ``unknown`` (members, rows, 1).
    """
    odds = unknown[..., 0] - classes.logsumexp(dim=-1)
    novel, known = (odds.sigmoid() + _EPSILON).log(), ((-odds).sigmoid() + _EPSILON).log()
    return -(t * novel + (1 - t) * known).mean(dim=1)


class BodaObjective(Objective):
    """Cross entropy over k + 1 classes on source, plus the adversarial loss on target."""

    def __init__(self, n_classes: int, t: float) -> None:
        self.bodies = {_BODY: {"classes": n_classes, "unknown": 1}}
        self._t = t

    def terms(self, network: Network, batch: Batch, masks: DropoutMasks) -> Terms:
        """Return the loss; its gradient is reversed between body and head, on target rows only."""
        h = network.represent(batch.x, _BODY, masks)
        h = torch.cat([batch.source(h), reverse_gradient(batch.target(h))], dim=1)
        outputs = network.heads[_BODY](h)
        classes, unknown = outputs["classes"], outputs["unknown"]
        source = class_loss(torch.cat([batch.source(classes), batch.source(unknown)], dim=-1), batch.y)
        return Terms(source + adversarial_loss(batch.target(classes), batch.target(unknown), self._t))

    def judge_member(self, validation: Validation) -> Judgement:
        """Judge by the cross entropy over k + 1 classes on validation rows; lower is better."""
        metrics = class_metrics(validation)
        odds = unknown_log_odds(validation.source["classes"], validation.source["unknown"])
        target = unknown_log_odds(validation.target["classes"], validation.target["unknown"])
        # log p_y over k + 1 classes = log p_y over k classes + log(1 − p_u)
        source_loss = metrics["class_loss"] + float(np.logaddexp(0, odds).mean())
        novel, known = np.log(expit(target) + _EPSILON), np.log(expit(-target) + _EPSILON)
        adversarial = -float((self._t * novel + (1 - self._t) * known).mean())
        return Judgement(
            key=-source_loss,
            metrics={**metrics, "source_loss": source_loss, "adversarial_loss": adversarial},
        )
