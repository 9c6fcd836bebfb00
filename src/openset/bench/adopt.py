"""Keep runs of older code: if today's code gives the same numbers on a sample, the others need no second run.

A run's key has the code that it can reach, so a change that alters no number, such as a better error message,
makes a sweep start from the beginning. Of each method and dataset some runs are computed again. If all their
numbers are equal, the other stored runs of this method and dataset get today's keys. They keep their date and
code version, so a page still says which code made them.

Another kind of processor rounds differently, which may move one run by more than a change of code would. So runs
are compared that were made where this process runs, if the group has any.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from openset._utils.params import check_integer
from openset.bench.provenance import environment
from openset.bench.runs import Run, expand
from openset.bench.spec import Spec
from openset.bench.store import Store, StoredRun
from openset.bench.sweep import carry_out, check_available, prepare

TOLERANCE = 0.005
"""Pages print two digits."""
Group = tuple[str, str]
"""A method and a dataset."""
Pair = tuple[StoredRun, StoredRun | None]
"""A stored run of older code, and the same by today's."""


@dataclass(frozen=True)
class Adopted:
    """What became of the stored runs of one method on one dataset."""

    method: str
    dataset: str
    n_checked: int
    n_adopted: int
    difference: str
    """Why none was adopted: the first number that differs. Empty if they were."""


def adopt(
    spec: Spec,
    store: Store,
    *,
    data_dir: Path | None = None,
    sample: int = 1,
    jobs: int = 1,
    show_progress: bool = False,
) -> list[Adopted]:
    """Give stored runs of a spec today's keys, group by group, after a sample of each was computed again.

    Runs that are computed again are stored like any others, so nothing is lost where they differ. All runs that
    today's code has computed already are compared too: a group that was refused is refused again.
    """
    check_integer("sample", sample)
    check_available(spec, data_dir)
    runs = list(dict.fromkeys(planned.run for planned in expand(spec, data_dir)))
    done = store.get(run.key for run in runs)
    older = _newest(store.all())
    groups: dict[Group, list[StoredRun]] = {}
    checked: dict[Group, list[StoredRun]] = {}
    for run in runs:
        if run in older:
            kind = checked if run.key in done else groups
            kind.setdefault((run.method, run.dataset), []).append(older[run])
    drawn = {group: _drawn(found, sample) for group, found in groups.items()}
    again = [item.run for found in drawn.values() for item in found]
    for group, found in drawn.items():
        found += checked.get(group, [])
    prepare(again, data_dir, show_progress)
    carry_out(again, store, spec.name, data_dir=data_dir, jobs=jobs, show_progress=show_progress)
    now = store.get(run.key for run in runs)
    return [_adopted(group, groups[group], drawn[group], now, store) for group in groups]


def _newest(stored: Sequence[StoredRun]) -> dict[Run, StoredRun]:
    """The last stored success of every run by older code."""
    return {item.run: item for item in stored if not item.result.failure and item.key != item.run.key}


def _drawn(found: Sequence[StoredRun], sample: int) -> list[StoredRun]:
    """A sample, always the same one of the same runs, with those of this kind of machine first."""
    here = [item for item in found if item.result.environment == environment()]
    elsewhere = [item for item in found if item not in here]
    random.Random(0).shuffle(here)
    random.Random(0).shuffle(elsewhere)
    return [*here, *elsewhere][:sample]


def _adopted(
    group: Group,
    found: Sequence[StoredRun],
    drawn: Sequence[StoredRun],
    now: Mapping[str, StoredRun],
    store: Store,
) -> Adopted:
    pairs = [(item, now.get(item.run.key)) for item in drawn]
    differences = [text for before, after in _comparable(pairs) if (text := difference(before, after))]
    if differences:
        return Adopted(*group, len(drawn), 0, differences[0])
    others = [replace(item, key=item.run.key) for item in found if item not in drawn]
    return Adopted(*group, len(drawn), store.add(others), "")


def _comparable(pairs: Sequence[Pair]) -> Sequence[Pair]:
    """The pairs computed on one kind of machine with the same libraries, and failures; all if there are none."""
    alike = [
        (before, after)
        for before, after in pairs
        if after is None or before.result.environment == after.result.environment
    ]
    return alike or pairs


def difference(before: StoredRun, after: StoredRun | None) -> str:
    """The first number that differs, in words; empty if none does."""
    if after is None or after.result.failure:
        return f"{before.run} failed"
    if before.result.manifest_checksum != after.result.manifest_checksum:
        return f"{before.run} has other rows"
    for name, old in before.result.metrics.items():  # today's code may measure more
        new = after.result.metrics.get(name, math.nan)
        if not (math.isnan(old) and math.isnan(new)) and not abs(old - new) < TOLERANCE:
            moved = f"{before.run}: {name} was {old:.4f} and is {new:.4f}"
            alike = before.result.environment == after.result.environment
            return moved if alike else f"{moved}, which rounding may explain: it was made on another machine"
    return ""
