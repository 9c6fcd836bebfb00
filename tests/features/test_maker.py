"""Features of records: numbers as they are, texts and images through one encoder that is kept."""

from __future__ import annotations

import numpy as np
import pytest

from openset.data.readers.images import ImageFiles
from openset.data.readers.records import Records
from openset.features import ImageEncoder, TextEncoder, encode_images, encode_texts
from openset.features.maker import FeatureMaker


def texts(*words):
    return Records(np.arange(len(words)), texts=np.array(words, dtype=object))


def test_numbers_are_returned_as_they_are():
    X = np.arange(6.0).reshape(3, 2)
    maker = FeatureMaker("no such encoder")
    assert maker(Records(np.arange(3), X=X)) is X and maker.encoder is None


def test_texts_go_through_one_encoder_that_is_kept(bert):
    maker = FeatureMaker(str(bert))
    made = maker(texts("the red cat", "a dog"))
    assert isinstance(maker.encoder, TextEncoder)
    np.testing.assert_array_equal(made, encode_texts(["the red cat", "a dog"], TextEncoder(bert), progress=False))
    first = maker.encoder
    maker(texts("blue house"))
    assert maker.encoder is first


def test_images_go_through_an_image_encoder(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("efficientnet_lite_pytorch")
    image.new("RGB", (32, 32), "red").save(tmp_path / "a.png")
    files = ImageFiles(tmp_path, np.array(["a.png"], dtype=object))
    maker = FeatureMaker()
    made = maker(Records(np.arange(1), images=files))
    assert isinstance(maker.encoder, ImageEncoder)
    np.testing.assert_array_equal(made, encode_images(files, ImageEncoder(), progress=False))


def test_records_without_content_are_refused():
    with pytest.raises(ValueError, match="there are no features"):
        FeatureMaker()(Records(np.arange(2)))
