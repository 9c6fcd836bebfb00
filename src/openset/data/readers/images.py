"""Images in a folder or a zip archive, each read when it is asked for."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.arrays import as_objects
from openset._utils.extras import require
from openset._utils.text import listed
from openset.data.readers.boundary import refuse_special
from openset.data.readers.source import Source, sliced

IMAGE_SUFFIXES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"})


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """A sequence of image files: ``images[3]`` reads one, ``images[rows]`` selects some without reading them.

    ``paths`` are relative to ``root``, a folder or a zip archive. An image is read as uint8 red, green and blue,
    of shape height × width × 3. Grey and palette images are converted; of an animation the first frame is read.
    """

    root: Path
    paths: NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, (int, np.integer)):
            return self._read(str(self.paths[key]))
        return ImageFiles(self.root, self.paths[key])

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        return (self._read(str(path)) for path in self.paths)

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which rows have an image; the path of the others is blank."""
        return np.array([bool(path) for path in self.paths], dtype=bool)

    def problem(self, row: int) -> str | None:
        """Say what is wrong with a row's file: absent, or no image by its header. None if nothing is.

        Pixels are not decoded.
        """
        path = str(self.paths[row])
        try:
            with _pillow().open(self._open(path)) as image:
                image.verify()
        except (FileNotFoundError, KeyError):
            return f"image {path!r} is not in {self.root}"
        except Exception as error:  # Pillow's plugins raise errors of many types for damaged files
            return f"image {path!r} is unreadable ({type(error).__name__})"
        return None

    def _open(self, path: str) -> Any:
        if self.root.is_file():
            return BytesIO(_archive(self.root, os.getpid()).read(path))
        file = self.root / path
        refuse_special(file)
        return file

    def _read(self, path: str) -> NDArray[np.uint8]:
        pillow = _pillow()
        try:
            with pillow.open(self._open(path)) as image:
                return np.asarray(image.convert("RGB"))
        except (FileNotFoundError, KeyError):
            raise FileNotFoundError(f"image {path!r} is not in {self.root}") from None
        except Exception as error:  # as in ``problem``
            raise ValueError(f"image {path!r} in {self.root} is unreadable: {error}") from error


@lru_cache(maxsize=8)
def _archive(path: Path, process: int) -> zipfile.ZipFile:
    """One open archive for each process: a file position must not be shared across a fork."""
    return zipfile.ZipFile(path)


def _pillow() -> Any:
    return require("PIL.Image", "Reading images", "data")


def has_images(folder: Path) -> bool:
    """Whether there is an image file somewhere in a folder; the search ends at the first."""
    return any(path.suffix.lower() in IMAGE_SUFFIXES for path in folder.rglob("*"))


def open_image_folder(path: Path) -> Source:
    """A folder of images: the path is the id, and the first level of folders, if there is one, the label."""
    names = list_images(path)
    if not names:
        raise ValueError(f"{path} is a folder without images: expected <class>/<name>.jpg or similar.")
    columns: dict[str, Any] = {"image": as_objects(names)}
    defaults = {"image": "image", "id": "image"}
    inside = [name for name in names if "/" in name]
    if inside and len(inside) < len(names):
        loose = [name for name in names if "/" not in name]
        raise ValueError(
            f"{path} has {len(loose)} images beside the class folders ({listed(loose)}): move them into one."
        )
    if inside:
        columns["label"] = np.asarray([name.split("/")[0] for name in names])
        defaults["label"] = "label"
    kinds = dict.fromkeys(columns, "other")
    return Source(str(path), path, kinds, partial(sliced, str(path), columns), defaults=defaults)


def list_images(folder: Path) -> list[str]:
    """The image files below a folder, by their extension, as sorted relative paths. Hidden files are ignored.

    >>> list_images(Path("/nowhere"))
    []
    """
    found: list[str] = []
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        inside = Path(parent).relative_to(folder)
        found += [
            (inside / name).as_posix()
            for name in files
            if not name.startswith(".") and Path(name).suffix.lower() in IMAGE_SUFFIXES
        ]
    return sorted(found)
