"""An attack for as long as one likes: ``python -m attack.run --minutes 60`` in ``tests``, or ``make attack``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from attack.campaigns import CAMPAIGNS, SHARES, make_ground
from attack.oracle import Server, Tally


def attack(seconds: float, seed: int, report: Path | None = None) -> tuple[Tally, float]:
    """Try cases of all campaigns in rounds; with ``report`` the table so far is written after every round."""
    tally, start = Tally(), time.monotonic()
    with TemporaryDirectory(prefix="openset-attack-") as folder, Server() as server:
        ground = make_ground(Path(folder), server, tally)
        running = {name: campaign(ground, seed * 10**6) for name, campaign in CAMPAIGNS.items()}
        while time.monotonic() - start < seconds:
            for name, cases in SHARES.items():
                for _ in range(cases):
                    next(running[name])
                    if time.monotonic() - start > seconds:
                        break
            if report is not None:
                report.write_text(text(tally, time.monotonic() - start))
    return tally, time.monotonic() - start


def text(tally: Tally, seconds: float) -> str:
    """The table, and every failure with the case that repeats it."""
    lines = [f"- {kind}: {case}" for kind, case in tally.failures]
    return "\n".join([tally.table(seconds / 60), "", *lines]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0, help="equal seeds try equal cases")
    parser.add_argument("--report", type=Path, help="a file that has the table after every round")
    given = parser.parse_args()
    tally, seconds = attack(60 * given.minutes, given.seed, given.report)
    sys.stdout.write(text(tally, seconds))
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
