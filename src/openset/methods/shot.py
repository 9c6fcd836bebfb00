"""SHOT, open set: the classifier learned on source is frozen, and the representation adapts to the target."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax
from torch import Tensor

from openset._utils.params import check_integer, check_number, takes_parameters_of
from openset.learn.batches import Batch, Rows
from openset.learn.bodies import DropoutMasks
from openset.learn.losses import class_loss
from openset.learn.network import Network
from openset.learn.objective import KEEP_LATEST, Judgement, Objective, ScoreTarget, Validation
from openset.learn.primal_dual import Terms
from openset.methods._heads import FittedNetwork, HeadOutputs
from openset.methods._known_classes import class_metrics
from openset.methods._network import NetworkClassifier
from openset.methods._presets import PRESETS
from openset.persistence.onnx.scores import onnx_entropy
from openset.problem import Problem, State
from openset.stats.groups import two_means
from openset.stats.scores import normalised_entropy_score

if TYPE_CHECKING:
    from openset.persistence.onnx.graph import Value

_BODY = "shared"


class SHOT(NetworkClassifier):
    """Source hypothesis transfer: learn a classifier on source, freeze its head, and adapt its body.

    The body is a bottleneck (linear, then batch normalisation), the head linear with normalised weights. The
    source stage minimises cross entropy with smoothed labels. The target stage uses target rows only. The head is
    frozen, and the bottleneck minimises, over the target rows labelled known,

        ``pseudo_weight`` · CE(pseudo-label) + mean H(p)  − H(mean p over the whole batch).

    Pseudo-labels are recomputed at every evaluation point. 2-means splits the entropy H(p) / log k into two
    groups; the upper one is unknown. The other rows get the class of the nearest centroid in cosine distance,
    with centroids weighted first by p and then by those labels. The score is H(p) / log k.

    It assumes three things: all target rows of known classes moved in the same way (another instrument, another
    site), so that centring and scaling them again undoes the move; classes have about equal shares; and new rows
    lie between the known classes. If rows moved so far that the first pseudo-labels are mostly wrong, its novelty
    scores can be worse than those of a source-only classifier (figures: docs/decisions/0011-shot.md). After a
    large move the network is uncertain on source rows; ``threshold_`` is then high and few rows are called novel.
    With one known class the entropy, and so the score, is 0 everywhere.

    Parameters
    ----------
    source_share : share of ``max_steps`` in the source stage
    label_smoothing : share of every source label that is spread over all classes
    pseudo_weight : weight of the pseudo-labels' cross entropy

    The other parameters are those of :class:`~openset.methods._network.NetworkClassifier`; ``hidden`` is the
    width of the bottleneck. A ``backbone`` replaces the bottleneck, and all of it is adapted: it should end in a
    linear layer and batch normalisation. Differences from the authors' code: one learning rate throughout,
    without decay; the target stage starts from the last source network, not from the best one; 2-means is exact;
    ``predict`` uses ``threshold_``.

    Attributes
    ----------
    entropy_split_ : (members,) the authors' threshold, half-way between the two means of target entropy

    References
    ----------
    Liang, Hu and Feng (2020), Do we really need to access the source data? Source hypothesis transfer for
    unsupervised domain adaptation.

    Examples
    --------
    >>> from openset import SHOT, make_background_shift
    >>> data = make_background_shift(shift=False, random_state=0)
    >>> model = SHOT(max_steps=100, random_state=0).fit(data.X, data.y, data.X_target + 0.3)  # all moved alike
    >>> known = ~data.is_novel_test
    >>> bool((model.predict_known(data.X_test + 0.3) == data.y_test)[known].mean() > 0.9)
    True
    """

    _presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS["shot"]
    _wide_dropout = 0.0  # its authors use none

    @takes_parameters_of(NetworkClassifier)
    def __init__(
        self,
        *,
        source_share: float = 0.5,
        label_smoothing: float = 0.1,
        pseudo_weight: float = 0.3,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.source_share = source_share
        self.label_smoothing = label_smoothing
        self.pseudo_weight = pseudo_weight

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("source_share", self.source_share, high=1, open_low=True, open_high=True)
        check_number("label_smoothing", self.label_smoothing, high=1, open_high=True)
        check_number("pseudo_weight", self.pseudo_weight)
        check_integer("batch_size", self.batch_size, low=2)  # batch normalisation needs a variance

    def _objective(self, problem: Problem) -> ShotObjective:
        return ShotObjective(
            problem.n_classes,
            members=self._n_members(),
            n_target=len(problem.target),
            source_share=float(self.source_share),
            label_smoothing=float(self.label_smoothing),
            pseudo_weight=float(self.pseudo_weight),
        )

    def _learned_state(self, problem: Problem, objective: ShotObjective, network: FittedNetwork) -> State:
        return {"entropy_split_": objective.split}

    def _member_scores(self, outputs: HeadOutputs) -> NDArray[np.float64]:
        return normalised_entropy_score(outputs["classes"])

    def _onnx_scores(self, outputs: Mapping[str, Value]) -> Value:
        entropy, n_classes = onnx_entropy(outputs["classes"]), len(self.classes_)
        return entropy / np.float64(np.log(n_classes)) if n_classes > 1 else entropy


def pseudo_labels(
    logits: NDArray[np.floating], features: NDArray[np.floating], split: float
) -> NDArray[np.int64]:
    """Return a class for every row, or k for unknown where the normalised entropy is above ``split``.

    ``logits`` is (rows, k), ``features`` (rows, width). A class is ignored if it is no row's first choice, or if
    it loses all its rows to others.

    >>> logits = np.array([[3.0, 0.0], [0.0, 3.0], [0.0, 0.1]])
    >>> pseudo_labels(logits, logits, split=0.5)
    array([0, 1, 2])
    """
    labels = np.full(len(logits), logits.shape[1], np.int64)
    known = normalised_entropy_score(logits) <= split
    if known.any():
        p, f = softmax(logits[known], axis=1), features[known]
        f = np.column_stack([f, np.ones(len(f), f.dtype)])
        f /= np.linalg.norm(f, axis=1, keepdims=True)
        soft = _nearest_centroid(f, p, np.unique(logits[known].argmax(axis=1)))
        hard = np.eye(logits.shape[1], dtype=f.dtype)[soft]
        labels[known] = _nearest_centroid(f, hard, np.unique(soft))
    return labels


def _nearest_centroid(
    unit_rows: NDArray[np.floating], weights: NDArray[np.floating], classes: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return for every row the given class whose centroid, a weighted mean of rows, has the largest cosine."""
    centroids = weights[:, classes].T @ unit_rows  # their length does not change a cosine
    centroids /= np.linalg.norm(centroids, axis=1, keepdims=True)
    return classes[(unit_rows @ centroids.T).argmax(axis=1)]


