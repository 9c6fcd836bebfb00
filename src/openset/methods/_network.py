"""What all gradient-trained methods share: parameters, the call of the training loop, scoring, pooling.

A method adds an objective (its loss and its judgement of held-out rows) and says which head is its score.
Torch is imported when fitting or scoring starts, not before.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp

from openset._utils.arrays import as_rows
from openset._utils.params import check_choice, check_integer, check_number, takes_parameters_of
from openset._utils.progress import progress_bar
from openset.base import OpenSetClassifier, Problem, doubt
from openset.methods._known_classes import ClassObjective
from openset.methods._presets import WIDE
from openset.methods._raw_rows import (
    RowKind,
    check_augment,
    check_backbone,
    check_checkpoint,
    check_row_kind,
    raw_scaling,
    row_kind,
)
from openset.stats.scaling import Moments, Scaling, check_single_precision, fit_scaling
from openset.stats.thresholds import rank_log_odds

if TYPE_CHECKING:
    from openset.learn.batches import ScaledRows
    from openset.learn.network import Network
    from openset.learn.train import Objective, Settings, Trained

HeadOutputs = dict[str, NDArray[np.float32]]


class Group(NamedTuple):
    """What the networks of a group have in common, and those of another have not."""

    bound: float = math.inf
    """Of their multipliers."""
    dropout: float = 0.0
    logit_multiplier: float = 1.0
    """The sharpness of the recall that they see."""


class NetworkClassifier(OpenSetClassifier):
    """A network with a members axis, trained by the shared loop.

    Parameters
    ----------
    members : networks trained together; their scores are pooled as ranks against held-out source
    hidden : width of the body
    dropout : share of inputs and hidden units dropped in training. "auto": from 256 features on .4 (nnPU .2,
        ANNA .3, SHOT none, CoLOR as it says itself); none below, and none with a backbone
    optimizer, learning_rate, momentum : "adam" or "sgd" (momentum is SGD's)
    l2 : weight of the sum of all squared weights and biases
    clip : largest gradient norm of a member, None for no limit
    batch_size : source rows a step, and as many target rows
    max_steps : steps at most; None for the paper's 200 epochs of the smaller domain
    evaluate_every : steps between evaluation points; None for one epoch of the smaller domain
    tol : stop when loss, defects and multipliers all move by less than this; 0 never stops early. CoLOR's
        "pooled" stops once its choice has not improved for four evaluation points instead
    standardize : "global" (one scale, for embeddings), "feature" (unit variance, for tables), "auto", or None
    backbone : maps rows to vectors (or to maps of cells, which count as their mean) and is trained along, in
        place of ``hidden`` and ``dropout``. A name such as
        "resnet18" or "resnet18(width=16, channels=1)", and a function that makes a torch.nn.Module, start from
        scratch, each member from its own seed; a module starts from its weights, and stays as it is itself
    augment : "crop_flip" moves training images by up to 4 pixels and mirrors half of them; None for as they are
    checkpoint : a folder for the state of this one fit. After a kill the same call of fit goes on from there and
        ends with the same weights. It is emptied when the fit has ended. Needs an integer ``random_state``
    device : where to compute, such as "cpu" or "cuda"
    verbose : show a progress bar

    and those of :class:`~openset.base.OpenSetClassifier`: ``fpr``, ``validation_fraction``, ``novel_label`` and
    ``random_state``.

    With a backbone, rows may have any shape. Those of uint8 stay so in memory and become numbers a batch at a
    time; uint8 rows of three axes are images, channels first or last, given to the backbone channels first
    and standardised by channel (with ``standardize=None``: in [0, 1]). All others reach it as they are.

    Attributes beside those of :class:`~openset.base.OpenSetClassifier`
    ----------
    weights_, architecture_ : the network, as arrays shaped members × in × out
    scaling_ : how features are centred and scaled
    history_ : a record for every member and evaluation point
    stop_reason_ : "converged" (in CoLOR also: the choice stopped improving) or "max_steps"
    n_steps_ : the steps taken
    """

    row_kind_: RowKind

    _chooses_on_held_out = True
    _adapts = True
    """Whether fitting learns from target rows; if not, they take no part in training or scaling."""
    _wide_dropout: ClassVar[float] = 0.4
    """What dropout="auto" stands for from 256 features on; docs/decisions/0003 says how it was found."""

    @takes_parameters_of(OpenSetClassifier)
    def __init__(
        self,
        *,
        members: int = 1,
        hidden: int = 128,
        dropout: float | str = "auto",
        optimizer: str = "adam",
        learning_rate: float = 1e-3,
        momentum: float = 0.9,
        l2: float = 1e-4,
        clip: float | None = 5.0,
        batch_size: int = 200,
        max_steps: int | None = 3000,
        evaluate_every: int | None = 250,
        tol: float = 1e-3,
        standardize: str | None = "auto",
        backbone: Any = None,
        augment: str | None = None,
        checkpoint: str | PathLike[str] | None = None,
        device: str = "cpu",
        verbose: bool = False,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.members = members
        self.hidden = hidden
        self.dropout = dropout
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.l2 = l2
        self.clip = clip
        self.batch_size = batch_size
        self.max_steps = max_steps
        self.evaluate_every = evaluate_every
        self.tol = tol
        self.standardize = standardize
        self.backbone = backbone
        self.augment = augment
        self.checkpoint = checkpoint
        self.device = device
        self.verbose = verbose

    # ------------------------------------------------------------------ what a method brings

    @abstractmethod
    def _objective(self, problem: Problem) -> Objective:
        """The loss and the judgement that training needs when there is a target."""

    @abstractmethod
    def _member_scores(self, outputs: HeadOutputs) -> NDArray[np.floating]:
        """Each member's novelty score, (members, rows), from its head outputs."""

    def _class_logits(self, outputs: HeadOutputs) -> NDArray[np.float64]:
        """Each member's logits of the known classes, (members, rows, k), from its head outputs."""
        return outputs["classes"].astype(np.float64)

    def _after_training(self, problem: Problem, source: ScaledRows, objective: Any) -> None:
        """Keep what scoring needs beside the network: class priors that were found, anchors, and the like."""

    def _value(self, name: str) -> Any:
        """What a parameter stands for."""
        given = getattr(self, name)
        return self._auto().get(name, given) if isinstance(given, str) and given == "auto" else given

    def _auto(self) -> dict[str, Any]:
        """What "auto" stands for, by parameter."""
        wide = self.backbone is None and self._n_features() >= WIDE
        return {"dropout": self._wide_dropout if wide else 0.0}

    def _n_features(self) -> int:
        """Numbers in a row, or in each of its cells; 0 before rows were seen."""
        return getattr(self, "n_features_in_", 0)

    def _groups(self) -> Sequence[Group]:
        """``members`` networks are trained for each."""
        return [Group(dropout=self._value("dropout"))]

    def _settings(self) -> Settings:
        from openset.learn.train import Settings

        given = {f.name: self._value(f.name) for f in fields(Settings) if hasattr(self, f.name)}
        return Settings(**given)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("members", self._value("members"))
        check_integer("hidden", self.hidden)
        for group in self._groups():
            check_number("dropout", group.dropout, high=1, open_high=True)
        check_choice("optimizer", self.optimizer, ("adam", "sgd"))
        check_number("learning_rate", self._value("learning_rate"), open_low=True)
        check_number("momentum", self.momentum, high=1, open_high=True)
        check_number("l2", self.l2)
        check_number("clip", self.clip, open_low=True, optional=True)
        check_integer("batch_size", self.batch_size)
        check_integer("max_steps", self._value("max_steps"), optional=True)
        check_integer("evaluate_every", self._value("evaluate_every"), optional=True)
        check_number("tol", self.tol)
        check_choice("standardize", self.standardize, ("auto", "global", "feature", None))
        if not isinstance(self.device, str):
            raise ValueError(f"device={self.device!r} is not valid: expected a name such as 'cpu' or 'cuda'.")
        check_backbone(self.backbone)
        check_augment(self.augment, self.backbone)
        check_checkpoint(self.checkpoint, self.random_state)

    # ------------------------------------------------------------------ fitting

    def _n_members(self) -> int:
        return int(self._value("members"))

    def _accepts_nd(self) -> bool:
        return self.backbone is not None

    def _fit(self, problem: Problem) -> None:
        from openset.learn.batches import ScaledRows
        from openset.learn.checkpoint import remove_checkpoint
        from openset.learn.train import MemberPlan, Progress, child_seed, train

        unseen = problem.X_target is None or not self._adapts
        self.scaling_ = self._fit_scaling(problem, None if unseen else problem.target_moments)
        check_single_precision(self.scaling_, problem.source_moments, problem.target_moments)
        source = ScaledRows(problem.X, self.scaling_)
        target = None if unseen or problem.X_target is None else ScaledRows(problem.X_target, self.scaling_)
        empty = np.empty(0, np.intp)
        plans = [
            MemberPlan(
                seed=child_seed(problem.seed, 1 + number * len(problem.folds) + member),
                source_train=fold.train,
                source_held=fold.held,
                target_train=problem.target_folds[member].train if target else empty,
                target_held=problem.target_folds[member].held if target else empty,
                multiplier_bound=group.bound,
                dropout=group.dropout,
            )
            for number, group in enumerate(self._groups() if target else self._groups()[:1])
            for member, fold in enumerate(problem.folds)
        ]
        closed_set = self._adapts and target is None
        objective = ClassObjective(problem.n_classes) if closed_set else self._objective(problem)
        with progress_bar(type(self).__name__, enabled=bool(self.verbose)) as update:

            def show(progress: Progress) -> None:
                note = f"loss {progress.metrics['loss']:.4g}" if progress.metrics else ""
                update(progress.step, progress.max_steps, note)

            trained = train(
                objective,
                plans,
                source,
                problem.y,
                target,
                self._settings(),
                backbone=self.backbone,
                on_progress=show,
                checkpoint=self.checkpoint,
                identity=self._identity(),
            )
        self._keep(trained)
        if not closed_set:
            self._after_training(problem, source, objective)
        self.pool_references_: list[NDArray[np.floating]] = []
        if not closed_set and self._ranks_members():
            self.pool_references_ = [
                self._member_scores(self._head_outputs(source, plan.source_held))[member]
                for member, plan in enumerate(plans)
            ]
        if self.checkpoint is not None:
            remove_checkpoint(self.checkpoint)

    def _identity(self) -> str:
        """The method and the parameters that decide the outcome; seed and backbone show in the weights."""
        aside = {
            "backbone",
            "checkpoint",
            "classifier",
            "classifier_input",
            "novel_label",
            "random_state",
            "verbose",
        }
        given = {name: value for name, value in self.get_params(deep=False).items() if name not in aside}
        return f"{type(self).__qualname__} {given}"

    def _fit_scaling(self, problem: Problem, target_moments: Moments | None) -> Scaling:
        if self.backbone is not None:
            return raw_scaling(problem.X, problem.source_moments, target_moments, self.standardize)
        return fit_scaling(problem.source_moments, target_moments, self.standardize)

    def _check_rows(self, X: Any, name: str, *, reset: bool) -> NDArray[Any]:
        if self._accepts_nd():
            kind = row_kind(np.asarray(as_rows(X, name)))
            check_row_kind(name, kind, kind if reset else self.row_kind_, self.augment)
            if reset:
                self.row_kind_ = kind
        return super()._check_rows(X, name, reset=reset)

    def _keep(self, trained: Trained) -> None:
        """Store what training left behind."""
        self.architecture_, self.weights_ = trained.architecture, trained.weights
        self.history_, self.stop_reason_, self.n_steps_ = (
            trained.history,
            trained.stop_reason,
            trained.n_steps,
        )

    def _held_out_target_scores(self, problem: Problem) -> NDArray[np.float64]:
        from openset.learn.batches import ScaledRows

        if not self._adapts:
            return super()._held_out_target_scores(problem)
        assert problem.X_target is not None
        target = ScaledRows(problem.X_target, self.scaling_)
        total, count = np.zeros(len(target)), np.zeros(len(target))
        for member, fold in enumerate(problem.target_folds):
            if len(fold.held) == len(fold.train) and (fold.held == fold.train).all():
                continue  # too few rows to hold any out
            scores = self._member_scores(self._head_outputs(target, fold.held))[member]
            total[fold.held] += self._on_common_scale(member, scores)
            count[fold.held] += 1
        return np.divide(total, count, out=np.full(len(target), np.nan), where=count > 0)

    # ------------------------------------------------------------------ scoring

    def _outputs(self, rows: NDArray[np.floating]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        from openset.learn.batches import ScaledRows

        outputs = self._head_outputs(ScaledRows(rows, self.scaling_))
        logits = self._class_logits(outputs)
        if len(logits) == 1:
            pooled = logits[0]
        else:
            pooled = logsumexp(log_softmax(logits, axis=-1), axis=0) - np.log(len(logits))
        if self._adapts and not self.n_target_:
            return pooled, doubt(pooled)
        scores = self._member_scores(outputs)
        if not np.isfinite(scores).all():
            row = int(np.flatnonzero(~np.isfinite(scores).all(axis=0))[0])
            raise ValueError(f"row {row} has values too large to score: they lie far outside the fitted range.")
        return pooled, np.mean([self._on_common_scale(m, s) for m, s in enumerate(scores)], axis=0)

    def representation(self, X: Any) -> NDArray[np.float32]:
        """What the network makes of every row before its heads, φ(x): (rows, members × hidden).

        Members stand beside each other, and so do bodies where there are two. Each has axes of its own, so that
        their mean would mix unrelated ones; side by side, squared distances add up over them, and what only one
        member sees counts little.
        """
        from openset.learn.batches import ScaledRows, head_outputs

        rows = ScaledRows(self._scoring_rows(X), self.scaling_)
        outputs = head_outputs(self._network(), rows, representation=True)
        return np.concatenate([z for body in self.architecture_.bodies for z in outputs[body]], axis=1)

    def _network(self) -> Network:
        from openset.learn.backbones import template_of
        from openset.learn.network import Network

        return Network.from_arrays(self.architecture_, self.weights_, template_of(self.backbone), self.device)

    def _head_outputs(self, rows: ScaledRows, chosen: NDArray[np.intp] | None = None) -> HeadOutputs:
        from openset.learn.batches import head_outputs

        return head_outputs(self._network(), rows, chosen)

    def _on_common_scale(self, member: int, scores: NDArray[np.floating]) -> NDArray[np.float64]:
        """One member alone is scored by its logit; several by the rank among their held-out source rows."""
        if not self._ranks_members():
            return scores.astype(np.float64)
        return rank_log_odds(self.pool_references_[member], scores)

    def _ranks_members(self) -> bool:
        return self._n_members() > 1
