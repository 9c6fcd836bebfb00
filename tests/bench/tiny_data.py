"""A tiny data folder with all that a spec may name: official formats, stand-ins, natural data, encoders."""

from __future__ import annotations

import csv
import io
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from features.tiny_models import save_text_model, save_tokenizer
from official_files import whole_cifar, write_amazon, write_cifar_python, write_sun397

TEXT_WIDTH = 16  # of tiny text models, and of the features that stand in for MiniLM's
CIFAR_ROWS = {"train": 12, "test": 6}
"""Images of a class; the official archives have 500 and 100."""
SUN_ROWS = 8
"""The fewest pictures of a subtype; the official folder has 100."""
WORDS = ("the", "a", "red", "blue", "big", "small", "cat", "dog", "house", "runs", "sleeps")


def write_tiny_data(root):
    """Write all of it below a folder."""
    write_sun397(root / "SUN397", lambda i: SUN_ROWS + i * 7 % 9)
    write_amazon(root / "amazon_reviews", per_sentiment=40)
    (root / "cifar100").mkdir()
    write_cifar_python(root / "cifar100" / "cifar-100-python.tar.gz", whole_cifar(CIFAR_ROWS))
    random = np.random.default_rng(0)
    _stand_ins(root, random)
    _natural(root, random)
    _encoders(root / "encoders")
    return root


