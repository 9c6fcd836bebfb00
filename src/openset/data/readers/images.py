"""Images in a folder or a zip archive, each read when it is asked for."""

from __future__ import annotations

import errno
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from openset._utils.arrays import as_objects
from openset._utils.extras import require
from openset._utils.text import listed
from openset.data.readers.boundary import refuse_special
from openset.data.readers.source import Source, sliced

if TYPE_CHECKING:
    from PIL.Image import Image

IMAGE_SUFFIXES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"})


@dataclass(frozen=True)
class ImageFile:
    """One image file: its path below ``root``, a folder or a zip archive. It is read when it is asked for."""

    root: Path
    path: str

    def __str__(self) -> str:
        return str(self.root / self.path)

    def open(self) -> BinaryIO:
        """The file's bytes as a stream; a FileNotFoundError if it is not there."""
        if self.root.is_file():
            try:
                return BytesIO(_archive(self.root, os.getpid()).read(self.path))
            except KeyError:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self)) from None
        file = self.root / self.path
        refuse_special(file)
        return file.open("rb")

    def read_bytes(self) -> bytes:
        """The file's bytes as they are stored; an OSError if they cannot be read."""
        try:
            with self.open() as stream:
                return stream.read()
        except OSError:
            raise
        except Exception as error:  # zipfile raises errors of many types for damaged archives
            raise OSError(errno.EIO, str(error), str(self)) from error


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """A sequence of image files: ``images[3]`` reads one, ``images[rows]`` selects some without reading them.

    ``paths`` are relative to ``root``, a folder or a zip archive. An image is read as uint8 red, green and blue,
    of shape height × width × 3, upright by its EXIF data. Grey and palette images are converted; of an animation
    the first frame is read.
    """

    root: Path
    paths: NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, (int, np.integer)):
            return _pixels(self._file(key))
        return ImageFiles(self.root, self.paths[key])

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        return map(_pixels, self.files)

    @property
    def files(self) -> list[ImageFile]:
        """The file of each row; none is read."""
        return [self._file(row) for row in range(len(self))]

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which rows have an image; the path of the others is blank."""
        return np.array([bool(path) for path in self.paths], dtype=bool)

    def problem(self, row: int) -> str | None:
        """Say what is wrong with a row's file: absent, or no image by its header. None if nothing is.

        Pixels are not decoded.
        """
        file = self._file(row)
        try:
            with file.open() as stream, _pillow().open(stream) as image:
                image.verify()
        except FileNotFoundError:
            return f"image {file.path!r} is not in {self.root}"
        except Exception as error:  # Pillow's plugins raise errors of many types for damaged files
            return f"image {file.path!r} is unreadable ({type(error).__name__})"
        return None

    def _file(self, row: int | np.integer) -> ImageFile:
        return ImageFile(self.root, str(self.paths[row]))


def upright_image(data: bytes) -> Image:
    """The image of a file's bytes, in red, green and blue, rotated as its EXIF data says."""
    with _pillow().open(BytesIO(data)) as image:
        upright: Image = _pillow("PIL.ImageOps").exif_transpose(image)
        return upright.convert("RGB")


def _pixels(file: ImageFile) -> NDArray[np.uint8]:
    try:
        return np.asarray(upright_image(file.read_bytes()))
    except FileNotFoundError:
        raise FileNotFoundError(f"image {file.path!r} is not in {file.root}") from None
    except Exception as error:  # as in ``ImageFiles.problem``
        raise ValueError(f"image {file.path!r} in {file.root} is unreadable: {error}") from error


@lru_cache(maxsize=8)
def _archive(path: Path, process: int) -> zipfile.ZipFile:
    """One open archive for each process: a file position must not be shared across a fork."""
    return zipfile.ZipFile(path)


def _pillow(module: str = "PIL.Image") -> Any:
    return require(module, "Reading images", "data")


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
