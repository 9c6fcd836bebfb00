"""Reviews and scenes from ../shared/data as files, with a new class in the target."""

from __future__ import annotations

import zipfile

import numpy as np
import pandas as pd

from openset.data.datasets.stand_ins import load_amazon_fdu_mtl, load_sun_scenes


def write_reviews(shared, folder, *, per_class=130, n_new=45):
    """Texts: four known categories, toys are new. Returns the truth of the target."""
    data = load_amazon_fdu_mtl(shared / "amazon_reviews")
    known = ("music", "software", "health_personal_care", "apparel")
    rows, target = _split(np.asarray(data.label), known, "toys_games", per_class, n_new)
    texts, labels = np.asarray(data.texts), np.asarray(data.label)
    pd.DataFrame({"text": texts[rows], "category": labels[rows]}).to_parquet(folder / "known.parquet")
    ids = [f"review-{i}" for i in range(len(target))]
    pd.DataFrame({"rid": ids, "text": texts[target]}).to_parquet(folder / "batch.parquet")
    return labels[target]


def write_scenes(shared, folder, *, per_class=60, n_new=30):
    """Pictures: four known kinds of places, windmills are new."""
    data = load_sun_scenes(shared / "sun_scenes")
    labels, paths = np.asarray(data.subtype).astype(str), data.images.paths
    kinds = [str(kind) for kind in pd.Series(labels).value_counts().index if kind != "windmill"][:4]
    rows, target = _split(labels, kinds, "windmill", per_class, n_new)
    with zipfile.ZipFile(data.images.root) as archive:
        for role, chosen in (("known", rows), ("batch", target)):
            for number, row in enumerate(chosen):
                place = folder / role / (labels[row] if role == "known" else "")
                place.mkdir(parents=True, exist_ok=True)
                (place / f"{number:04d}.jpg").write_bytes(archive.read(str(paths[row])))
    return labels[target]


def _split(labels, known, novel, per_class, n_new):
    random = np.random.default_rng(0)
    source, target = [], []
    for label in known:
        rows = random.permutation(np.flatnonzero(labels == label))
        source += rows[:per_class].tolist()
        target += rows[per_class : 2 * per_class].tolist()
    target += random.permutation(np.flatnonzero(labels == novel))[:n_new].tolist()
    return np.array(source), random.permutation(target)
