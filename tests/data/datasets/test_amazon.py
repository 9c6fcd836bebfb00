from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from openset.data import load_amazon_reviews


def write(path, reviews):
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in reviews)


def review(stars, text="fine"):
    return {"overall": stars, "verified": True, "reviewerID": "A1", "asin": "B0", "reviewText": text}


@pytest.fixture
def folder(tmp_path):
    write(
        tmp_path / "Software_5.json.gz",
        [review(s, f"{s} ünï {i}") for i in range(4) for s in (1.0, 2.0, 3.0, 4.0, 5.0)],
    )
    empty = {"overall": 5.0, "asin": "B0"}
    write(tmp_path / "Prime_Pantry.json.gz", [review(5, "good"), review(1, "bad"), empty, review(2, "  ")])
    return tmp_path


TWO = ("Software", "Prime_Pantry")


def test_official_files_load(folder):
    data = load_amazon_reviews(folder, categories=TWO)
    assert data.label.tolist() == ["Software"] * 16 + ["Prime_Pantry"] * 2
    assert data.sentiment.tolist() == [0, 0, 1, 1] * 4 + [1, 0]
    assert 3.0 not in data.columns["rating"] and data.stand_in_for is None
    assert data.texts[0] == "1.0 ünï 0" and data.texts.tolist()[-2:] == ["good", "bad"]
    assert "dropped 4 of three stars and 0 without text" in data.notes[0]
    assert "dropped 0 of three stars and 2 without text" in data.notes[1]


def test_a_sample_is_uniform_bounded_and_by_seed(folder):
    one, two, other = (
        load_amazon_reviews(folder, categories=["Software"], per_sentiment=3, random_state=seed)
        for seed in (0, 0, 7)
    )
    assert one.texts.tolist() == two.texts.tolist() != other.texts.tolist()
    assert np.bincount(one.sentiment).tolist() == [3, 3]
    whole = load_amazon_reviews(folder, categories=["Software"]).texts.tolist()
    assert [whole.index(t) for t in one.texts] == sorted(whole.index(t) for t in one.texts), "file order is kept"
    counts = np.zeros(len(whole))
    for seed in range(400):
        sample = load_amazon_reviews(folder, categories=["Software"], per_sentiment=2, random_state=seed)
        counts[[whole.index(text) for text in sample.texts]] += 1
    assert abs(counts - 100).max() < 5 * np.sqrt(100 * 0.75)


def test_missing_categories_are_told(folder):
    with pytest.raises(
        ValueError, match="lacks the reviews of Digital_Music, Industrial_and_Scientific, Luxury.*nijianmo"
    ):
        load_amazon_reviews(folder)
    with pytest.raises(FileNotFoundError, match="Amazon Reviews 2018 comes from"):
        load_amazon_reviews(folder / "absent")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{'overall': 5.0}", "review 2: it is not JSON"),
        ("[1]", "review 2: it holds a list, not an object"),
        ({"stars": 5}, "review 2: it has no 'overall', only stars"),
        (review("5"), "'overall' is '5', not a number from 1 to 5: pass the file as it is downloaded.*nijianmo"),
        (review(0), "'overall' is 0, not"),
        (review(4), "has 0 negative and 2 positive reviews: both are needed"),
    ],
)
def test_wrong_reviews_are_told(tmp_path, line, message):
    write(tmp_path / "Software.json.gz", [review(5), line])
    with pytest.raises(ValueError, match=message):
        load_amazon_reviews(tmp_path, categories=["Software"])


@pytest.mark.parametrize(
    "name", ["Software_5.json", "Software.json", "reviews_Software_5.json", "reviews_Software.json"]
)
def test_unpacked_files_load_as_packed_ones_do(folder, tmp_path, name):
    packed = load_amazon_reviews(folder, categories=["Software"])
    (tmp_path / "plain").mkdir()
    content = gzip.decompress((folder / "Software_5.json.gz").read_bytes())
    (tmp_path / "plain" / name).write_bytes(content)
    plain = load_amazon_reviews(tmp_path / "plain", categories=["Software"])
    assert plain.texts.tolist() == packed.texts.tolist()
    (tmp_path / "plain" / f"{name}.gz").write_bytes(content)
    with pytest.raises(ValueError, match="is not packed, although its name ends in .gz: download it again"):
        load_amazon_reviews(tmp_path / "plain", categories=["Software"])


def test_one_category_must_be_in_a_list(folder):
    with pytest.raises(ValueError, match=r"categories='Software' is not valid: expected a list.*\['Software'\]"):
        load_amazon_reviews(folder, categories="Software")


def test_a_cut_off_download_is_told(folder):
    path = folder / "Software_5.json.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match="ends too early: it is not whole"):
        load_amazon_reviews(folder, categories=["Software"])