def _table(path, columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def _clusters(kinds, random, dimension=12):
    """Rows near a centre of their kind."""
    names, index = np.unique(kinds, return_inverse=True)
    centres = random.normal(size=(len(names), dimension)) * 2
    return (centres[index] + random.normal(size=(len(kinds), dimension))).astype(np.float32)


def _stand_ins(root, random):
    from openset.bench.problems.datasets import CLINC_KNOWN, STAND_IN_CATEGORIES
    from openset.bench.problems.sources import get_source

    categories = np.repeat([*STAND_IN_CATEGORIES, "books"], 80)
    _table(
        root / "amazon_reviews" / "reviews.parquet",
        {
            "category": categories,
            "sentiment": np.tile([0, 1], len(categories) // 2),
            "split": np.tile(["train"] * 8 + ["test"] * 2, len(categories) // 10),
            "text": [f"{name} {i}" for i, name in enumerate(categories)],
        },
    )
    features = _clusters(categories, random, TEXT_WIDTH)
    np.save(root / "amazon_reviews" / "minilm.npy", features.astype(np.float16))
    known = [("indoor", f"room{i}") for i in range(4)] + [("outdoor_manmade", f"road{i}") for i in range(3)]
    levels = {"desert": "outdoor_natural", "waterfall": "outdoor_natural"}
    novel = [(levels.get(name, "outdoor_manmade"), name) for name in (*get_source("sun").novel, "park")]
    scenes = [scene for scene in [*known, *novel] for _ in range(40)]
    folder = root / "sun_scenes"
    folder.mkdir()
    with (folder / "index.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["file", "class", "level1", "level2"])
        rows.writerows([f"{name}/{i:05}.jpg", name, level, level] for i, (level, name) in enumerate(scenes))
    features = _clusters([name for _, name in scenes], random)
    np.save(folder / "efficientnet_lite0.npy", features.astype(np.float16))
    with zipfile.ZipFile(folder / "images.zip", "w") as images:
        for i, (_, name) in enumerate(scenes):
            picture = io.BytesIO()
            pixels = random.integers(0, 256, (8, 8, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(picture, "jpeg")
            images.writestr(f"{name}/{i:05}.jpg", picture.getvalue())
    domains = [*CLINC_KNOWN, *get_source("clinc150").novel]
    queries = [(name, f"{name}_{i}") for name in domains for i in range(3) for _ in range(30)]
    _table(
        root / "clinc150" / "queries.parquet",
        {
            "text": [f"{' '.join(random.choice(WORDS, 4))} {i}" for i in range(len(queries))],
            "intent": [intent for _, intent in queries],
            "domain": [domain for domain, _ in queries],
            "split": ["train"] * len(queries),
        },
    )


def _natural(root, random):
    families = {"normal": "normal", "neptune": "dos", "satan": "probe", "guess_passwd": "r2l", "rootkit": "u2r"}
    for file, n in (("train_20_percent", 60), ("test", 60)):
        attacks = np.repeat(list(families), n)
        columns = {f"x{i}": column for i, column in enumerate(_clusters(attacks, random).T)}
        strings = {"protocol_type": "tcp", "service": "http", "flag": "SF"}
        facts = {"attack": attacks, "family": [families[name] for name in attacks]}
        same = {name: np.repeat(value, len(attacks)) for name, value in strings.items()}
        difficulty = np.zeros(len(attacks), int)
        _table(root / "nsl_kdd" / f"{file}.parquet", {**columns, **same, **facts, "difficulty": difficulty})

    def cells(path, kinds, n, **facts):
        kind = np.repeat(kinds, n)
        columns = {f"s{i:03}": column for i, column in enumerate(_clusters(kind, random).T)}
        _table(root / path, {**{name: make(kind) for name, make in facts.items()}, **columns})

    gases = ("Ethanol", "Ethylene", "Acetone", "Toluene")
    cells(
        "gas_sensors/measurements.parquet", gases, 160, gas=lambda kind: kind,
        concentration=lambda kind: np.ones(len(kind)), batch=lambda kind: 3 + np.arange(len(kind)) % 4,
    )  # fmt: skip
    cells(
        "ifnb_cells/cells.parquet", ("CD14 Mono", "CD16 Mono", "DC", "CD4 Naive T", "B", "NK"), 80,
        cell_type=lambda kind: kind,
        condition=lambda kind: np.where(np.arange(len(kind)) % 2, "STIM", "CTRL"),
    )  # fmt: skip
    cells(
        "wisdm_activity/windows.parquet", ("Walking", "Jogging", "Upstairs", "Standing", "Sitting"), 80,
        user=lambda kind: np.arange(len(kind)) % 6, activity=lambda kind: kind,
    )  # fmt: skip
    cells(
        "pbmc_chemistries/cells.parquet", ("T_CD4", "Mono_CD14", "B", "NK", "DC"), 90,
        meta_donor=lambda kind: np.array(["3pv1", "3pv2", "5p"])[np.arange(len(kind)) % 3],
        meta_cell_type=lambda kind: kind, meta_cell_type_broad=lambda kind: kind,
    )  # fmt: skip


def _encoders(folder):
    """Tiny models under the names that specs have for the real ones."""
    import torch
    import transformers as t

    torch.manual_seed(0)
    tower = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    seen = {**tower, "image_size": 16, "patch_size": 8}
    special = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
    read = {
        **tower,
        **special,
        "projection_dim": 12,
        "vocab_size": save_tokenizer(folder / "clip-vit-base-patch32"),
    }
    clip = t.CLIPConfig(text_config=read, vision_config=seen, projection_dim=12)
    resnet = t.ResNetConfig(embedding_size=8, hidden_sizes=[8, 12], depths=[1, 1], layer_type="basic")
    crop = {"size": {"shortest_edge": 16}, "crop_size": {"height": 16, "width": 16}}
    models = {
        "resnet-50": (t.ResNetModel(resnet), t.ConvNextImageProcessorPil(size={"shortest_edge": 32})),
        "efficientnet_lite0": (t.ResNetModel(resnet), t.ConvNextImageProcessorPil(size={"shortest_edge": 32})),
        "clip-vit-large-patch14": (t.CLIPModel(clip), t.CLIPImageProcessorPil(**crop)),
        "clip-vit-base-patch32": (t.CLIPModel(clip), t.CLIPImageProcessorPil(**crop)),
    }
    for name, (model, processor) in models.items():
        model.save_pretrained(folder / name)
        processor.save_pretrained(folder / name)
    text = {
        "hidden_size": TEXT_WIDTH,
        "num_hidden_layers": 1,
        "intermediate_size": 32,
        "max_position_embeddings": 80,
    }
    save_text_model(folder / "roberta-base", t.RobertaForMaskedLM, t.RobertaConfig, pad_token_id=0, **text)
    save_text_model(folder / "minilm", t.BertModel, t.BertConfig, **text)


def save_caption_decoder(folder, width):
    """A tiny decoder with random weights that attends to ``width`` numbers."""
    import transformers as t

    settings = {
        "hidden_size": width,
        "num_hidden_layers": 1,
        "intermediate_size": 16,
        "initializer_range": 0.7,
        "is_decoder": True,
        "add_cross_attention": True,
    }
    ends = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
    save_text_model(folder, t.BertGenerationDecoder, t.BertGenerationConfig, **settings, **ends)
