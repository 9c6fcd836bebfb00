"""Names for methods that compare images with names: those of the known classes, and a vocabulary of others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from openset.bench.problems.loading import encoder_path
from openset.bench.problems.sources import BenchProblem
from openset.data.datasets.cifar100 import SUPERCLASSES
from openset.data.datasets.dataset import Dataset
from openset.data.datasets.sun397 import sun397_hierarchy

VOCABULARY_FILE = "vocabulary.txt"
"""In the data folder, one name a line: replaces the vocabulary below."""


def readable(name: str) -> str:
    """A label as a person would say it.

    >>> readable("/b/bakery/shop"), readable("fruit_and_vegetables")
    ('bakery shop', 'fruit and vegetables')
    """
    parts = [part for part in name.split("/") if len(part) > 1]
    return " ".join(parts).replace("_", " ")


def vocabulary(data_dir: Path) -> list[str]:
    """Candidate names: the user's file, else all categories of SUN397's hierarchy and classes of CIFAR-100."""
    file = data_dir / VOCABULARY_FILE
    if file.is_file():
        names = [line.strip() for line in file.read_text("utf-8").splitlines()]
        return list(dict.fromkeys(name for name in names if name))
    scenes = [s for level in sun397_hierarchy("full").values() for group in level.values() for s in group]
    objects = [name for group in SUPERCLASSES.values() for name in group]
    return sorted({readable(name) for name in (*scenes, *objects)})


def with_names(
    problem: BenchProblem, data: Dataset, novel: str, encoder: str | None, data_dir: Path | None
) -> BenchProblem:
    """The problem with embeddings of names by the text model of its encoder, which must be a CLIP.

    A known class is called by its label. The candidates are the vocabulary without the known classes and their
    subtypes. Nothing is taken out because it is new: the name of the new class is among the candidates if the
    vocabulary has it.
    """
    from openset.features.captions import embed_names

    if encoder is None or data_dir is None:
        raise ValueError("names = true needs an encoder of images and text: give encoder, the folder of a CLIP.")
    folder = str(encoder_path(encoder, data_dir))
    classes = np.unique(problem.y).tolist()
    of_known = np.isin(data.label, classes)
    subtypes = [] if data.subtype is None else np.unique(data.subtype[of_known]).tolist()
    known = {readable(str(name)) for name in (*classes, *subtypes) if name != novel}
    candidates = [name for name in vocabulary(data_dir) if name not in known]
    if not candidates:
        raise ValueError(f"{data_dir / VOCABULARY_FILE} has no name but those of known classes: add others.")
    by_class = dict(zip(classes, embed_names(folder, [readable(str(name)) for name in classes]), strict=True))
    names = {"class_embeddings": by_class, "candidate_embeddings": embed_names(folder, candidates)}
    return replace(problem, names=names)
