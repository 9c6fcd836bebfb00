"""The list of methods: what tests, benchmarks and the command line go through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from openset._utils.params import check_choice

INPUTS = {
    "table": "one vector a row, (n, features)",
    "cells": "a map of cells a row, (n, cells, features)",
    "names": "one embedding a row, and embeddings of names beside",
}
"""The kinds of input a method can be made for; ``openset.testing`` has an easy problem of each."""


@dataclass(frozen=True)
class Method:
    """One method: where it lives, where it comes from, what it assumes and how to check it quickly."""

    name: str
    class_path: str
    """``module:Class``; imported on first use, so that listing methods stays quick."""
    title: str
    reference: str
    needs: str
    """What fitting needs beside labelled source rows."""
    assumes: str
    check_params: Mapping[str, Any] = field(default_factory=dict)
    """Parameters for test suites: fewer steps, nothing else."""
    auroc_floor: float = 0.9
    """The least AUROC on an easy separable problem without background shift."""
    input: str = "table"
    """What ``X`` is, a name in ``INPUTS``."""

    @property
    def class_name(self) -> str:
        """The class's own name."""
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
    """Add a method, one's own too: it can then be saved, loaded, checked and listed like the others."""
    if method.name in _METHODS:
        raise ValueError(f"a method named {method.name!r} is registered already.")
    check_choice("input", method.input, INPUTS)
    _METHODS[method.name] = method
    return method


def methods(input: str | None = None) -> tuple[Method, ...]:
    """All registered methods, in the order in which they were registered, or those for one kind of input.

    >>> [method.name for method in methods("cells")]
    ['anna']
    """
    if input is not None:
        check_choice("input", input, INPUTS)
    return tuple(method for method in _METHODS.values() if input in (None, method.input))


def get_method(name: str) -> Method:
    """The method of that name."""
    check_choice("method", name, _METHODS)
    return _METHODS[name]


def method_of(estimator: Any) -> Method | None:
    """The registry's entry for an estimator's class, None if it has none."""
    cls = type(estimator)
    path = f"{cls.__module__}:{cls.__qualname__}"
    return next((method for method in methods() if method.class_path == path), None)


_PAPER = "Chaudhari, Wald and Saria 2026, TMLR"
_FEW_STEPS = {"max_steps": 300}

register(
    Method(
        "color",
        "openset.methods.color:CoLOR",
        "CoLOR: constrained learning, shared body",
        _PAPER,
        needs="target rows",
        assumes="the new class is separable; known subtypes of target occur in source",
        check_params=_FEW_STEPS,
        auroc_floor=0.95,
    )
)
register(
    Method(
        "color_paper",
        "openset.methods.color_paper:PaperCoLOR",
        "CoLOR by Algorithm 1 of the paper",
        _PAPER,
        needs="target rows",
        assumes="as CoLOR",
        check_params=_FEW_STEPS,
        auroc_floor=0.95,
    )
)
register(
    Method(
        "conop",
        "openset.methods.color_paper:ConOp",
        "Algorithm 1 without joint learning",
        _PAPER,
        needs="target rows",
        assumes="as CoLOR; the classifier has a body of its own",
        check_params=_FEW_STEPS,
        auroc_floor=0.95,
    )
)
register(
    Method(
        "dd",
        "openset.methods.discriminator:DomainDiscriminator",
        "Domain discriminator",
        "Elkan and Noto 2008, KDD",
        needs="target rows",
        assumes="no background shift: only the new class grew",
        check_params=_FEW_STEPS,
        auroc_floor=0.95,
    )
)
register(
    Method(
        "source_only",
        "openset.methods.source_only:SourceOnly",
        "Source-only classifier and its doubt",
        "Hendrycks and Gimpel 2017, ICLR",
        needs="nothing",
        assumes="new rows fall between the known classes",
        check_params=_FEW_STEPS,
        auroc_floor=0.9,
    )
)
register(
    Method(
        "msp",
        "openset.methods.softmax_scores:MSP",
        "Maximum softmax probability",
        "Hendrycks and Gimpel 2017, ICLR",
        needs="nothing",
        assumes="new rows fall between the known classes",
        check_params=_FEW_STEPS,
        auroc_floor=0.95,
    )
)
register(
    Method(
        "entropy",
        "openset.methods.softmax_scores:Entropy",
        "Softmax entropy",
        "Hendrycks and Gimpel 2017, ICLR",
        needs="nothing",
        assumes="new rows fall between the known classes",
        check_params=_FEW_STEPS,
        auroc_floor=0.95,
    )
)
register(
    Method(
        "mls",
        "openset.methods.softmax_scores:MLS",
        "Maximum logit score",
        "Vaze, Han, Vedaldi and Zisserman 2022, ICLR",
        needs="nothing",
        assumes="new rows drive up no class's logit",
        check_params=_FEW_STEPS,
        auroc_floor=0.95,
    )
)
register(
    Method(
        "energy",
        "openset.methods.softmax_scores:Energy",
        "Free energy of the logits",
        "Liu, Wang, Owens and Li 2020, NeurIPS",
        needs="nothing",
        assumes="new rows drive up no class's logit",
        check_params=_FEW_STEPS,
        auroc_floor=0.95,
    )
)
register(
    Method(
        "knn",
        "openset.methods.knn:KNN",
        "Nearest neighbours in source",
        "Sun, Ming, Zhu and Li 2022, ICML",
        needs="nothing",
        assumes="new rows lie away from all source rows",
        auroc_floor=0.95,
    )
)
register(
    Method(
        "mahalanobis",
        "openset.methods.mahalanobis:Mahalanobis",
        "Mahalanobis distance to the nearest class",
        "Lee, Lee, Lee and Shin 2018, NeurIPS",
        needs="nothing",
        assumes="classes are Gaussian with one covariance",
        auroc_floor=0.95,
    )
)

