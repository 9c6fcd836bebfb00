"""Images on disk or in a zip archive, read when asked for."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.errors import MissingExtraError

IMAGE_SUFFIXES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"})


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """A sequence of images that stay where they are: ``images[3]`` reads one, ``images[rows]`` chooses some.

    ``paths`` are below ``root``, a folder or a zip archive. Reading gives uint8 red, green, blue, of shape
    height × width × 3; grey and palette images are converted, and of an animation the first frame is read.
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

    def problem(self, row: int) -> str | None:
        """What is wrong with a row's file (absent, or no image by its header), or None; pixels stay unread."""
        path = str(self.paths[row])
        try:
            with _pillow().open(self._open(path)) as image:
                image.verify()
        except (FileNotFoundError, KeyError):
            return f"image {path!r} is not in {self.root}"
        except Exception as error:  # Pillow's plugins raise errors of many kinds for damaged files
            return f"image {path!r} is unreadable ({type(error).__name__})"
        return None

    def _open(self, path: str) -> Any:
        if self.root.is_file():
            return BytesIO(_archive(self.root, os.getpid()).read(path))
        return self.root / path

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
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtraError("Reading images", "data") from None
    return Image


def list_images(folder: Path) -> list[str]:
    """The image files below a folder by their extension, as sorted relative paths; hidden ones are left out.

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
