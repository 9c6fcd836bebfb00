"""``export_run``: the network of a run as an ONNX graph, with the columns of a table as inputs if possible."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from openset._utils.text import listed
from openset.features.fitted import FittedFeatures, read_features
from openset.features.table.onnx import ML_DOMAIN, ML_OPSET, inputs_of, table_nodes, why_not
from openset.persistence.onnx.export import Inputs, to_onnx
from openset.pipeline.result import FEATURES, load_model, read_summary


@dataclass(frozen=True)
class Exported:
    """What a graph takes: columns of the table by name, or one input ``x`` made of ``features``."""

    method: str
    inputs: list[str]
    features: list[str]
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        return asdict(self)

    @property
    def sentence(self) -> str:
        """The inputs in words."""
        if self.inputs != ["x"]:
            return f"Its inputs are the columns {listed(self.inputs, 8)}."
        made = f"Its input x is made of: {', '.join(self.features)}"
        return f"{made}. It is not made of columns, as {self.reason}." if self.reason else made


def export_run(run: str | PathLike[str], path: str | PathLike[str]) -> Exported:
    """Write the graph of a run to a file, and return what it takes."""
    summary, model, fitted = read_summary(run), load_model(run), read_features(Path(run) / FEATURES)
    reason = _why_not_columns(fitted)
    if fitted is None or fitted.table is None or fitted.table.mean is None or reason:
        model.to_onnx(path)
        encoded = [f"encoder {entry.encoder}" for entry in summary.data.encoded]
        named = summary.data.features if isinstance(summary.data.features, list) else []
        features = encoded if encoded and len(encoded) == len(named) else list(named)
        if reason and fitted is not None and fitted.table is not None:
            features = [*fitted.table.features, *encoded]
        return Exported(type(model).__name__, ["x"], features, reason)
    columns = inputs_of(fitted.table)
    names = [(column.name, column.is_text) for column in columns]
    to_onnx(model, path, Inputs(names, partial(table_nodes, fitted=fitted.table), {ML_DOMAIN: ML_OPSET}))
    return Exported(type(model).__name__, [name for name, _ in names], fitted.table.features)


def _why_not_columns(fitted: FittedFeatures | None) -> str:
    """Why a graph cannot take the columns of a table; empty if it can, or if there is nothing to make of them."""
    if fitted is None or fitted.table is None:
        return ""
    if len(fitted.blocks) > 1:
        return f"the {fitted.blocks[-1].kind} column goes through an encoder or holds vectors"
    return why_not(fitted.table)
