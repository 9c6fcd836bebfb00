"""Folders on this machine and on object stores, with the same few operations; a file appears whole or not at all.

Object stores are reached through :mod:`pyarrow.fs`, other protocols through fsspec. A remote file is fetched to
the local disk and read there: every reader works on it, and it is read once. docs/decisions/0031 says why.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from openset._utils.extras import require
from openset._utils.files import expanded, replacing, write_atomically

_CHUNK = 2**24
"""Bytes copied at a time."""
_SECOND = 10**9


@dataclass(frozen=True)
class Found:
    """The size of a file in bytes, and when it was last changed, in nanoseconds."""

    size: int
    modified: int


class Folder(Protocol):
    """A folder; files are named by their path in it, with slashes."""

    @property
    def url(self) -> str:
        """How a user writes the folder, without a slash at the end."""

    def files(self) -> dict[str, Found]:
        """All files below it, in the order of their names; none if there is no such folder."""

    def found(self, name: str) -> Found | None:
        """One file as it is now; None if there is none."""

    def fetched(self, name: str) -> Any:
        """Yield a local folder that has the file under the same name."""

    def writing(self, name: str) -> Any:
        """Yield a local path to write to; the file is there when the block ends without an error."""

    def read(self, name: str) -> bytes:
        """The bytes of a small file."""

    def write(self, name: str, content: bytes) -> None:
        """Write a small file, whole or not at all."""

    def delete(self, name: str) -> None:
        """Delete a file, if it is there."""


def is_remote(path: Any) -> bool:
    """Whether a path is a URL such as ``s3://bucket/rows``; ``file://`` is this machine.

    >>> is_remote("s3://bucket/rows"), is_remote("rows"), is_remote("file:///rows"), is_remote("C:/rows")
    (True, False, False, False)
    """
    return "://" in str(path) and not str(path).startswith("file://")


def local_path(path: Any) -> Path:
    """A path on this machine.

    >>> local_path("file:///data/rows").as_posix()
    '/data/rows'
    """
    return expanded(str(path).removeprefix("file://"))


def open_folder(path: Any) -> Folder:
    """The folder at a path or URL, which need not exist yet."""
    return RemoteFolder.at(str(path)) if is_remote(path) else LocalFolder(local_path(path))


@dataclass(frozen=True)
class LocalFolder:
    """A folder on this machine."""

    path: Path

    @property
    def url(self) -> str:
        """The path."""
        return str(self.path)

    def files(self) -> dict[str, Found]:
        """All files below it."""
        found = {}
        for above, folders, names in os.walk(self.path):
            folders.sort()
            for name in names:
                whole = Path(above) / name
                if whole.is_file():
                    found[whole.relative_to(self.path).as_posix()] = _as_found(whole)
        return dict(sorted(found.items()))

    def found(self, name: str) -> Found | None:
        """One file."""
        path = self.path / name
        return _as_found(path) if path.is_file() else None

    @contextmanager
    def fetched(self, name: str) -> Iterator[Path]:
        """The folder itself."""
        yield self.path

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """A temporary file beside the file, which is renamed."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            yield temporary

    def read(self, name: str) -> bytes:
        """The bytes of a file."""
        return (self.path / name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        """Write a file."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)

    def delete(self, name: str) -> None:
        """Delete a file."""
        (self.path / name).unlink(missing_ok=True)


def _as_found(path: Path) -> Found:
    status = path.stat()
    return Found(status.st_size, status.st_mtime_ns)


@dataclass(frozen=True, eq=False)
class RemoteFolder:
    """A folder of an object store: a file system of pyarrow and a path in it."""

    url: str
    system: Any
    base: str

    @classmethod
    def at(cls, url: str) -> RemoteFolder:
        """Connect to where a URL points; a bucket that is not there is an error at once."""
        fs = require("pyarrow.fs", "Reading object stores", "data")
        plain = url.rstrip("/")
        with telling(plain):
            system, base = _system_of(fs, plain)
        folder = cls(plain, system, base.rstrip("/"))
        if getattr(system, "type_name", "") in _HAVE_BUCKETS:
            folder._refuse_missing_bucket()
        return folder

    def _refuse_missing_bucket(self) -> None:
        from pyarrow import fs

        bucket = self.base.split("/")[0]
        try:
            with telling(self.url):
                info = self.system.get_file_info(bucket)
        except PermissionError:  # of a folder in it: who may use that need not be allowed to look at the bucket
            return
        if info.type == fs.FileType.NotFound:
            raise FileNotFoundError(f"{self.url}: there is no bucket {bucket!r}. Check its name and region.")

    def files(self) -> dict[str, Found]:
        """All files below it."""
        from pyarrow import fs

        with telling(self.url):
            infos = self.system.get_file_info(fs.FileSelector(self.base, allow_not_found=True, recursive=True))
        start = len(self.base) + 1
        files = {info.path[start:]: _of_info(info) for info in infos if info.type == fs.FileType.File}
        return dict(sorted(files.items()))

    def found(self, name: str) -> Found | None:
        """One file."""
        from pyarrow import fs

        with telling(f"{self.url}/{name}"):
            info = self.system.get_file_info(f"{self.base}/{name}")
        return _of_info(info) if info.type == fs.FileType.File else None

    @contextmanager
    def fetched(self, name: str) -> Iterator[Path]:
        """A temporary folder with a copy of the file."""
        with tempfile.TemporaryDirectory(prefix="openset-") as folder:
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with telling(f"{self.url}/{name}"):
                self._copy(f"{self.base}/{name}", str(path), into_store=False)
            yield Path(folder)

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """A temporary file, which is uploaded. The upload is one call, which no signal cuts into two."""
        with tempfile.TemporaryDirectory(prefix="openset-") as folder:
            path = Path(folder) / Path(name).name
            yield path
            with telling(f"{self.url}/{name}"):
                self._make_room(name)
                self._copy(str(path), f"{self.base}/{name}", into_store=True)

    def read(self, name: str) -> bytes:
        """The bytes of a file."""
        with telling(f"{self.url}/{name}"), self.system.open_input_stream(f"{self.base}/{name}") as file:
            content: bytes = file.read()
        return content

    def write(self, name: str, content: bytes) -> None:
        """Write a file."""
        with self.writing(name) as temporary:
            temporary.write_bytes(content)

    def delete(self, name: str) -> None:
        """Delete a file."""
        if self.found(name) is not None:
            with telling(f"{self.url}/{name}"):
                self.system.delete_file(f"{self.base}/{name}")

    def _copy(self, source: str, destination: str, *, into_store: bool) -> None:
        from pyarrow import fs

        systems = (fs.LocalFileSystem(), self.system) if into_store else (self.system, fs.LocalFileSystem())
        fs.copy_files(
            source,
            destination,
            source_filesystem=systems[0],
            destination_filesystem=systems[1],
            chunk_size=_CHUNK,
        )

    def _make_room(self, name: str) -> None:
        """Make the folder of a file, where folders are more than a part of a name."""
        if getattr(self.system, "type_name", "") not in _HAVE_BUCKETS:
            self.system.create_dir(os.path.dirname(f"{self.base}/{name}"), recursive=True)


_HAVE_BUCKETS = ("s3", "gcs")


def _system_of(fs: Any, url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it: of pyarrow, or else of fsspec."""
    import pyarrow as pa

    scheme, _, path = url.partition("://")
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if scheme == "s3" and endpoint:  # another store with S3's protocol, such as MinIO
        protocol, _, address = endpoint.rpartition("://")
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
        store = fs.S3FileSystem(endpoint_override=address, scheme=protocol or "https", region=region)
        return store, path
    try:
        found: tuple[Any, str] = fs.FileSystem.from_uri(url)
        return found
    except pa.ArrowInvalid:
        fsspec = require("fsspec", f"Reading {scheme}://", "data")
        try:
            store, base = fsspec.core.url_to_fs(url)
        except ImportError as error:
            raise ValueError(f"{url}: {scheme}:// needs a package that is not installed: {error}.") from None
        except ValueError:
            raise ValueError(
                f"{url}: nothing is known of {scheme}://. Known are s3, gs, abfs, hdfs, and what fsspec has."
            ) from None
        return fs.PyFileSystem(fs.FSSpecHandler(store)), base


def _of_info(info: Any) -> Found:
    """A file of a store; its time in whole seconds, as a listing may tell more digits than a single request."""
    return Found(int(info.size), int(info.mtime_ns or 0) // _SECOND * _SECOND)


@contextmanager
def telling(url: str) -> Iterator[None]:
    """Errors of an object store in a sentence: which place, what is wrong, what to do."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise OSError(errno.ENOSPC, f"no room for a copy of {url} in {tempfile.gettempdir()}") from error
        text = str(error)
        for signs, kind, advice in _KNOWN:
            if any(sign in text for sign in signs):
                raise kind(f"{url}: {advice}") from error
        raise


_KNOWN: tuple[tuple[tuple[str, ...], type[OSError], str], ...] = (
    (("NO_SUCH_BUCKET",), FileNotFoundError, "there is no such bucket. Check its name and region."),
    (
        (
            "ACCESS_DENIED",
            "INVALID_ACCESS_KEY_ID",
            "SIGNATURE_DOES_NOT_MATCH",
            "InvalidAccessKeyId",
            "HTTP status 403",
        ),
        PermissionError,
        "access is refused. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or a role that may do this.",
    ),
    (
        ("NETWORK_CONNECTION", "curlCode: 6", "curlCode: 7"),
        ConnectionError,
        "the store cannot be reached. Check the network, AWS_REGION and AWS_ENDPOINT_URL.",
    ),
)
