"""Open-set domain adaptation under background shift.

Is there a new class in the target batch? How large is it? Which rows? And what are the others?

>>> import openset
>>> model = openset.CoLOR(random_state=0)  # then: model.fit(X, y, X_target)

The names below load on first use, so that ``import openset`` stays light and never imports torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from openset._version import __version__

if TYPE_CHECKING:
    from openset.base import OpenSetClassifier
    from openset.cluster.score import score_parts
    from openset.errors import ModelFormatError
    from openset.methods._presets import Group
    from openset.methods.anna import ANNA
    from openset.methods.arpl import ARPL
    from openset.methods.boda import BODA
    from openset.methods.cac import CAC
    from openset.methods.color import CoLOR
    from openset.methods.color_paper import ConOp, PaperCoLOR
    from openset.methods.deep_knn import DeepKNN
    from openset.methods.discriminator import DomainDiscriminator
    from openset.methods.knn import KNN
    from openset.methods.mahalanobis import Mahalanobis
    from openset.methods.names import MCM, ZOC
    from openset.methods.nnpu import NNPU
    from openset.methods.pu import UPU
    from openset.methods.pulse import PULSE
    from openset.methods.sar_em import SAREM
    from openset.methods.shot import SHOT
    from openset.methods.softmax_scores import MLS, MSP, Energy, Entropy
    from openset.methods.source_only import SourceOnly
    from openset.persistence.model import load
    from openset.pipeline.batch_answer import BatchAnswer
    from openset.pipeline.result import Result
    from openset.pipeline.run import load_run, run
    from openset.pipeline.score import score
    from openset.pipeline.tune import tune
    from openset.shift.synthetic import make_background_shift
    from openset.stats.metrics import evaluate
    from openset.watch.watch import Watch

_HOME = {
    "ANNA": "openset.methods.anna",
    "ARPL": "openset.methods.arpl",
    "BODA": "openset.methods.boda",
    "CAC": "openset.methods.cac",
    "KNN": "openset.methods.knn",
    "MCM": "openset.methods.names",
    "MLS": "openset.methods.softmax_scores",
    "MSP": "openset.methods.softmax_scores",
    "NNPU": "openset.methods.nnpu",
    "PULSE": "openset.methods.pulse",
    "SAREM": "openset.methods.sar_em",
    "SHOT": "openset.methods.shot",
    "UPU": "openset.methods.pu",
    "ZOC": "openset.methods.names",
    "BatchAnswer": "openset.pipeline.batch_answer",
    "CoLOR": "openset.methods.color",
    "ConOp": "openset.methods.color_paper",
    "DeepKNN": "openset.methods.deep_knn",
    "DomainDiscriminator": "openset.methods.discriminator",
    "Energy": "openset.methods.softmax_scores",
    "Entropy": "openset.methods.softmax_scores",
    "Group": "openset.methods._presets",
    "Mahalanobis": "openset.methods.mahalanobis",
    "ModelFormatError": "openset.errors",
    "OpenSetClassifier": "openset.base",
    "PaperCoLOR": "openset.methods.color_paper",
    "Result": "openset.pipeline.result",
    "SourceOnly": "openset.methods.source_only",
    "Watch": "openset.watch.watch",
    "evaluate": "openset.stats.metrics",
    "load": "openset.persistence.model",
    "load_run": "openset.pipeline.run",
    "make_background_shift": "openset.shift.synthetic",
    "run": "openset.pipeline.run",
    "score": "openset.pipeline.score",
    "score_parts": "openset.cluster.score",
    "tune": "openset.pipeline.tune",
}

__all__ = [
    "ANNA",
    "ARPL",
    "BODA",
    "CAC",
    "KNN",
    "MCM",
    "MLS",
    "MSP",
    "NNPU",
    "PULSE",
    "SAREM",
    "SHOT",
    "UPU",
    "ZOC",
    "BatchAnswer",
    "CoLOR",
    "ConOp",
    "DeepKNN",
    "DomainDiscriminator",
    "Energy",
    "Entropy",
    "Group",
    "Mahalanobis",
    "ModelFormatError",
    "OpenSetClassifier",
    "PaperCoLOR",
    "Result",
    "SourceOnly",
    "Watch",
    "__version__",
    "evaluate",
    "load",
    "load_run",
    "make_background_shift",
    "run",
    "score",
    "score_parts",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in ("cluster", "review"):  # so that openset.review.Session needs no import of its own
        return import_module(f"openset.{name}")
    raise AttributeError(f"module 'openset' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
