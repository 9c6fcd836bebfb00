"""Scores from the logits of an ordinary classifier: MSP, entropy, maximum logit, energy.

Each is a function of the class logits of one source-only network. Within a
:class:`~openset.learn.memory.TrainingMemory` that network is trained once for all of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.params import check_number, takes_parameters_of
from openset.methods._heads import HeadOutputs
from openset.methods.source_only import SourceOnly
from openset.persistence.onnx.scores import onnx_energy, onnx_entropy, onnx_highest_logit, onnx_msp
from openset.stats.scores import energy_score, entropy_score, mls_score, msp_score

if TYPE_CHECKING:
    from openset.persistence.onnx.graph import Value


class LogitScore(SourceOnly):
    """A source-only classifier scored by a function of its logits."""

    @abstractmethod
    def _member_scores(self, outputs: HeadOutputs) -> NDArray[np.float64]: ...

    def _identity(self) -> str:
        """Return the identity of the classifier; the score has no effect on training."""
        given = self.get_params(deep=False)
        return SourceOnly(**{name: given[name] for name in SourceOnly._get_param_names()})._identity()


class TemperedScore(LogitScore):
    """A source-only classifier scored by a function of its logits divided by a temperature."""

    @takes_parameters_of(SourceOnly)
    def __init__(self, *, temperature: float = 1.0, **shared: Any) -> None:
        super().__init__(**shared)
        self.temperature = temperature

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("temperature", self.temperature, open_low=True)


class MSP(TemperedScore):
    """Maximum softmax probability of a source-only classifier: score = 1 − max softmax(logits / T).

    It assumes that new rows lie between the known classes. Use it as the baseline that every paper reports; at
    T = 1 it is :class:`~openset.methods.source_only.SourceOnly`. With one known class it is 0 everywhere.

    Parameters
    ----------
    temperature : T; with large values the gaps to all other classes count, not only the gap to the second class

    The other parameters are those of :class:`~openset.methods._network.NetworkClassifier`.

    References
    ----------
    Hendrycks and Gimpel (2017), A baseline for detecting misclassified and out-of-distribution examples.

    Examples
    --------
    >>> from openset import MSP, make_background_shift
    >>> data = make_background_shift(random_state=0)
    >>> model = MSP(max_steps=200, random_state=0).fit(data.X, data.y, data.X_target)
    >>> bool((model.predict_known(data.X_test) == data.y_test)[~data.is_novel_test].mean() > 0.9)
    True
    """

    def _member_scores(self, outputs: HeadOutputs) -> NDArray[np.float64]:
        return msp_score(outputs["classes"], self.temperature)

    def _onnx_scores(self, outputs: Mapping[str, Value]) -> Value:
        return onnx_msp(outputs["classes"], self.temperature)


class Entropy(TemperedScore):
    """Entropy of a source-only classifier: score = −Σ p log p with p = softmax(logits / T).

    It assumes, as MSP does, that new rows lie between the known classes. Unlike MSP, it separates a row between
    many classes from one between two. Use it instead of MSP with many classes. With one known class it is 0
    everywhere.

    Parameters
    ----------
    temperature : T

    The other parameters are those of :class:`~openset.methods._network.NetworkClassifier`.

    References
    ----------
    Hendrycks and Gimpel (2017), A baseline for detecting misclassified and out-of-distribution examples.

    Examples
    --------
    >>> from openset import Entropy, make_background_shift
    >>> data = make_background_shift(random_state=0)
    >>> model = Entropy(max_steps=200, random_state=0).fit(data.X, data.y, data.X_target)
    >>> bool(0 <= model.novelty_score(data.X_test).min() <= model.novelty_score(data.X_test).max() <= 1.0987)
    True
    """

    def _member_scores(self, outputs: HeadOutputs) -> NDArray[np.float64]:
        return entropy_score(outputs["classes"], self.temperature)

    def _onnx_scores(self, outputs: Mapping[str, Value]) -> Value:
        return onnx_entropy(outputs["classes"], self.temperature)


class Energy(TemperedScore):
    """Free energy of a source-only classifier: score = −T·log Σ exp(logits / T).

    It treats the logits as log densities of the classes, up to a constant: a row is new where all are low. It
    assumes that typical rows have large logits, which cross entropy encourages but does not ensure. Unlike MSP it
    depends on the size of the logits. Use it where the classifier is well trained and has several classes.

    Parameters
    ----------
    temperature : T; the score tends to the maximum logit score as it tends to 0

    The other parameters are those of :class:`~openset.methods._network.NetworkClassifier`.

    References
    ----------
    Liu, Wang, Owens and Li (2020), Energy-based out-of-distribution detection.

    Examples
    --------
    >>> from openset import Energy, make_background_shift
    >>> data = make_background_shift(random_state=0)
    >>> model = Energy(max_steps=200, random_state=0).fit(data.X, data.y, data.X_target)
    >>> model.novelty_score(data.X_test).shape
    (2000,)
    """

    def _member_scores(self, outputs: HeadOutputs) -> NDArray[np.float64]:
        return energy_score(outputs["classes"], self.temperature)

    def _onnx_scores(self, outputs: Mapping[str, Value]) -> Value:
        return onnx_energy(outputs["classes"], self.temperature)


class MLS(LogitScore):
    """Maximum logit score of a source-only classifier: score = −max logit.

    Unlike softmax, it depends on the size of the logits. It assumes that known rows have a large logit and new
    rows do not. Use it where the classifier is strong: its authors find that a good closed-set classifier with
    this score is as good as methods designed for open sets.

    The parameters are those of :class:`~openset.methods._network.NetworkClassifier`.

    References
    ----------
    Vaze, Han, Vedaldi and Zisserman (2022), Open-set recognition: a good closed-set classifier is all you need?

    Examples
    --------
    >>> from openset import MLS, make_background_shift
    >>> data = make_background_shift(random_state=0)
    >>> model = MLS(max_steps=200, random_state=0).fit(data.X, data.y, data.X_target)
    >>> model.novelty_score(data.X_test).shape
    (2000,)
    """

    def _member_scores(self, outputs: HeadOutputs) -> NDArray[np.float64]:
        return mls_score(outputs["classes"])

    def _onnx_scores(self, outputs: Mapping[str, Value]) -> Value:
        return onnx_highest_logit(outputs["classes"])
