"""The list of all methods; tests, benchmarks and the command line loop over it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from openset._utils.params import check_choice

INPUTS = {
    "table": "one vector per row, (n, features)",
    "cells": "one map of cells per row, (n, cells, features)",
    "names": "one embedding per row, and embeddings of names",
}
"""The kinds of input that methods take; ``openset.testing`` has an easy problem for each."""


@dataclass(frozen=True)
class Method:
    """One method: its class, its reference, what it needs and assumes, and how to check it quickly."""

    name: str
    class_path: str
    """``module:Class``; imported on first use, so that listing methods is fast."""
    title: str
    reference: str
    needs: str
    """What fitting needs besides labelled source rows."""
    assumes: str
    check_params: Mapping[str, Any] = field(default_factory=dict)
    """Parameters for test suites: fewer training steps, nothing else."""
    auroc_floor: float = 0.9
    """The least AUROC on an easy separable problem without background shift."""
    input: str = "table"
    """The kind of ``X``, a name in ``INPUTS``."""

    @property
    def class_name(self) -> str:
        """The name of the class."""
        return self.class_path.partition(":")[2]

    def load(self) -> type[Any]:
        """The estimator class."""
        module, _, name = self.class_path.partition(":")
        found: type[Any] = getattr(import_module(module), name)
        return found

    def make(self, **parameters: Any) -> Any:
        """An estimator with the given parameters."""
        return self.load()(**parameters)


_METHODS: dict[str, Method] = {}


def register(method: Method) -> Method:
    """Add a method, which may be your own: it can then be saved, loaded, checked and listed like the others."""
    if method.name in _METHODS:
        raise ValueError(f"a method named {method.name!r} is already registered.")
    check_choice("input", method.input, INPUTS)
    _METHODS[method.name] = method
    return method


def methods(input: str | None = None) -> tuple[Method, ...]:
    """All registered methods in order of registration, or those for one kind of input.

    >>> [method.name for method in methods("cells")]
    ['anna']
    """
    if input is not None:
        check_choice("input", input, INPUTS)
    return tuple(method for method in _METHODS.values() if input in (None, method.input))


def get_method(name: str) -> Method:
    """The method with this name."""
    check_choice("method", name, _METHODS)
    return _METHODS[name]


def method_of(estimator: Any) -> Method | None:
    """The registry entry of an estimator's class; None if there is none."""
    cls = type(estimator)
    path = f"{cls.__module__}:{cls.__qualname__}"
    return next((method for method in methods() if method.class_path == path), None)


_PAPER = "Chaudhari, Wald and Saria 2026, TMLR"
_TARGET, _NOTHING = "target rows", "nothing"

