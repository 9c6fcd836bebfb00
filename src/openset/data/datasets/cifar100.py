"""CIFAR-100: the official Python or binary archive or its folder, an npz file, or a folder of images."""

from __future__ import annotations

import tarfile
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from openset._utils.arrays import as_objects
from openset._utils.files import existing
from openset._utils.text import listed
from openset.data.datasets.dataset import Dataset
from openset.data.datasets.inert_pickle import read_inert
from openset.data.readers.images import ImageFiles, list_images

CITATION = "Krizhevsky, A. (2009). Learning multiple layers of features from tiny images."
SOURCE = (
    "CIFAR-100 comes from https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz (161 MB), or "
    "cifar-100-binary.tar.gz beside it: pass the archive, or the folder that it unpacks to."
)
SUPERCLASSES: dict[str, tuple[str, ...]] = {
    "aquatic_mammals": ("beaver", "dolphin", "otter", "seal", "whale"),
    "fish": ("aquarium_fish", "flatfish", "ray", "shark", "trout"),
    "flowers": ("orchid", "poppy", "rose", "sunflower", "tulip"),
    "food_containers": ("bottle", "bowl", "can", "cup", "plate"),
    "fruit_and_vegetables": ("apple", "mushroom", "orange", "pear", "sweet_pepper"),
    "household_electrical_devices": ("clock", "keyboard", "lamp", "telephone", "television"),
    "household_furniture": ("bed", "chair", "couch", "table", "wardrobe"),
    "insects": ("bee", "beetle", "butterfly", "caterpillar", "cockroach"),
    "large_carnivores": ("bear", "leopard", "lion", "tiger", "wolf"),
    "large_man-made_outdoor_things": ("bridge", "castle", "house", "road", "skyscraper"),
    "large_natural_outdoor_scenes": ("cloud", "forest", "mountain", "plain", "sea"),
    "large_omnivores_and_herbivores": ("camel", "cattle", "chimpanzee", "elephant", "kangaroo"),
    "medium_mammals": ("fox", "porcupine", "possum", "raccoon", "skunk"),
    "non-insect_invertebrates": ("crab", "lobster", "snail", "spider", "worm"),
    "people": ("baby", "boy", "girl", "man", "woman"),
    "reptiles": ("crocodile", "dinosaur", "lizard", "snake", "turtle"),
    "small_mammals": ("hamster", "mouse", "rabbit", "shrew", "squirrel"),
    "trees": ("maple_tree", "oak_tree", "palm_tree", "pine_tree", "willow_tree"),
    "vehicles_1": ("bicycle", "bus", "motorcycle", "pickup_truck", "train"),
    "vehicles_2": ("lawn_mower", "rocket", "streetcar", "tank", "tractor"),
}
SUPERCLASS_OF = {fine: coarse for coarse, group in SUPERCLASSES.items() for fine in group}
ROWS_PER_CLASS = {"train": 500, "test": 100}
_PARTS = ("meta", "train", "test")
_BINARY_PARTS = ("coarse_label_names.txt", "fine_label_names.txt", "train.bin", "test.bin")
_FOLDERS = {"cifar-100-python": _PARTS, "cifar-100-binary": _BINARY_PARTS}
"""The files of each official version, by the folder that its archive unpacks to."""
_BINARY_ROW = 2 + 3072  # a coarse label, a fine label, the pixels
_LARGEST_PART = 512 * 2**20  # the official training file has 155 MB

Images: TypeAlias = NDArray[np.uint8] | ImageFiles


