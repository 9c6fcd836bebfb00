"""Cross entropy of the known classes: the closed-set classifier, and part of most other losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import log_softmax

if TYPE_CHECKING:
    from openset.learn.train import HeldOut


class ClassObjective:
    """Softmax cross entropy on source rows: the closed-set classifier, and part of most other losses."""

    n_constraints = 0

    def __init__(self, n_classes: int, body: str = "shared") -> None:
        self.bodies = {body: {"classes": n_classes}}
        self._body = body

    def terms(self, network: Any, batch: Any, masks: Any) -> Any:
        """Cross entropy on the source part of a batch."""
        from openset.learn.losses import class_loss
        from openset.learn.primal_dual import Terms

        logits = network(batch.source(batch.x), self._body, masks)["classes"]
        return Terms(class_loss(logits, batch.y))

    def judge(self, held_out: HeldOut) -> Any:
        """The lower the held-out cross entropy the better."""
        from openset.learn.train import Judgement

        metrics = class_metrics(held_out)
        return Judgement(key=-metrics["class_loss"], metrics=metrics)


def class_metrics(held_out: HeldOut) -> dict[str, float]:
    """Cross entropy and accuracy of the class head on held-out source rows."""
    logits = held_out.source["classes"].astype(np.float64)
    chosen = log_softmax(logits, axis=1)[np.arange(len(held_out.y)), held_out.y]
    return {
        "class_loss": float(-chosen.mean()),
        "known_accuracy": float((logits.argmax(axis=1) == held_out.y).mean()),
    }
