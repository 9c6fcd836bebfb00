from __future__ import annotations

import zipfile

import numpy as np
import pytest
from table_files import check_bad_rows

from openset._utils.arrays import as_objects
from openset.data import read_table
from openset.data.readers.images import ImageFiles, list_images, open_image_folder

Image = pytest.importorskip("PIL.Image")


def test_unreadable_images(tmp_path):
    for name in ("cat/a.png", "cat/b.png", "dog/c.png", "dog/deep/d.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (3, 2), 7).save(tmp_path / name)
    records = read_table(tmp_path)
    assert records.y.tolist() == ["cat", "cat", "dog", "dog"]
    assert records.ids.tolist() == ["cat/a.png", "cat/b.png", "dog/c.png", "dog/deep/d.png"]
    assert records.X is None and records.images[1].tolist() == [[[7, 7, 7]] * 3] * 2
    (tmp_path / "cat" / "b.png").write_bytes(b"no image")
    check_bad_rows(tmp_path, "row 1: image 'cat/b.png' is unreadable", [0, 2, 3], [1])
    with pytest.raises(ValueError, match="unreadable"):
        records.images[1]
    (tmp_path / "t.csv").write_text("file,y\ncat/a.png,1\ncat/absent.png,0\ndog/c.png,1\n")
    check_bad_rows(
        tmp_path / "t.csv", "row 1: image 'cat/absent.png' is not in", [0, 2], [1], image="file", label="y"
    )
    Image.new("L", (3, 2)).save(tmp_path / "loose.png")
    with pytest.raises(ValueError, match="1 images beside the class folders .loose.png."):
        read_table(tmp_path)
    (tmp_path / "none").mkdir()
    with pytest.raises(ValueError, match="a folder without images"):
        read_table(tmp_path / "none")


@pytest.fixture
def pictures(tmp_path):
    """A grey PNG, a palette GIF of two frames, a file that is no image, a hidden one; all also in a zip."""
    (tmp_path / "in").mkdir()
    Image.fromarray(np.arange(6, dtype=np.uint8).reshape(2, 3)).save(tmp_path / "in" / "grey.png")
    frames = [Image.new("P", (2, 2), number) for number in (0, 1)]
    frames[0].save(tmp_path / "in" / "moving.GIF", save_all=True, append_images=frames[1:])
    (tmp_path / "in" / "bad.jpg").write_bytes(b"no image")
    (tmp_path / "in" / ".hidden.png").write_bytes(b"")
    (tmp_path / "in" / "notes.txt").write_text("no image")
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        for path in (tmp_path / "in").iterdir():
            archive.write(path, path.name)
    return tmp_path


def test_images_are_found_by_their_extension(pictures):
    (pictures / "in" / ".cache").mkdir()
    (pictures / "in" / ".cache" / "a.png").write_bytes(b"")
    assert list_images(pictures / "in") == ["bad.jpg", "grey.png", "moving.GIF"]
    assert list_images(pictures) == ["in/bad.jpg", "in/grey.png", "in/moving.GIF"]


@pytest.mark.parametrize("root", ["in", "in.zip"])
def test_images_are_read_from_a_folder_or_an_archive(pictures, root):
    images = ImageFiles(pictures / root, as_objects(["grey.png", "moving.GIF", "bad.jpg", "absent.png"]))
    assert images[0].shape == (2, 3, 3) and images[0][..., 1].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert images[np.int64(1)].shape == (2, 2, 3), "the first frame"
    some = images[[1, 0]]
    assert len(some) == 2 and [image.shape for image in some] == [(2, 2, 3), (2, 3, 3)]
    assert images.problem(0) is None and images.problem(1) is None
    assert images.problem(2) == "image 'bad.jpg' is unreadable (UnidentifiedImageError)"
    assert images.problem(3) == f"image 'absent.png' is not in {pictures / root}"
    with pytest.raises(ValueError, match="image 'bad.jpg' in .* is unreadable"):
        images[2]
    with pytest.raises(FileNotFoundError, match="image 'absent.png' is not in"):
        images[3]


def test_a_flat_folder_has_no_labels(pictures):
    (pictures / "in" / "bad.jpg").unlink()
    opened = open_image_folder(pictures / "in")
    assert opened.kinds == {"image": "other"} and opened.defaults == {"image": "image", "id": "image"}
    records = read_table(pictures / "in")
    assert records.y is None and records.ids.tolist() == ["grey.png", "moving.GIF"]


def test_images_are_turned_upright(tmp_path):
    turned = Image.fromarray(np.arange(6, dtype=np.uint8).reshape(2, 3))
    exif = turned.getexif()
    exif[0x0112] = 6  # shown a quarter turn clockwise
    turned.save(tmp_path / "turned.png", exif=exif)
    images = ImageFiles(tmp_path, as_objects(["turned.png"]))
    assert images[0][..., 0].tolist() == [[3, 0], [4, 1], [5, 2]]


@pytest.mark.parametrize("root", ["in", "in.zip"])
def test_a_file_gives_its_bytes_without_decoding_them(pictures, root):
    good, bad, absent = ImageFiles(pictures / root, as_objects(["grey.png", "bad.jpg", "absent.png"])).files
    assert good.read_bytes() == (pictures / "in" / "grey.png").read_bytes() and bad.read_bytes() == b"no image"
    assert str(good) == str(pictures / root / "grey.png")
    with pytest.raises(FileNotFoundError, match="No such file .*absent.png"):
        absent.read_bytes()


def test_a_damaged_member_of_an_archive_is_told(pictures):
    archive = pictures / "in.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("a.png", b"here are some bytes")
    archive.write_bytes(archive.read_bytes().replace(b"some bytes", b"any bytes!"))
    images = ImageFiles(archive, as_objects(["a.png"]))
    with pytest.raises(OSError, match="Bad CRC-32"):
        images.files[0].read_bytes()
    with pytest.raises(ValueError, match="image 'a.png' in .* is unreadable: .*Bad CRC-32"):
        images[0]
