"""Draw the review: ``python docs/figures/review_pictures.py RUN TRUTH.npy NEW NAME FOLDER PREFIX``.

RUN is fitted on real rows, TRUTH has the target's classes; some rows are answered, then the page is drawn.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "review")]

from serving import Serving  # noqa: E402

from browser import Browser, find_chromium  # noqa: E402
from openset.review.session import Session  # noqa: E402

SETTLED = "document.body.dataset.shown !== undefined && [...document.images].every(i => i.complete)"


def draw(run: Path, truth: np.ndarray, new: str, name: str, out: Path, prefix: str) -> None:
    """Answer some rows of a copy of the run, and draw desktop, dark and phone."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "run"
        shutil.copytree(run, copy, ignore=shutil.ignore_patterns("review.sqlite*"))
        session = Session(copy, seed=3)
        for i in range(44):
            row = session.next("estimate" if i % 2 else "explore").row
            queue = "estimate" if i % 2 else "explore"
            known = {} if truth[row] == new else {"label": truth[row]}
            session.new(row, name, queue=queue) if truth[row] == new else session.known(row, **known, queue=queue)
            if session.due:
                session.refit()
        session.store.close()
        executable = find_chromium()
        with Serving(copy) as serving, Browser(executable) as browser:
            for kind, settings, height in (
                ("desktop", {"width": 1280, "height": 860}, 860),
                ("dark", {"width": 1280, "height": 860, "dark": True}, 860),
                ("phone", {"width": 390, "height": 844}, 844),
            ):
                with browser.open(serving.url, **settings) as page:
                    page.wait("document.body.dataset.shown !== undefined")
                    page.run(f"localStorage.setItem('openset-review-name', {name!r});"
                             "localStorage.setItem('openset-review-queue', 'explore')")  # fmt: skip
                    page.load()
                    page.wait(SETTLED)
                    page.screenshot(out / f"{prefix}-{kind}.png", first="header", height=height)
                    if kind == "desktop":
                        page.press("g")
                        page.wait("document.querySelectorAll('#group-rows li').length > 0")
                        page.wait(SETTLED)
                        page.screenshot(out / f"{prefix}-groups.png", first="header", height=height)


if __name__ == "__main__":
    run, truth, new, name, out, prefix = sys.argv[1:]
    draw(Path(run), np.load(truth), new, name, Path(out), prefix)
