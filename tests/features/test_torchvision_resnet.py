"""torchvision's ResNet, written here as functions of its tensors, against the model directory made of them."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional as F

from official_files import random_resnet
from openset.features import ImageEncoder, encode_images
from openset.features.torchvision_resnet import PREPROCESSING, renamed, save_torchvision_resnet, settings_of


def forward_of_torchvision(tensors, pixels):
    """Features after the mean over places, in front of ``fc``."""

    def norm(x, name):
        values = [tensors[f"{name}.{p}"] for p in ("running_mean", "running_var", "weight", "bias")]
        return F.batch_norm(x, *values)

    def convolved(x, name, stride=1):
        weight = tensors[f"{name}.weight"]
        return F.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2)

    x = F.max_pool2d(F.relu(norm(convolved(pixels, "conv1", 2), "bn1")), 3, 2, 1)
    for name in sorted({tuple(map(int, n[5:].split(".")[:2])) for n in tensors if n.startswith("layer")}):
        block = "layer{}.{}".format(*name)
        stride = 2 if name[0] > 1 and name[1] == 0 else 1
        y = x
        is_bottleneck = f"{block}.conv3.weight" in tensors
        y = convolved(y, f"{block}.conv1", 1 if is_bottleneck else stride)
        y = F.relu(norm(y, f"{block}.bn1"))
        y = norm(convolved(y, f"{block}.conv2", stride if is_bottleneck else 1), f"{block}.bn2")
        if is_bottleneck:
            y = norm(convolved(F.relu(y), f"{block}.conv3"), f"{block}.bn3")
        if f"{block}.downsample.0.weight" in tensors:
            x = norm(convolved(x, f"{block}.downsample.0", stride), f"{block}.downsample.1")
        x = F.relu(x + y)
    return x.mean((2, 3))


def pixels_of_torchvision(picture):
    """The shorter side to 256 by Pillow's bilinear filter, the central 224 × 224, standardised."""
    image = Image.fromarray(picture)
    shorter = min(image.size)
    width, height = (int(256 * side / shorter) for side in image.size)
    left, top = round((width - 224) / 2), round((height - 224) / 2)
    image = image.resize((width, height), Image.Resampling.BILINEAR).crop((left, top, left + 224, top + 224))
    mean, sd = (np.array(PREPROCESSING[name], np.float32) for name in ("image_mean", "image_std"))
    return torch.from_numpy(((np.asarray(image, np.float32) / 255 - mean) / sd).transpose(2, 0, 1))[None]


@pytest.mark.parametrize(
    ("kind", "depths", "counted"),
    [("bottleneck", (1, 2, 1, 2), False), ("basic", (2, 1, 1, 2), False), ("basic", (1, 1, 1, 1), True)],
)
def test_features_are_those_of_torchvisions_architecture(tmp_path, kind, depths, counted):
    tensors = random_resnet(kind, depths)
    if counted:  # some files have the number of batches that normalisation saw
        means = [name for name in tensors if name.endswith("running_mean")]
        tensors |= {name.replace("running_mean", "num_batches_tracked"): torch.tensor(7) for name in means}
    torch.save(tensors, tmp_path / "resnet.pth")
    save_torchvision_resnet(tmp_path / "resnet.pth", tmp_path / "encoders" / "resnet")
    random = np.random.default_rng(0)
    pictures = [random.integers(0, 256, (*shape, 3), dtype=np.uint8) for shape in ((300, 400), (230, 224))]
    encoder = ImageEncoder(tmp_path / "encoders" / "resnet")
    features = encode_images(pictures, encoder, cache=False, progress=False)
    expected = torch.cat([forward_of_torchvision(tensors, pixels_of_torchvision(p)) for p in pictures])
    assert features.std() > 0.05
    np.testing.assert_allclose(features, expected.numpy(), rtol=1e-4, atol=1e-4)


def test_settings_tell_kind_widths_and_depths():
    found = settings_of(random_resnet("bottleneck", (3, 4, 6, 3)))
    assert (found["layer_type"], found["embedding_size"]) == ("bottleneck", 8)
    assert (found["hidden_sizes"], found["depths"]) == ([32, 64, 128, 256], [3, 4, 6, 3])
    found = settings_of(random_resnet("basic", (2, 11, 1, 1)))
    assert (found["layer_type"], found["depths"]) == ("basic", [2, 11, 1, 1])


def test_the_classifying_layer_goes_and_all_else_stays():
    tensors = random_resnet("bottleneck", (1, 1, 1, 1))
    assert len(renamed(tensors)) == len(tensors) - 2


def test_what_is_no_resnet_is_told(tmp_path):
    whole = random_resnet("bottleneck", (1, 1, 1, 1))
    lacking = {name: tensor for name, tensor in whole.items() if name != "layer2.0.bn2.bias"}
    wide = whole | {"layer1.0.conv1.weight": torch.zeros(16, 8, 1, 1)}
    for number, content in enumerate((lacking, wide, {"a": torch.zeros(2)}, [1], {"features.0.weight": 3})):
        torch.save(content, tmp_path / f"{number}.pth")
    (tmp_path / "5.pth").write_text("<html>")
    for number in range(6):
        with pytest.raises(ValueError, match=rf"{number}.pth holds no ResNet of torch.*resnet50-0676ba61.pth"):
            save_torchvision_resnet(tmp_path / f"{number}.pth", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(FileNotFoundError, match="absent.pth does not exist. Download"):
        save_torchvision_resnet(tmp_path / "absent.pth", tmp_path / "out")


def test_weights_with_code_are_not_run(tmp_path):
    flag = tmp_path / "flag"

    class Payload:
        def __reduce__(self):
            return open, (str(flag), "w")

    torch.save({"conv1.weight": Payload()}, tmp_path / "bad.pth")
    with pytest.raises(ValueError, match="bad.pth holds no ResNet of torchvision"):
        save_torchvision_resnet(tmp_path / "bad.pth", tmp_path / "out")
    assert not flag.exists()


def test_a_folder_with_a_model_stays(tmp_path):
    torch.save(random_resnet("basic", (1, 1, 1, 1)), tmp_path / "resnet.pth")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "config.json").write_text(json.dumps({"mine": 1}))
    with pytest.raises(FileExistsError, match="out exists already: remove it"):
        save_torchvision_resnet(tmp_path / "resnet.pth", tmp_path / "out")
    assert json.loads((tmp_path / "out" / "config.json").read_text()) == {"mine": 1}
