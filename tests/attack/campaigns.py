"""The campaigns of an attack: each tries one kind of case after the other for as long as it is asked to."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import openset
from attack.byte_cases import evil_files, mutated, rows_in, rows_written, write_formats
from attack.faults import killed_at
from attack.oracle import Server, Tally, failed_ways
from attack.schemas import tampered, write
from openset._utils.files import recover
from openset.pipeline.result import read_summary
from product_files import write_problem

OLD = "old scores\n"


@dataclass
class Ground:
    """A folder with data, a run and formats; the server; what was counted. ``mark`` must never come to be."""

    folder: Path
    server: Server
    tally: Tally

    @property
    def run(self) -> Path:
        return self.folder / "run"

    @property
    def mark(self) -> Path:
        return self.folder / "code was executed"

    def scored(self, campaign: str, case: str, data: Path, *, rows: int | None = None) -> None:
        """Score a file over an old output, and look at all that could go wrong."""
        out = self.folder / "out.csv"
        out.write_text(OLD)
        code, error = self.server("score", self.run, data, "--out", out, "--quiet")
        failed = failed_ways(code, error)
        content = out.read_text()
        if code == 0:
            written = rows_written(out)
            if rows is not None and written != rows:
                failed.append("rows lost")
            elif not content.endswith("\n"):
                failed.append("half files")
        elif content != OLD:
            failed.append("half files")
        self.finish(campaign, case, code, failed, error)

    def finish(self, campaign: str, case: str, code: int | None, failed: list[str], error: str = "") -> None:
        """Count a case."""
        if self.mark.exists():
            self.mark.unlink()
            failed.append("code executed")
        self.tally.outcomes[f"exit code {code}"] += 1
        self.tally.count(campaign, failed, f"{case} {error}".strip())


def make_ground(folder: Path, server: Server, tally: Tally) -> Ground:
    """Two small files, a run fitted on them, and the target in every format."""
    write_problem(folder)
    files = (folder / "source.parquet", folder / "target.parquet")
    parameters = {"validation_fraction": 0.4}
    result = openset.run(*files, label="kind", id="rid", method="mahalanobis", parameters=parameters)
    result.save(folder / "run")
    (folder / "formats").mkdir()
    write_formats(folder / "formats", folder / "target.parquet")
    (folder / "evil").mkdir()
    return Ground(folder, server, tally)


def damaged_files(ground: Ground, seed: int) -> Iterator[None]:
    """Every format in turn, with some bytes changed; where a second parser can count, no row may be lost."""
    formats = sorted((ground.folder / "formats").iterdir())
    (ground.folder / "damaged").mkdir(exist_ok=True)
    while True:
        for path in formats:
            seed += 1
            data = ground.folder / "damaged" / path.name
            data.write_bytes(mutated(path.read_bytes(), seed))
            ground.scored("damaged files", f"{path.name} seed {seed}", data, rows=rows_in(data))
            yield


def evil_content(ground: Ground, seed: int) -> Iterator[None]:
    """Pickles where arrays are expected, also with bytes changed."""
    originals = {path: path.read_bytes() for path in evil_files(ground.folder / "evil", ground.mark)}
    while True:
        for path, content in originals.items():
            seed += 1
            path.write_bytes(content if seed % 2 else mutated(content, seed))
            ground.scored("evil files", f"{path.name} seed {seed}", path)
            yield


def tampered_runs(ground: Ground, seed: int) -> Iterator[None]:
    """One field of a run's JSON changed, with the checksum mended; every command that reads runs."""
    cases = list(tampered(ground.run))
    chance = random.Random(seed)
    copy, out = ground.folder / "tampered", ground.folder / "tampered.csv"
    while True:
        name, mutation = chance.choice(cases)
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(ground.run, copy)
        write(copy, name, mutation)
        data = ground.folder / "labelled.csv"
        command = chance.choice(
            (
                ("score", copy, data, "--out", out, "--quiet"),
                ("inspect", copy, "-v"),
                ("report", copy),
                ("compare", copy, ground.run),
                ("evaluate", copy, data),
            )
        )
        code, error = ground.server(*command)
        case = f"{command[0]} {name} {mutation.what} {mutation.path}"
        ground.finish("tampered runs", case, code, failed_ways(code, error), error)
        yield


