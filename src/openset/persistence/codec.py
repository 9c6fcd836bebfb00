"""Encode fitted attributes as JSON and tensors, and decode them: plain data, arrays and a few dataclasses.

Nothing is pickled, and no name in a file is imported: the classes that can be decoded are listed here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.arrays import make_records
from openset.errors import ModelFormatError

Tensors = dict[str, NDArray[Any]]

_DATACLASSES = {
    "Affine": "openset.align.base",
    "Architecture": "openset.learn.architecture",
    "Chosen": "openset.align.auto",
    "ClassOffsets": "openset.align.classes",
    "ClusterOffsets": "openset.align.clusters",
    "Coral": "openset.align.coral",
    "Counts": "openset.stats.bounded_shift",
    "Diagnostic": "openset.stats.diagnostics",
    "HiddenDistance": "openset.methods._distances",
    "Move": "openset.align.moved",
    "NoAlignment": "openset.align.none",
    "NoveltyTest": "openset.stats.novelty",
    "NoveltyVerdict": "openset.stats.novelty",
    "Offsets": "openset.align.base",
    "RowDistance": "openset.methods._distances",
    "Scaling": "openset.stats.scaling",
    "ShareEstimate": "openset.stats.shares",
    "Space": "openset.methods._distances",
    "Standardize": "openset.align.standardize",
    "Surroundings": "openset.methods._voices",
    "TailRank": "openset.stats.tail_ranks",
    "Transport": "openset.align.transport",
    "Trust": "openset.methods._voices",
    "Voices": "openset.methods._voices",
}
_FORMER_NAMES = {"NoveltyEvidence": "NoveltyVerdict", "ProportionEstimate": "ShareEstimate"}
"""Class names in folders of an earlier openset, and their current names; the fields are the same."""
_NUMERIC = "biuf"


def encode(value: Any, tensors: Tensors, path: str) -> Any:
    """Return a JSON value for ``value``, and store numeric arrays in ``tensors`` under ``path``."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, np.recarray):
        columns = {str(name): np.ascontiguousarray(value[name]) for name in value.dtype.names or ()}
        return {"$records": encode(columns, tensors, path), "shape": list(value.shape)}
    if isinstance(value, np.record):
        return {"$record": encode(np.atleast_1d(value).view(np.recarray), tensors, path)}
    if isinstance(value, np.ndarray):
        return _encode_array(value, tensors, path)
    if isinstance(value, np.generic):
        return {"$scalar": encode(value.item(), tensors, path), "dtype": value.dtype.str}
    if isinstance(value, tuple):
        return {"$tuple": [encode(item, tensors, f"{path}.{i}") for i, item in enumerate(value)]}
    if isinstance(value, list):
        return [encode(item, tensors, f"{path}.{i}") for i, item in enumerate(value)]
    if is_dataclass(value) and type(value).__name__ in _DATACLASSES:
        items = {f.name: encode(getattr(value, f.name), tensors, f"{path}.{f.name}") for f in fields(value)}
        return {"$dataclass": type(value).__name__, "fields": items}
    if isinstance(value, Mapping) and all(isinstance(key, str) and not key.startswith("$") for key in value):
        return {key: encode(item, tensors, f"{path}.{key}") for key, item in value.items()}
    raise TypeError(f"{path} is a {type(value).__name__}, which a model folder cannot hold")


def _encode_array(array: NDArray[Any], tensors: Tensors, path: str) -> Any:
    if array.dtype.kind in _NUMERIC:
        tensors[path] = np.asarray(array, order="C")  # keeps arrays of 0 axes
        return {"$array": path}
    if array.dtype.kind in "UO" and array.ndim == 1:
        return {"$labels": [encode(item, tensors, path) for item in array.tolist()], "dtype": array.dtype.str}
    raise TypeError(f"{path} is an array of {array.dtype}, which a model folder cannot hold")


def decode(value: Any, tensors: Mapping[str, NDArray[Any]]) -> Any:
    """The inverse of :func:`encode`."""
    if isinstance(value, list):
        return [decode(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    if "$float" in value:
        return float(value["$float"])
    if "$array" in value:
        return tensors[value["$array"]]
    if "$labels" in value:
        return np.array([decode(item, tensors) for item in value["$labels"]], dtype=value["dtype"])
    if "$scalar" in value:
        return np.dtype(value["dtype"]).type(decode(value["$scalar"], tensors))
    if "$tuple" in value:
        return tuple(decode(item, tensors) for item in value["$tuple"])
    if "$record" in value:
        return decode(value["$record"], tensors)[0]
    if "$records" in value:
        columns = decode(value["$records"], tensors)
        return make_records(columns)
    if "$dataclass" in value:
        name = _FORMER_NAMES.get(value["$dataclass"], value["$dataclass"])
        if name not in _DATACLASSES:
            raise ModelFormatError(f"unknown type {name!r}")
        cls = getattr(import_module(_DATACLASSES[name]), name)
        return cls(**{key: decode(item, tensors) for key, item in value["fields"].items()})
    return {key: decode(item, tensors) for key, item in value.items()}
