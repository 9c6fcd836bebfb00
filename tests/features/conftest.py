"""Tiny models for all tests of features, and a cache of their own."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the helpers, here and in processes that tests start

from tiny_models import save_text_model


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """No test reads or writes the user's cache."""
    monkeypatch.setenv("OPENSET_CACHE", str(tmp_path / "default-cache"))


@pytest.fixture(scope="session")
def bert(tmp_path_factory):
    """A BERT of two layers and 24 features."""
    from transformers import BertConfig, BertModel

    return save_text_model(
        tmp_path_factory.mktemp("models") / "bert", BertModel, BertConfig, hidden_size=24, num_hidden_layers=2,
        intermediate_size=32, max_position_embeddings=64, initializer_range=0.5,
    )  # fmt: skip


@pytest.fixture(scope="session")
def sentence_bert(bert, tmp_path_factory):
    """Make a sentence-transformers directory of the tiny BERT: ``sentence_bert(mode, normalise, old)``."""

    def make(mode="mean", *, normalise=False, old=False, general=None, extra=()):
        directory = tmp_path_factory.mktemp("sentence") / "model"
        shutil.copytree(bert, directory)
        kinds = ["Transformer", "Pooling", *(["Normalize"] if normalise else []), *extra]
        paths = ["", *(f"{i}_{kind}" for i, kind in enumerate(kinds) if i)]
        modules = [
            {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for i, (kind, path) in enumerate(zip(kinds, paths, strict=True))
        ]
        (directory / "modules.json").write_text(json.dumps(modules))
        (directory / "1_Pooling").mkdir()
        names = {"mean": "mean_tokens", "cls": "cls_token", "max": "max_tokens"}
        flags = {f"pooling_mode_{name}": key == mode for key, name in names.items()}
        pooling = (
            {"word_embedding_dimension": 24, **flags}
            if old
            else {"embedding_dimension": 24, "pooling_mode": mode}
        )
        (directory / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
        (directory / "config_sentence_transformers.json").write_text(json.dumps(general or {}))
        (directory / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 64}))
        return directory

    return make


def save_vision(directory, model, processor):
    model.save_pretrained(directory)
    processor.save_pretrained(directory)
    return directory


@pytest.fixture(scope="session")
def vision(tmp_path_factory):
    """Directories of tiny vision models, by name."""
    import torch
    import transformers as t

    folder = tmp_path_factory.mktemp("vision")
    torch.manual_seed(0)
    tower = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    seen = {**tower, "image_size": 32, "patch_size": 8}
    clip = t.CLIPConfig(
        text_config={**tower, "vocab_size": 20}, vision_config=seen, projection_dim=12
    )  # fmt: skip
    resnet = t.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic")
    square = {"size": {"height": 32, "width": 32}}
    shortest = {"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}}
    models = {
        "vit": (t.ViTModel(t.ViTConfig(**seen)), t.ViTImageProcessorPil(**square)),
        "vit_classifier": (t.ViTForImageClassification(t.ViTConfig(**seen)), t.ViTImageProcessorPil(**square)),
        "clip": (t.CLIPModel(clip), t.CLIPImageProcessorPil(**shortest)),
        "clip_vision": (t.CLIPVisionModel(t.CLIPVisionConfig(**seen)), t.CLIPImageProcessorPil(**shortest)),
        "clip_projected": (
            t.CLIPVisionModelWithProjection(t.CLIPVisionConfig(**seen, projection_dim=12)),
            t.CLIPImageProcessorPil(**shortest),
        ),
        "resnet": (t.ResNetModel(resnet), t.ConvNextImageProcessorPil(size={"shortest_edge": 32})),
    }
    return {name: save_vision(folder / name, *parts) for name, parts in models.items()}
