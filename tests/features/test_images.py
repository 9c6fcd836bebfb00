from __future__ import annotations

import io
import weakref
import zipfile

import numpy as np
import pytest
from PIL import Image

from openset._utils.arrays import as_objects
from openset.data import ImageFiles
from openset.data.readers.images import upright_image
from openset.features import ImageEncoder, encode_cells, encode_images
from openset.features.images import centre_square, patches

MODELS = {"vit": 16, "vit_classifier": 16, "clip": 12, "clip_projected": 12, "clip_vision": 16, "resnet": 16}


@pytest.fixture(scope="module")
def pictures():
    random = np.random.default_rng(0)
    shapes = [(40, 60), (33, 32), (80, 35), (32, 32), (50, 51)]
    return [random.integers(0, 256, (*shape, 3), dtype=np.uint8) for shape in shapes]


def encoded(images, encoder, batch_size=3):
    return encode_images(images, encoder, batch_size=batch_size, cache=False, progress=False)


def by_hand(name, directory, picture):
    """One picture through transformers' own calls."""
    import torch
    import transformers as t

    processor = t.AutoImageProcessor.from_pretrained(directory, backend="pil")
    pixels = processor(images=Image.fromarray(picture), return_tensors="pt")
    with torch.no_grad():
        if name == "clip":
            model = t.CLIPModel.from_pretrained(directory).eval()
            return model.visual_projection(model.vision_model(**pixels).pooler_output)[0].numpy()
        if name == "clip_projected":
            return (
                t.CLIPVisionModelWithProjection.from_pretrained(directory)
                .eval()(**pixels)
                .image_embeds[0]
                .numpy()
            )
        if name == "vit_classifier":
            model = t.ViTForImageClassification.from_pretrained(directory).eval().vit
        else:
            model = t.AutoModel.from_pretrained(directory).eval()
        output = model(**pixels)
        if name == "resnet":
            return output.last_hidden_state.mean((2, 3))[0].numpy()
        if name == "clip_vision":
            return output.pooler_output[0].numpy()
        return output.last_hidden_state[0, 0].numpy()


@pytest.mark.parametrize("name", MODELS)
def test_features_are_those_of_transformers(vision, pictures, name):
    encoder = ImageEncoder(vision[name])
    features = encoded(pictures, encoder)
    assert features.shape == (5, MODELS[name]) and features.dtype == np.float32
    assert encoder.dimension == MODELS[name]
    expected = np.stack([by_hand(name, vision[name], picture) for picture in pictures])
    np.testing.assert_allclose(features, expected, atol=1e-5)
    alone = np.concatenate([encoded([picture], encoder) for picture in pictures])
    np.testing.assert_allclose(features, alone, atol=1e-5)


def test_an_image_may_come_as_path_bytes_array_or_pillow(vision, pictures, tmp_path):
    picture = pictures[0]
    path = tmp_path / "one.png"
    Image.fromarray(picture).save(path)
    forms = [picture, Image.fromarray(picture), path, str(path), path.read_bytes()]
    features = encoded(forms, vision["resnet"])
    assert np.array_equal(features, np.repeat(features[:1], len(forms), axis=0))


def test_equal_content_is_one_entry_wherever_it_lies(vision, pictures, tmp_path):
    encoder = ImageEncoder(vision["resnet"])
    for name in ("a.png", "b.png"):
        Image.fromarray(pictures[0]).save(tmp_path / name)
    assert encoder.key(tmp_path / "a.png", 0) == encoder.key(str(tmp_path / "b.png"), 1)
    assert encoder.key(pictures[0], 0) == encoder.key(Image.fromarray(pictures[0]), 1)
    keys = {encoder.key(picture, 0) for picture in (*pictures, pictures[0].transpose(1, 0, 2))}
    assert len(keys) == 6
    assert ImageEncoder(vision["resnet"], normalise=True).key(pictures[0], 0) not in keys


def test_grey_transparent_and_turned_images_are_seen_upright_in_colour(vision, pictures, tmp_path):
    grey = pictures[0][..., 0]
    features = encoded([grey, np.repeat(grey[..., None], 3, axis=2)], vision["resnet"])
    assert np.array_equal(features[0], features[1])
    clear = np.concatenate([pictures[0], np.full((40, 60, 1), 255, np.uint8)], axis=2)
    turned = Image.fromarray(np.ascontiguousarray(pictures[0].transpose(1, 0, 2)[:, ::-1]))
    exif = turned.getexif()
    exif[0x0112] = 8  # shown a quarter turn anticlockwise
    turned.save(tmp_path / "turned.png", exif=exif)
    features = encoded([pictures[0], clear, tmp_path / "turned.png"], vision["resnet"])
    assert np.array_equal(features[0], features[1]) and np.array_equal(features[0], features[2])