NAMES = (
    "a b.csv", "ä€𝄞.csv", "new\nline.csv", "-dash.csv", "--out.csv", "'quote\".csv", "[bold]x[/].csv",
    "%s{0}.csv", "x" * 251 + ".csv", "x" * 252 + ".csv", "C:\\x.csv", "..csv", ".csv", "a.CSV", "a.csv.",
    "a.csv\t", "\u202egnp.csv",
)  # fmt: skip
SPECIAL = (
    "link", "nowhere", "folder.csv", "pipe.csv", "", "/dev/null", "/dev/zero", "/dev/full", "/proc/self/mem",
)  # fmt: skip


def odd_paths(ground: Ground, seed: int) -> Iterator[None]:
    """Odd names, pipes, devices, loops of links, folders and links to nowhere, as input and as output."""
    folder = ground.folder / "paths"
    chance = random.Random(seed)
    while True:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "link").symlink_to("link")
        (folder / "nowhere").symlink_to(folder / "absent" / "x.csv")
        (folder / "folder.csv").mkdir()
        os.mkfifo(folder / "pipe.csv")
        for name in (*NAMES, *SPECIAL):
            given = folder / name
            readable = not os.path.exists(given) and chance.random() < 0.8
            if readable:
                try:
                    shutil.copy(ground.folder / "target.csv", given)
                except OSError:
                    readable = False
            out = folder / "out.csv"
            inputs = ("score", ground.run, given, "--out", out, "--quiet")
            outputs = ("score", ground.run, ground.folder / "target.csv", "--out", given, "--quiet")
            for command in (inputs, outputs):
                code, error = ground.server(*command)
                ground.finish("odd paths", f"{command[1:]}", code, failed_ways(code, error), error)
                yield


SAVE = """
import dataclasses
from openset.pipeline.run import load_run
result = load_run({run!r})
result = dataclasses.replace(result, summary=dataclasses.replace(result.summary, created="NEW"))
install()
result.save({out!r}, overwrite=True)
"""
SCORE = """
import openset
install()
openset.score({run!r}, {data!r}, {out!r})
"""


def killed_writers(ground: Ground, seed: int) -> Iterator[None]:
    """Runs and scores that are replaced, with a kill at a random step; what is there must be whole."""
    chance = random.Random(seed)
    run, out, scores = ground.run, ground.folder / "killed run", ground.folder / "killed.csv"
    shutil.copytree(run, out)
    data = str(ground.folder / "target.parquet")
    while True:
        exchange, failed = chance.random() < 0.7, []
        if chance.random() < 0.6:
            moment = chance.randrange(90)
            was_killed = killed_at(moment, SAVE.format(run=str(run), out=str(out)), exchange=exchange)
            recover(out)
            try:
                whole = read_summary(out)
                openset.load(out / "model")
            except (ValueError, OSError):
                failed = ["half files"]
            else:
                failed = [] if was_killed or whole.created == "NEW" else ["rows lost"]
        else:
            scores.write_text(OLD)
            moment = chance.randrange(8)
            was_killed = killed_at(moment, SCORE.format(run=str(run), data=data, out=str(scores)))
            content = scores.read_text()
            if content != OLD and content.count("\n") != 401:
                failed = ["half files"]
        ground.tally.kills += was_killed
        ground.finish("killed writers", f"step {moment} exchange {exchange}", -9 if was_killed else 0, failed)
        yield


CAMPAIGNS: dict[str, Callable[[Ground, int], Iterator[None]]] = {
    "damaged files": damaged_files,
    "tampered runs": tampered_runs,
    "odd paths": odd_paths,
    "evil files": evil_content,
    "killed writers": killed_writers,
}
SHARES = {"damaged files": 60, "tampered runs": 25, "odd paths": 10, "evil files": 3, "killed writers": 2}
"""How many cases of each are tried in a round. A kill takes a process of its own, about three seconds."""
