"""Names for zero-shot methods: what is a candidate, and what is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openset.bench.problems import ProblemSource, build_problem, problem_of, sources
from openset.bench.problems.loading import OWN, Encoding
from openset.bench.problems.names import vocabulary, with_names
from openset.data.datasets.dataset import Dataset


@pytest.fixture
def problem():
    X, y = np.zeros((4, 2)), np.array(["fish", "fish", "trees", "trees"])
    truth = np.array(["fish", "trees", "novel", "novel"])
    return problem_of(X, y, X, truth, X, truth, "novel")


DATA = Dataset(
    "toy", "toy", "", label=np.array(["fish", "trees", "people"]), subtype=np.array(["shark", "oak_tree", "baby"])
)


@pytest.fixture
def embedded(monkeypatch):
    """An embedding of a name is its length; returns the names asked for."""
    asked = []

    def embed(folder, names):
        asked.append((folder, list(names)))
        return np.array([[float(len(name)), 1.0] for name in names])

    monkeypatch.setattr("openset.features.captions.embed_names", embed)
    return asked


def test_candidates_are_all_names_but_the_known_ones(problem, embedded, tmp_path):
    (tmp_path / "encoders" / "clip").mkdir(parents=True)
    made = with_names(problem, DATA, "baby", Encoding("openai/clip"), tmp_path)
    (folder, classes), (_, candidates) = embedded
    assert folder == str(tmp_path / "encoders" / "clip") and classes == ["fish", "trees"]
    assert {"baby", "bakery shop", "streetcar"} <= set(candidates)
    assert not {"fish", "trees", "shark", "oak tree"} & set(candidates)
    assert list(made.names["class_embeddings"]) == ["fish", "trees"]
    assert made.names["candidate_embeddings"].shape == (len(candidates), 2)
    embedded.clear()
    with_names(problem, DATA, "shark", Encoding("openai/clip"), tmp_path)  # new although of a known superclass
    assert "shark" in embedded[1][1]


def test_a_file_replaces_the_vocabulary(problem, embedded, tmp_path):
    (tmp_path / "encoders" / "clip").mkdir(parents=True)
    assert len(vocabulary(tmp_path, DATA)) > 300
    (tmp_path / "vocabulary.txt").write_text("cat\n\nshark\ncat\n")
    assert vocabulary(tmp_path, DATA) == ["cat", "shark"]
    with_names(problem, DATA, "baby", Encoding("clip"), tmp_path)
    assert embedded[1][1] == ["cat"]
    (tmp_path / "vocabulary.txt").write_text("shark\n")
    with pytest.raises(ValueError, match="has no name but those of known classes"):
        with_names(problem, DATA, "baby", Encoding("clip"), tmp_path)
    with pytest.raises(ValueError, match="needs an encoder of images and text"):
        with_names(problem, DATA, "baby", OWN, tmp_path)


def test_texts_have_the_names_of_their_own_classes_by_their_own_encoder(problem, monkeypatch, tmp_path):
    asked = []

    def encode(names, model, **others):
        asked.append((model, list(names)))
        return np.ones((len(names), 2), np.float32)

    monkeypatch.setattr("openset.features.encode_texts", encode)
    data = replace(DATA, texts=np.array(["a", "b", "c"], object))
    made = with_names(problem, data, "people", OWN, tmp_path)
    assert asked == [("minilm", ["fish", "trees"]), ("minilm", ["baby", "people"])]
    assert made.names["candidate_embeddings"].shape == (2, 2)


def test_names_are_embedded_as_the_rows_are(problem, monkeypatch, tmp_path):
    asked = []

    def encode(names, model, **others):
        asked.append(model.settings)
        return np.ones((len(names), 2), np.float32)

    monkeypatch.setattr("openset.features.encode_texts", encode)
    data = replace(DATA, texts=np.array(["a", "b", "c"], object))
    with_names(problem, data, "people", Encoding.of(None, pooling="cls", max_tokens=64), tmp_path)
    assert [(settings["pooling"], settings["max_tokens"]) for settings in asked] == [("cls", 64)] * 2


def test_the_user_s_vocabulary_counts_in_the_checksum_and_the_built_in_one_does_not(
    problem, embedded, tmp_path, monkeypatch
):
    (tmp_path / "encoders" / "clip").mkdir(parents=True)

    def build(setting, novel, seed, data_dir, *, names=True):
        return with_names(problem, DATA, novel, Encoding("clip"), data_dir) if names else problem

    monkeypatch.setitem(sources._SOURCES, "toy", ProblemSource("toy", build, "", ("baby",)))

    def checksum(**options):
        return build_problem("toy", "shift", "baby", 0, tmp_path, **options).manifest_checksum

    plain, shifted = checksum(), checksum(label_shift=0.5)
    assert plain == problem.manifest_checksum
    found = {plain, shifted}
    for names in ("cat", "cat\ndog"):
        (tmp_path / "vocabulary.txt").write_text(names)
        assert checksum(names=False) == plain
        found |= {checksum(), checksum(label_shift=0.5)}
    assert len(found) == 6
