"""Save and load fitted models: safetensors and JSON in a folder, never pickle.

A folder holds ``model.json`` (the manifest), ``weights-<hash>.safetensors`` and ``README.md`` (a model card). The
weights are named by their content and the manifest is replaced last, in one atomic rename: after a kill at
any moment the folder holds the old model or the new one, whole.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as dump_tensors

from openset._utils.files import is_temporary, write_atomically
from openset._utils.hashing import sha256
from openset._utils.params import fitted_attributes
from openset._utils.text import listed, shortened
from openset._utils.typed import read_as, read_json
from openset._version import __version__
from openset.errors import MissingExtraError, ModelFormatError
from openset.persistence.codec import Tensors, decode, encode
from openset.persistence.fitted import check_fitted, try_out
from openset.persistence.former import modernise
from openset.registry import Method, get_method, method_of, methods

FORMAT = "openset-model"
FORMAT_VERSION = 1
MANIFEST = "model.json"
CARD = "README.md"
_WEIGHTS = re.compile(r"weights-[0-9a-f]{16}\.safetensors")
FOREIGN_CODE = ("backbone", "classifier")
"""Parameters whose code is not ours: their names are stored, and loading asks for them."""


@dataclass(frozen=True)
class ForeignCode:
    """What is stored of a parameter whose code is not ours."""

    code: str


@dataclass(frozen=True)
class Weights:
    """The file of tensors beside the manifest."""

    file: str
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The content of ``model.json``; ``parameters`` and ``fitted`` are as the codec writes them."""

    format: str
    format_version: int
    openset_version: str
    method: str
    saved: str
    parameters: dict[str, Any]
    fitted: dict[str, Any]
    weights: Weights
    sha256: str = ""


def save(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted model to a folder, replacing a model that is there."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    method = method_of(model)
    if method is None:
        raise ValueError(
            f"{type(model).__name__} is not registered, so it could not be loaded again: "
            "call openset.registry.register(...) first."
        )
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: a model is saved to a folder.")
    _refuse_foreign_files(folder)
    tensors: Tensors = {}
    parameters, fitted = _encode_parameters(model, tensors), _encode_fitted(model, tensors)
    weights = dump_tensors(tensors)
    digest = sha256(weights)
    manifest = Manifest(
        format=FORMAT,
        format_version=FORMAT_VERSION,
        openset_version=__version__,
        method=method.name,
        saved=datetime.now(UTC).isoformat(timespec="seconds"),
        parameters=parameters,
        fitted=fitted,
        weights=Weights(f"weights-{digest[:16]}.safetensors", digest),
    )
    content = asdict(manifest)
    content["sha256"] = _manifest_digest(content)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / manifest.weights.file, weights)
    write_atomically(folder / MANIFEST, json.dumps(content, indent=1).encode())
    write_atomically(folder / CARD, _model_card(model, method, manifest.saved).encode())
    for name in os.listdir(folder):
        if _WEIGHTS.fullmatch(name) and name != manifest.weights.file:
            (folder / name).unlink(missing_ok=True)


def _refuse_foreign_files(folder: Path) -> None:
    """Raise a ValueError where a folder holds files but no model: a README.md in it would be lost."""
    try:
        content = read_json(folder / MANIFEST)
    except (FileNotFoundError, ValueError):
        content = None
    ours = isinstance(content, dict) and content.get("format") == FORMAT
    there = os.listdir(folder) if folder.exists() else []
    foreign = [] if ours else [name for name in there if not (_WEIGHTS.fullmatch(name) or is_temporary(name))]
    if foreign:
        raise ValueError(
            f"{folder} holds other files and no model ({listed(sorted(foreign))}): save to a folder of its own."
        )


