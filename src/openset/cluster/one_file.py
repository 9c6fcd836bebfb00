"""``openset score`` of one file into one file, on any file system."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from openset.cluster.folders import is_remote, local_path, open_folder
from openset.cluster.runs import run_here
from openset.data.readers.parts import is_pattern
from openset.pipeline.batch_answer import BatchAnswer
from openset.pipeline.score import score


def score_file(run: str, data: str, out: str, **options: Any) -> BatchAnswer:
    """:func:`openset.score` with paths or URLs; a remote file is fetched before, and written after."""
    with ExitStack() as stack:
        here = stack.enter_context(run_here(run))
        given: Path = local_path(data)
        if is_remote(data):
            if is_pattern(data) or data.endswith("/"):
                raise ValueError(
                    f"{data} may be several files, which are scored part by part: name a folder, with / at its "
                    "end, for the parts."
                )
            above, _, name = data.rpartition("/")
            folder = open_folder(above)
            if folder.found(name) is None:
                raise FileNotFoundError(
                    f"{data} does not exist. Give a file, or a pattern and a folder for parts."
                )
            given = stack.enter_context(folder.fetched(name)) / name
        if not is_remote(out):
            return score(here, given, local_path(out), **options)
        above, _, name = out.rpartition("/")
        with open_folder(above).writing(name) as temporary:
            return score(here, given, temporary, **options)
