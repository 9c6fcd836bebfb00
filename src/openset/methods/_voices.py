"""The score of CoLOR: heads and distances, each heard as far as the batch itself supports it.

Heads find a new class by density: they are the best voice on a batch whose known kinds only changed in number,
and the worst on one that moved as a whole. Distances to source are the opposite. Which to trust is read off the
target without labels:

- *coherence*: if the rows far from source form a group (and the far rows of source do not), distances have found
  something. If they are the rim of everything, they have not;
- *mixing*: if the rows of both domains do not mix even at the finest scale, each domain has kinds of its own, and
  density ratios find those;
- *agreement*: if the highest rows of both are the same, or those of the heads all lie far from source (as they do
  if the new class is larger than the rows looked at), both are heard;
- *growth*: if known kinds are seen to have become several times as common, that alone can make neighbourhoods
  unmixed, and kinds that are rare in source far and coherent: neither then speaks against the heads. If they
  grew more than about five times, a far group that the heads do not see must be more coherent to be heard;
- *moved*: if most target rows lie where there is hardly any source, and alignment did not undo it, density ratios
  say nothing about single rows.

Both scores are smoothed over neighbouring target rows: a new class is a group, so a row is more likely new if the
rows around it are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from openset.methods._distances import (
    COMPONENTS,
    Distance,
    Heard,
    HiddenDistance,
    Space,
    Views,
    listen,
    thinned,
)
from openset.problem import Floats, Problem, Rows
from openset.stats.coherence import containment, excess_coherence, top_overlap
from openset.stats.growth import largest_growth
from openset.stats.mixing import mixing, other_rows
from openset.stats.neighbours import nearest_rows
from openset.stats.scaling import Scaling
from openset.stats.tail_ranks import TailRank, fit_tail_rank

NEIGHBOURS = (10, 20)
"""Target rows that a score is smoothed over, with 1500 target rows or fewer and with 3000 or more."""
_ROWS_A_NEIGHBOUR = 150
FEWEST_ROWS = 40
"""Rows of each domain that voices need."""
_FLOOR = 0.02
"""Smallest coherence that a voice counts with."""
COHERENT = (0.16, 0.21)
"""Excess coherence from which distances begin to be heard, and from which they lead."""
MIXED = (0.80, 0.86)
"""Mixing of the domains up to which distances lead, and from which on it says nothing against the heads."""
_GROWN = (2.5, 4.0)
"""Growth of known kinds from which on it explains low mixing, in part and in full."""
_MUCH_GROWN, _MORE_COHERENT = (4.5, 5.5), 0.14
"""Growth from which on far groups that the heads do not see need more coherence, and how much more at most."""
_AGREEING = (0.50, 0.60)
"""Overlap of highest rows from which heads are heard beside leading distances, and from which fully."""
_CONTAINED = (0.93, 1.0)
"""Share of the heads' highest rows far from source from which they are heard, and from which as distances are."""
_HEADS_CONTAINED, _HEADS_BESIDE = 1.0, 2.0
"""Weight of the heads beside leading distances: if their rows lie far from source, and if both agree."""


def has_voices(problem: Problem) -> bool:
    """Whether there are vectors, and enough of them, to measure distances and to smooth over."""
    return problem.X.ndim == 2 and min(len(problem.X), len(problem.target)) >= FEWEST_ROWS


