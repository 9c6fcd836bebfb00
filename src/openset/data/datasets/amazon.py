"""Amazon Reviews 2018 as it is downloaded: one ``*.json.gz`` for each category; stars become sentiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np

from openset._utils.arrays import as_objects
from openset._utils.files import existing
from openset._utils.params import check_integer, check_list
from openset._utils.progress import progress_bar
from openset._utils.text import listed
from openset.data.datasets.dataset import Dataset
from openset.data.readers.json_lines import read_json_lines

CITATION = (
    "Ni, J., Li, J., McAuley, J. (2019). Justifying recommendations using distantly-labeled reviews and "
    "fine-grained aspects. EMNLP."
)
SOURCE = (
    "Amazon Reviews 2018 comes from https://nijianmo.github.io/amazon/: download the reviews or the 5-core "
    "of each category (such as Software_5.json.gz) into one folder and pass that folder."
)
PAPER_CATEGORIES = (
    "Digital_Music",
    "Industrial_and_Scientific",
    "Luxury_Beauty",
    "Musical_Instruments",
    "Prime_Pantry",
    "Software",
)
_FILE_NAMES = tuple(
    f"{name}.json{packed}" for packed in (".gz", "") for name in ("{}_5", "{}", "reviews_{}_5", "reviews_{}")
)
"""In the order in which they are looked for: packed before plain, the 5-core before all reviews."""


@dataclass
class _Sample:
    """A uniform sample of a stream: at most ``limit`` items, or all if it is None."""

    limit: int | None
    random: Random
    seen: int = 0
    rows: list[tuple[int, float, str]] = field(default_factory=list)

    def offer(self, row: tuple[int, float, str]) -> None:
        self.seen += 1
        if self.limit is None or len(self.rows) < self.limit:
            self.rows.append(row)
        elif (index := self.random.randrange(self.seen)) < self.limit:
            self.rows[index] = row


def load_amazon_reviews(
    path: str | Path,
    *,
    categories: Sequence[str] = PAPER_CATEGORIES,
    per_sentiment: int | None = None,
    random_state: int = 0,
    verbose: bool = False,
) -> Dataset:
    """Amazon Reviews: ``label`` is the category, ``sentiment`` is 1 above three stars and 0 below.

    ``path`` is a folder with one file for each category: all reviews or the 5-core, which is used if both are
    there. ``per_sentiment`` is the most reviews to keep of each category and sentiment, drawn uniformly with
    ``random_state``; memory then stays bounded for files of any size. The paper needs 735. Reviews of three stars
    and reviews without text are dropped and counted in ``notes``. ``columns["rating"]`` holds the stars.
    """
    check_list("categories", categories)
    folder = existing(path, SOURCE)
    if per_sentiment is not None:
        check_integer("per_sentiment", per_sentiment)
    paths = {category: _file_of(category, folder) for category in categories}
    missing = [category for category, file in paths.items() if file is None]
    if missing or not paths:
        there = sorted(file.name for file in folder.glob("*.json*")) if folder.is_dir() else [folder.name]
        raise ValueError(
            f"{folder} lacks the reviews of {listed(missing, 10)} (looked for <category>_5.json.gz and "
            f"<category>.json.gz; found {listed(there) or 'no such file'}). {SOURCE}"
        )
    labels: list[str] = []
    rows: list[tuple[int, float, str]] = []
    notes: list[str] = []
    with progress_bar("Reading reviews", enabled=verbose) as update:
        for done, (category, file) in enumerate(paths.items()):
            assert file is not None
            update(done, len(paths), category)
            chosen, note = _read_category(file, per_sentiment, random_state)
            labels += [category] * len(chosen)
            rows += chosen
            notes.append(note)
        update(len(paths), len(paths), "")
    ratings = np.asarray([rating for _, rating, _ in rows])
    return Dataset(
        name="amazon", title="Amazon Reviews 2018", citation=CITATION, label=np.asarray(labels),
        sentiment=(ratings > 3).astype(np.int8), texts=as_objects([text for *_, text in rows]),
        columns={"rating": ratings}, notes=tuple(notes),
    )  # fmt: skip


def _file_of(category: str, folder: Path) -> Path | None:
    return next((file for name in _FILE_NAMES if (file := folder / name.format(category)).is_file()), None)


def _read_category(file: Path, limit: int | None, seed: int) -> tuple[list[tuple[int, float, str]], str]:
    kept = [_Sample(limit, Random(seed)), _Sample(limit, Random(seed + 1))]
    neutral = without_text = 0
    for number, review in enumerate(read_json_lines(file), start=1):
        if isinstance(review, str) or "overall" not in review:
            found = review if isinstance(review, str) else f"it has no 'overall', only {listed(review)}"
            raise ValueError(f"{file}, review {number}: {found}. {SOURCE}")
        rating = review["overall"]
        if not isinstance(rating, (int, float)) or not 1 <= rating <= 5:
            raise ValueError(
                f"{file}, review {number}: 'overall' is {rating!r}, not a number from 1 to 5: pass the "
                f"file as it is downloaded. {SOURCE}"
            )
        text = review.get("reviewText")
        if rating == 3:
            neutral += 1
        elif not isinstance(text, str) or not text.strip():
            without_text += 1
        else:
            kept[rating > 3].offer((number, float(rating), text))
    if not all(side.rows for side in kept):
        raise ValueError(
            f"{file} has {kept[0].seen} negative and {kept[1].seen} positive reviews: both are needed."
        )
    note = (
        f"{file.name}: kept {len(kept[0].rows)} of {kept[0].seen} negative and {len(kept[1].rows)} of "
        f"{kept[1].seen} positive reviews; dropped {neutral} of three stars and {without_text} without text"
    )
    return sorted(kept[0].rows + kept[1].rows), note
