"""MCM and ZOC: image embeddings against embeddings of class names, from a model such as CLIP.

Nothing is trained; source rows are used for the threshold only, or for class means without class names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize as to_unit_length

from openset._utils.params import check_number, takes_parameters_of
from openset._utils.text import readable
from openset.base import OpenSetClassifier
from openset.methods._presets import PRESETS
from openset.problem import Problem, State
from openset.stats.name_scores import CLIP_SCALE, mcm_score, name_logits, zoc_log_odds

Vectors = NDArray[np.float64]


class NameMatcher(OpenSetClassifier):
    """Base of MCM and ZOC: a row belongs to the class whose name has the largest cosine with it.

    Parameters
    ----------
    class_embeddings : embeddings of the known classes' names, as a mapping from class to vector or as an array
        (k, d) in the order of ``classes_``; None uses the mean direction of each class's source rows instead

    The other parameters are those of :class:`~openset.base.OpenSetClassifier`.

    Attributes
    ----------
    names_ : embeddings of the class names, (k, d), of unit length
    """

    _presets: ClassVar[dict[str, dict[str, Any]]] = PRESETS["mcm"]

    @takes_parameters_of(OpenSetClassifier)
    def __init__(self, *, class_embeddings: Any = None, **shared: Any) -> None:
        super().__init__(**shared)
        self.class_embeddings = class_embeddings

    def _fit(self, problem: Problem) -> State:
        return {"names_": to_unit_length(self._name_vectors(problem))}

    def _name_vectors(self, problem: Problem) -> Vectors:
        given = self.class_embeddings
        if given is None:
            kept = problem.split.folds[0].train
            rows, y = to_unit_length(problem.X[kept].astype(np.float64)), problem.y[kept]
            return np.stack([rows[y == c].mean(axis=0) for c in range(problem.n_classes)])
        if isinstance(given, Mapping):
            missing = [label for label in self.classes_.tolist() if label not in given]
            if missing:
                raise ValueError(
                    f"class_embeddings has no entry for {', '.join(map(repr, missing))}: "
                    "pass one vector for every known class."
                )
            given = [given[label] for label in self.classes_.tolist()]
        return _check_vectors("class_embeddings", given, problem.X.shape[1], len(self.classes_))

    def _outputs(self, rows: NDArray[np.floating]) -> tuple[Vectors, Vectors]:
        return name_logits(rows, self.names_), self._scores(rows.astype(np.float64))

    def _scores(self, rows: Vectors) -> Vectors:
        raise NotImplementedError


class MCM(NameMatcher):
    """Maximum concept matching: a row is novel if it resembles no class name much more than the others.

    With cosines c_k of a row and the k-th class's name, the score is −max_k softmax(c / T)_k. It assumes that a
    new class is about equally unlike all known names. Use it where rows are embeddings of a model that also
    embeds text, such as CLIP, and labels have meaningful names. Without ``class_embeddings`` it compares with
    the mean source row of each class, and works on any embeddings.

    Parameters
    ----------
    temperature : T, 1 in the paper; with CLIP's own .01 the score is the uncertainty of a zero-shot classifier

    The other parameters are those of :class:`NameMatcher`.

    References
    ----------
    Ming, Cai, Gu, Sun, Li and Li (2022), Delving into out-of-distribution detection with vision-language
    representations.

    Examples
    --------
    >>> from openset import MCM
    >>> images, labels = np.repeat(np.eye(3)[:2], 200, axis=0), np.repeat(["cat", "dog"], 200)
    >>> names = {"cat": [1.0, 0.1, 0.0], "dog": [0.0, 1.0, 0.1]}
    >>> model = MCM(class_embeddings=names, fpr=0.05).fit(images, labels, images)
    >>> model.predict([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]).tolist()
    ['cat', 'novel']
    """

    @takes_parameters_of(NameMatcher)
    def __init__(self, *, temperature: float = 1.0, **shared: Any) -> None:
        super().__init__(**shared)
        self.temperature = temperature

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("temperature", self.temperature, open_low=True)

    def _scores(self, rows: Vectors) -> Vectors:
        return mcm_score(rows, self.names_, self.temperature)


class ZOC(NameMatcher):
    """Zero-shot open-set classification: a row is novel if a proposed name fits it better than the known names.

    A caption decoder proposes names for each image. With p = softmax(100·cos) over known and proposed names
    together, the score is log(Σ_proposed p / Σ_known p), a monotone function of the mass on proposed names. It
    assumes that the new class has a name, and uses no target labels. Use it on images with CLIP embeddings. It
    fails where the new class has no everyday name, or has the name of a known class.

    Parameters
    ----------
    candidate_embeddings : embeddings of names proposed for every row, (m, d): for instance a vocabulary
    decoder : folder of a caption decoder, which proposes names for each row (extra ``encoders``)
    text_encoder : folder of the text model that embeds proposed names, and the classes' names if
        ``class_embeddings`` is None (``shopping_dining`` is read as "shopping dining"); needed with ``decoder``
    scale : factor of the cosines, 100 in CLIP

    The other parameters are those of :class:`NameMatcher`.

    References
    ----------
    Esmaeilpour, Liu, Robertson and Shu (2022), Zero-shot out-of-distribution detection based on the pre-trained
    model CLIP.

    Examples
    --------
    >>> from openset import ZOC
    >>> images, labels = np.repeat(np.eye(3)[:2], 200, axis=0), np.repeat(["cat", "dog"], 200)
    >>> names = {"cat": [1.0, 0.1, 0.0], "dog": [0.0, 1.0, 0.1]}
    >>> model = ZOC(class_embeddings=names, candidate_embeddings=[[0.0, 0.1, 1.0]], fpr=0.05)
    >>> model.fit(images, labels, images).predict([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]).tolist()
    ['cat', 'novel']
    """

    @takes_parameters_of(NameMatcher)
    def __init__(
        self,
        *,
        candidate_embeddings: Any = None,
        decoder: str | None = None,
        text_encoder: str | None = None,
        scale: float = CLIP_SCALE,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.candidate_embeddings = candidate_embeddings
        self.decoder = decoder
        self.text_encoder = text_encoder
        self.scale = scale

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # a table is not enough: names are needed too
        return tags

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("scale", self.scale, open_low=True)
        if (self.candidate_embeddings is None) == (self.decoder is None):
            given = "neither" if self.decoder is None else "both"
            raise ValueError(
                f"ZOC got {given} of candidate_embeddings and decoder: pass embeddings of names other than the "
                "known ones, or the folder of a caption decoder. Without names, use MCM."
            )
        if self.decoder is not None and self.text_encoder is None:
            raise ValueError("decoder proposes names, and text_encoder must embed them: pass its folder too.")

    def _fit(self, problem: Problem) -> State:
        state = super()._fit(problem)
        if self.candidate_embeddings is None:
            return state
        candidates = _check_vectors("candidate_embeddings", self.candidate_embeddings, problem.X.shape[1])
        return {**state, "candidates_": to_unit_length(candidates)}

    def _name_vectors(self, problem: Problem) -> Vectors:
        if self.class_embeddings is None and self.text_encoder is not None:
            from openset.features.captions import embed_names

            vectors = embed_names(self.text_encoder, self._readable_classes())
            return _check_vectors("text_encoder", vectors, problem.X.shape[1])
        return super()._name_vectors(problem)

    def _scores(self, rows: Vectors) -> Vectors:
        odds = zoc_log_odds(rows, self.names_, self._candidates(rows), self.scale)
        # a row without proposed names gets the score of one proposal that is opposite to all known names
        return np.maximum(odds, -2 * self.scale - np.log(len(self.names_)))

    def _candidates(self, rows: Vectors) -> Any:
        if self.decoder is None:
            return self.candidates_
        from openset.features.captions import propose_embeddings

        known = self._readable_classes()
        return propose_embeddings(self.decoder, str(self.text_encoder), rows, known)

    def _readable_classes(self) -> list[str]:
        return [readable(str(label)) for label in self.classes_.tolist()]


def _check_vectors(name: str, given: Any, width: int, count: int | None = None) -> Vectors:
    """Return embeddings as an array (count, width); raise unless they are finite and not zero."""
    try:
        vectors = np.array(given, dtype=np.float64, order="C")  # rounding of products depends on the layout
    except (TypeError, ValueError):
        raise ValueError(f"{name} is not an array of numbers, (names, {width}).") from None
    wanted = f"({'names' if count is None else count}, {width})"
    if vectors.ndim != 2 or vectors.shape[1] != width or len(vectors) != (count or len(vectors)):
        raise ValueError(
            f"{name} has shape {vectors.shape}: expected {wanted}, from the model that made the {width} features."
        )
    if not len(vectors) or not np.isfinite(vectors).all() or (vectors == 0).all(axis=1).any():
        raise ValueError(f"{name} is empty, or has a vector that is zero or not finite.")
    return vectors