@dataclass(frozen=True)
class Trust:
    """How far heads and distances are heard, and why."""

    heads: float
    distances: float
    coherence: float
    agreement: float
    containment: float = 0.0
    mixing: float = 1.0
    growth: float = 1.0

    @property
    def distances_lead(self) -> bool:
        """Whether the score follows distances more than heads."""
        return self.distances > self.heads

    @property
    def coherence_needed(self) -> float:
        """The coherence from which on distances lead in a batch that mixes."""
        return COHERENT[1] + _more_coherent(self.growth, self.agreement)

    def reason(self, *, moved: bool = False) -> str:
        """Return why the score follows heads or distances, as the end of a sentence."""
        by_group, by_mixing = _against_heads(self.coherence, self.agreement, self.mixing, self.growth)
        group = f"({self.coherence:.2f}; it does from {self.coherence_needed:.2g} on)"
        if moved:
            return "because the whole batch moved"
        if self.distances_lead and by_group >= by_mixing:
            return f"because the rows far from source form a group {group}"
        if self.distances_lead:
            return "because source and target rows do not mix"
        if max(by_group, by_mixing) > 0.5:
            return "because distances to source agree with them"
        if self.coherence >= COHERENT[1] or not self.is_mixed:
            return (
                f"because known kinds became up to {self.growth:.1f} times as common: that alone can put known "
                "rows far from source"
            )
        return f"because the rows far from source do not form a group {group}"

    @property
    def is_mixed(self) -> bool:
        """Whether the domains mix at the finest scale, so that density ratios tell of kinds, not domains."""
        return self.mixing >= sum(MIXED) / 2

    @property
    def heads_prove(self) -> bool:
        """Whether heads may prove a new class: the score follows them, or distances agree with them."""
        return self.heads > self.distances or (self.heads > 0 and self.agreement >= sum(_AGREEING) / 2)


def weigh(
    coherence: float,
    agreement: float,
    containment: float = 0.0,
    mixing: float = 1.0,
    growth: float = 1.0,
    *,
    moved: bool = False,
    undone: bool = False,
) -> Trust:
    """Return the weights of heads and distances; ``undone`` is whether alignment has undone the move.

    >>> weigh(coherence=0.0, agreement=0.3).heads
    1.0
    >>> weigh(coherence=0.4, agreement=0.1, moved=True).heads
    0.0
    >>> [weigh(coherence=0.4, agreement=0.1, mixing=0.7, growth=growth).heads for growth in (1.0, 9.0)]
    [0.0, 1.0]
    >>> [weigh(coherence=0.25, agreement=agreement, growth=9.0).distances for agreement in (0.3, 0.6)]
    [0.0, 1.0]
    """
    signs = (coherence, agreement, containment, mixing, growth)
    if moved and not undone:
        return Trust(0.0, 1.0, *signs)
    distances = 1.0 if moved else max(_against_heads(coherence, agreement, mixing, growth))
    beside = max(
        _HEADS_BESIDE * _between(agreement, *_AGREEING), _HEADS_CONTAINED * _between(containment, *_CONTAINED)
    )
    return Trust(1 - distances + distances * beside, distances, *signs)


def _against_heads(coherence: float, agreement: float, mixing: float, growth: float) -> tuple[float, float]:
    """Return how far a group far from source, and domains that do not mix, speak against the heads."""
    unmixed, grown = 1 - _between(mixing, *MIXED), _between(growth, *_GROWN)
    # where growth explains why domains do not mix, it explains a group far from source too
    coherent = _between(coherence - _more_coherent(growth, agreement), *COHERENT)
    return coherent * (1 - unmixed * grown), unmixed * (1 - grown)


def _more_coherent(growth: float, agreement: float) -> float:
    """Return the coherence needed beyond the usual one: kinds that grew much were rare, so far from source."""
    return _MORE_COHERENT * _between(growth, *_MUCH_GROWN) * (1 - _between(agreement, *_AGREEING))


