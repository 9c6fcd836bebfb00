from __future__ import annotations

import csv

import numpy as np
import pytest

from openset.data import load_sun397, sun397_hierarchy

Image = pytest.importorskip("PIL.Image")


def make_tree(root, categories, images):
    for category in categories:
        folder = root / category[1:]
        folder.mkdir(parents=True)
        for i in range(images):
            Image.new("RGB", (4, 3), (i, 0, 0)).save(folder / f"sun_{i:02}.png")
    (root / "ClassName.txt").write_text("\n".join(categories))


def all_subtypes(which="paper"):
    return [s for groups in sun397_hierarchy(which).values() for subtypes in groups.values() for s in subtypes]


def test_each_subtype_stands_in_one_class_only():
    for which in ("paper", "full"):
        subtypes = all_subtypes(which)
        assert len(subtypes) == len(set(subtypes))
    indoor = sun397_hierarchy()["indoor"]
    assert [len(subtypes) for subtypes in indoor.values()] == [8, 8, 8, 8, 8, 7]
    assert "/b/beauty_salon" in indoor["shopping_dining"] and "/b/beauty_salon" not in indoor["cultural"]
    with pytest.raises(ValueError, match="'paper' or 'full', got 'half'"):
        sun397_hierarchy("half")


def test_the_hierarchy_is_the_authors(shared_data):
    def subtypes(file):
        lines = (shared_data / "sun397_hierarchy" / file).read_text().splitlines()
        return {cell for row in csv.reader(lines) for cell in row if cell}

    paper, full = sun397_hierarchy(), sun397_hierarchy("full")
    assert {s for group in paper["indoor"].values() for s in group} == subtypes("sun397_hierarchy.csv")
    assert {s for g in paper["outdoor_natural"].values() for s in g} == subtypes("sun397_ood_subset.csv")
    misnamed = {"/a/anechoic_chamber/outdoor"}
    assert {s for group in full["indoor"].values() for s in group} == (
        subtypes("sun397_hierarchy_full.csv") - misnamed | {"/a/anechoic_chamber"}
    )
    outdoor = full["outdoor_natural"] | full["outdoor_manmade"]
    assert {s for group in outdoor.values() for s in group} == subtypes("sun397_ood.csv")


def test_a_tiny_official_tree_loads(tmp_path, monkeypatch):
    monkeypatch.setattr("openset.data.datasets.sun397.FEWEST_IMAGES", 2)
    root = tmp_path / "SUN397"
    make_tree(root, [*all_subtypes(), "/z/zen_garden"], 2)
    for path in (root, tmp_path):
        data = load_sun397(path)
        assert len(data) == 2 * len(all_subtypes()) and data.notes == () and data.title == "SUN397"
    shop = data.take(data.subtype == "/b/bakery/shop")
    assert shop.label.tolist() == ["shopping_dining"] * 2 and shop.columns["level1"].tolist() == ["indoor"] * 2
    assert shop.images.paths.tolist() == ["b/bakery/shop/sun_00.png", "b/bakery/shop/sun_01.png"]
    np.testing.assert_array_equal(shop.images[1], np.full((3, 4, 3), (1, 0, 0)))
    assert "/z/zen_garden" not in data.subtype


def test_the_full_hierarchy_has_the_official_name_of_a_category_that_the_authors_misname():
    workplace = sun397_hierarchy("full")["indoor"]["workplace"]
    assert workplace[0] == "/a/anechoic_chamber" and "/a/anechoic_chamber/outdoor" not in workplace


def test_hidden_files_and_folders_are_no_images(tmp_path, monkeypatch):
    monkeypatch.setattr("openset.data.datasets.sun397.FEWEST_IMAGES", 2)
    make_tree(tmp_path, all_subtypes(), 2)
    folder = tmp_path / "b" / "bakery" / "shop"
    (folder / "._sun_00.jpg").write_bytes(b"of macOS")
    (folder / "sun_02.jpg").mkdir()
    (folder / "sun_02.jpg" / "inside.jpg").write_bytes(b"")
    data = load_sun397(tmp_path)
    shop = data.images.paths[data.subtype == "/b/bakery/shop"]
    assert shop.tolist() == ["b/bakery/shop/sun_00.png", "b/bakery/shop/sun_01.png"]


def test_what_is_missing_is_told(tmp_path):
    make_tree(tmp_path, all_subtypes()[1:3], 3)
    with pytest.raises(ValueError, match=r"/b/bakery/shop has 0 images.*/b/banquet_hall has 3 images.*princeton"):
        load_sun397(tmp_path)
    data = load_sun397(tmp_path, partial=True)
    assert len(data) == 6 and len(data.notes) == len(all_subtypes()) and "partial" in data.title
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holds no category of SUN397"):
        load_sun397(tmp_path / "empty", partial=True)
    with pytest.raises(FileNotFoundError, match="does not exist. SUN397 comes from"):
        load_sun397(tmp_path / "absent")
