"""What counts as a failure, and a process of its own that runs commands: a crash or a hang is then one case."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TIMEOUT = 60.0
"""Seconds after which a command counts as hung; the longest takes three."""
FAILURES = ("rows lost", "half files", "tracebacks", "crashes", "hangs", "code executed")
EXIT_CODES = (0, 1, 2, 3)


@dataclass
class Tally:
    """What was tried, and what failed: each failure with the case that repeats it."""

    cases: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)

    def count(self, campaign: str, failed: Sequence[str], case: str) -> None:
        """One case of a campaign, and in which ways it failed."""
        self.cases[campaign] += 1
        self.failures += [(kind, f"{campaign}: {case}") for kind in failed]

    def table(self, minutes: float) -> str:
        """A Markdown table of all figures."""
        kinds = Counter(kind for kind, _ in self.failures)
        rows = [
            ("minutes", f"{minutes:.1f}"),
            ("cases", str(self.cases.total())),
            *((f"— {name}", str(count)) for name, count in sorted(self.cases.items())),
            ("kills", str(self.kills)),
            *((f"ended with {name}", str(count)) for name, count in sorted(self.outcomes.items())),
            *((name, str(kinds[name])) for name in FAILURES),
        ]
        return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


class Server:
    """Runs ``openset`` commands, one after the other, in a process that is started again when it dies."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def __call__(self, *arguments: object) -> tuple[int | None, str]:
        """The exit code, and the traceback's last line: code None for a hang, negative for a crash."""
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps([str(argument) for argument in arguments]) + "\n")
        process.stdin.flush()
        with selectors.DefaultSelector() as ready:
            ready.register(process.stdout, selectors.EVENT_READ)
            if not ready.select(TIMEOUT):
                self.close()
                return None, "it hangs"
        line = process.stdout.readline()
        if not line:
            code = process.wait()
            self.close()
            return -abs(code) or -1, "it died"
        answer: dict[str, Any] = json.loads(line)
        return answer["code"], answer["error"]

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
            self._process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "attack.oracle"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={**os.environ, "PYTHONPATH": path},
            )
        return self._process

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def failed_ways(code: int | None, error: str) -> list[str]:
    """In which ways a command failed, by how it ended."""
    if code is None:
        return ["hangs"]
    if code < 0:
        return ["crashes"]
    return ["tracebacks"] if error or code not in EXIT_CODES else []


def _serve() -> None:
    from command_line import call

    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        done = call(*json.loads(line))
        expected = done.exception is None or isinstance(done.exception, SystemExit)
        error = "" if expected else repr(done.exception)[:300]
        answers.write(json.dumps({"code": done.exit_code, "error": error}) + "\n")
        answers.flush()


if __name__ == "__main__":
    _serve()
