"""Problems with background shift: synthetic ones with a known answer, and splits of labelled data."""

from __future__ import annotations

from openset.shift.content import content_keys
from openset.shift.custom import background_shift
from openset.shift.manifest import Manifest
from openset.shift.problem_checks import Separability, SupportOverlap, separability, support_overlap
from openset.shift.recipes import (
    CIFAR_SUPERCLASSES,
    PAPER_SEEDS,
    cifar_shift,
    sentiment_shift,
    subtype_shift,
)
from openset.shift.split import Parts, ShiftSplit, rebuild
from openset.shift.synthetic import (
    BackgroundShift,
    SubtypeShift,
    make_background_shift,
    make_feature_maps,
    make_subtype_shift,
)

__all__ = [
    "CIFAR_SUPERCLASSES",
    "PAPER_SEEDS",
    "BackgroundShift",
    "Manifest",
    "Parts",
    "Separability",
    "ShiftSplit",
    "SubtypeShift",
    "SupportOverlap",
    "background_shift",
    "cifar_shift",
    "content_keys",
    "make_background_shift",
    "make_feature_maps",
    "make_subtype_shift",
    "rebuild",
    "sentiment_shift",
    "separability",
    "subtype_shift",
    "support_overlap",
]