@pytest.fixture
def image_files(tmp_path):
    """Twelve photographs, some of them turned by their EXIF data, in a folder and in a zip archive."""
    random = np.random.default_rng(1)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for i in range(12):
            photograph = Image.fromarray(random.integers(0, 256, (40, 60, 3), dtype=np.uint8))
            exif = photograph.getexif()
            exif[0x0112] = 1 + i % 8
            photograph.save(tmp_path / f"{i}.jpg", exif=exif)
            archive.write(tmp_path / f"{i}.jpg", f"{i}.jpg")
    names = as_objects([f"{i}.jpg" for i in range(12)])
    return ImageFiles(tmp_path, names), ImageFiles(tmp_path / "all.zip", names)


@pytest.fixture
def decoded(monkeypatch):
    """How many files were decoded, and the most of these images that were in memory at once."""
    images, counts = [], {"all": 0, "most": 0}

    def decode(data):
        image = upright_image(data)
        images.append(weakref.ref(image))
        counts["all"] += 1
        counts["most"] = max(counts["most"], sum(found() is not None for found in images))
        return image

    monkeypatch.setattr("openset.features.images.upright_image", decode)
    return counts


def test_files_give_the_features_and_cache_entries_of_their_paths(vision, image_files):
    folder, _ = image_files
    encoder = ImageEncoder(vision["resnet"])
    paths = [folder.root / name for name in folder.paths]
    features = encoded(paths, encoder)
    for images in image_files:
        assert np.array_equal(encoded(images, encoder), features)
        assert [encoder.key(file, 0) for file in images.files] == [encoder.key(path, 0) for path in paths]
    assert np.array_equal(encoded(list(folder), encoder), features), "pixels are upright as well"


@pytest.mark.parametrize("packed", [False, True])
def test_files_are_decoded_batch_by_batch_and_only_if_they_are_not_cached(
    vision, image_files, decoded, tmp_path, packed
):
    images, cache = image_files[packed], tmp_path / "cache"
    first = encode_images(images[:10], vision["resnet"], batch_size=2, cache=cache, progress=False)
    assert decoded["all"] == 10 and 0 < decoded["most"] <= 4, "two batches: one is decoded ahead"
    whole = encode_images(images, vision["resnet"], batch_size=2, cache=cache, progress=False)
    assert decoded["all"] == 12 and np.array_equal(whole[:10], first)
    encode_images(images, vision["resnet"], batch_size=2, cache=cache, progress=False)
    assert decoded["all"] == 12


def test_a_file_that_cannot_be_encoded_is_told_with_its_row_and_path(vision, image_files, tmp_path):
    (tmp_path / "2.jpg").write_bytes(b"no image")
    (tmp_path / "5.jpg").unlink()
    folder, archive = image_files
    with pytest.raises(ValueError, match=r"row 1 \(.*2.jpg\): not a readable image"):
        encoded(folder[[0, 2]], vision["resnet"])
    with pytest.raises(ValueError, match="row 1: cannot read the image .*5.jpg: No such file"):
        encoded(folder[[0, 5]], vision["resnet"])
    absent = ImageFiles(archive.root, as_objects(["absent.jpg"]))
    with pytest.raises(ValueError, match="row 0: cannot read the image .*all.zip/absent.jpg: No such file"):
        encoded(absent, vision["resnet"])


def test_unreadable_images_are_told_with_their_row(vision, pictures, tmp_path):
    good = tmp_path / "good.png"
    Image.fromarray(pictures[0]).save(good)
    cut, text = tmp_path / "cut.png", tmp_path / "text.jpg"
    cut.write_bytes(good.read_bytes()[:2000])
    text.write_text("no image")
    for bad, match in [
        (cut, "row 2 .*cut.png.*: not a readable image"),
        (text, "row 2 .*text.jpg.*: not a readable image"),
        (tmp_path / "absent.png", "row 2: cannot read the image .*absent.png: No such file"),
        (b"", "row 2: not a readable image"),
        (np.zeros((4, 4, 3)), "row 2: an image array must be uint8 .* got float64 of shape \\(4, 4, 3\\)"),
        (np.zeros((4, 4, 5), np.uint8), "row 2: an image array must be"),
        (None, "row 2: expected a path, bytes, a uint8 array or a PIL image, got NoneType"),
    ]:
        with pytest.raises(ValueError, match=match):
            encoded([good, pictures[1], bad], vision["resnet"])


def test_a_text_model_is_no_image_model(bert, pictures):
    for model in (bert, "minilm"):
        with pytest.raises(ValueError, match="no preprocessor_config.json"):
            encoded(pictures, model)