register(
    Method(
        "upu",
        "openset.methods.pu:UPU",
        "uPU: unbiased PU learning",
        "du Plessis, Niu and Sugiyama 2015, ICML",
        needs="target rows",
        assumes="no background shift; the share of known rows in target is known or can be estimated",
        check_params=_FEW_STEPS,
        auroc_floor=0.95,
    )
)
register(
    Method(
        "nnpu",
        "openset.methods.nnpu:NNPU",
        "nnPU: non-negative PU learning",
        "Kiryo, Niu, du Plessis and Sugiyama 2017, NeurIPS",
        needs="target rows",
        assumes="no background shift; the share of known rows in target is known or can be estimated",
        check_params=_FEW_STEPS,
        auroc_floor=0.95,
    )
)
register(
    Method(
        "pulse",
        "openset.methods.pulse:PULSE",
        "PULSE: open-set label shift",
        "Garg, Balakrishnan and Lipton 2022, NeurIPS",
        needs="target rows",
        assumes="label shift: only the shares of classes changed",
        check_params=_FEW_STEPS,
        auroc_floor=0.95,
    )
)
register(
    Method(
        "sar_em",
        "openset.methods.sar_em:SAREM",
        "SAR-EM: propensity and classifier by EM",
        "Bekker, Robberechts and Davis 2019, ECML PKDD",
        needs="target rows",
        assumes="source rows are selected at random given their features; f and e can be told apart",
        check_params={"max_steps": 20},
        auroc_floor=0.95,
    )
)

register(
    Method(
        "boda",
        "openset.methods.boda:BODA",
        "BODA (OSBP): adversarial unknown class",
        "Saito et al. 2018, ECCV",
        needs="target rows",
        assumes="known target rows can be aligned with source; the new class is not rare",
        check_params=_FEW_STEPS,
        auroc_floor=0.95,
    )
)
register(
    Method(
        "arpl",
        "openset.methods.arpl:ARPL",
        "ARPL: reciprocal points, largest logit",
        "Chen et al. 2021, TPAMI",
        needs="nothing",
        assumes="new rows lie where no known class is far from its reciprocal point",
        check_params=_FEW_STEPS,
        auroc_floor=0.95,
    )
)
register(
    Method(
        "cac",
        "openset.methods.cac:CAC",
        "CAC: class anchor clustering",
        "Miller et al. 2021, WACV",
        needs="nothing",
        assumes="known classes cluster tightly in logit space, new rows fall between",
        check_params=_FEW_STEPS,
        auroc_floor=0.95,
    )
)
register(
    Method(
        "shot",
        "openset.methods.shot:SHOT",
        "SHOT: hypothesis transfer, open set",
        "Liang, Hu and Feng 2020, ICML",
        needs="target rows",
        assumes="known target rows moved together and kept their classes' shares; new rows are doubtful ones",
        check_params=_FEW_STEPS,
        auroc_floor=0.95,
    )
)
register(
    Method(
        "anna",
        "openset.methods.anna:ANNA",
        "ANNA: mined and aligned cells of maps",
        "Li, Liu, Han and Yuan 2023, CVPR",
        needs="target rows; maps of cells",
        assumes="as BODA; what is new occurs unlabelled in cells of source images",
        check_params=_FEW_STEPS,
        auroc_floor=0.9,
        input="cells",
    )
)
register(
    Method(
        "mcm",
        "openset.methods.names:MCM",
        "MCM: likeness to the nearest class name",
        "Ming et al. 2022, NeurIPS",
        needs="nothing",
        assumes="a new class is about equally unlike all known names",
    )
)
register(
    Method(
        "zoc",
        "openset.methods.names:ZOC",
        "ZOC: names that fit better than the known",
        "Esmaeilpour et al. 2022, AAAI",
        needs="embeddings of names, or a caption decoder",
        assumes="what is new has a name that the decoder knows",
        input="names",
    )
)
