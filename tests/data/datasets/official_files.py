"""Tiny files in the official formats, written as the originals were."""

from __future__ import annotations

import io
import struct
import tarfile

import numpy as np


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
