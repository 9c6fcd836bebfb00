"""Where a dataset is looked for in the data folder, and how its rows become features."""

from __future__ import annotations

import tarfile

import numpy as np
import pytest

from official_files import whole_cifar, write_amazon, write_cifar_binary, write_cifar_python
from openset.bench.problems import build_problem, source_for
from openset.bench.problems.loading import (
    Encoding,
    encoder_path,
    forget_datasets,
    load,
    load_cifar,
    load_with_features,
)
from openset.errors import ParameterError

ROWS = {"train": 10, "test": 5}
PARTS = whole_cifar(ROWS)


@pytest.fixture(autouse=True)
def tiny_release(monkeypatch):
    monkeypatch.setattr("openset.data.datasets.cifar100.ROWS_PER_CLASS", ROWS)
    forget_datasets()
    yield
    forget_datasets()


@pytest.fixture
def pixels(monkeypatch):
    def encode(images, encoder, *, progress):
        return np.asarray(images)[:, ::16, ::16].reshape(len(images), -1).astype(np.float32)

    monkeypatch.setattr("openset.features.encode_images", encode)


def data_with(folder, version, *, unpacked):
    """A data folder with CIFAR-100 in one of the official versions."""
    home = folder / f"{version}-{unpacked}" / "cifar100"
    home.mkdir(parents=True)
    write = {"python": write_cifar_python, "binary": write_cifar_binary}[version]
    archive = write(home / f"cifar-100-{version}.tar.gz", PARTS)
    if unpacked:
        with tarfile.open(archive) as members:
            members.extractall(home, filter="data")
        archive.unlink()
    return home.parent


def test_problems_are_the_same_from_either_official_version_and_from_an_extract(tmp_path, pixels):
    folders = [
        data_with(tmp_path, version, unpacked=unpacked)
        for version in ("python", "binary")
        for unpacked in (False, True)
    ]
    data, _ = load_cifar(folders[0], ("baby", "man"), None)
    assert set(data.subtype) == {"baby", "man"} and len(data) == 30
    whole, _ = load_cifar(folders[0], tuple(sorted(load("cifar100", folders[0]).subtype)), None)
    extract = tmp_path / "extract" / "cifar100"
    extract.mkdir(parents=True)
    columns = {"images": whole.images, "fine": whole.subtype, "coarse": whole.label, "split": whole.split}
    np.savez(extract / "cifar100_26classes.npz", **columns)
    for dataset in ("cifar100", "cifar100-images"):
        checksums = set()
        for folder in (*folders, extract.parent):
            assert source_for(dataset, folder).missing_files(folder) == []
            checksums.add(build_problem(dataset, "shift", "man", 8, folder).manifest_checksum)
            forget_datasets()
        assert len(checksums) == 1
    assert source_for("cifar100", tmp_path).missing_files(tmp_path) == [
        "cifar100/cifar-100-python.tar.gz or cifar100/cifar-100-python/train or "
        "cifar100/cifar-100-binary.tar.gz or cifar100/cifar-100-binary/train.bin or "
        "cifar100/cifar100_26classes.npz"
    ]


def test_a_class_that_the_paper_does_not_use_can_be_new_or_known(tmp_path, pixels):
    folder = data_with(tmp_path, "binary", unpacked=False)
    problem = build_problem("cifar100", "shift", "bee", 0, folder, known=["trees", "fish"])
    assert set(problem.y) == {"trees", "fish"} and problem.novel_fraction > 0


def test_an_encoding_has_the_settings_that_are_given(tmp_path, monkeypatch):
    write_amazon(tmp_path / "amazon_reviews", 4)
    asked = []

    def encode(texts, encoder, *, progress):
        asked.append(encoder)
        return np.zeros((len(texts), 2), np.float32)

    monkeypatch.setattr("openset.features.encode_texts", encode)
    load_with_features("amazon", tmp_path, Encoding.of("minilm", pooling=None, max_tokens=None))
    load_with_features("amazon", tmp_path, Encoding.of("minilm", pooling="pooler", max_tokens=512))
    assert asked[0] == "minilm"
    assert (asked[1].settings["pooling"], asked[1].settings["max_tokens"]) == ("pooler", 512)


def test_an_encoder_that_is_not_here_names_its_folder_and_the_option(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    local = tmp_path / "encoders" / "nothing-here"
    with pytest.raises(ParameterError, match=rf"at {local}, or pass allow_download=True to download it\.$"):
        encoder_path("nobody/nothing-here", tmp_path)
    local.mkdir(parents=True)
    assert encoder_path("nobody/nothing-here", tmp_path) == local
    assert encoder_path("minilm", tmp_path) == "minilm"


def test_an_encoder_computes_on_the_device_asked_for(tmp_path, monkeypatch):
    write_amazon(tmp_path / "amazon_reviews", 4)
    asked = []

    def encode(items, encoder, *, progress, **options):
        asked.append(options.get("device") or encoder.device)
        return np.zeros((len(items), 2), np.float32)

    for name in ("encode_texts", "encode_images", "encode_cells"):
        monkeypatch.setattr(f"openset.features.{name}", encode)
    texts = Encoding.of("minilm", "cuda")
    load_with_features("amazon", tmp_path, texts)
    assert texts == Encoding.of("minilm") and Encoding.of(None, "cuda") == Encoding()
    load_with_features("amazon", tmp_path, Encoding.of("minilm"))
    assert asked == ["cuda"], "one encoding, whatever its device"
    folder = data_with(tmp_path, "binary", unpacked=False)
    for cells in (None, 2):
        load_cifar(folder, ("baby", "man"), Encoding.of("efficientnet_lite0", "cuda", cells=cells))
    build_problem("cifar100", "shift", "man", 8, folder, device="cuda")
    source_for("cifar100", folder).prepare(folder, False, device="cuda", known=["trees", "fish"])
    assert asked == ["cuda"] * 5