def load_cifar100(path: str | Path, *, partial: bool = False) -> Dataset:
    """CIFAR-100: ``label`` is the superclass, ``subtype`` the fine class, ``split`` the official train or test.

    ``path`` is the official ``cifar-100-python.tar.gz`` or ``cifar-100-binary.tar.gz``, the folder that holds
    one, or the folder that it unpacks to; an ``.npz`` with ``images``, ``fine``, ``coarse`` and ``split``; or a
    folder of images ``train/<fine class>/*.png`` and ``test/…``. Every class must have 500 training and 100 test
    images, and official files must have all 100 classes. With ``partial=True`` they need not; ``notes`` then
    lists what is missing. The Python version's pickles are read as data: nothing in them is executed, and nothing
    is unpacked to disk.
    """
    found = _archive_in(existing(path, SOURCE))
    whole = True
    if found.is_file() and found.suffix == ".npz":
        images, fine, coarse, split = _read_npz(found)
        whole = False
    elif found.is_file():
        images, fine, coarse, split = _read_parts(_archive_parts(found), found)
    elif (found / "train").is_dir():
        images, fine, coarse, split = _read_image_folder(found)
    else:
        folder = next((found / name for name in _FOLDERS if (found / name).is_dir()), found)
        names = [name for names in _FOLDERS.values() for name in names if (folder / name).is_file()]
        images, fine, coarse, split = _read_parts({name: (folder / name).read_bytes() for name in names}, folder)
    problems = _incomplete(fine, split, whole=whole)
    if problems and not partial:
        raise ValueError(
            f"{found} is not all of CIFAR-100: {listed(problems)}. {SOURCE} "
            "With partial=True the images found are loaded."
        )
    _check_superclasses(fine, coarse, found)
    classes = len(np.unique(fine))
    title = "CIFAR-100" if classes == 100 else f"CIFAR-100, {classes} of the 100 fine classes"
    return Dataset(
        name="cifar100", title=title, citation=CITATION, label=coarse, subtype=fine, split=split, images=images,
        notes=tuple(problems),
    )  # fmt: skip


def _archive_in(path: Path) -> Path:
    """The official archive in a folder that holds nothing else of CIFAR-100; any other path as it is."""
    unpacked = {"train", *_FOLDERS, *_PARTS, *_BINARY_PARTS}
    archives = (path / f"{name}.tar.gz" for name in _FOLDERS)
    if any((path / name).exists() for name in unpacked):
        return path
    return next((archive for archive in archives if archive.is_file()), path)


def _archive_parts(path: Path) -> dict[str, bytes]:
    """Read the files of the official archive. Refuse an archive with links or paths outside itself."""
    parts: dict[str, bytes] = {}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                inside = PurePosixPath(member.name)
                if inside.is_absolute() or ".." in inside.parts or not (member.isfile() or member.isdir()):
                    raise ValueError(
                        f"{path} was refused: its member {member.name!r} reaches outside the archive or is a "
                        f"link. Nothing was unpacked. {SOURCE}"
                    )
                if member.isfile() and inside.name in _FOLDERS.get(inside.parent.name, ()):
                    if member.size > _LARGEST_PART:
                        raise ValueError(
                            f"{path} was refused: {member.name!r} claims {member.size} bytes. {SOURCE}"
                        )
                    content = archive.extractfile(member)
                    parts[inside.name] = content.read() if content else b""
    except (tarfile.TarError, EOFError, OSError) as error:
        raise ValueError(
            f"{path} is not a whole tar archive ({type(error).__name__}): download it again. {SOURCE}"
        ) from None
    return parts