def test_the_centre_square_is_the_largest_and_rounds_down():
    picture = np.arange(5 * 8 * 3, dtype=np.uint8).reshape(5, 8, 3)
    assert np.array_equal(np.asarray(centre_square(Image.fromarray(picture), 5)), picture[:, 1:6])
    assert np.array_equal(
        np.asarray(centre_square(Image.fromarray(picture.transpose(1, 0, 2)), 5)),
        picture[:, 1:6].transpose(1, 0, 2),
    )


@pytest.mark.slow
def test_the_packaged_efficientnet_gives_the_published_features(shared_data, tmp_path):
    folder = shared_data / "sun_scenes"
    files = [line.split(",")[0] for line in (folder / "index.csv").read_text().splitlines()[1:]]
    published = np.load(folder / "efficientnet_lite0.npy", mmap_mode="r")
    rows = np.random.default_rng(4).choice(len(files), 24, replace=False)
    with zipfile.ZipFile(folder / "images.zip") as archive:
        images = [archive.read(files[row]) for row in rows]
    odd = [sum(Image.open(io.BytesIO(image)).size) % 2 for image in images]
    assert 0 < sum(odd) < 24, "both ways of rounding the crop are among them"
    features = encode_images(images, batch_size=8, cache=tmp_path, progress=False)
    expected = published[rows].astype(np.float32)
    np.testing.assert_allclose(features, expected, atol=4e-3)  # float16 of values up to 6
    cosine = (features * expected).sum(1) / np.linalg.norm(features, axis=1) / np.linalg.norm(expected, axis=1)
    assert cosine.min() > 0.99999
    assert np.array_equal(encode_images(images, batch_size=5, cache=tmp_path, progress=False), features)
    alone = encode_images(images[:3], batch_size=1, cache=False, progress=False)
    np.testing.assert_allclose(alone, features[:3], atol=1e-5)


@pytest.mark.parametrize(("model", "side", "channels"), [("resnet", 4, 16), ("vit", 4, 16), ("clip", 2, 16)])
def test_cells_are_the_last_map_averaged(vision, pictures, model, side, channels):
    found = encode_cells(pictures, vision[model], cells=side, cache=False, progress=False)
    assert found.shape == (len(pictures), side**2, channels)
    coarse = encode_cells(pictures, vision[model], cells=1, cache=False, progress=False)
    np.testing.assert_allclose(found.mean(axis=1), coarse[:, 0], rtol=1e-3, atol=1e-5)
    if model == "resnet":  # which pools by the mean, so its features are the mean cell
        np.testing.assert_allclose(coarse[:, 0], encoded(pictures, vision[model]), rtol=1e-3, atol=1e-5)


def test_patches_keep_their_places_and_leave_out_the_class_token(vision, pictures):
    import torch
    from transformers import ViTModel

    encoder = ImageEncoder(vision["vit"], cells=4)
    batch = next(encoder.batches(pictures, [0], 1))
    hidden = ViTModel.from_pretrained(vision["vit"], add_pooling_layer=False).eval()(
        pixel_values=torch.from_numpy(batch.inputs["pixel_values"])
    )
    expected = hidden.last_hidden_state.detach().numpy()[0, 1:]
    np.testing.assert_allclose(encoder.forward(batch.inputs).reshape(16, 16), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("image", "patch", "before", "rows", "columns"),
    [((32, 32), (8, 8), 1, 4, 4), ((48, 64), (4, 4), 1, 12, 16), ((32, 32), (8, 8), 9, 4, 4),
     ((64, 32), None, 0, 4, 2), ((32, 32), (2, 2), 0, 4, 4)],
)  # fmt: skip
def test_patches_make_a_map_of_the_images_shape(image, patch, before, rows, columns):
    """Registers come before patches; images need not be square; Swin has one token for several patches."""
    import torch

    places = torch.arange(rows * columns)
    tokens = torch.cat([torch.full((before,), -1), places])[None, :, None]
    assert torch.equal(patches(tokens, image, patch)[0, 0], places.reshape(rows, columns))


def test_tokens_that_are_no_map_are_refused():
    import torch

    with pytest.raises(ValueError, match="returns 17 tokens for images of 32 × 32 pixels"):
        patches(torch.zeros(1, 17, 8), (32, 32), None)


def test_more_cells_than_the_map_has_are_told_and_other_features_keep_their_keys(vision, pictures):
    with pytest.raises(ValueError, match="cells=9 is not valid: the map of .* has 4 × 4 cells"):
        encode_cells(pictures, vision["vit"], cells=9, cache=False, progress=False)
    with pytest.raises(ValueError, match="cells"):
        ImageEncoder(vision["vit"], cells=0)
    assert "cells" not in ImageEncoder(vision["vit"]).settings
    assert ImageEncoder(vision["vit"]).fingerprint != ImageEncoder(vision["vit"], cells=2).fingerprint
