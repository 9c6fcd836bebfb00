"""A progress bar on stderr, shown only on request; a log gets one line a minute instead."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SECONDS_BETWEEN_LINES = 60.0


class LogClock:
    """Tells when it is time for the next line of a log."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def is_due(self, *, anyway: bool = False) -> bool:
        """Whether a minute has passed since the last line, or a line is due ``anyway``."""
        now = time.monotonic()
        if not anyway and now - self._last < _SECONDS_BETWEEN_LINES:
            return False
        self._last = now
        return True


@contextmanager
def progress_bar(title: str, *, enabled: bool = True) -> Iterator[Callable[[int, int | None, str], None]]:
    """Yield ``update(done, total, note)``; the total is None if unknown. If disabled, it does nothing."""
    if not enabled:
        yield lambda done, total, note: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    console, clock = Console(stderr=True), LogClock()
    # estimate the remaining time from the last hour, because a step of a large network may take a minute
    with Progress(*columns, console=console, speed_estimate_period=3600) as bar:
        task = bar.add_task(title, total=None, note="")

        def update(done: int, total: int | None, note: str) -> None:
            bar.update(task, completed=done, total=total, note=note)
            if not console.is_terminal and clock.is_due():  # outside a terminal rich writes only the last line
                console.print(bar.get_renderable())

        yield update