def _read_parts(parts: dict[str, bytes], path: Path) -> tuple[Images, NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Images, fine and coarse classes and the split, of the files of the Python or of the binary version."""
    if any(part in parts for part in _BINARY_PARTS):
        return _read_binary(parts, path)
    missing = [part for part in _PARTS if part not in parts]
    if missing:
        raise ValueError(f"{path} lacks {listed(missing)} of cifar-100-python. {SOURCE}")
    content = {part: read_inert(parts[part], f"{part!r} in {path}") for part in _PARTS}
    meta = _keys(content["meta"], ("fine_label_names", "coarse_label_names"), "meta", path)
    images, fine, coarse, split = [], [], [], []
    for part in ("train", "test"):
        data, fine_numbers, coarse_numbers = _keys(
            content[part], ("data", "fine_labels", "coarse_labels"), part, path
        )
        if not isinstance(data, np.ndarray) or data.ndim != 2 or data.shape[1] != 3072:
            raise ValueError(
                f"{part!r} in {path} holds data of shape {np.shape(data)}, not (rows, 3072). {SOURCE}"
            )
        images.append(_from_planes(data))
        fine.append(_names(fine_numbers, meta[0], len(data), part, path))
        coarse.append(_names(coarse_numbers, meta[1], len(data), part, path))
        split.append(np.repeat(part, len(data)))
    return np.concatenate(images), np.concatenate(fine), np.concatenate(coarse), np.concatenate(split)


def _read_binary(parts: dict[str, bytes], path: Path) -> tuple[Images, NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Each image is a byte of its superclass, a byte of its class and 3072 bytes of pixels, without a header."""
    missing = [part for part in _BINARY_PARTS if part not in parts]
    if missing:
        raise ValueError(f"{path} lacks {listed(missing)} of cifar-100-binary. {SOURCE}")
    coarse_names, fine_names = (parts[name].decode("utf-8", "replace").split() for name in _BINARY_PARTS[:2])
    images, fine, coarse, split = [], [], [], []
    for part in ("train", "test"):
        data = np.frombuffer(parts[f"{part}.bin"], np.uint8)
        if not data.size or data.size % _BINARY_ROW:
            raise ValueError(
                f"'{part}.bin' in {path} has {data.size} bytes, not a multiple of {_BINARY_ROW}: it is not "
                f"whole. {SOURCE}"
            )
        rows = data.reshape(-1, _BINARY_ROW)
        images.append(_from_planes(rows[:, 2:]))
        coarse.append(_names(rows[:, 0].astype(int), coarse_names, len(rows), f"{part}.bin", path))
        fine.append(_names(rows[:, 1].astype(int), fine_names, len(rows), f"{part}.bin", path))
        split.append(np.repeat(part, len(rows)))
    return np.concatenate(images), np.concatenate(fine), np.concatenate(coarse), np.concatenate(split)


def _from_planes(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Images (rows, 32, 32, 3) of rows of 3072 bytes, which are planes of red, green and blue."""
    return data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)


def _keys(content: dict[str, Any], names: tuple[str, ...], part: str, path: Path) -> list[Any]:
    missing = [name for name in names if name not in content]
    if missing:
        raise ValueError(f"{part!r} in {path} lacks {listed(missing)}; it holds {listed(content)}. {SOURCE}")
    return [content[name] for name in names]


def _names(numbers: Any, names: Any, rows: int, part: str, path: Path) -> NDArray[Any]:
    index = np.asarray(numbers)
    if index.dtype.kind != "i" or len(index) != rows or not np.isin(index, np.arange(len(names))).all():
        raise ValueError(f"{part!r} in {path} does not hold one class number below {len(names)} for each image.")
    return np.asarray(names)[index]


def _read_npz(path: Path) -> tuple[Images, NDArray[Any], NDArray[Any], NDArray[Any]]:
    wanted = ("images", "fine", "coarse", "split")
    try:
        with np.load(path, allow_pickle=False) as content:
            missing = [name for name in wanted if name not in content]
            if missing:
                raise ValueError(f"it lacks {listed(missing)} and holds {listed(content)}")
            images, fine, coarse, split = (content[name] for name in wanted)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path} is not a CIFAR-100 npz with images, fine, coarse and split: {error}") from None
    if images.dtype != np.uint8 or images.shape[1:] != (32, 32, 3):
        raise ValueError(f"{path} holds images of {images.dtype} {images.shape}, not uint8 (rows, 32, 32, 3).")
    return images, fine, coarse, split


def _read_image_folder(path: Path) -> tuple[Images, NDArray[Any], NDArray[Any], NDArray[Any]]:
    names = [f"{part}/{name}" for part in ROWS_PER_CLASS for name in list_images(path / part) if "/" in name]
    if not names:
        raise ValueError(f"{path} has no images like train/apple/0001.png. {SOURCE}")
    split = np.asarray([name.split("/")[0] for name in names])
    fine = np.asarray([name.split("/")[1] for name in names])
    coarse = np.asarray([SUPERCLASS_OF.get(name, "") for name in fine.tolist()])
    return ImageFiles(path, as_objects(names)), fine, coarse, split


def _incomplete(fine: NDArray[Any], split: NDArray[Any], *, whole: bool) -> list[str]:
    present = set(fine.tolist())
    problems = []
    if absent := sorted(set(SUPERCLASS_OF) - present) if whole else []:
        problems.append(f"{len(absent)} classes are missing ({listed(absent)})")
    for part, expected in ROWS_PER_CLASS.items():
        names, counts = np.unique(fine[split == part], return_counts=True)
        found = dict(zip(names.tolist(), counts.tolist(), strict=True))
        problems += [
            f"{name} has {found.get(name, 0)} of {expected} {part} images"
            for name in sorted(present)
            if found.get(name, 0) != expected
        ]
    return problems


def _check_superclasses(fine: NDArray[Any], coarse: NDArray[Any], path: Path) -> None:
    for name, superclass in sorted(set(zip(fine.tolist(), coarse.tolist(), strict=True))):
        if name not in SUPERCLASS_OF:
            raise ValueError(f"{path}: {name!r} is not a class of CIFAR-100. {SOURCE}")
        if superclass != SUPERCLASS_OF[name]:
            raise ValueError(f"{path}: {name!r} has the superclass {superclass!r}, not {SUPERCLASS_OF[name]!r}.")
