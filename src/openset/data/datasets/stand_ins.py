"""Small real datasets in place of the paper's. Each says which dataset it replaces."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.arrays import as_objects
from openset._utils.extras import require
from openset._utils.files import existing
from openset._utils.text import listed
from openset.data.datasets.dataset import Dataset
from openset.data.readers.images import ImageFiles

_README = "The folder is described in docs/data.md."


def load_amazon_fdu_mtl(folder: str | Path) -> Dataset:
    """A stand-in for Amazon Reviews: 25 859 older reviews, 14 categories, sentiment, MiniLM features.

    ``folder`` holds ``reviews.parquet`` (category, sentiment, split, text) and ``minilm.npy`` (float16, 384).
    Unlike the paper's data the reviews are older and of other categories, the text is tokenised and in lower
    case, and there are no stars. Features are memory-mapped.
    """
    root = _folder(folder, ("reviews.parquet", "minilm.npy"))
    table = _columns(root / "reviews.parquet", ("category", "sentiment", "split", "text"))
    sentiment = table["sentiment"].astype(np.int8)
    if set(np.unique(sentiment).tolist()) != {0, 1}:
        raise ValueError(f"{root / 'reviews.parquet'}: sentiment must be 0 or 1, found {np.unique(sentiment)}.")
    return Dataset(
        name="amazon_fdu_mtl",
        title="Amazon reviews of FDU-MTL (a stand-in for Amazon Reviews 2018)",
        stand_in_for="Amazon Reviews 2018",
        citation="Liu, P., Qiu, X., Huang, X. (2017). Adversarial multi-task learning for text classification. "
        "ACL; after Blitzer, J., Dredze, M., Pereira, F. (2007).",
        label=table["category"].astype(str),
        sentiment=sentiment,
        split=table["split"].astype(str),
        texts=table["text"],
        features=np.load(root / "minilm.npy", mmap_mode="r", allow_pickle=False),
    )


def load_sun_scenes(folder: str | Path) -> Dataset:
    """A stand-in for SUN397: 2983 SUN photographs of 14 categories with EfficientNet-Lite0 features.

    ``folder`` holds ``index.csv``, ``efficientnet_lite0.npy`` (float16, 1280) and ``images.zip``. ``label`` is
    level 1 (indoor, outdoor_natural, outdoor_manmade), ``subtype`` the category; ``columns["level2"]`` was
    assigned by hand. Features are memory-mapped; images are read from the archive when they are asked for.
    """
    root = _folder(folder, ("index.csv", "efficientnet_lite0.npy", "images.zip"))
    with (root / "index.csv").open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    missing = [name for name in ("file", "class", "level1", "level2") if not rows or name not in rows[0]]
    if missing:
        raise ValueError(f"{root / 'index.csv'} lacks the columns {listed(missing)}. {_README}")
    return Dataset(
        name="sun_scenes",
        title="SUN scenes, 14 categories (a stand-in for SUN397)",
        stand_in_for="SUN397",
        citation="Xiao, J., Hays, J., Ehinger, K. A., Oliva, A., Torralba, A. (2010). SUN database. CVPR.",
        label=np.asarray([row["level1"] for row in rows]),
        subtype=np.asarray([row["class"] for row in rows]),
        images=ImageFiles(root / "images.zip", as_objects([row["file"] for row in rows])),
        features=np.load(root / "efficientnet_lite0.npy", mmap_mode="r", allow_pickle=False),
        columns={"level2": np.asarray([row["level2"] for row in rows])},
    )


def load_clinc150(folder: str | Path) -> Dataset:
    """CLINC150: ``label`` is the domain, ``subtype`` the intent; out-of-scope queries have ``oos`` for both.

    ``folder`` holds ``queries.parquet`` (text, intent, domain, split). The paper does not use this dataset, and
    it replaces none; its 10 domains of 15 intents each allow background shift in text without sentiment.
    """
    root = _folder(folder, ("queries.parquet",))
    table = _columns(root / "queries.parquet", ("text", "intent", "domain", "split"))
    return Dataset(
        name="clinc150",
        title="CLINC150",
        citation="Larson, S., et al. (2019). An evaluation dataset for intent classification and out-of-scope "
        "prediction. EMNLP. CC BY 3.0.",
        label=table["domain"].astype(str),
        subtype=table["intent"].astype(str),
        split=table["split"].astype(str),
        texts=table["text"],
    )


def _folder(folder: str | Path, needed: tuple[str, ...]) -> Path:
    root = existing(folder, _README)
    missing = [name for name in needed if not (root / name).is_file()]
    if missing:
        raise FileNotFoundError(f"{root} lacks {listed(missing)}. {_README}")
    return root


def _columns(path: Path, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    pq = require("pyarrow.parquet", "Reading Parquet", "data")

    table = pq.read_table(path)
    missing = [name for name in names if name not in table.column_names]
    if missing:
        raise ValueError(
            f"{path} lacks the columns {listed(missing)}; it has {listed(table.column_names)}. {_README}"
        )
    return {name: table[name].to_numpy() for name in names}
