"""Features of records: tables fitted, vectors as they are, texts and images through encoders that are kept."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from openset.data.readers.cells import cells_of
from openset.data.readers.images import ImageFiles
from openset.data.readers.records import Records
from openset.features import ImageEncoder, TextEncoder, encode_images, encode_texts
from openset.features.fitted import Block, FittedFeatures
from openset.features.maker import FeatureMaker
from openset.features.table.apply import scaled, values_of
from openset.features.table.fit import fit_table

RANDOM = np.random.default_rng(0)


def texts(*words, **more):
    return Records(np.arange(len(words)), texts=np.array(words, dtype=object), **more)


def tables(*columns_of_both):
    """Records of source and of target, each with these columns as cells."""
    return [
        Records(np.arange(len(next(iter(columns.values())))), table={n: cells_of(c) for n, c in columns.items()})
        for columns in columns_of_both
    ]


def test_a_row_without_a_picture_gets_the_mean_of_source(tmp_path):
    from PIL import Image

    for name in "abc":
        Image.fromarray(RANDOM.integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(tmp_path / f"{name}.png")
    source, target = (
        Records(np.arange(3), images=ImageFiles(tmp_path, np.array(paths, dtype=object)))
        for paths in (["a.png", "b.png", ""], ["", "c.png", "a.png"])
    )
    made, made_target, fitted = FeatureMaker().fit(source, target, image="photo")
    mean = made.X[:2].mean(axis=0)
    np.testing.assert_allclose(made.X[2], mean, rtol=1e-5)
    np.testing.assert_allclose(made_target.X[0], mean, rtol=1e-5)
    np.testing.assert_allclose(fitted.blocks[0].fill, mean, rtol=1e-5)
    np.testing.assert_allclose(made_target.X[2], made.X[0], rtol=1e-6)


def test_vectors_are_returned_as_they_are():
    X = np.arange(6.0).reshape(3, 2)
    maker = FeatureMaker("no such encoder")
    made = maker(Records(np.arange(3), X=X, feature_names=("e",)))
    assert made.X is X and made.values is X and made.names == ("e",) and maker.encoders == {}
    assert made.notes.sentences() == []


def test_a_table_of_complete_numbers_is_returned_as_it_is():
    a, b = RANDOM.normal(size=(2, 30))
    source, target = tables({"a": a, "b": b}, {"a": a + 1, "b": b})
    made, made_target, fitted = FeatureMaker().fit(source, target)
    np.testing.assert_array_equal(made.X, np.column_stack([a, b]))
    np.testing.assert_array_equal(made_target.X, np.column_stack([a + 1, b]))
    assert made.names == made_target.names == ("a", "b") and not fitted.is_scaled
    assert fitted.blocks == [Block("table")] and fitted.columns == ["a", "b"]


def test_a_fitted_table_gives_values_in_their_units_and_scaled_features():
    towns = ["Ulm", "Bonn", None] * 10
    source, target = tables({"town": towns, "pay": np.arange(30.0)}, {"town": ["Rome"] * 30, "pay": np.ones(30)})
    maker = FeatureMaker()
    made, made_target, fitted = maker.fit(source, target)
    expected = fit_table(source.table, target.table)
    assert fitted == FittedFeatures([Block("table")], expected) and fitted.is_scaled
    assert made.names == ("town=Bonn", "town=Ulm", "town=(other)", "town is missing", "pay")
    np.testing.assert_array_equal(made.values, values_of(expected, source.table).values)
    np.testing.assert_array_equal(made.X, scaled(expected, made.values))
    assert made_target.notes.unseen == {"town": Counter(Rome=30)} and made.notes.unseen == {}
    # the same from what was stored
    again = FeatureMaker(fitted=fitted)(target)
    np.testing.assert_array_equal(again.X, made_target.X)


def test_kinds_that_a_person_set_are_passed_on():
    source, target = tables({"zip": np.arange(30) % 3}, {"zip": np.arange(30) % 3})
    made, _, fitted = FeatureMaker().fit(source, target, kinds={"zip": "category"})
    assert fitted.table.columns[0].kind == "category" and made.names[:3] == ("zip=0", "zip=1", "zip=2")


def test_blocks_side_by_side_count_alike(bert):
    words = [f"the red cat {i}" if i % 2 else f"a dog {i}" for i in range(20)]
    numbers = 1e6 * RANDOM.normal(size=20)
    vectors = 1e-3 * RANDOM.normal(size=(20, 5))
    about = {"X": vectors, "feature_names": ("e",), "table": {"pay": cells_of(numbers)}}
    source = texts(*words, **about)
    maker = FeatureMaker(str(bert))
    made, made_target, fitted = maker.fit(source, source, text="review")
    assert [(block.kind, block.column) for block in fitted.blocks] == [
        ("table", None), ("vector", "e"), ("text", "review"),
    ]  # fmt: skip
    assert fitted.columns == ["pay", "e", "review"] and fitted.is_scaled
    widths = [1, 5, made.X.shape[1] - 6]
    parts = np.split(made.X, np.cumsum(widths)[:-1], axis=1)
    np.testing.assert_allclose([part.var(axis=0).sum() for part in parts], 1, rtol=1e-5)
    np.testing.assert_allclose(parts[1] / fitted.blocks[1].factor, vectors)
    # values are in their own units, each under a name
    np.testing.assert_array_equal(made.values[:, 0], numbers)
    assert made.names[:2] == ("pay", "e[0]") and made.names[6] == "review[0]"
    assert len(made.names) == made.values.shape[1] == made.X.shape[1]
    np.testing.assert_array_equal(made_target.X, made.X)
    np.testing.assert_array_equal(FeatureMaker(str(bert), fitted=fitted)(source).X, made.X)


def test_blocks_that_do_not_vary_keep_their_factor(bert):
    source = texts(*["the red cat"] * 20, table={"pay": cells_of(np.arange(20.0))})
    made, _, fitted = FeatureMaker(str(bert)).fit(source, source, text="review")
    assert fitted.blocks[0].factor == pytest.approx(1 / np.arange(20.0).std())
    assert np.isfinite(fitted.blocks[1].factor) and np.isfinite(made.X).all()


def test_texts_go_through_one_encoder_that_is_kept(bert):
    maker = FeatureMaker(str(bert))
    made = maker(texts("the red cat", "a dog"))
    assert list(maker.encoders) == ["text"] and isinstance(maker.encoders["text"], TextEncoder)
    expected = encode_texts(["the red cat", "a dog"], TextEncoder(bert), progress=False)
    np.testing.assert_array_equal(made.X, expected)
    assert made.values is None and made.names == (), "nobody reads the numbers of an encoder"
    first = maker.encoders["text"]
    maker(texts("blue house"))
    assert maker.encoders == {"text": first}


def test_images_go_through_an_image_encoder(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("efficientnet_lite_pytorch")
    image.new("RGB", (32, 32), "red").save(tmp_path / "a.png")
    files = ImageFiles(tmp_path, np.array(["a.png"], dtype=object))
    maker = FeatureMaker()
    made = maker(Records(np.arange(1), images=files))
    assert list(maker.encoders) == ["image"] and isinstance(maker.encoders["image"], ImageEncoder)
    np.testing.assert_array_equal(made.X, encode_images(files, ImageEncoder(), progress=False))


def test_texts_and_images_together_have_an_encoder_each(bert, tmp_path):
    """The named encoder takes what it can; the other block takes the packaged one."""
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("efficientnet_lite_pytorch")
    for number, colour in enumerate(("red", "blue")):
        image.new("RGB", (32, 32), colour).save(tmp_path / f"{number}.png")
    files = ImageFiles(tmp_path, np.array(["0.png", "1.png"], dtype=object))
    both = texts("the red cat", "a dog", images=files)
    maker = FeatureMaker(str(bert))
    made, _, fitted = maker.fit(both, both, text="review", image="photo")
    assert fitted.columns == ["review", "photo"] and fitted.table is None
    assert maker.encoders["text"].fingerprint == TextEncoder(bert).fingerprint
    assert maker.encoders["image"].fingerprint == ImageEncoder().fingerprint
    n_text = encode_texts(["a"], TextEncoder(bert), progress=False).shape[1]
    for part in (made.X[:, :n_text], made.X[:, n_text:]):
        assert part.var(axis=0, dtype=np.float64).sum() == pytest.approx(1, rel=1e-4)


def test_records_without_content_are_refused():
    with pytest.raises(ValueError, match="there are no features"):
        FeatureMaker()(Records(np.arange(2)))
