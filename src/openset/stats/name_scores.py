"""Zero-shot novelty scores: image embeddings compared with embeddings of class names, as from CLIP.

Nothing here is trained. ``images`` (n, d) and ``names`` (k, d) come from the image and the text encoder of one
model. Vectors are scaled to unit length, so their products are cosines. A higher score is more novel.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from openset._utils.params import check_number
from openset.stats.scores import msp_score

CLIP_SCALE = 100.0
"""CLIP multiplies cosines by this before its softmax."""


def name_logits(images: ArrayLike, names: ArrayLike, scale: float = CLIP_SCALE) -> NDArray[np.float64]:
    """Scaled cosines (n, k) of images and class names; the largest one is the predicted class.

    An image of length zero has cosine 0 with every name.

    >>> name_logits([[1.0, 0.0]], [[2.0, 0.0], [0.0, 1.0]])
    array([[100.,   0.]])
    """
    check_number("scale", scale, open_low=True)
    left, right = _unit("images", images, allow_zero=True), _unit("names", names)
    if left.shape[1] != right.shape[1]:
        raise ValueError(
            f"images have {left.shape[1]} dimensions but names {right.shape[1]}: embed both with one model."
        )
    return scale * (left @ right.T)


def mcm_score(images: ArrayLike, names: ArrayLike, temperature: float = 1.0) -> NDArray[np.float64]:
    """Maximum concept matching: −max softmax(cos / T) over the names of known classes.

    Assumes that a new class is about equally unlike all known names. T is 1 in the paper; with CLIP's own 0.01 it
    is the MSP of a confident classifier. Ming et al. (2022), Delving into out-of-distribution detection with
    vision-language representations.

    >>> mcm_score([[1, 0], [1, 1]], [[1, 0], [0, 1]]).round(4)
    array([-0.7311, -0.5   ])
    """
    return msp_score(name_logits(images, names, scale=1.0), temperature) - 1


def zoc_log_odds(
    images: ArrayLike,
    names: ArrayLike,
    candidates: Sequence[ArrayLike] | NDArray[np.floating],
    scale: float = CLIP_SCALE,
) -> NDArray[np.float64]:
    """Zero-shot open-set classification: log-odds of candidate names against the names of the known classes.

    ``candidates[i]`` (mᵢ, d) has embeddings of names that a caption decoder proposes for image i, without the
    known names. An array (m, d) proposes the same names for all images. p = softmax(scale·cos) over known and
    candidate names together, and the paper's score is Σ p over the candidates. Its log-odds also order rows whose
    Σ p rounds to 0 or 1; they are −∞ for an image without candidates. Assumes that the decoder can name the new
    class. More candidates get more of the probability, so all images should have similar numbers of them.
    Esmaeilpour et al. (2022), Zero-shot out-of-distribution detection based on the pre-trained model CLIP.

    >>> zoc_log_odds([[1, 0], [0, 1]], [[1.0, 0.0]], np.array([[0.0, 1.0]]))
    array([-100.,  100.])
    """
    known = logsumexp(name_logits(images, names, scale), axis=1)
    if isinstance(candidates, np.ndarray) and candidates.ndim == 2:
        return logsumexp(name_logits(images, candidates, scale), axis=1) - known
    if len(candidates) != len(known):
        raise ValueError(
            f"there are {len(known)} images but candidates for {len(candidates)}: pass one array for each image."
        )
    rows = np.asarray(images, dtype=np.float64)
    odds = np.full(len(known), -np.inf)
    for i, proposed in enumerate(candidates):
        if len(np.asarray(proposed)):
            odds[i] = logsumexp(name_logits(rows[i : i + 1], proposed, scale)) - known[i]
    return odds


def _unit(name: str, vectors: ArrayLike, allow_zero: bool = False) -> NDArray[np.float64]:
    """Rows scaled to unit length."""
    rows = np.asarray(vectors, dtype=np.float64)
    if rows.ndim != 2 or not len(rows):
        raise ValueError(f"{name} has shape {rows.shape}: expected (rows, dimensions) with at least one row.")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not (np.isfinite(lengths).all() and (allow_zero or (lengths > 0).all())):
        raise ValueError(f"{name} has a row that is zero or not finite: its direction is not defined.")
    return rows / np.where(lengths > 0, lengths, 1.0)
