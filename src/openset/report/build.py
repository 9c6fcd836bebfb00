"""From a result to what its page shows: top rows, groups, a map of the target, scores of source and target."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.pipeline import summary
from openset.report.content import excerpt, label_text, thumbnails, unusual_columns
from openset.report.data import MAX_MAP_ROWS, MAX_TABLE_ROWS, Example, Group, ReportData, TargetMap
from openset.report.formats import percent

MAX_ID = 64
MAX_MAP_ID = 16


def build(result: Any) -> ReportData:
    """What the page shows of a result.

    ``result`` has a fitted ``model``, a ``summary``, the ``scored`` target, ``source`` and ``target`` records,
    ``features_source`` and ``features_target``, and ``source_scores`` of source rows that it was not fitted on.
    """
    scored = result.scored
    scores = np.asarray(scored.novelty_score, np.float64)
    top = top_rows(scores, MAX_TABLE_ROWS)
    return ReportData(
        summary=result.summary,
        source_scores=np.asarray(result.source_scores, np.float64),
        target_scores=scores,
        rows=examples_of(result, top),
        map=lay_out(result.features_target, scored.id, scored.predicted, scores, table=top),
        groups=groups_of(result, result.summary.groups.groups),
    )


def top_rows(scores: NDArray[np.floating], limit: int) -> NDArray[np.intp]:
    """Rows with the highest scores, best first, equal scores in the order of rows; NaN is no score.

    >>> top_rows(np.array([1.0, 3.0, np.nan, 3.0]), 3).tolist()
    [1, 3, 0]
    """
    order = np.argsort(-scores, kind="stable")  # NaN comes last
    return order[: min(limit, int(np.isfinite(scores).sum()))]


def examples_of(result: Any, rows: NDArray[np.intp]) -> tuple[Example, ...]:
    """The given target rows with their scores and content, for the table or for a group."""
    scored = result.scored
    texts, pictures = _content(result, rows)
    p_values = np.asarray(scored.p_value, np.float64)[rows]
    return tuple(
        Example(
            id=excerpt(scored.id[row], MAX_ID),
            score=float(scored.novelty_score[row]),
            p_value=float(p) if np.isfinite(p) else None,
            predicted=label_text(scored.predicted[row]),
            nearest_known=label_text(scored.nearest_known[row]),
            text=text,
            image=picture,
        )
        for row, p, text, picture in zip(rows.tolist(), p_values, texts, pictures, strict=True)
    )


def groups_of(result: Any, found: Sequence[summary.Group]) -> tuple[Group, ...]:
    """The groups of a summary with the content of their examples, the most central one first."""
    rows = [row for group in found for row in group.rows]
    examples = iter(examples_of(result, np.array(rows, np.intp)))  # all at once: pictures share one budget
    return tuple(
        Group(
            name=f"Group {number}" if len(found) > 1 else "All rows called new",
            size=group.size,
            examples=tuple(islice(examples, len(group.rows))),
            sentence=_group_sentence(group, several=len(found) > 1),
        )
        for number, group in enumerate(found, 1)
    )


def _group_sentence(group: summary.Group, *, several: bool) -> str:
    words = f"{percent(group.share.value)} of the target."
    if not several:
        return words
    return f"{words} Found again in random parts of the rows with a mean overlap of {percent(group.stability)}."


def _content(result: Any, rows: NDArray[np.intp]) -> tuple[list[str], list[str]]:
    """A text and a picture for each row, empty where the data has none."""
    target = result.target
    nothing = [""] * len(rows)
    pictures = nothing if target.images is None else thumbnails(target.images, rows.tolist())
    if target.texts is not None:
        return [excerpt(target.texts[row]) for row in rows], pictures
    if target.images is not None:
        return [excerpt(target.images.paths[row]) for row in rows], pictures
    made, source = result.made_target, result.made_source
    if made.values is not None and made.values.ndim == 2 and len(made.names) == made.values.shape[1]:
        lines = unusual_columns(made.values[rows], source.values, made.names)
        return [excerpt(line) for line in lines], nothing
    return nothing, nothing


def lay_out(
    features: Any,
    ids: Sequence[Any],
    predicted: Sequence[Any],
    scores: NDArray[np.floating],
    *,
    table: NDArray[np.intp],
) -> TargetMap | None:
    """Target rows along the two directions in which their features vary most; None where there is no plane.

    ``table`` has the rows that the page's table shows, in its order.
    """
    from sklearn.decomposition import PCA

    labels = np.array([label_text(label) for label in np.asarray(predicted).tolist()])
    rows = stratified_sample(labels, MAX_MAP_ROWS)
    sample = np.asarray(features)[rows]
    sample = sample.reshape(len(rows), -1).astype(np.float64)
    if len(sample) < 3 or sample.shape[1] < 2 or not np.isfinite(sample).all() or not sample.std(axis=0).any():
        return None
    index = {row: number for number, row in enumerate(table.tolist())}
    pca = PCA(2, random_state=0)
    xy = pca.fit_transform(sample)
    return TargetMap(
        xy=xy,
        ids=tuple(excerpt(ids[row], MAX_MAP_ID) for row in rows),
        predicted=tuple(labels[rows].tolist()),
        scores=scores[rows],
        table_rows=tuple(index.get(row, -1) for row in rows.tolist()),
        n_rows=len(labels),
        variance_kept=float(pca.explained_variance_ratio_.sum()),
    )


def stratified_sample(labels: NDArray[Any], limit: int, *, at_least: int = 50) -> NDArray[np.intp]:
    """At most ``limit`` rows, in order: of each label its share, but ``at_least`` so many where it has them.

    >>> labels = np.repeat(["a", "b"], [980, 20])
    >>> np.unique(labels[stratified_sample(labels, 100, at_least=10)], return_counts=True)[1].tolist()
    [90, 10]
    """
    if len(labels) <= limit:
        return np.arange(len(labels))
    _, code, counts = np.unique(labels, return_inverse=True, return_counts=True)
    floor = np.minimum(counts, min(at_least, limit // len(counts)))
    free = limit - int(floor.sum())
    rest = counts - floor
    wanted = np.maximum(limit * counts / len(labels) - floor, 0)
    quota = floor + np.minimum(np.floor(wanted * free / max(wanted.sum(), 1)), rest).astype(np.intp)
    random = np.random.default_rng(0)
    chosen = [random.choice(np.flatnonzero(code == c), n, replace=False) for c, n in enumerate(quota)]
    return np.sort(np.concatenate(chosen))
