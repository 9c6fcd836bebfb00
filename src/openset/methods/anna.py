"""ANNA: BODA on maps of cells, with unknown cells mined from source images and cells aligned across domains."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import Tags
from torch import Tensor
from torch.nn import Module
from torch.nn.functional import softplus

from openset._utils.arrays import as_rows
from openset._utils.params import check_integer, check_number, takes_parameters_of
from openset.learn.backbones import output_shape, template_of
from openset.learn.batches import Batch, Rows, ScaledRows
from openset.learn.bodies import DropoutMasks
from openset.learn.heads import CellHeads
from openset.learn.losses import class_loss, reverse_gradient
from openset.learn.network import Network
from openset.learn.objective import Judgement, ScoreTarget, Validation
from openset.learn.primal_dual import Terms
from openset.methods._presets import PRESETS
from openset.methods.boda import BODA, BodaObjective, adversarial_loss
from openset.problem import Problem, State
from openset.stats.scaling import NO_SCALING, over_cells

_BODY = "shared"


class ANNA(BODA):
    """BODA on feature maps, which also learns the unknown class from cells of source images.

    A row is a map of cells. One network classifies both maps (by the mean of their cells) and single cells, with
    a softmax over k + 1 classes; p_u is the probability of the last class. After a warm-up on source cross
    entropy only, three losses are added:

    - *Mining.* In a source map, a cell is known if its largest known logit is the map's label, and unknown if the
      label is not among the ``top`` largest. Maps that have both kinds, and more known than unknown cells, add
      −log p_u, averaged over their unknown cells and weighted by the share w of unknown among their marked cells;
      the cross entropy is weighted by 1 − w. With at most ``top`` classes, a cell is unknown if the label comes
      last; with one class nothing is mined.
    - *Alignment.* Two discriminators separate source cells from target cells, one with weights 1 − p_u and one
      with weights p_u; the body, behind a reversed gradient, maximises their losses.
    - *The boundary.* BODA's loss on target maps, with its gradient reversed between body and head.

    The score is log p_u / (1 − p_u) of the map. It assumes what BODA assumes, and that the new class of the
    target occurs in source images without a label, as background or next to the labelled object. Use it on maps
    where that holds. With one vector a row there are no cells to mine: use :class:`~openset.methods.boda.BODA`.

    ``X`` is (n, cells, features), or the input of a ``backbone`` that returns (n, cells, features) or
    (n, channels, height, width). A batch has 2 · ``batch_size`` maps.

    Parameters
    ----------
    warmup : share of the steps with source cross entropy only
    top : a cell is unknown if its map's label is not among this many largest logits
    mining_scale : weight of the gradient from mined cells to the body
    domain_reversal : weight of the reversed gradient from the discriminators to the body
    target_reversal : weight of the reversed gradient from BODA's loss to the body

    The other parameters are those of :class:`~openset.methods.boda.BODA`. The authors keep the epoch that is best
    on target labels, which are not available in use. Here the network after the warm-up with the lowest cross
    entropy over k + 1 classes on source validation rows is kept (docs/decisions/0012-anna.md).

    References
    ----------
    Li, Liu, Han and Yuan (2023), Adjustment and alignment for unbiased open set domain adaptation.

    Examples
    --------
    >>> from openset import ANNA, make_background_shift
    >>> from openset.shift.synthetic import make_feature_maps
    >>> table = make_background_shift(n_features=10, shift=False, novel_fraction=0.3, random_state=0)
    >>> data = make_feature_maps(table, random_state=0)
    >>> model = ANNA(max_steps=200, random_state=0).fit(data.X, data.y, data.X_target)
    >>> from openset.stats.metrics import auroc
    >>> bool(auroc(data.is_novel_test, model.novelty_score(data.X_test)) > 0.9)
    True
    """

    _presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS["anna"]
    _wide_dropout = 0.3  # its authors' value

    @takes_parameters_of(BODA)
    def __init__(
        self,
        *,
        warmup: float = 0.2,
        top: int = 3,
        mining_scale: float = 0.2,
        domain_reversal: float = 0.1,
        target_reversal: float = 0.5,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.warmup = warmup
        self.top = top
        self.mining_scale = mining_scale
        self.domain_reversal = domain_reversal
        self.target_reversal = target_reversal

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("warmup", self.warmup, high=1, open_low=True, open_high=True)
        check_integer("top", self.top)
        for name in ("mining_scale", "domain_reversal", "target_reversal"):
            check_number(name, getattr(self, name))

    def _n_features(self) -> int:
        shape = self.row_kind_["shape"] if hasattr(self, "row_kind_") else (0,)
        return int(shape[-1])

    def _accepts_nd(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags

    def _check_rows(self, X: Any, name: str, *, reset: bool) -> NDArray[np.floating]:
        shape: tuple[int, ...] = np.shape(as_rows(X, name))
        if self.backbone is None and len(shape) != 3:
            raise ValueError(f"{name} has shape {shape}, but ANNA needs {_advice(len(shape))}")
        return super()._check_rows(X, name, reset=reset)

    def _objective(self, problem: Problem) -> AnnaObjective:
        return AnnaObjective(
            problem.n_classes,
            float(self.t),
            members=self._n_members(),
            warm_up=float(self.warmup),
            top=min(int(self.top), problem.n_classes - 1),
            mining_scale=float(self.mining_scale),
            domain_reversal=float(self.domain_reversal),
            target_reversal=float(self.target_reversal),
        )

    def _fit(self, problem: Problem) -> State:
        if self.backbone is None:  # one body reads all cells, so they share one scaling
            target = problem.target_moments
            problem = replace(
                problem,
                source_moments=over_cells(problem.source_moments),
                target_moments=None if target is None else over_cells(target),
            )
        else:
            rows = ScaledRows(problem.X, NO_SCALING)
            shape = output_shape(cast(Module, template_of(self.backbone)), rows.row_shape)
            if len(shape) != 2:
                raise ValueError(f"the backbone returned {shape[0]} numbers a row, but ANNA needs {_advice(2)}")
        return super()._fit(problem)


def _advice(ndim: int) -> str:
    expected = "a map of cells for every row, (n, cells, features)."
    if ndim == 4:
        return f"{expected} Turn (n, d, h, w) into that by X.reshape(n, d, h * w).transpose(0, 2, 1)."
    return (
        f"{expected} It learns from cells of an image that disagree with the image's label. With one vector a "
        "row there are no cells: use BODA."
    )


def mine_cells(classes: Tensor, y: Tensor, top: int) -> tuple[Tensor, Tensor]:
    """Mark the known and the unknown cells of source maps, both (members, rows, cells).

    ``classes`` are the cells' logits of the known classes, (members, rows, cells, k), and ``y`` the labels of
    their maps. Ties rank in favour of the label. No cell is marked in a map without both kinds, or without more
    known than unknown cells.
    """
    of_label = classes.gather(-1, y[:, :, None, None].expand(*classes.shape[:-1], 1))
    rank = (classes > of_label).sum(dim=-1)
    known, unknown = rank == 0, (rank >= top) & (rank > 0)
    n_known, n_unknown = known.sum(dim=-1, keepdim=True), unknown.sum(dim=-1, keepdim=True)
    informative = (n_unknown > 0) & (n_known > n_unknown)
    return known & informative, unknown & informative


def mining_loss(odds: Tensor, known: Tensor, unknown: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean −log p_u over unknown cells, and the share w of unknown among marked ones, both (members,).

    ``odds`` are the cells' log p_u / (1 − p_u), (members, rows, cells). Both are 0 without marked cells.
    """
    n_known, n_unknown = known.sum(dim=(1, 2)), unknown.sum(dim=(1, 2))
    loss = (softplus(-odds) * unknown).sum(dim=(1, 2)) / n_unknown.clamp(min=1)
    return loss, n_unknown / (n_known + n_unknown).clamp(min=1)


