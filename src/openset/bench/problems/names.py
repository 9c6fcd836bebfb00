"""Names for methods that compare rows with names: those of the known classes, and a vocabulary of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.text import readable
from openset.bench.problems.loading import Encoding, encoder_path, with_settings
from openset.bench.problems.sources import BenchProblem
from openset.data.datasets.cifar100 import SUPERCLASSES
from openset.data.datasets.dataset import Dataset
from openset.data.datasets.sun397 import sun397_hierarchy

VOCABULARY_FILE = "vocabulary.txt"
"""In the data folder, one name a line: replaces the vocabulary below."""


def own_vocabulary(data_dir: Path) -> list[str] | None:
    """The candidate names in the user's file; None without the file."""
    file = data_dir / VOCABULARY_FILE
    if not file.is_file():
        return None
    names = [line.strip() for line in file.read_text("utf-8").splitlines()]
    return list(dict.fromkeys(name for name in names if name))


def vocabulary(data_dir: Path, data: Dataset) -> list[str]:
    """Candidate names: the user's, else those of the dataset's own classes and subtypes for texts, and for images
    all categories of SUN397's hierarchy and classes of CIFAR-100."""
    own = own_vocabulary(data_dir)
    if own is not None:
        return own
    if data.texts is not None:
        return sorted({readable(name) for name in _names_in(data)})
    scenes = [s for level in sun397_hierarchy("full").values() for group in level.values() for s in group]
    objects = [name for group in SUPERCLASSES.values() for name in group]
    return sorted({readable(name) for name in (*scenes, *objects)})


def with_names(
    problem: BenchProblem, data: Dataset, novel: str, encoding: Encoding, data_dir: Path | None
) -> BenchProblem:
    """The problem with embeddings of names: by the problem's encoder of texts with its settings, or for images by
    the text model of its encoder, which must be a CLIP.

    A known class is called by its label. The candidates are the vocabulary without the known classes and their
    subtypes. Nothing is taken out because it is new: the name of the new class is among the candidates if the
    vocabulary has it.
    """
    if data_dir is None or (encoding.encoder is None and data.texts is None):
        raise ValueError("names = true needs an encoder of images and text: give encoder, the folder of a CLIP.")
    classes = np.unique(problem.y).tolist()
    of_known = _names_in(data.take(np.isin(data.label, classes)))
    known = {readable(name) for name in of_known if name != novel}
    candidates = [name for name in vocabulary(data_dir, data) if name not in known]
    if not candidates:
        raise ValueError(f"{data_dir / VOCABULARY_FILE} has no name but those of known classes: add others.")
    folder = encoder_path(encoding.encoder or "minilm", data_dir)
    if data.texts is None:
        embed = partial(_embed_captions, folder)
    else:
        embed = partial(_embed_texts, with_settings(folder, dict(encoding.settings)))
    by_class = dict(zip(classes, embed([readable(str(name)) for name in classes]), strict=True))
    names = {"class_embeddings": by_class, "candidate_embeddings": embed(candidates)}
    return replace(problem, names=names, own_vocabulary=tuple(own_vocabulary(data_dir) or ()))


def with_decoder_folders(
    parameters: Mapping[str, Any], encoder: str | None, data_dir: Path | None
) -> dict[str, Any]:
    """The parameters of a method with a caption decoder: its models are looked for where encoders are.

    What it proposes is embedded by the text model of the problem's encoder, unless the parameters name another.
    """
    given = {"text_encoder": encoder, **parameters}
    models = {name: given[name] for name in ("decoder", "text_encoder") if given[name]}
    return {**given, **{name: str(encoder_path(model, data_dir or Path())) for name, model in models.items()}}


def _names_in(data: Dataset) -> set[str]:
    """The labels and subtypes of a dataset."""
    subtypes = [] if data.subtype is None else data.subtype.tolist()
    return {str(name) for name in (*data.label.tolist(), *subtypes)}


def _embed_texts(model: Any, names: Sequence[str]) -> NDArray[np.floating]:
    from openset.features import encode_texts

    return encode_texts(names, model, progress=False)


def _embed_captions(model: str | Path, names: Sequence[str]) -> NDArray[np.floating]:
    from openset.features.captions import embed_names

    return embed_names(str(model), names)