def _between(value: float, low: float, high: float) -> float:
    return float(np.clip((value - low) / (high - low), 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Target rows of the fit, to smooth scores over: where they lie, and their ranks by heads and distances.

    ``number`` of them are looked up beside the nearest one, which for rows of the fit is the row itself.
    """

    space: Space
    rows: NDArray[np.float32]
    heads: Floats
    distances: Floats
    number: int = NEIGHBOURS[0]

    def nearest(self, views: Views) -> Rows:
        """Return the nearest target rows of each row, (rows, neighbours)."""
        known = self.rows.astype(np.float64)
        number = min(self.number + 1, len(known))
        return views.in_blocks(lambda part: nearest_rows(known, self.space.apply(part), number)[1])


@dataclass(frozen=True, eq=False)
class Voices:
    """Everything that turns the score of the heads into CoLOR's score."""

    distances: tuple[Distance, ...]
    ranks: tuple[TailRank, ...]
    weights: Floats
    head_rank: TailRank
    smooth_head_rank: TailRank
    smooth_distance_rank: TailRank
    surroundings: Surroundings
    trust: Trust

    def score(self, views: Views, head_score: Floats) -> Floats:
        """Return the score of rows, given that of the heads."""
        needed = self.trust.distances > 0
        distance = self.distance(views) if needed else np.zeros(len(head_score))
        return self.fuse(self.surroundings.nearest(views), head_score, distance)

    def distance(self, views: Views) -> Floats:
        """Return the weighted mean rank of all distances."""
        return self.pooled([voice.apply(views) for voice in self.distances])

    def pooled(self, by_voice: Sequence[Floats]) -> Floats:
        """Return the weighted mean rank of given distances, one array for each voice."""
        ranks = [rank.apply(scores) for rank, scores in zip(self.ranks, by_voice, strict=True)]
        return np.asarray(self.weights @ np.stack(ranks))

    def fuse(self, nearest: Rows, head_score: Floats, distance: Floats) -> Floats:
        """Return the score from both parts, each smoothed over the ``nearest`` target rows."""
        around = self.surroundings
        heads = self.head_rank.apply(head_score) + around.heads[nearest].mean(axis=1)
        distances = distance + around.distances[nearest].mean(axis=1)
        return np.asarray(
            self.trust.heads * self.smooth_head_rank.apply(heads)
            + self.trust.distances * self.smooth_distance_rank.apply(distances)
        )


@dataclass(frozen=True, eq=False)
class FittedVoices:
    """Voices, and the distances of the fit's own rows; those of source without the row's fold.

    ``tested`` are the distances (source, target) that the test of "there is no new class" hears: of aligned rows,
    if the target was aligned. As they were, all rows of a moved batch are far from source.
    """

    voices: Voices
    source_distance: Floats
    target_distance: Floats
    tested: tuple[Floats, Floats]
    growth: float = 1.0
    """How many times as common known kinds became, as far as clusters of source show it."""


def fit_voices(
    source: Views,
    y: NDArray[np.intp],
    target: Views,
    scaling: Scaling,
    head_score: Floats,
    seed: np.random.SeedSequence,
    *,
    moved: bool = False,
    undone: bool = False,
) -> FittedVoices:
    """Fit all voices and weigh them; ``head_score`` is the heads' score of the target rows.

    ``moved`` is whether the batch moved as a whole, ``undone`` whether alignment has undone that.
    """
    kept = thinned(len(y)), thinned(len(head_score))
    some = source.take(kept[0]), target.take(kept[1])
    space = Space.of(scaling, source.rows.shape[1]).along_components(*some, max(COMPONENTS))
    heard = listen(*some, y[kept[0]], scaling, space, seed)
    of_target = [each.voice.apply(some[1]) for each in heard]
    places = [space.apply(views) for views in some]
    around = [other_rows(rows, NEIGHBOURS[0]) for rows in places]
    alone = _coherence_alone(heard, of_target, around)
    coherent = np.sqrt(np.maximum(alone, _FLOOR))
    stands_out = _coherence_together(heard, of_target, coherent, around)
    if isinstance(heard[-1].voice, HiddenDistance):  # it hears what labels teach, the others what labels do not
        stands_out = (stands_out + float(alone[-1])) / 2
    # in a moved batch the voices that hear the move count little; else they are better together
    weights = coherent / coherent.sum() if moved else np.full(len(heard), 1 / len(heard))
    growth = largest_growth(*places)
    trust = partial(weigh, stands_out, mixing=mixing(*places), growth=growth, moved=moved, undone=undone)
    voices = _fused(heard, of_target, weights, space, some[1], head_score[kept[1]], trust)
    of_source = [each.source for each in heard]
    tested = calibrating = voices
    if target.is_aligned:
        aligned = np.array([voice.takes_aligned for voice in voices.distances])
        tested = replace(voices, weights=weights * aligned / weights[aligned].sum())
        # all rows of a moved batch are far from source: the threshold compares ranks within each domain
        own = [fit_tail_rank(scores) for scores in of_source]
        ranks = zip(aligned, voices.ranks, own, strict=True)
        calibrating = replace(voices, ranks=tuple(rank if same else mine for same, rank, mine in ranks))
    return FittedVoices(
        voices,
        _all_distances(calibrating, source, kept[0], calibrating.pooled(of_source)),
        _all_distances(voices, target, kept[1], voices.pooled(of_target)),
        (
            _all_distances(tested, source, kept[0], tested.pooled(of_source)),
            _all_distances(tested, target, kept[1], tested.pooled(of_target)),
        ),
        growth,
    )


def _fused(
    heard: Sequence[Heard],
    of_target: Sequence[Floats],
    weights: Floats,
    space: Space,
    target: Views,
    head_score: Floats,
    trust: Callable[[float, float], Trust],
) -> Voices:
    """Return the voices with the weights of heads and distances, from target rows and their scores."""
    head_rank, ranks = fit_tail_rank(head_score), tuple(fit_tail_rank(scores) for scores in of_target)
    heads = head_rank.apply(head_score)
    distances = weights @ np.stack([rank.apply(s) for rank, s in zip(ranks, of_target, strict=True)])
    around = Surroundings(
        space, space.apply(target).astype(np.float32), heads, distances, number_of_neighbours(len(heads))
    )
    nearest = around.nearest(target)
    heads, distances = heads + heads[nearest].mean(axis=1), distances + distances[nearest].mean(axis=1)
    return Voices(
        distances=tuple(each.voice for each in heard),
        ranks=ranks,
        weights=weights,
        head_rank=head_rank,
        smooth_head_rank=fit_tail_rank(heads),
        smooth_distance_rank=fit_tail_rank(distances),
        surroundings=around,
        trust=trust(top_overlap(heads, distances), containment(heads, distances)),
    )


def number_of_neighbours(n_target: int) -> int:
    """Return how many target rows a score is smoothed over.

    >>> [number_of_neighbours(n) for n in (100, 2000, 10_000)]
    [10, 13, 20]
    """
    return int(np.clip(n_target // _ROWS_A_NEIGHBOUR, *NEIGHBOURS))


def _all_distances(voices: Voices, views: Views, kept: Rows, of_kept: Floats) -> Floats:
    """Return the distances of all rows, given those that voices were fitted on; 0 where they are not needed."""
    found = np.zeros(len(views.rows))
    rest = np.setdiff1d(np.arange(len(found)), kept)
    if len(rest) and voices.trust.distances > 0:
        found[rest] = voices.distance(views.take(rest))
    found[kept] = of_kept
    return found


def _coherence_alone(heard: Sequence[Heard], of_target: Sequence[Floats], around: Sequence[Rows]) -> Floats:
    """Return the excess coherence of each voice alone."""
    pairs = zip(heard, of_target, strict=True)
    return np.array([excess_coherence(each.source, around[0], scores, around[1]) for each, scores in pairs])


def _coherence_together(
    heard: Sequence[Heard], of_target: Sequence[Floats], weights: Floats, around: Sequence[Rows]
) -> float:
    """Return the excess coherence of all voices together, weighted; ranks are among the rows of each domain."""
    source, target = (
        weights @ np.stack([fit_tail_rank(scores).apply(scores) for scores in by_voice])
        for by_voice in ([each.source for each in heard], of_target)
    )
    return excess_coherence(source, around[0], target, around[1])