def information_maximisation(logits: Tensor, known: Tensor) -> Tensor:
    """Return the mean entropy of known rows minus the entropy of the batch's mean p, for each member.

    ``logits`` is (members, rows, k) and ``known`` a mask (members, rows).
    """
    log_p = logits.log_softmax(dim=-1)
    log_mean = log_p.logsumexp(dim=1) - math.log(logits.shape[1])
    of_mean = -(log_mean.exp() * log_mean).sum(dim=-1)
    return mean_over(-(log_p.exp() * log_p).sum(dim=-1), known) - of_mean


def mean_over(values: Tensor, mask: Tensor) -> Tensor:
    """Return the mean over the masked entries of each row; 0 where there are none."""
    return (values * mask).sum(dim=-1) / mask.sum(dim=-1).clamp(min=1)


class ShotObjective(Objective):
    """Smoothed cross entropy on source, then information maximisation on target with a frozen head."""

    adapts = True

    def __init__(
        self,
        n_classes: int,
        *,
        members: int,
        n_target: int,
        source_share: float = 0.5,
        label_smoothing: float = 0.1,
        pseudo_weight: float = 0.3,
    ) -> None:
        self.bodies = {_BODY: {"classes": n_classes}}
        self.body_kinds, self.head_kinds = {_BODY: "bottleneck"}, {_BODY: "weight_norm"}
        self.warm_up = source_share
        self.split = np.full(members, np.nan)
        self.labels = np.full((members, n_target), n_classes, np.int64)
        self._n_classes, self._smoothing, self._pseudo_weight = n_classes, label_smoothing, pseudo_weight

    @property
    def in_target_stage(self) -> bool:
        """Whether every member has a split; all members get their first one at the same evaluation point."""
        return not np.isnan(self.split).any()

    def terms(self, network: Network, batch: Batch, masks: DropoutMasks) -> Terms:
        """Return the loss of the current stage."""
        if self.in_target_stage:
            # without a gradient, neither the optimiser's moments nor L2 change a weight
            network.heads[_BODY].requires_grad_(False)
            logits = network(batch.target(batch.x), _BODY, masks)["classes"]
            return Terms(self._target_loss(logits, batch.target_rows))
        logits = network(batch.source(batch.x), _BODY, masks)["classes"]
        return Terms(class_loss(logits, batch.y, self._smoothing))

    def _target_loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Return the target loss of each member; 0 if its batch has no known row."""
        labels = torch.from_numpy(self.labels).to(rows.device).gather(1, rows)
        known = labels < self._n_classes
        chosen = labels.clamp(max=self._n_classes - 1).unsqueeze(-1)
        cross_entropy = -logits.log_softmax(dim=-1).gather(-1, chosen).squeeze(-1)
        loss = self._pseudo_weight * mean_over(cross_entropy, known) + information_maximisation(logits, known)
        return loss * known.any(dim=1)

    def adapt(self, validation: Validation, target_rows: Rows, score_target: ScoreTarget) -> bool:
        """Recompute the pseudo-labels of one member, after the source stage."""
        if validation.step < self.warm_up * validation.max_steps:
            return True
        first = bool(np.isnan(self.split[validation.member]))
        outputs = score_target(representation=True)
        split = two_means(normalised_entropy_score(outputs["classes"])).split
        self.split[validation.member] = split
        self.labels[validation.member, target_rows] = pseudo_labels(outputs["classes"], outputs[_BODY], split)
        return first

    def state(self) -> dict[str, Any]:
        """Return pseudo-labels and splits, the only state besides the network."""
        return {"labels": self.labels, "split": self.split}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what ``state()`` returned."""
        self.labels, self.split = state["labels"], state["split"]

    def judge_member(self, validation: Validation) -> Judgement:
        """Keep the latest network, and record the share of target rows labelled unknown."""
        split = self.split[validation.member]
        above = normalised_entropy_score(validation.target["classes"]) > split
        unknown = float("nan") if np.isnan(split) else float(above.mean())
        return Judgement(KEEP_LATEST, {**class_metrics(validation), "unknown": unknown})
