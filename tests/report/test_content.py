from __future__ import annotations

import base64
from io import BytesIO

import numpy as np
import pytest

from openset.data.readers.images import ImageFiles
from openset.report.content import excerpt, label_text, novel_name, thumbnails, unusual_columns


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        ("short", "short"),
        ("a\x00b\tc\r\n d", "a b c d"),
        ("broken \ud800 pair", "broken pair"),
        ("", ""),
        (None, "None"),
        ("x" * 10**6, "x" * 19 + "…"),
    ],
)
def test_excerpts_are_one_clean_line(given_text, shown):
    assert excerpt(given_text, 20) == shown
    shown.encode()


def test_a_column_constant_in_source_stands_out_where_it_differs():
    source = np.column_stack([np.zeros(5), np.arange(5.0)])
    assert unusual_columns(np.array([[1.0, 9.0]]), source, "ab", top=1) == ["a = 1 (source 0 ± 0)"]
    assert unusual_columns(np.array([[0.0, 9.0]]), source, "ab", top=1)[0].startswith("b = 9")


def test_pictures_become_thumbnails_and_a_broken_one_does_no_harm(tmp_path):
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (400, 200), "red").save(tmp_path / "red.png")
    (tmp_path / "broken.png").write_bytes(b"no picture")
    files = ImageFiles(tmp_path, np.array(["red.png", "broken.png", "absent.png"], object))
    made = thumbnails(files, [0, 1, 2])
    assert made[0].startswith("data:image/jpeg;base64,") and len(made[0]) < 2000
    assert made[1:] == ["", ""]


def test_thumbnails_keep_to_their_budget(tmp_path, monkeypatch):
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (64, 64), "red").save(tmp_path / "red.png")
    files = ImageFiles(tmp_path, np.array(["red.png"] * 9, object))
    one = len(thumbnails(files, [0])[0])
    monkeypatch.setattr("openset.report.content.THUMBNAIL_BUDGET", 3 * one + 5)
    made = thumbnails(files, range(9))
    assert [bool(address) for address in made] == [True] * 3 + [False] * 6


def test_a_thumbnail_is_a_small_jpeg_of_the_same_shape(tmp_path):
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (400, 200), "red").save(tmp_path / "red.png")
    (made,) = thumbnails(ImageFiles(tmp_path, np.array(["red.png"], object)), [0])
    picture = image.open(BytesIO(base64.b64decode(made.removeprefix("data:image/jpeg;base64,"))))
    assert picture.size == (64, 32) and picture.getpixel((9, 9))[0] > 240


def test_labels_are_short_and_the_new_class_is_named():
    assert label_text("x" * 60) == "x" * 39 + "…" and label_text(3) == "3"
    assert novel_name("novel") == "novel" and novel_name("other") == "novel (other)"


def test_columns_are_ordered_by_their_distance_in_standard_deviations():
    random = np.random.default_rng(0)
    source, row = random.normal(size=(500, 4)) * [1, 10, 100, 1000], np.array([[3.0, 20.0, 500.0, 0.0]])
    (text,) = unusual_columns(row, source, "abcd", top=3)
    assert [part.split(" = ")[0] for part in text.split("; ")] == ["c", "a", "b"]  # 5, 3 and 2 of them
    assert text.startswith(f"c = 500 (source {source[:, 2].mean():.3g} ± {source[:, 2].std():.3g})")
