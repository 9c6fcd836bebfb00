from __future__ import annotations

import os
import pickle
import tarfile

import numpy as np
import pytest

from official_files import (
    COARSE,
    FINE,
    FINE_NAMES,
    cifar_parts,
    whole_cifar,
    write_cifar,
    write_cifar_binary,
    write_cifar_python,
    write_tar,
)
from openset.data import load_cifar100
from openset.data.datasets.cifar100 import SUPERCLASS_OF, SUPERCLASSES


@pytest.mark.parametrize("unpacked", [False, True])
def test_a_tiny_official_archive_loads(tmp_path, unpacked):
    parts, images = cifar_parts()
    path = write_cifar(tmp_path / "cifar-100-python.tar.gz", parts)
    if unpacked:
        with tarfile.open(path) as archive:
            archive.extractall(tmp_path, filter="data")
        path = tmp_path
    data = load_cifar100(path, partial=True)
    assert data.name == "cifar100" and data.stand_in_for is None and "3 of the 100" in data.title
    assert data.split.tolist() == ["train"] * 6 + ["test"] * 6
    assert data.subtype.tolist() == FINE * 4 and data.label.tolist() == COARSE * 4
    assert data.images.shape == (12, 32, 32, 3) and data.images.dtype == np.uint8
    # the file has all red values of an image first, then green, then blue
    assert data.images[7, 3, 5, 2] == images[7, 2 * 1024 + 3 * 32 + 5]
    assert any("97 classes are missing" in note for note in data.notes)


@pytest.mark.parametrize("unpacked", [False, True])
def test_both_official_archives_hold_the_same_rows(tmp_path, monkeypatch, unpacked):
    rows = {"train": 3, "test": 2}
    monkeypatch.setattr("openset.data.datasets.cifar100.ROWS_PER_CLASS", rows)
    parts = whole_cifar(rows)
    paths = [
        write_cifar_python(tmp_path / "cifar-100-python.tar.gz", parts),
        write_cifar_binary(tmp_path / "cifar-100-binary.tar.gz", parts),
    ]
    if unpacked:
        for path in paths:
            with tarfile.open(path) as archive:
                archive.extractall(tmp_path, filter="data")
        paths = [tmp_path / "cifar-100-python", tmp_path / "cifar-100-binary"]
    python, binary = map(load_cifar100, paths)
    assert python.title == "CIFAR-100" and len(python) == 500 and python.notes == ()
    assert python.subtype[:3].tolist() == [FINE_NAMES[i] for i in parts["train"][1][:3]]
    for column in ("images", "label", "subtype", "split"):
        np.testing.assert_array_equal(getattr(python, column), getattr(binary, column))


@pytest.mark.parametrize("version", ["python", "binary"])
def test_the_folder_of_an_archive_is_read_as_the_archive(tmp_path, monkeypatch, version):
    rows = {"train": 2, "test": 1}
    monkeypatch.setattr("openset.data.datasets.cifar100.ROWS_PER_CLASS", rows)
    write = {"python": write_cifar_python, "binary": write_cifar_binary}[version]
    archive = write(tmp_path / f"cifar-100-{version}.tar.gz", whole_cifar(rows))
    np.testing.assert_array_equal(load_cifar100(tmp_path).images, load_cifar100(archive).images)
    with tarfile.open(archive) as members:
        members.extractall(tmp_path, filter="data")
    archive.write_bytes(b"no archive")
    assert len(load_cifar100(tmp_path)) == 300, "the unpacked files come first"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train.bin", None, "lacks train.bin of cifar-100-binary"),
        ("train.bin", b"\0" * 3073, "'train.bin' in .* has 3073 bytes, not a multiple of 3074"),
        ("test.bin", b"", "'test.bin' in .* has 0 bytes"),
        ("test.bin", b"\0" + b"\xff" * 3073, "'test.bin' in .* one class number below 100 for each image"),
        ("fine_label_names.txt", b"apple", "'train.bin' in .* one class number below 1 for each image"),
    ],
)
def test_a_damaged_binary_version_says_what_is_wrong(tmp_path, name, content, message):
    archive = write_cifar_binary(tmp_path / "c.tar.gz", whole_cifar({"train": 1, "test": 1}))
    with tarfile.open(archive) as whole:
        whole.extractall(tmp_path, filter="data")
    file = tmp_path / "cifar-100-binary" / name
    file.unlink() if content is None else file.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_cifar100(tmp_path, partial=True)


def test_an_incomplete_archive_says_what_is_missing(tmp_path):
    path = write_cifar(tmp_path / "c.tar.gz", cifar_parts()[0])
    expected = r"97 classes are missing.*apple has 2 of 500 train.*https://www.cs.toronto.edu"
    with pytest.raises(ValueError, match=expected):
        load_cifar100(path)


def test_nothing_runs_from_a_malicious_archive(tmp_path):
    flag = tmp_path / "flag"

    class Payload:
        def __reduce__(self):
            return os.system, (f"touch {flag}",)

    for part in ("meta", "train", "test"):
        parts = cifar_parts()[0] | {part: pickle.dumps({"data": Payload()}, 2)}
        with pytest.raises(ValueError, match=rf"'{part}' in .* was refused: it names posix.system"):
            load_cifar100(write_cifar(tmp_path / "c.tar.gz", parts), partial=True)
    assert not flag.exists()


