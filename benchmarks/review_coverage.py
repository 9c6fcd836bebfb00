"""Does the live interval of a review hold at every look, how wide is it, and how many labels does it need?

    python benchmarks/review_coverage.py [--sessions 1000]

A session labels rows one by one and looks after every label. It misses if the truth was outside at any look.
Beside the interval of openset: the same with rows drawn uniformly, and the usual normal interval of a mean.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from openset._version import __version__
from openset.review.estimates import LEVEL, Estimates, Tally, _cost, estimate
from openset.review.queues import LIST_GUESS, REST_GUESS, estimate_order

OUT = Path(__file__).parents[1] / "docs" / "evidence" / "review_coverage.md"
ROWS, LABELS = 3000, 200
SHARES = (0.0, 0.01, 0.05, 0.12)
LOOKS = (25, 50, 100, 200)
SCORES = {"good": (0.8, 0.8), "poor": (0.2, 0.2), "blind": (0.0, 0.0)}
"""Precision and recall of the list; a blind list is as new as the rest."""


@dataclass(frozen=True)
class Session:
    """Numbers of new answers and of answers after every label, in the list and in the rest, and the truth."""

    listed: int
    truth: tuple[int, int]
    new: np.ndarray
    labelled: np.ndarray

    def tallies(self, look: int) -> tuple[Tally, Tally]:
        (s1, s0), (n1, n0) = self.new[look], self.labelled[look]
        return (
            Tally(self.listed, int(s1), int(n1 - s1), guess=LIST_GUESS),
            Tally(ROWS - self.listed, int(s0), int(n0 - s0), guess=REST_GUESS),
        )


def draw(share: float, score: str, uniform: bool, seed: int) -> Session:
    """One session; ``uniform`` draws from all rows as from one stratum."""
    random = np.random.default_rng(seed)
    precision, recall = SCORES[score]
    new = round(share * ROWS)
    listed = max(30, round(recall * new / precision)) if precision else 150
    inside = min(round(recall * new), listed) if precision else round(share * listed)
    is_new = np.zeros(ROWS, bool)
    is_new[:inside] = True
    is_new[listed : listed + new - inside] = True
    if uniform:
        order, in_list = random.permutation(ROWS)[:LABELS], np.zeros(LABELS, bool)
        listed, truth = 0, (0, new)
    else:
        order = estimate_order(np.arange(ROWS) < listed, seed)[:LABELS]
        in_list, truth = order < listed, (inside, new - inside)
    answers = is_new[order]
    parts = np.stack([in_list, ~in_list], axis=1)
    return Session(listed, truth, np.cumsum(parts & answers[:, None], axis=0), np.cumsum(parts, axis=0))


cached = cache(estimate)


def misses(session: Session) -> tuple[bool, bool, bool]:
    """Whether share, precision and recall were outside at any look.

    The truth is inside wherever its own e-values multiply to less than 1 / level, so only the other looks are
    estimated in full.
    """
    cut, missed = np.log(1 / LEVEL), np.zeros(3, bool)
    inside, outside = session.truth
    for look in range(LABELS):
        listed, rest = session.tallies(look)
        own = at(listed, inside)
        if max(own, own + at(rest, outside)) > cut:
            missed |= [not held for held in holds(cached(listed, rest), session)]
    return tuple(bool(m) for m in missed)


@cache
def at(tally: Tally, count: int) -> float:
    return float(_cost(tally, np.array([count], dtype=float))[0])


def holds(found: Estimates, session: Session) -> list[bool]:
    inside, outside = session.truth
    new = inside + outside
    held = [found.share.low - 1e-12 <= new / ROWS <= found.share.high + 1e-12]
    for interval, of in ((found.precision, session.listed), (found.recall, new)):
        held.append(interval is None or not of or interval.low - 1e-12 <= inside / of <= interval.high + 1e-12)
    return held


def normal_misses(session: Session, *, least: int = 20) -> bool:
    """Whether the share was outside of estimate ± 1.96 standard errors at any look from the 20th label on."""
    s, n = session.new[least - 1 :], np.maximum(session.labelled[least - 1 :], 1)
    weights = np.array([session.listed, ROWS - session.listed]) / ROWS
    p = s / n
    mean, error = (weights * p).sum(axis=1), np.sqrt((weights**2 * p * (1 - p) / n).sum(axis=1))
    return bool((np.abs(mean - sum(session.truth) / ROWS) > 1.96 * error + 1e-12).any())


def first_above(session: Session, bound: float = 0.01) -> int:
    """After how many labels the lower bound of the share passed; more than all if it never did."""
    looks = [look for look in range(4, LABELS, 5) if cached(*session.tallies(look)).share.low > bound]
    return looks[0] + 1 if looks else LABELS + 1


def describe(share: float, score: str, uniform: bool, sessions: int) -> str:
    drawn = [draw(share, score, uniform, seed) for seed in range(sessions)]
    missed = np.array([misses(session) for session in drawn]).mean(axis=0)
    normal = np.mean([normal_misses(session) for session in drawn])
    some = drawn[:100]
    needed = np.median([first_above(session) for session in some])
    widths = []
    for look in LOOKS:
        shares = [cached(*session.tallies(look - 1)).share for session in some]
        widths.append(f"{100 * np.mean([found.high - found.low for found in shares]):.1f}")
    of = " / ".join("–" if uniform and i else f"{100 * m:.1f}" for i, m in enumerate(missed))
    labels = "–" if share <= 0.01 else f"{needed:.0f}" if needed <= LABELS else f"> {LABELS}"
    queue = "uniform" if uniform else "strata"
    return f"| {share:.0%} | {score} | {queue} | {of} | {100 * normal:.1f} | {labels} | {' | '.join(widths)} |"


def main() -> None:
    """Simulate, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    lines = [
        "# The live interval of a review",
        "",
        f"Written by `python benchmarks/review_coverage.py` with openset {__version__}: {asked.sessions}",
        f"simulated sessions a line, {ROWS} target rows, {LABELS} labels, a look after every label. A session",
        "misses if the truth was outside of the interval at *any* look; 5 % may. Scores are those of the",
        "list: good (precision and recall .8), poor (.2), blind (the list is as new as the rest).",
        '"Normal" is the usual estimate ± 1.96 standard errors of the same sample, looked at from the 20th',
        'label on. "Labels" is the median number until the share is proved to be above 1 %. Widths are',
        "in points of per cent, means of 100 sessions.",
        "",
        "| share | score | drawn | missed, %: share / precision / recall | normal missed, % | labels | "
        + " | ".join(f"width at {look}" for look in LOOKS)
        + " |",
        "|---:|---|---|---:|---:|---:|" + "---:|" * len(LOOKS),
    ]
    for share in SHARES:
        for score in SCORES:
            lines.append(describe(share, score, False, asked.sessions))
            print(lines[-1], flush=True)
        lines.append(describe(share, "good", True, asked.sessions).replace("| good |", "| – |"))
        print(lines[-1], flush=True)
        cached.cache_clear()
    asked.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