def load(
    path: str | PathLike[str], *, device: str | None = None, backbone: Any = None, classifier: Any = None
) -> Any:
    """Read a model that :func:`save` wrote; scores are the same bit for bit.

    ``device`` computes elsewhere than the model was fitted; ``backbone`` is the module that a model with a
    backbone was fitted with, or a function that makes it (its weights come from the folder, its code cannot).
    A backbone given by its name, such as "resnet18", is rebuilt without. ``classifier`` is the fitted
    ``classifier_`` of a model whose known classes were left to another estimator: the folder does not hold it, as
    that would take pickle, so keep it by means that you trust, such as skops.
    """
    folder = Path(path)
    manifest = _read_manifest(folder)
    _check_classifier(_foreign_code(manifest, "classifier", folder), classifier)
    code = _foreign_code(manifest, "backbone", folder)
    if code is not None and backbone is None:
        raise ModelFormatError(
            f"this model has a backbone ({code}): pass load(..., backbone=module) with a module of the same "
            "architecture."
        )
    tensors = _read_weights(manifest, folder)
    try:
        return _restore(manifest, tensors, device, backbone, classifier)
    except MissingExtraError:
        raise
    except Exception as error:  # whatever comes of values that no fit has written
        raise ModelFormatError(f"{folder} is damaged: {type(error).__name__}: {_in_short(error)}") from error


def _in_short(error: Exception) -> str:
    return shortened(" ".join(str(error).split()), 200)


def _read_manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    try:
        content = read_json(path)
        _check_origin(content, folder)
        manifest = read_as(Manifest, content, str(path))
    except FileNotFoundError:
        raise ModelFormatError(f"{folder} is no openset model: there is no {MANIFEST} in it.") from None
    except (NotADirectoryError, IsADirectoryError):
        raise ModelFormatError(f"{folder} is no openset model: expected a folder with a {MANIFEST}.") from None
    except ValueError as error:
        raise ModelFormatError(str(error)) from None
    if manifest.method not in [method.name for method in methods()]:
        raise ModelFormatError(
            f"{folder} holds a {manifest.method!r} model, which is not registered here: import the package "
            "that defines it first."
        )
    return manifest