def test_an_archive_that_reaches_outside_is_refused(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    parts = [(f"cifar-100-python/{name}", content) for name, content in cifar_parts()[0].items()]
    link = tarfile.TarInfo("cifar-100-python/train")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    for member in ("../evil", str(tmp_path / "evil"), "cifar-100-python/../../evil", link):
        path = write_tar(inside / "c.tar.gz", [*parts, (member, b"")])
        with pytest.raises(ValueError, match="reaches outside the archive or is a link. Nothing was unpacked"):
            load_cifar100(path, partial=True)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["c.tar.gz", "inside"]


def test_an_archive_that_claims_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("openset.data.datasets.cifar100._LARGEST_PART", 1000)
    with pytest.raises(ValueError, match="'cifar-100-python/train' claims [0-9]+ bytes"):
        load_cifar100(write_cifar(tmp_path / "c.tar.gz", cifar_parts()[0]), partial=True)


def test_bad_archives_have_clear_errors(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist. CIFAR-100 comes from"):
        load_cifar100(tmp_path / "absent.tar.gz")
    whole = write_cifar(tmp_path / "c.tar.gz", cifar_parts()[0]).read_bytes()
    (tmp_path / "half.tar.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.tar.gz").write_bytes(b"<html>404</html>")
    for name in ("half", "text"):
        with pytest.raises(ValueError, match="not a whole tar archive.*download it again"):
            load_cifar100(tmp_path / f"{name}.tar.gz")
    parts = cifar_parts()[0]
    del parts["meta"]
    with pytest.raises(ValueError, match="lacks meta of cifar-100-python"):
        load_cifar100(write_cifar(tmp_path / "c.tar.gz", parts))
    with pytest.raises(ValueError, match="lacks meta, train, test"):
        load_cifar100(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": np.zeros((6, 3071), np.uint8)}, r"shape \(6, 3071\), not \(rows, 3072\)"),
        ({"data": 3}, "not .rows, 3072."),
        ({"fine_labels": [0, 1]}, "one class number below 3 for each image"),
        ({"fine_labels": [0, 1, 2, 3, 0, 0]}, "one class number below 3"),
        ({"fine_labels": [-1] * 6}, "one class number below 3"),
        ({"coarse_labels": [1] * 6}, "'apple' has the superclass 'people', not 'fruit_and_vegetables'"),
    ],
)
def test_wrong_contents_are_told(tmp_path, change, message):
    content = {"data": np.zeros((6, 3072), np.uint8), "fine_labels": [0] * 6, "coarse_labels": [0] * 6} | change
    parts = cifar_parts()[0] | {"train": pickle.dumps(content, 2)}
    with pytest.raises(ValueError, match=message):
        load_cifar100(write_cifar(tmp_path / "c.tar.gz", parts), partial=True)


def test_an_image_folder_loads(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)
    names = ["train/apple/0.png", "train/baby/0.png", "test/apple/0.png", "test/baby/0.png"]
    for name, one in zip(names, pixels, strict=True):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        image.fromarray(one).save(tmp_path / name)
    data = load_cifar100(tmp_path, partial=True)
    assert data.label.tolist() == ["fruit_and_vegetables", "people"] * 2
    assert data.split.tolist() == ["train", "train", "test", "test"]
    np.testing.assert_array_equal(np.stack(list(data.images)), pixels)
    (tmp_path / "train" / "cow").mkdir()
    image.fromarray(pixels[0]).save(tmp_path / "train" / "cow" / "0.png")
    with pytest.raises(ValueError, match="'cow' is not a class of CIFAR-100"):
        load_cifar100(tmp_path, partial=True)


def test_npz_must_hold_the_four_arrays(tmp_path):
    np.savez(tmp_path / "c.npz", images=np.zeros((1, 32, 32, 3), np.uint8))
    with pytest.raises(ValueError, match="lacks fine, coarse, split and holds images"):
        load_cifar100(tmp_path / "c.npz")
    np.savez(tmp_path / "c.npz", images=np.zeros((1, 3072)), fine=["apple"], coarse=["x"], split=["train"])
    with pytest.raises(ValueError, match="not uint8"):
        load_cifar100(tmp_path / "c.npz")
    np.savez(tmp_path / "c.npz", images=np.array([object()]), fine=["apple"], coarse=["x"], split=["train"])
    with pytest.raises(ValueError, match="allow_pickle=False"):
        load_cifar100(tmp_path / "c.npz")


def test_the_26_classes_of_the_development_data(shared_data):
    data = load_cifar100(shared_data / "cifar100" / "cifar100_26classes.npz")
    assert len(data) == 15600 and data.notes == () and data.title == "CIFAR-100, 26 of the 100 fine classes"
    known = ["flowers", "aquatic_mammals", "fish", "fruit_and_vegetables"]
    assert {name for name, label in zip(data.subtype, data.label, strict=True) if label in known} == {
        name for label in known for name in SUPERCLASSES[label]
    }
    assert (data.split == "train").sum() == 13000


def test_the_hundred_classes_are_in_twenty_superclasses():
    assert len(SUPERCLASSES) == 20 and len(SUPERCLASS_OF) == 100
