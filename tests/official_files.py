"""Tiny files in the official formats, written as the originals were."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile

import numpy as np

from openset.data.datasets.amazon import PAPER_CATEGORIES
from openset.data.datasets.cifar100 import SUPERCLASS_OF
from openset.data.datasets.sun397 import sun397_hierarchy


def python2_pickle(value):
    """What Python 2 wrote with protocol 2 for dictionaries, lists, text, integers and arrays of bytes."""
    return b"\x80\x02" + _body(value) + b"."


def _body(value):
    if isinstance(value, str):
        value = value.encode("latin1")
    if isinstance(value, bytes):
        return b"T" + struct.pack("<i", len(value)) + value
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value)
    if isinstance(value, list):
        return b"](" + b"".join(map(_body, value)) + b"e"
    if isinstance(value, dict):
        return b"}(" + b"".join(_body(k) + _body(v) for k, v in value.items()) + b"u"
    dtype = (
        b"cnumpy\ndtype\n" + _body("u1") + _body(0) + _body(1) + b"\x87R"
        + b"(" + _body(3) + _body("|") + b"NNN" + _body(-1) + _body(-1) + _body(0) + b"tb"
    )  # fmt: skip
    shape = b"(" + b"".join(_body(n) for n in value.shape) + b"t"
    return (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n" + _body(0) + b"\x85" + _body("b") + b"\x87R"
        + b"(" + _body(1) + shape + dtype + b"\x89" + _body(value.tobytes()) + b"tb"
    )  # fmt: skip


FINE = ["apple", "baby", "rocket"]
COARSE = ["fruit_and_vegetables", "people", "vehicles_2"]


def cifar_parts(per_class=2, dump=python2_pickle, seed=0):
    """``meta``, ``train`` and ``test`` as bytes, and the images they hold in order."""
    random = np.random.default_rng(seed)
    meta = {"fine_label_names": FINE, "coarse_label_names": COARSE}
    parts, images = {"meta": dump(meta)}, []
    for part in ("train", "test"):
        numbers = [i % 3 for i in range(3 * per_class)]
        data = random.integers(0, 256, (len(numbers), 3072), dtype=np.uint8)
        parts[part] = dump(
            {
                "filenames": [f"f{i}.png" for i in numbers],
                "batch_label": f"{part}ing batch 1 of 1",
                "fine_labels": numbers,
                "coarse_labels": numbers,
                "data": data,
            }
        )
        images += list(data)
    return parts, np.array(images)


def write_tar(path, members):
    """A gzipped tar archive with these (name or TarInfo, content) pairs."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def write_cifar(path, parts):
    return write_tar(path, [(f"cifar-100-python/{name}", content) for name, content in parts.items()])


def whole_cifar(per_class, seed=0):
    """Images (rows of 3072 bytes) of all 100 classes and their numbers, by split, as the archives order them.

    Every class has a colour of its own, and every image is different.
    """
    random = np.random.default_rng(seed)
    colours = random.integers(60, 190, (100, 3))
    parts = {}
    for part, n in per_class.items():
        fine = random.permutation(np.repeat(np.arange(100), n))
        planes = np.repeat(colours[fine], 1024, axis=1)
        parts[part] = np.clip(planes + random.integers(-50, 50, planes.shape), 0, 255).astype(np.uint8), fine
    return parts


FINE_NAMES, COARSE_NAMES = sorted(SUPERCLASS_OF), sorted(set(SUPERCLASS_OF.values()))
COARSE_OF = np.array([COARSE_NAMES.index(SUPERCLASS_OF[name]) for name in FINE_NAMES])


def write_cifar_python(path, parts):
    """The official archive of the Python version with these images."""
    names = {"fine_label_names": FINE_NAMES, "coarse_label_names": COARSE_NAMES}
    content = {
        part: {"data": data, "fine_labels": fine.tolist(), "coarse_labels": COARSE_OF[fine].tolist()}
        for part, (data, fine) in parts.items()
    }
    return write_cifar(path, {name: python2_pickle(value) for name, value in {"meta": names, **content}.items()})


def write_cifar_binary(path, parts):
    """The official archive of the binary version with these images."""
    members = {
        "coarse_label_names.txt": "\n".join(COARSE_NAMES).encode() + b"\n",
        "fine_label_names.txt": "\n".join(FINE_NAMES).encode() + b"\n",
        **{
            f"{part}.bin": np.column_stack([COARSE_OF[fine], fine, data]).astype(np.uint8).tobytes()
            for part, (data, fine) in parts.items()
        },
    }
    return write_tar(path, [(f"cifar-100-binary/{name}", content) for name, content in members.items()])


def write_sun397(root, counts, side=8, seed=0):
    """The official folder tree with the real names of subtypes: ``counts(i)`` small pictures of the i-th."""
    from PIL import Image

    random = np.random.default_rng(seed)
    groups = [group for level in sun397_hierarchy().values() for group in level.values()]
    for i, subtype in enumerate(name for group in groups for name in group):
        folder = root / subtype[1:]
        folder.mkdir(parents=True, exist_ok=True)
        colour = random.integers(60, 190, 3)
        for number in range(counts(i)):
            pixels = np.clip(colour + random.integers(-50, 50, (side, side, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / f"sun_{number:04}.jpg", quality=95)
    return root


def write_amazon(folder, per_sentiment, seed=0):
    """The official file of every category of the paper: reviews of one, two, three, four and five stars."""
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for category in PAPER_CATEGORIES:
        with gzip.open(folder / f"{category}_5.json.gz", "wt") as file:
            for i in range(5 * per_sentiment // 2):
                stars = 1 + i % 5
                words = " ".join(random.choice(["the", "red", "blue", "cat", "dog", "house", "runs"], 6))
                review = {
                    "overall": float(stars),
                    "verified": True,
                    "reviewTime": "01 1, 2018",
                    "reviewText": f"{category.lower()} {words} {i}",
                    "summary": "five stars" if stars == 5 else "a review",
                    "unixReviewTime": 1514764800 + i,
                }
                file.write(json.dumps(review) + "\n")
    return folder


def random_resnet(kind, depths, width=8, seed=0):
    """A small ResNet of torchvision: random tensors under its names and of its shapes."""
    import torch

    random = torch.Generator().manual_seed(seed)
    tensors = {}

    def convolution(name, n_in, n_out, size):
        tensors[f"{name}.weight"] = (
            torch.randn(n_out, n_in, size, size, generator=random) / (n_in * size**2) ** 0.5
        )

    def norm(name, n):
        for parameter in ("weight", "bias", "running_mean", "running_var"):
            tensors[f"{name}.{parameter}"] = 0.5 + torch.rand(n, generator=random)

    convolution("conv1", 3, width, 7)
    norm("bn1", width)
    n_in = width
    for stage, depth in enumerate(depths):
        inner = width * 2**stage
        n_out = inner * (4 if kind == "bottleneck" else 1)
        sizes = {"bottleneck": (1, 3, 1), "basic": (3, 3)}[kind]
        for block in range(depth):
            name = f"layer{stage + 1}.{block}"
            widths = [n_in, *[inner] * (len(sizes) - 1), n_out]
            for number, size in enumerate(sizes, start=1):
                convolution(f"{name}.conv{number}", widths[number - 1], widths[number], size)
                norm(f"{name}.bn{number}", widths[number])
            if block == 0 and (stage or n_in != n_out):
                convolution(f"{name}.downsample.0", n_in, n_out, 1)
                norm(f"{name}.downsample.1", n_out)
            n_in = n_out
    return tensors | {"fc.weight": torch.randn(5, n_in), "fc.bias": torch.zeros(5)}