# fmt: off
_BUILT_IN: tuple[tuple[str, str, str, str, str, int, float, str, str], ...] = (
    # name,         module:class,                        title,
    # reference, needs, training steps in checks (0: it trains none), AUROC floor, input,
    # assumes
    ("color",       "color:CoLOR",                       "CoLOR: constrained learning, shared body",
     _PAPER, _TARGET, 300, 0.95, "table",
     "the new class is separable; known subtypes of target occur in source"),
    ("color_paper", "color_paper:PaperCoLOR",            "CoLOR by Algorithm 1 of the paper",
     _PAPER, _TARGET, 300, 0.95, "table",
     "as CoLOR"),
    ("conop",       "color_paper:ConOp",                 "Algorithm 1 without joint learning",
     _PAPER, _TARGET, 300, 0.95, "table",
     "as CoLOR; the classifier has its own body"),
    ("dd",          "discriminator:DomainDiscriminator", "Domain discriminator",
     "Elkan and Noto 2008, KDD", _TARGET, 300, 0.95, "table",
     "no background shift: only the new class grew"),
    ("source_only", "source_only:SourceOnly",            "Source-only classifier and its softmax",
     "Hendrycks and Gimpel 2017, ICLR", _NOTHING, 300, 0.9, "table",
     "new rows fall between the known classes"),
    ("msp",         "softmax_scores:MSP",                "Maximum softmax probability",
     "Hendrycks and Gimpel 2017, ICLR", _NOTHING, 300, 0.95, "table",
     "new rows fall between the known classes"),
    ("entropy",     "softmax_scores:Entropy",            "Softmax entropy",
     "Hendrycks and Gimpel 2017, ICLR", _NOTHING, 300, 0.95, "table",
     "new rows fall between the known classes"),
    ("mls",         "softmax_scores:MLS",                "Maximum logit score",
     "Vaze, Han, Vedaldi and Zisserman 2022, ICLR", _NOTHING, 300, 0.95, "table",
     "new rows have no large class logit"),
    ("energy",      "softmax_scores:Energy",             "Free energy of the logits",
     "Liu, Wang, Owens and Li 2020, NeurIPS", _NOTHING, 300, 0.95, "table",
     "new rows have no large class logit"),
    ("knn",         "knn:KNN",                           "Nearest neighbours in source",
     "Sun, Ming, Zhu and Li 2022, ICML", _NOTHING, 0, 0.95, "table",
     "new rows lie far from all source rows"),
    ("deep_knn",    "deep_knn:DeepKNN",                  "Nearest neighbours in a classifier's hidden layer",
     "Sun, Ming, Zhu and Li 2022, ICML", _NOTHING, 300, 0.95, "table",
     "new rows differ from source in directions that tell known classes apart"),
    ("mahalanobis", "mahalanobis:Mahalanobis",           "Mahalanobis distance to the nearest class",
     "Lee, Lee, Lee and Shin 2018, NeurIPS", _NOTHING, 0, 0.95, "table",
     "classes are Gaussian with one covariance"),
    ("upu",         "pu:UPU",                            "uPU: unbiased PU learning",
     "du Plessis, Niu and Sugiyama 2015, ICML", _TARGET, 300, 0.95, "table",
     "no background shift; the share of known rows in target is known or can be estimated"),
    ("nnpu",        "nnpu:NNPU",                         "nnPU: non-negative PU learning",
     "Kiryo, Niu, du Plessis and Sugiyama 2017, NeurIPS", _TARGET, 300, 0.95, "table",
     "no background shift; the share of known rows in target is known or can be estimated"),
    ("pulse",       "pulse:PULSE",                       "PULSE: open-set label shift",
     "Garg, Balakrishnan and Lipton 2022, NeurIPS", _TARGET, 300, 0.95, "table",
     "label shift: only the shares of classes changed"),
    ("sar_em",      "sar_em:SAREM",                      "SAR-EM: propensity and classifier by EM",
     "Bekker, Robberechts and Davis 2019, ECML PKDD", _TARGET, 20, 0.95, "table",
     "source rows are selected at random given their features; classifier and propensity are identifiable"),
    ("boda",        "boda:BODA",                         "BODA (OSBP): adversarial unknown class",
     "Saito et al. 2018, ECCV", _TARGET, 300, 0.95, "table",
     "known target rows can be aligned with source; the new class is not rare"),
    ("arpl",        "arpl:ARPL",                         "ARPL: reciprocal points, largest logit",
     "Chen et al. 2021, TPAMI", _NOTHING, 300, 0.95, "table",
     "new rows lie where no known class is far from its reciprocal point"),
    ("cac",         "cac:CAC",                           "CAC: class anchor clustering",
     "Miller et al. 2021, WACV", _NOTHING, 300, 0.95, "table",
     "known classes cluster tightly in logit space; new rows fall between them"),
    ("shot",        "shot:SHOT",                         "SHOT: hypothesis transfer, open set",
     "Liang, Hu and Feng 2020, ICML", _TARGET, 300, 0.95, "table",
     "known target rows moved together and kept their class shares; new rows have high entropy"),
    ("anna",        "anna:ANNA",                         "ANNA: mined and aligned cells of maps",
     "Li, Liu, Han and Yuan 2023, CVPR", "target rows; maps of cells", 300, 0.9, "cells",
     "as BODA; the new class occurs unlabelled in cells of source images"),
    ("mcm",         "names:MCM",                         "MCM: similarity to the nearest class name",
     "Ming et al. 2022, NeurIPS", _NOTHING, 0, 0.9, "table",
     "a new class is about equally unlike all known names"),
    ("zoc",         "names:ZOC",                         "ZOC: names that fit better than known ones",
     "Esmaeilpour et al. 2022, AAAI", "embeddings of names, or a caption decoder", 0, 0.9, "names",
     "the new class has a name that the decoder knows"),
)
# fmt: on

for _name, _path, _title, _reference, _needs, _steps, _floor, _input, _assumes in _BUILT_IN:
    register(
        Method(
            name=_name,
            class_path=f"openset.methods.{_path}",
            title=_title,
            reference=_reference,
            needs=_needs,
            assumes=_assumes,
            check_params={"max_steps": _steps} if _steps else {},
            auroc_floor=_floor,
            input=_input,
        )
    )
