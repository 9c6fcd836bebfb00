"""Small real problems, made of data that scikit-learn ships and written as CSV files: for a first look."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.files import write_atomically
from openset._utils.text import did_you_mean
from openset.errors import Parameter, ParameterError
from openset.shift.digits import NOVEL_DIGIT, digits_rows
from openset.shift.draw import divide_all
from openset.shift.manifest import Rows

KNOWN, BATCH, TRUTH = "known.csv", "batch.csv", "truth.csv"
ID = "id"
SEED = 0
DIGITS_SEED = 4
"""The first split of the digits whose source has the 884 validation rows that CoLOR needs for fpr=0.01."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Source and target rows of one problem; ``y_target`` is the truth, which is never given to ``fit``."""

    about: str
    """What the rows are, in a sentence."""
    news: str
    """What is new in the batch and what only changed, in a sentence or two."""
    label: str
    """The name of the label column."""
    feature_names: list[str]
    X: NDArray[np.float64]
    y: NDArray[Any]
    X_target: NDArray[np.float64]
    y_target: NDArray[Any]
    ids: list[str]
    """Of the target rows: the row number in scikit-learn's data is part of it."""

    @property
    def known_classes(self) -> list[Any]:
        """The classes of the source."""
        return np.unique(self.y).tolist()

    @property
    def new_classes(self) -> list[Any]:
        """The classes that are in the target only."""
        return np.setdiff1d(self.y_target, self.y).tolist()

    @property
    def n_new(self) -> int:
        """How many target rows are of a new class."""
        return int(np.isin(self.y_target, self.new_classes).sum())


def make_sample(name: str) -> Sample:
    """The sample of this name, the same at every call.

    >>> sample = make_sample("digits")
    >>> len(sample.X), len(sample.X_target), sample.new_classes, sample.n_new
    (1059, 738, [9], 180)
    """
    if name not in SAMPLES:
        hint = did_you_mean(name, SAMPLES)
        raise ValueError(f"there is no sample {name!r}: choose one of {', '.join(SAMPLES)}.{hint}")
    return SAMPLES[name]()


def write_sample(sample: Sample, folder: Path, *, overwrite: bool = False) -> None:
    """Write known.csv, batch.csv and truth.csv to a folder, each whole or not at all.

    ``truth.csv`` is the batch with its labels. A file of the same name and other content is an error, unless
    ``overwrite`` is set.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: a sample is written to a folder.")
    known = _table([sample.label, *sample.feature_names], [sample.y.tolist()], sample.X)
    batch = _table([ID, *sample.feature_names], [sample.ids], sample.X_target)
    truth = _table(
        [ID, sample.label, *sample.feature_names], [sample.ids, sample.y_target.tolist()], sample.X_target
    )
    contents = {folder / KNOWN: known, folder / BATCH: batch, folder / TRUTH: truth}
    to_write = {path: content for path, content in contents.items() if not _holds(path, content)}
    if not overwrite:
        _refuse_to_replace(to_write)
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in to_write.items():
        write_atomically(path, content)


def _table(header: list[str], columns: list[list[Any]], X: NDArray[np.float64]) -> bytes:
    """A CSV file: the columns, then the features; numbers are written so that they are read back exactly."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for row in zip(*columns, X.tolist(), strict=True):
        writer.writerow([*row[:-1], *(int(value) if value.is_integer() else value for value in row[-1])])
    return text.getvalue().encode()


def _holds(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content


def _refuse_to_replace(paths: Iterable[Path]) -> None:
    there = [str(path) for path in paths if path.exists()]
    if there:
        are = "is there already with other content and is" if len(there) == 1 else "are there already and are"
        raise ParameterError(
            f"{', '.join(there)} {are} not replaced: choose another folder, or replace what is there with ",
            Parameter("overwrite", True),
            ".",
        )


_SHIFTED = f"The known digits have other shares in the batch than in {KNOWN}"


def _digits() -> Sample:
    return _digits_sample(None, f"Digit {NOVEL_DIGIT} is new. {_SHIFTED}; that alone is nothing new.")


def _known_digits() -> Sample:
    return _digits_sample(
        0.0, f"Nothing is new. The known digits have other shares in the batch than in {KNOWN}."
    )


def _digits_sample(novel_fraction: float | None, news: str) -> Sample:
    """All images of known digits, shifted, with enough nines to be this share of the target (None for all)."""
    from sklearn.datasets import load_digits

    data = load_digits()
    rows = digits_rows(data.target, DIGITS_SEED, test_fraction=0.0, novel_fraction=novel_fraction)
    about = "Handwritten digits of 8 × 8 pixels."
    return _sample(data, data.target, (rows.source, rows.target), about, news, label="digit", row_name="image")


def _breast_cancer() -> Sample:
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    labels = data.target_names[data.target]
    rows = _divided(labels, {"benign": 0.7}, "malignant", n_new=27)
    about = "Measurements of cell nuclei in breast tumours."
    news = "Only benign tumours were labelled: malignant ones are new."
    return _sample(data, labels, rows, about, news, label="diagnosis", row_name="tumour")


def _wine() -> Sample:
    from sklearn.datasets import load_wine

    data = load_wine()
    labels = data.target_names[data.target]
    rows = _divided(labels, {"class_0": 0.7, "class_1": 0.5}, "class_2", n_new=20)
    about = "Chemical analyses of wines of three cultivars."
    news = "Cultivar class_2 is new. The rows are few: they can point at a new class, but hardly prove it."
    return _sample(data, labels, rows, about, news, label="cultivar", row_name="wine")


def _divided(labels: NDArray[Any], shares: Mapping[str, float], new: str, n_new: int) -> tuple[Rows, Rows]:
    """Source and target: of every known class this share is source; some rows of the new class are target."""
    random = np.random.default_rng(SEED)
    cuts = [divide_all(np.flatnonzero(labels == name), share, random) for name, share in shares.items()]
    source, known = (np.concatenate(parts) for parts in zip(*cuts, strict=True))
    novel = random.permutation(np.flatnonzero(labels == new))[:n_new]
    return source, random.permutation(np.concatenate([known, novel]))


def _sample(
    data: Any, labels: NDArray[Any], rows: tuple[Rows, Rows], about: str, news: str, *, label: str, row_name: str
) -> Sample:
    source, target = rows
    return Sample(
        about=about,
        news=news,
        label=label,
        feature_names=[str(name).replace(" ", "_") for name in data.feature_names],
        X=data.data[source],
        y=labels[source],
        X_target=data.data[target],
        y_target=labels[target],
        ids=[f"{row_name}-{row}" for row in target.tolist()],
    )


SAMPLES: dict[str, Callable[[], Sample]] = {
    "digits": _digits,
    "digits-known": _known_digits,
    "breast-cancer": _breast_cancer,
    "wine": _wine,
}
