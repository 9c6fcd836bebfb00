"""Base of both CoLORs: the constrained heads, the table of heads, and the score of the chosen head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.params import check_number, check_numbers, takes_parameters_of
from openset.learn.ledger import Choice
from openset.methods._heads import HeadOutputs
from openset.methods._known_classifier import WithKnownClassifier
from openset.methods.discriminator import bodies_for
from openset.problem import Problem

if TYPE_CHECKING:
    from openset.persistence.onnx.graph import Value


class ColorBase(WithKnownClassifier):
    """One novelty head for each candidate recall, trained under a recall constraint on the target.

    Parameters
    ----------
    grid : candidate recalls α̂, one for each novelty head
    max_density_ratio : B, how many times as common a known kind of row may be in target as in source
    """

    heads_: NDArray[Any]
    selected_: Any

    _calibrates = False  # the paper uses 0; CoLOR corrects the threshold for how much was compared

    @takes_parameters_of(WithKnownClassifier)
    def __init__(
        self,
        *,
        grid: Sequence[float],
        max_density_ratio: Any = 12.0,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.grid = grid
        self.max_density_ratio = max_density_ratio

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_numbers("grid", self.grid, "candidate recalls such as (0.02, 0.05, 0.1)", high=1)
        self._check_ratio()

    def _check_ratio(self) -> None:
        check_number("max_density_ratio", self.max_density_ratio, low=1)

    def _constrained(self, problem: Problem, *, joint: bool = True) -> dict[str, Any]:
        """What the objectives of both rules need; ``joint`` is one body for classes and novelty heads."""
        return {
            "bodies": bodies_for(problem.n_classes, len(self.grid), joint),
            "grid": np.asarray(self.grid, dtype=np.float64),
            "groups": self._groups(),
            "members": self._n_members(),
            "fpr": self.fpr,
        }

    def head_scores(self, X: Any) -> NDArray[np.float32]:
        """Return the logits of every novelty head, (members, rows, heads), in the order of the grid.

        The selected head is what ``novelty_score`` starts from. The others show the scores of another choice.
        """
        rows = self._scoring_rows(X)
        if not self.n_target_:
            raise ValueError("fitted without X_target, so there are no novelty heads: pass X_target to fit.")
        return self._head_outputs(self._aligned(rows))["novelty"]

    def head_records(self) -> list[dict[str, Any]]:
        """``heads_`` as plain records, each marked whether it was ``selected``; none without a target."""
        if not self.n_target_:
            return []
        names = self.heads_.dtype.names or ()
        records = [dict(zip(names, row, strict=True)) for row in self.heads_.tolist()]
        choice = ("member", "step", "head")
        chosen = {tuple(row) for row in np.atleast_1d(self.selected_)[list(choice)].tolist()}
        return [{**record, "selected": tuple(record[name] for name in choice) in chosen} for record in records]

    def _member_scores(self, outputs: HeadOutputs) -> NDArray[np.floating]:
        chosen = np.broadcast_to(self.selected_["head"], len(outputs["novelty"]))
        return np.stack([novelty[:, head] for novelty, head in zip(outputs["novelty"], chosen, strict=True)])

    def _onnx_scores(self, outputs: Mapping[str, Value]) -> Value:
        novelty, graph = outputs["novelty"], outputs["novelty"].graph
        chosen = np.broadcast_to(self.selected_["head"], self.architecture_.members)
        members = [novelty.take(np.array([m])).take(int(head), axis=2) for m, head in enumerate(chosen)]
        return members[0] if len(members) == 1 else graph.apply("Concat", *members, axis=0)


def row_of(heads: NDArray[Any], member: int, choice: Choice) -> int:
    """Return the index of a choice in the table of heads."""
    found = (heads["member"] == member) & (heads["step"] == choice.step) & (heads["head"] == choice.head)
    return int(found.argmax())