def domain_loss(logits: Tensor, unknown: Tensor, *, is_source: bool) -> Tensor:
    """Return the discriminators' logistic loss, weighted by 1 − p_u and by p_u: one value a member.

    ``logits`` are those of "source" by the known and the unknown discriminator, (members, 2, cells); ``unknown``
    is the cells' p_u, (members, cells). Each discriminator's loss is a mean over all cells.
    """
    weights = torch.stack([1 - unknown, unknown], dim=1)
    return (weights * softplus(-logits if is_source else logits)).mean(dim=-1).sum(dim=-1)


class AnnaObjective(BodaObjective):
    """Source cross entropy in the warm-up; mining, alignment and BODA's boundary after it."""

    adapts = True

    def __init__(
        self,
        n_classes: int,
        t: float,
        *,
        members: int,
        warm_up: float,
        top: int,
        mining_scale: float,
        domain_reversal: float,
        target_reversal: float,
    ) -> None:
        super().__init__(n_classes, t)
        self.head_kinds = {_BODY: "cells"}
        self.warm_up = warm_up
        self._top, self._mining_scale = top, mining_scale
        self._domain_reversal, self._target_reversal = domain_reversal, target_reversal
        self._warm = np.zeros(members, bool)

    def state(self) -> dict[str, Any]:
        """Return which members have finished the warm-up."""
        return {"warm": self._warm}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what ``state()`` returned."""
        self._warm = np.array(state["warm"])

    def terms(self, network: Network, batch: Batch, masks: DropoutMasks) -> Terms:
        """Return one loss for source and target together; the authors take a step on each in turn."""
        heads = network.heads[_BODY]
        assert isinstance(heads, CellHeads)
        if not self._warm.all():
            outputs = heads(network.represent(batch.source(batch.x), _BODY, masks))
            return Terms(class_loss(torch.cat([outputs["classes"], outputs["unknown"]], dim=-1), batch.y))

        h, cells = network.represent_with_cells(batch.x, _BODY, masks)
        target = reverse_gradient(batch.target(h), self._target_reversal)
        outputs = heads(torch.cat([batch.source(h), target], dim=1))
        classes, unknown = outputs["classes"], outputs["unknown"]
        class_term = class_loss(torch.cat([batch.source(classes), batch.source(unknown)], dim=-1), batch.y)
        boundary = adversarial_loss(batch.target(classes), batch.target(unknown), self._t)

        flat = cells.flatten(1, 2)
        of_cells = heads(reverse_gradient(flat, -self._mining_scale))  # scaled, not reversed
        classes = of_cells["classes"].unflatten(1, cells.shape[1:3])
        odds = of_cells["unknown"].unflatten(1, cells.shape[1:3])[..., 0] - classes.logsumexp(dim=-1)
        mined = mine_cells(batch.source(classes), batch.y, self._top)
        mining, share = mining_loss(batch.source(odds), *mined)

        domains = heads.domains(reverse_gradient(flat, self._domain_reversal)).unflatten(2, cells.shape[1:3])
        p_u = odds.sigmoid().detach()
        n_source = batch.y.shape[1]
        alignment = sum(
            domain_loss(domains[:, :, part].flatten(2), p_u[:, part].flatten(1), is_source=is_source)
            for part, is_source in ((slice(n_source), True), (slice(n_source, None), False))
        )
        return Terms((1 - share) * class_term + share * mining + boundary + alignment)

    def adapt(self, validation: Validation, target_rows: Rows, score_target: ScoreTarget) -> bool:
        """Switch the member to the full loss after the warm-up; losses before that do not count as settled."""
        settled = self._warm[validation.member]
        self._warm[validation.member] = validation.step >= self._warm_up_steps(validation)
        return not settled

    def judge_member(self, validation: Validation) -> Judgement:
        """Judge as BODA does, but keep a network of the warm-up only if there is no other."""
        judgement = super().judge_member(validation)
        adapted = validation.step > self._warm_up_steps(validation)
        return judgement if adapted else replace(judgement, key=-math.inf)

    def _warm_up_steps(self, validation: Validation) -> int:
        return math.ceil(self.warm_up * validation.max_steps)