def _check_origin(content: Any, folder: Path) -> None:
    """Raise unless a manifest was written by openset, in a format that this version reads, and not changed."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{folder / MANIFEST} was not written by openset: it has no format {FORMAT!r}.")
    version = content.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise ValueError(
            f"{folder} has model format {version}, written by openset {content.get('openset_version')}; "
            f"this is openset {__version__}, which reads formats up to {FORMAT_VERSION}: upgrade openset."
        )
    if content.get("sha256") != _manifest_digest(content):
        raise ValueError(f"{folder / MANIFEST} was changed after it was written: its checksum is wrong.")


def _read_weights(manifest: Manifest, folder: Path) -> Tensors:
    name = manifest.weights.file
    if Path(name).name != name:
        raise ModelFormatError(f"{folder / MANIFEST} names weights outside its folder: {name!r}.")
    try:
        data = (folder / name).read_bytes()
    except FileNotFoundError:
        raise ModelFormatError(f"{folder} is incomplete: {name} is missing.") from None
    if sha256(data) != manifest.weights.sha256:
        raise ModelFormatError(f"{folder / name} is truncated or was changed: its checksum is wrong.")
    try:
        loaded: Tensors = load_tensors(data)
    except SafetensorError as error:
        raise ModelFormatError(f"{folder / name} is damaged: {error}") from None
    return loaded


def _restore(manifest: Manifest, tensors: Tensors, device: str | None, backbone: Any, classifier: Any) -> Any:
    fitted = decode(manifest.fitted, tensors)
    method, parameters = modernise(
        manifest.method, decode(manifest.parameters, tensors), int(fitted["n_features_in_"])
    )
    if backbone is not None and parameters.get("backbone") is not None:
        parameters["backbone"] = backbone
    if classifier is not None:
        parameters["classifier"] = fitted["classifier_"] = classifier
    if device is not None:
        parameters["device"] = device
    model = get_method(method).make(**parameters)
    model._check_parameters()
    check_fitted(model, fitted)
    for name, value in fitted.items():
        setattr(model, name, value)
    try_out(model)
    return model


def _foreign_code(manifest: Manifest, name: str, folder: Path) -> str | None:
    """The name of the code that a parameter needs; None where it has no value or is rebuilt from its name."""
    own = manifest.parameters.get(name)
    if own is None or isinstance(own, str):
        return None
    try:
        return read_as(ForeignCode, own, str(folder / MANIFEST), at=f"parameters.{name}").code
    except ValueError as error:
        raise ModelFormatError(str(error)) from None


def _check_classifier(code: str | None, classifier: Any) -> None:
    from sklearn.utils.validation import check_is_fitted

    if code is None:
        if classifier is not None:
            raise ValueError("this model was fitted with classifier=None: load it without a classifier.")
        return
    if classifier is None:
        raise ModelFormatError(
            f"this model leaves the known classes to a {code}, which its folder does not hold: pass "
            "load(..., classifier=fitted) with the classifier_ of the model that was saved."
        )
    check_is_fitted(classifier)
    given = type(classifier).__qualname__
    if given != code:
        raise ValueError(f"classifier is a {given}, but this model was fitted with a {code}.")


def _encode_parameters(model: Any, tensors: Tensors) -> dict[str, Any]:
    encoded: dict[str, Any] = {}
    for name, value in model.get_params(deep=False).items():
        if name == "classifier" and not hasattr(model, "classifier_"):
            encoded[name] = None  # not used: there is one known class
        elif name in FOREIGN_CODE and value is not None and not isinstance(value, str):
            encoded[name] = {"code": getattr(value, "__qualname__", type(value).__qualname__)}
        elif name == "checkpoint" or isinstance(value, (np.random.RandomState, np.random.Generator)):
            encoded[name] = None  # a path and the state of a generator are no part of the model
        else:
            encoded[name] = encode(value, tensors, f"parameters.{name}")
    return encoded


def _encode_fitted(model: Any, tensors: Tensors) -> dict[str, Any]:
    own = [name for name in fitted_attributes(model) if name not in ("classifier_", "fit_scores_")]
    return {name: encode(getattr(model, name), tensors, name) for name in own}


def _manifest_digest(content: dict[str, Any]) -> str:
    rest = {key: value for key, value in content.items() if key != "sha256"}
    return sha256(json.dumps(rest, sort_keys=True))


def _model_card(model: Any, method: Method, saved: str) -> str:
    shape = getattr(model, "row_kind_", {"shape": [model.n_features_in_]})["shape"]
    fraction = model.novel_fraction_
    found = "not estimated (fitted without a target)" if fraction is None else f"{fraction} ({fraction.method})"
    foreign = hasattr(model, "classifier_")
    lines = [
        f"# {method.title}",
        "",
        f"An openset model: method `{method.name}` ({method.reference}).",
        "",
        "| | |",
        "|---|---|",
        f"| source rows | {model.n_source_} |",
        f"| target rows | {model.n_target_} |",
        f"| features | {' × '.join(map(str, shape))} |",
        f"| known classes | {len(model.classes_)}: {listed(map(_cell, model.classes_), 12)} |",
        *(
            [f"| known classes by | {type(model.classifier_).__qualname__}, not in this folder |"]
            if foreign
            else []
        ),
        f"| novel label | {_cell(model.novel_label_)} |",
        f"| novel fraction of the target | {found} |",
        f"| FPR budget on source | {model.fpr:g} |",
        f"| threshold on the novelty score | {model.threshold_:.6g} |",
        f"| seed | {_cell(model.random_state)} |",
        f"| fitted with | openset {__version__}, saved {saved} |",
        "",
        f"It assumes: {method.assumes}.",
        "The FPR budget holds for rows drawn like the *source*, not for the shifted target.",
        "",
        "```python",
        "import openset",
        f'model = openset.load("this-folder"{", classifier=fitted" if foreign else ""})',
        "model.predict(X)  # a known label, or the novel label",
        "```",
        "",
    ]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")
