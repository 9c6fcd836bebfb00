"""Deep nearest neighbours: the distance of a row from source rows in the hidden layer of a classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from openset._utils.params import check_integer, takes_parameters_of
from openset.learn.batches import ScaledRows, head_outputs
from openset.learn.train import Settings, paper_epoch
from openset.methods._heads import FittedNetwork, HeadOutputs
from openset.methods._presets import PRESETS
from openset.methods.source_only import SourceOnly
from openset.problem import Problem, State
from openset.stats.neighbours import kth_distance

if TYPE_CHECKING:
    from openset.learn.objective import Objective
    from openset.persistence.onnx.graph import Value

_BODY = "shared"


class DeepKNN(SourceOnly):
    """Distance to the k-th nearest source row in the hidden layer of a source-only classifier.

    With z(x) the hidden layer divided by its length, the score of a member is the distance of z(x) to the k-th
    nearest z of the rows that the member trained on. Labels teach the hidden layer which directions do not
    matter, so rows that moved along these look less new than to :class:`~openset.methods.knn.KNN`. It assumes
    that new rows differ in directions that tell known classes apart. Use it where the whole batch may have moved:
    another laboratory, instrument or year. Known classes are the network's. Target rows are not used in training.
    The model stores and searches source rows, so it has no ONNX graph.

    Parameters
    ----------
    n_neighbors : k; at most the number of source rows searched. The authors use 50 and more for tens of thousands
        of rows
    epochs : passes over the source rows in training; ignored if ``max_steps`` is given
    max_steps : largest number of steps; None for ``epochs``

    The other parameters are those of :class:`~openset.methods._network.NetworkClassifier`.

    Attributes
    ----------
    rows_ : for each member, z of the source rows searched, (rows, hidden)

    References
    ----------
    Sun, Ming, Zhu and Li (2022), Out-of-distribution detection with deep nearest neighbors.

    Examples
    --------
    >>> from openset import DeepKNN, make_background_shift
    >>> data = make_background_shift(random_state=0)
    >>> model = DeepKNN(random_state=0).fit(data.X, data.y, data.X_target)
    >>> from openset.stats.metrics import auroc
    >>> bool(auroc(data.is_novel_test, model.novelty_score(data.X_test)) > 0.9)
    True
    """

    rows_: list[NDArray[np.float32]]

    _presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS["deep_knn"]

    @takes_parameters_of(SourceOnly, members=3, max_steps=None)
    def __init__(self, *, n_neighbors: int = 5, epochs: int = 40, **shared: Any) -> None:
        super().__init__(**shared)
        self.n_neighbors = n_neighbors
        self.epochs = epochs

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("n_neighbors", self.n_neighbors)
        check_integer("epochs", self.epochs)

    def _settings(self) -> Settings:
        settings = super()._settings()
        if settings.max_steps is not None:
            return settings
        return replace(settings, max_steps=self.epochs * paper_epoch(self.n_source_, None, self.batch_size))

    def _learned_state(self, problem: Problem, objective: Objective, network: FittedNetwork) -> State:
        layers = [
            head_outputs(network.network, network.source, fold.train, representation=True)[_BODY][member]
            for member, fold in enumerate(problem.split.folds)
        ]
        return {"rows_": [normalize(layer) for layer in layers]}

    def _head_outputs(self, rows: NDArray[np.floating]) -> HeadOutputs:
        return head_outputs(self._network(), ScaledRows(rows, self.scaling_), representation=True)

    def _member_scores(self, outputs: HeadOutputs) -> NDArray[np.float64]:
        return np.stack(
            [
                kth_distance(rows, normalize(layer.astype(np.float64)), self.n_neighbors)
                for rows, layer in zip(self.rows_, outputs[_BODY], strict=True)
            ]
        )

    def _onnx_scores(self, outputs: Mapping[str, Value]) -> Value:
        raise ValueError("DeepKNN searches its source rows, which an ONNX graph does not do: use save().")
