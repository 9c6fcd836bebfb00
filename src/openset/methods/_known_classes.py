"""Cross entropy of the known classes: the closed-set classifier, and part of most other losses."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax

from openset.learn.batches import Batch
from openset.learn.bodies import DropoutMasks
from openset.learn.losses import class_loss
from openset.learn.network import Network
from openset.learn.objective import Judgement, Objective, Validation
from openset.learn.primal_dual import Terms


class ClassObjective(Objective):
    """Softmax cross entropy on source rows."""

    def __init__(self, n_classes: int, body: str = "shared") -> None:
        self.bodies = {body: {"classes": n_classes}}
        self._body = body

    def terms(self, network: Network, batch: Batch, masks: DropoutMasks) -> Terms:
        """Return the cross entropy on the source part of a batch."""
        return Terms(class_loss(network(batch.source(batch.x), self._body, masks)["classes"], batch.y))

    def judge_member(self, validation: Validation) -> Judgement:
        """Judge by the cross entropy of validation rows; lower is better."""
        metrics = class_metrics(validation)
        return Judgement(key=-metrics["class_loss"], metrics=metrics)


def class_metrics(validation: Validation) -> dict[str, float]:
    """Return cross entropy and accuracy of the class head on source validation rows."""
    logits = validation.source["classes"].astype(np.float64)
    chosen = log_softmax(logits, axis=1)[np.arange(len(validation.y)), validation.y]
    return {
        "class_loss": float(-chosen.mean()),
        "known_accuracy": float((logits.argmax(axis=1) == validation.y).mean()),
    }
