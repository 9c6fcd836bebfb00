"""The domain discriminator: a classifier of source against target, whose logit is the novelty score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from openset._utils.params import check_flag, takes_parameters_of
from openset.learn.batches import Batch
from openset.learn.bodies import DropoutMasks
from openset.learn.losses import class_loss, known_loss, novel_loss
from openset.learn.network import Network
from openset.learn.objective import KEEP_LATEST, Judgement, Objective, Validation
from openset.learn.primal_dual import Terms
from openset.methods._heads import HeadOutputs
from openset.methods._known_classes import class_metrics
from openset.methods._network import NetworkClassifier
from openset.methods._presets import PRESETS
from openset.problem import Problem

if TYPE_CHECKING:
    from openset.persistence.onnx.graph import Value


class DomainDiscriminator(NetworkClassifier):
    """Logistic regression of "target" against "source" on a learned representation; the logit is the score.

    With equally large batches its optimum is log p_T(x) / p_S(x). It assumes that only novel rows are more
    frequent in target than in source. Without background shift that holds, and the method is hard to beat. Under
    background shift every known subtype that became more common looks novel too.

    Parameters
    ----------
    joint : learn the known classes on the same body (True) or on a second body, on source rows only (False)

    The other parameters are those of :class:`~openset.methods._network.NetworkClassifier`. The last network is
    kept: keeping the one with the lowest validation domain loss halves its AUPRC
    (docs/decisions/0004-discriminator.md).

    References
    ----------
    Elkan and Noto (2008), Learning classifiers from only positive and unlabeled data.

    Examples
    --------
    >>> from openset import DomainDiscriminator, make_background_shift
    >>> data = make_background_shift(shift=False, random_state=0)
    >>> model = DomainDiscriminator(max_steps=300, random_state=0).fit(data.X, data.y, data.X_target)
    >>> from openset.stats.metrics import auroc
    >>> bool(auroc(data.is_novel_test, model.novelty_score(data.X_test)) > 0.95)
    True
    """

    _presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS["dd"]

    @takes_parameters_of(NetworkClassifier)
    def __init__(self, *, joint: bool = True, **shared: Any) -> None:
        super().__init__(**shared)
        self.joint = joint

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_flag("joint", self.joint)

    def _objective(self, problem: Problem) -> DiscriminatorObjective:
        return DiscriminatorObjective(bodies_for(problem.n_classes, 1, self.joint))

    def _member_scores(self, outputs: HeadOutputs) -> NDArray[np.floating]:
        return outputs["novelty"][:, :, 0]

    def _onnx_scores(self, outputs: Mapping[str, Value]) -> Value:
        return outputs["novelty"].take(0, axis=2)


def bodies_for(n_classes: int, n_novelty: int, joint: bool) -> dict[str, dict[str, int]]:
    """Return one body for classes and novelty heads, or one body for each."""
    if joint:
        return {"shared": {"classes": n_classes, "novelty": n_novelty}}
    return {"known": {"classes": n_classes}, "novelty": {"novelty": n_novelty}}


def joint_outputs(network: Network, batch: Batch, masks: DropoutMasks) -> tuple[Tensor, Tensor]:
    """Return class logits and novelty logits, from one body or two; with two, classes of source rows only."""
    if "shared" in network.bodies:
        outputs = network(batch.x, "shared", masks)
        return outputs["classes"], outputs["novelty"]
    classes = network(batch.source(batch.x), "known", masks)["classes"]
    return classes, network(batch.x, "novelty", masks)["novelty"]


class DiscriminatorObjective(Objective):
    """Class cross entropy on source plus domain cross entropy on source and target."""

    def __init__(self, bodies: Mapping[str, Mapping[str, int]]) -> None:
        self.bodies = bodies

    def terms(self, network: Network, batch: Batch, masks: DropoutMasks) -> Terms:
        """Return class loss plus domain loss, the mean over both halves of the batch, which are equally large."""
        classes, novelty = joint_outputs(network, batch, masks)
        domain = (known_loss(batch.source(novelty)) + novel_loss(batch.target(novelty))).sum(dim=1) / 2
        return Terms(class_loss(batch.source(classes), batch.y) + domain)

    def judge_member(self, validation: Validation) -> Judgement:
        """Keep the latest network, as the authors do, and record the domain loss of validation rows."""
        source, target = validation.source["novelty"][:, 0], validation.target["novelty"][:, 0]
        loss = float(np.logaddexp(0, source).mean() + np.logaddexp(0, -target).mean()) / 2
        return Judgement(key=KEEP_LATEST, metrics={**class_metrics(validation), "domain_loss": loss})
