"""Base of all methods that train a network: parameters, the training call, scoring, pooling of members.

A method adds an objective (its loss, and its judgement of validation rows) and its novelty score, in numpy and as
ONNX nodes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp, softmax

from openset._utils.arrays import as_rows
from openset._utils.params import check_choice, check_integer, check_number, takes_parameters_of
from openset._utils.progress import progress_bar
from openset.base import OpenSetClassifier
from openset.learn.backbone_schedule import split_learning_rate
from openset.learn.backbones import template_of
from openset.learn.batches import ScaledRows, head_outputs
from openset.learn.checkpoint import remove_checkpoint
from openset.learn.groups import train_anywhere
from openset.learn.network import Network, onnx_outputs
from openset.learn.objective import Objective
from openset.learn.seeds import child_seed
from openset.learn.train import MemberPlan, Progress, Settings, Trained
from openset.methods._heads import FitHeads, FittedNetwork, HeadOutputs, References, RowOutputs
from openset.methods._known_classes import ClassObjective
from openset.methods._presets import WIDE, Group
from openset.methods._raw_rows import (
    RowKind,
    check_augment,
    check_backbone,
    check_checkpoint,
    check_row_kind,
    raw_scaling,
    row_kind,
)
from openset.problem import FitScores, Floats, Problem, State, ValidationClasses, unseen_classes
from openset.stats.folds import Fold
from openset.stats.scaling import Moments, Scaling, check_single_precision, fit_scaling
from openset.stats.scores import msp_score, rank_log_odds

if TYPE_CHECKING:
    from openset.persistence.onnx.graph import Value


class NetworkBase(OpenSetClassifier):
    """One or more networks, the members, trained together by one loop.

    Parameters
    ----------
    members : number of networks; their scores are pooled as ranks among source validation rows
    hidden : width of the body
    learning_rate : of the weights; for a pretrained backbone a mapping of "heads", and any of "freeze" (lowest
        layers that stay as they are, -1: all), "rate" (of the highest layer, as a factor), "decay" (the factor
        from a layer to the next lower one) and "warmup" (steps in which rates rise)
    l2 : weight of the sum of all squared weights and biases
    clip : largest gradient norm of a member; None for no limit
    batch_size : source rows in a step; a step has as many target rows
    max_steps : largest number of steps; None for the paper's 200 epochs of the smaller domain
    evaluate_every : steps between evaluation points; None for one epoch of the smaller domain
    standardize : "global" (one scale, for embeddings), "feature" (unit variance, for tables), "auto", or None
    backbone : a network that maps a row to a vector, or to a map of cells, whose mean is used. It is trained too,
        and replaces ``hidden`` and dropout. A name such as "resnet18" or "resnet18(width=16, channels=1)", or a
        function that returns a torch.nn.Module, starts from scratch, each member from its own seed. A module
        starts from its weights; the module that you pass is never changed
    augment : "crop_flip" moves training images by up to 4 pixels and mirrors half of them; None for no change
    checkpoint : folder for the state of this fit. If the fit is killed, the same call of ``fit`` resumes it and
        ends with the same weights. The state is deleted when the fit ends. Needs an integer ``random_state``
    device : where to compute, such as "cpu" or "cuda"
    verbose : show a progress bar

    The other parameters are those of :class:`~openset.base.OpenSetClassifier`: ``fpr``, ``validation_fraction``,
    ``novel_label`` and ``random_state``.

    With a backbone, rows may have any shape. Rows of uint8 stay so in memory and are converted batch by batch.
    Rows of uint8 with three axes are images, channels first or last; the backbone gets them channels first and
    standardised by channel (in [0, 1] with ``standardize=None``). Other rows are passed to it unchanged.

    The attributes are those of :class:`~openset.base.OpenSetClassifier` and:

    Attributes
    ----------
    weights_, architecture_ : the network, as arrays shaped members × in × out
    scaling_ : how features are centred and scaled
    history_ : one record for every member and evaluation point
    stop_reason_ : "converged" (for CoLOR: the choice stopped improving) or "max_steps"
    n_steps_ : number of steps taken
    """

    row_kind_: RowKind
    scaling_: Scaling
    pool_references_: References

    _chooses_on_validation = True
    _adapts = True
    """Whether target rows are used in training and scaling."""

    @takes_parameters_of(OpenSetClassifier)
    def __init__(
        self,
        *,
        members: int | str = 1,
        hidden: int = 128,
        learning_rate: float | Mapping[str, float] = 1e-3,
        l2: float = 1e-4,
        clip: float | None = 5.0,
        batch_size: int = 200,
        max_steps: int | None = 3000,
        evaluate_every: int | None = 250,
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
        self.learning_rate = learning_rate
        self.l2 = l2
        self.clip = clip
        self.batch_size = batch_size
        self.max_steps = max_steps
        self.evaluate_every = evaluate_every
        self.standardize = standardize
        self.backbone = backbone
        self.augment = augment
        self.checkpoint = checkpoint
        self.device = device
        self.verbose = verbose

    # ------------------------------------------------------------------ what a method defines

    @abstractmethod
    def _objective(self, problem: Problem) -> Objective:
        """Return the loss and the judgement for training with a target."""

    @abstractmethod
    def _member_scores(self, outputs: HeadOutputs) -> NDArray[np.floating]:
        """Return each member's novelty score, (members, rows), from head outputs."""

    def _onnx_scores(self, outputs: Mapping[str, Value]) -> Value:
        """Return the same as ONNX nodes; defined in the class that defines ``_member_scores``."""
        raise ValueError(f"{type(self).__name__} has no novelty score in ONNX: define _onnx_scores.")

    def _class_logits(self, outputs: HeadOutputs) -> Floats:
        """Return each member's logits of the known classes, (members, rows, k), from head outputs."""
        return outputs["classes"].astype(np.float64)

    def _onnx_class_logits(self, outputs: Mapping[str, Value]) -> Value:
        """The same as ONNX nodes."""
        return outputs["classes"]

    def _trained_state(self, problem: Problem, trained: Trained) -> State:
        """Return fitted attributes from the result of training; CoLOR keeps the best group of members only."""
        return {
            "architecture_": trained.architecture,
            "weights_": trained.weights,
            "history_": trained.history,
            "stop_reason_": trained.stop_reason,
            "n_steps_": trained.n_steps,
        }

    def _learned_state(self, problem: Problem, objective: Any, network: FittedNetwork) -> State:
        """Return other fitted attributes that scoring needs: class priors, anchors, and the like."""
        return {}

    def _groups(self) -> Sequence[Group]:
        """Return the settings of each group; a group has ``members`` networks."""
        return [Group()]

    def _value(self, name: str) -> Any:
        """Return a parameter with "auto" resolved."""
        return getattr(self, "resolved_parameters_", {}).get(name, getattr(self, name))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_members()
        check_integer("hidden", self.hidden)
        check_number("l2", self.l2)
        check_number("clip", self.clip, open_low=True, optional=True)
        check_integer("batch_size", self.batch_size)
        check_integer("max_steps", self.max_steps, optional=True)
        check_integer("evaluate_every", self.evaluate_every, optional=True)
        check_choice("standardize", self.standardize, ("auto", "global", "feature", None))
        if not isinstance(self.device, str):
            raise ValueError(f"device={self.device!r} is not valid: expected a name such as 'cpu' or 'cuda'.")
        check_backbone(self.backbone, self.learning_rate)
        check_augment(self.augment, self.backbone)
        check_checkpoint(self.checkpoint, self.random_state)

    def _check_members(self) -> None:
        check_integer("members", self.members)

    # ------------------------------------------------------------------ fitting

    def _n_members(self) -> int:
        return int(self._value("members"))

    def _accepts_nd(self) -> bool:
        return self.backbone is not None

    def _fit(self, problem: Problem) -> State:
        unseen = problem.X_target is None or not self._adapts
        scaling = self._fit_scaling(problem, None if unseen else problem.target_moments)
        check_single_precision(scaling, problem.source_moments, problem.target_moments)
        source = ScaledRows(problem.X, scaling)
        target = None if unseen else ScaledRows(problem.target, scaling)
        closed_set = self._adapts and target is None
        objective = ClassObjective(problem.n_classes) if closed_set else self._objective(problem)
        trained = self._train(objective, self._plans(problem, has_target=not unseen), source, problem.y, target)
        state = {"scaling_": scaling, "pool_references_": [], **self._trained_state(problem, trained)}
        if not closed_set:
            network = FittedNetwork(self._network(state["architecture_"], state["weights_"]), source)
            state |= self._learned_state(problem, objective, network)
        if self.checkpoint is not None:
            remove_checkpoint(self.checkpoint)
        return state

    def _train(
        self,
        objective: Objective,
        plans: Sequence[MemberPlan],
        source: ScaledRows,
        y: NDArray[np.intp],
        target: ScaledRows | None,
    ) -> Trained:
        with progress_bar(type(self).__name__, enabled=bool(self.verbose)) as update:

            def show(progress: Progress) -> None:
                note = f"loss {progress.metrics['loss']:.4g}" if progress.metrics else ""
                update(progress.step, progress.max_steps, note)

            return train_anywhere(
                objective,
                plans,
                source,
                y,
                target,
                self._settings(),
                backbone=self.backbone,
                on_progress=show,
                checkpoint=self.checkpoint,
                identity=self._identity(),
            )

    def _plans(self, problem: Problem, *, has_target: bool) -> list[MemberPlan]:
        """A plan for each member of each group; without a target one group is enough."""
        split, empty = problem.split, np.empty(0, np.intp)
        return [
            MemberPlan(
                seed=child_seed(problem.seed, 1 + number * len(split.folds) + member),
                source_train=fold.train,
                source_validation=fold.validation,
                target_train=split.target_folds[member].train if has_target else empty,
                target_validation=split.target_folds[member].validation if has_target else empty,
                multiplier_bound=group.bound,
                dropout=group.dropout,
            )
            for number, group in enumerate(self._groups() if has_target else self._groups()[:1])
            for member, fold in enumerate(split.folds)
        ]

    def _settings(self) -> Settings:
        given = {f.name: self._value(f.name) for f in fields(Settings) if hasattr(self, f.name)}
        rate, schedule = split_learning_rate(self.learning_rate)
        return Settings(**{**given, "learning_rate": rate, "backbone_schedule": schedule})

    def _identity(self) -> str:
        """Return the method and the parameters that decide the outcome; seed and backbone decide the weights."""
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

    # ------------------------------------------------------------------ scoring the rows of a fit, once

    def _score_fit(self, problem: Problem) -> FitScores:
        split, is_closed = problem.split, problem.X_target is None
        if is_closed and (self._adapts or not self._ranks_members()):
            return FitScores(split)
        folds = split.folds
        wanted = np.unique(np.concatenate([split.calibration, *(fold.validation for fold in folds)]))
        source = RowOutputs(wanted, self._head_outputs(problem.X[wanted]))
        references: References = []
        if self._ranks_members():
            references = [
                self._member_scores(source.of(fold.validation))[member] for member, fold in enumerate(folds)
            ]
        if is_closed:
            return FitScores(split, {"pool_references_": references})
        target = self._head_outputs(problem.target)
        logits, score = self._pooled(target, references)
        heads = FitHeads(source, target)
        return FitScores(
            split,
            state={"pool_references_": references},
            target_logits=logits,
            target_score=score,
            target_validation_score=self._target_validation_score(split.target_folds, target, score, references),
            calibration_score=self._calibration_score(problem, heads, references),
            validation_classes=self._validation_classes(problem, heads, logits, references),
            heads=heads,
        )

    def _calibration_score(self, problem: Problem, heads: FitHeads, references: References) -> Floats:
        """Return scores of the source rows that set the threshold."""
        return self._pooled(heads.source.of(problem.split.calibration), references)[1]

    def _target_validation_score(
        self, folds: Sequence[Fold], target: HeadOutputs, score: Floats, references: References
    ) -> Floats:
        """Return the mean score over the members that did not train on a row; NaN where all did."""
        if not self._adapts:
            return score
        total, count = np.zeros(len(score)), np.zeros(len(score))
        by_member = self._member_scores(target)
        for member, fold in enumerate(folds):
            if _all_train(fold):
                continue  # too few rows for validation
            total[fold.validation] += self._on_common_scale(
                member, by_member[member, fold.validation], references
            )
            count[fold.validation] += 1
        return np.divide(total, count, out=np.full(len(score), np.nan), where=count > 0)

    def _validation_classes(
        self, problem: Problem, heads: FitHeads, target_logits: Floats, references: References
    ) -> ValidationClasses | None:
        """Return class probabilities by the whole model or, where every row is a validation row, by one member.

        That member then scores target rows too: a threshold on confidence means the same in source and target
        only if single members score both.
        """
        split, source = problem.split, heads.source
        if split.calibration_is_unseen:
            return unseen_classes(
                problem, self._pooled(source.of(split.calibration), references)[0], target_logits
            )
        folds, target_folds = split.folds, split.target_folds
        if any(np.isin(fold.validation, fold.train).any() for fold in (*folds, *target_folds)):
            return None
        of_source = [self._class_logits(source.of(fold.validation))[m] for m, fold in enumerate(folds)]
        of_target = self._class_logits(heads.target)
        return ValidationClasses(
            np.concatenate([softmax(logits, axis=1) for logits in of_source]),
            np.concatenate([problem.y[fold.validation] for fold in folds]),
            np.concatenate(
                [softmax(of_target[m, fold.validation], axis=1) for m, fold in enumerate(target_folds)]
            ),
            np.concatenate([fold.validation for fold in target_folds]),
        )

    # ------------------------------------------------------------------ scoring

    def _outputs(self, rows: NDArray[np.floating]) -> tuple[Floats, Floats]:
        return self._pooled(self._head_outputs(rows), self.pool_references_)

    def _pooled(self, outputs: HeadOutputs, references: References) -> tuple[Floats, Floats]:
        """Return class logits and scores of all members together."""
        logits = self._class_logits(outputs)
        if len(logits) == 1:
            pooled = logits[0]
        else:
            pooled = logsumexp(log_softmax(logits, axis=-1), axis=0) - np.log(len(logits))
        if self._adapts and not self.n_target_:
            return pooled, msp_score(pooled)
        scores = self._member_scores(outputs)
        if not np.isfinite(scores).all():
            row = int(np.flatnonzero(~np.isfinite(scores).all(axis=0))[0])
            raise ValueError(f"row {row} has values too large to score: they lie far outside the fitted range.")
        return pooled, np.mean([self._on_common_scale(m, s, references) for m, s in enumerate(scores)], axis=0)

    def representation(self, X: Any) -> NDArray[np.float32]:
        """Return the body's output φ(x) for every row, (rows, members × hidden), which is the heads' input.

        Outputs of members, and of bodies where there are two, are concatenated. Each has its own axes, so a mean
        over members would mix unrelated axes. Concatenated, their squared distances add up.
        """
        rows = ScaledRows(self._aligned(self._scoring_rows(X)), self.scaling_)
        outputs = head_outputs(self._network(), rows, representation=True)
        return np.concatenate([z for body in self.architecture_.bodies for z in outputs[body]], axis=1)

    def _aligned(self, rows: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return target rows as the network takes them: unchanged, unless a method aligns them with source."""
        return rows

    def _network(self, architecture: Any = None, weights: Any = None) -> Network:
        """Return the fitted network, or one of the given architecture and weights."""
        return Network.from_arrays(
            self.architecture_ if architecture is None else architecture,
            self.weights_ if weights is None else weights,
            template_of(self.backbone),
            self.device,
        )

    def _onnx_score(self, x: Value, pooled: Value) -> Value:
        """Return the score of a model from its rows and the pooled score of its members, as ONNX nodes."""
        return pooled

    def _onnx_aligned(self, x: Value) -> Value:
        """Return scaled rows as ``_aligned`` does it, as ONNX nodes."""
        return x

    def _onnx_heads(self, x: Value) -> dict[str, Value]:
        """Return outputs of every head for scaled rows, as ONNX nodes."""
        return onnx_outputs(x, self.architecture_, self.weights_)

    def _head_outputs(self, rows: NDArray[np.floating]) -> HeadOutputs:
        return head_outputs(self._network(), ScaledRows(rows, self.scaling_))

    def _on_common_scale(self, member: int, scores: NDArray[np.floating], references: References) -> Floats:
        """Return a single member's logit, or several members' ranks among their source validation rows."""
        return rank_log_odds(references[member], scores) if references else scores.astype(np.float64)

    def _ranks_members(self) -> bool:
        return self._n_members() > 1


class NetworkClassifier(NetworkBase):
    """Networks with one dropout rate and a choice of optimiser: the base of all methods except CoLOR.

    Parameters
    ----------
    dropout : share of inputs and hidden units dropped in training. "auto" is .4 from 256 features on (nnPU .2,
        ANNA .3, SHOT 0), and 0 below that or with a backbone
    optimizer, momentum : "adam" or "sgd"; momentum is for SGD
    tol : stop when loss, violations and multipliers all change by less than this; 0 never stops early

    The other parameters and the attributes are those of :class:`NetworkBase`.
    """

    _wide_dropout: ClassVar[float] = 0.4
    """The value of dropout="auto" from 256 features on; see docs/decisions/0003."""

    @takes_parameters_of(NetworkBase)
    def __init__(
        self,
        *,
        dropout: float | str = "auto",
        optimizer: str = "adam",
        momentum: float = 0.9,
        tol: float = 1e-3,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.dropout = dropout
        self.optimizer = optimizer
        self.momentum = momentum
        self.tol = tol

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.dropout != "auto":
            check_number("dropout", self.dropout, high=1, open_high=True)
        check_choice("optimizer", self.optimizer, ("adam", "sgd"))
        check_number("momentum", self.momentum, high=1, open_high=True)
        check_number("tol", self.tol)

    def _resolve(self, n_features: int) -> dict[str, Any]:
        if self.dropout != "auto":
            return super()._resolve(n_features)
        wide = self.backbone is None and n_features >= WIDE
        return {**super()._resolve(n_features), "dropout": self._wide_dropout if wide else 0.0}

    def _groups(self) -> Sequence[Group]:
        return [Group(dropout=self._value("dropout"))]


def _all_train(fold: Fold) -> bool:
    return len(fold.validation) == len(fold.train) and bool((fold.validation == fold.train).all())
