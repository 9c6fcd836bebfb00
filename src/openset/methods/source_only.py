"""Source-only: an ordinary classifier, whose uncertainty is the novelty score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from openset.methods._heads import HeadOutputs
from openset.methods._known_classes import ClassObjective
from openset.methods._network import NetworkClassifier
from openset.methods._presets import PRESETS
from openset.persistence.onnx.scores import onnx_msp
from openset.problem import Problem
from openset.stats.scores import msp_score

if TYPE_CHECKING:
    from openset.persistence.onnx.graph import Value


class SourceOnly(NetworkClassifier):
    """A closed-set classifier that never trains on target rows; scores a row by 1 − max softmax probability.

    Use it as the baseline of any comparison: it shows what can be found without the target. It does not find a
    new class that strongly resembles one known class, and rows between classes look new.

    The parameters are those of :class:`~openset.methods._network.NetworkClassifier`. ``X_target`` is used only to
    estimate the novel share.

    References
    ----------
    Hendrycks and Gimpel (2017), A baseline for detecting misclassified and out-of-distribution examples.

    Examples
    --------
    >>> from openset import SourceOnly, make_background_shift
    >>> data = make_background_shift(random_state=0)
    >>> model = SourceOnly(max_steps=200, random_state=0).fit(data.X, data.y, data.X_target)
    >>> bool((model.predict_known(data.X_test) == data.y_test)[~data.is_novel_test].mean() > 0.9)
    True
    """

    _presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS["source_only"]

    _adapts = False

    def _objective(self, problem: Problem) -> ClassObjective:
        return ClassObjective(problem.n_classes)

    def _member_scores(self, outputs: HeadOutputs) -> NDArray[np.float64]:
        return msp_score(outputs["classes"])

    def _onnx_scores(self, outputs: Mapping[str, Value]) -> Value:
        return onnx_msp(outputs["classes"])
