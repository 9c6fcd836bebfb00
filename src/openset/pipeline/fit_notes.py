"""The warnings of a fit in words of the command line: columns by their names, no parameters of Python."""

from __future__ import annotations

from collections.abc import Sequence

from openset._utils.text import listed
from openset.pipeline.check_columns import NamedColumns
from openset.stats.scaling import incompatible_features, moments

TOO_FEW_ROWS, OTHER_SCALES = "cannot be promised from", "features are on incompatible scales"
"""Words by which warnings of a fit are known: of too few validation rows, and of other units."""


def fit_notes(warnings: Sequence[str], columns: NamedColumns | None) -> list[str]:
    """What to check, of what a fit warned of; ``columns`` are those of a table, None without one."""
    return [(_scales_text(columns) or warning) if OTHER_SCALES in warning else warning for warning in warnings]


def _scales_text(table: NamedColumns | None) -> str:
    """The columns whose scales differ, with the values of the first; empty if they cannot be named."""
    if table is None:
        return ""
    source, target = moments(table.source), moments(table.target)
    odd = incompatible_features(source, target).tolist()
    if not odd:
        return ""
    of = table.columns or table.names
    names = list(dict.fromkeys(of[index] for index in odd))
    first = odd[0]
    many = f"Columns {listed(map(repr, names))} are" if len(names) > 1 else f"Column {names[0]!r} is"
    return (
        f"{many} on another scale in target: {table.names[first]} has mean {source.mean.flat[first]:.3g} ± "
        f"{source.sd.flat[first]:.3g} in source, {target.mean.flat[first]:.3g} ± {target.sd.flat[first]:.3g} in "
        "target. Were both prepared alike?"
    )
