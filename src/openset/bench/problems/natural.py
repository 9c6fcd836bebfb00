"""Natural problems: the target comes from another time, instrument, treatment or group of people.

Nothing is flipped or moved by us. All target rows may have moved, known ones too. The question is which rows of
the batch are new: the test rows are the target rows themselves, with their truth. ``novel_fraction`` thins the
new class to that share of the target; 0 takes it out, which gives the problem without a new class.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from openset._utils.extras import require
from openset._utils.params import check_choice, check_integer, check_number
from openset._utils.text import listed
from openset.bench.problems.sources import BenchProblem, ProblemSource, Setting, check_novel, problem_of

NOVEL_LABEL = "novel"
KDD_TRAIN, KDD_TEST = "nsl_kdd/train_20_percent.parquet", "nsl_kdd/test.parquet"
KDD_KNOWN, KDD_NEW = ("normal", "dos", "probe"), ("r2l", "u2r")
KDD_STRINGS = ("protocol_type", "service", "flag")
KDD_NO_FEATURES = ("attack", "family", "difficulty")
GAS = "gas_sensors/measurements.parquet"
IFNB = "ifnb_cells/cells.parquet"
IFNB_CLASSES = {
    **dict.fromkeys(("CD14 Mono", "CD16 Mono", "DC"), "mono"),
    **dict.fromkeys(("CD4 Naive T", "CD4 Memory T", "CD8 T", "T activated"), "T"),
    **dict.fromkeys(("B", "B Activated"), "B"),
}
WISDM = "wisdm_activity/windows.parquet"
WISDM_CLASSES = {
    **{name: name.lower() for name in ("Walking", "Jogging", "Standing", "Sitting")},
    **dict.fromkeys(("Upstairs", "Downstairs"), "stairs"),
}
PBMC = "pbmc_chemistries/cells.parquet"
PBMC_CLASSES = {
    **dict.fromkeys(("T_CD4", "T_CD8"), "T"),
    **dict.fromkeys(("Mono_CD14", "Mono_CD16"), "mono"),
    "B": "B",
}

Columns = Mapping[str, NDArray[Any]]


class Rows(NamedTuple):
    """Features of some rows, and the kind of each: a known class or a part of one, or a new kind."""

    X: NDArray[np.floating]
    kind: NDArray[np.str_]

    def where(self, chosen: NDArray[Any]) -> Rows:
        """Return the chosen rows."""
        return Rows(self.X[chosen], self.kind[chosen])


def _nsl_kdd(
    setting: Setting,
    novel: str,
    seed: int,
    data_dir: Path | None,
    *,
    novel_fraction: float = 0.15,
    n_source: int = 4000,
    n_target: int = 4000,
) -> BenchProblem:
    """Network traffic, and the official test set of another mix of attacks; r2l and u2r are new.

    ``n_source`` training rows and ``n_target`` test rows of the families normal, dos and probe are drawn. Test
    rows of an attack type that the drawn source lacks are dropped; about 3400 known ones remain by default.
    Strings become one column for each level in source. Counts, such as bytes, have heavy tails: a count x becomes
    log(1 + x), and shares of connections stay as they are.
    """
    check_integer("n_source", n_source)
    check_integer("n_target", n_target)
    check_novel("nsl-kdd", novel, "+".join(KDD_NEW))
    train, test = (_columns("nsl-kdd", data_dir, file) for file in (KDD_TRAIN, KDD_TEST))
    random = np.random.default_rng([seed, 0])
    drawn = _drawn(np.isin(train["family"], KDD_KNOWN), n_source, random)
    known = _drawn(np.isin(test["family"], KDD_KNOWN), n_target, random)
    batch = np.sort(np.concatenate([known, np.flatnonzero(np.isin(test["family"], KDD_NEW))]))
    levels = {name: np.unique(train[name][drawn]) for name in KDD_STRINGS}
    source, target = (
        Rows(_kdd_features(part, rows, levels), part["attack"][rows])
        for part, rows in ((train, drawn), (test, batch))
    )
    families = dict(zip(train["attack"][drawn], train["family"][drawn], strict=True))
    new = set(test["attack"][np.isin(test["family"], KDD_NEW)].tolist())
    return _natural("nsl-kdd", setting, seed, source, target, families, new, novel_fraction)


def _kdd_features(part: Columns, rows: NDArray[np.intp], levels: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    numbers = [
        np.log1p(part[name][rows]) if part[name].dtype.kind == "i" else part[name][rows]
        for name in part
        if name not in (*KDD_STRINGS, *KDD_NO_FEATURES)
    ]
    flags = [part[name][rows] == level for name, found in levels.items() for level in found]
    return np.column_stack([*numbers, *flags]).astype(np.float32)


def _gas_sensors(
    setting: Setting,
    novel: str,
    seed: int,
    data_dir: Path | None,
    *,
    novel_fraction: float | None = None,
    source_batches: Sequence[int] = (3, 4, 5),
    target_batch: int = 6,
) -> BenchProblem:
    """Drifting gas sensors: some batches of measurements, and a later one; classes are gases."""
    table = _columns("gas-sensors", data_dir, GAS)
    for number in (*source_batches, target_batch):
        check_choice("batch", number, sorted(set(table["batch"].tolist())))
    if target_batch in source_batches:
        raise ValueError(f"target_batch={target_batch} is in source_batches: choose another one.")
    rows = Rows(_features(table, "gas", "concentration", "batch"), table["gas"])
    gases = {str(gas): str(gas) for gas in np.unique(rows.kind)}
    check_choice("novel", novel, gases)
    source = rows.where(np.isin(table["batch"], list(source_batches)))
    target = rows.where(table["batch"] == target_batch)
    return _natural("gas-sensors", setting, seed, source, target, gases, {novel}, novel_fraction)


def _ifnb_cells(
    setting: Setting, novel: str, seed: int, data_dir: Path | None, *, novel_fraction: float | None = None
) -> BenchProblem:
    """Blood cells without and with interferon, which moves every cell."""
    table = _columns("ifnb-cells", data_dir, IFNB)
    rows = Rows(_features(table, "cell_type", "condition"), table["cell_type"])
    check_choice("novel", novel, np.unique(rows.kind).tolist())
    source, target = (rows.where(table["condition"] == name) for name in ("CTRL", "STIM"))
    return _natural("ifnb-cells", setting, seed, source, target, IFNB_CLASSES, {novel}, novel_fraction)


def _wisdm_activity(
    setting: Setting, novel: str, seed: int, data_dir: Path | None, *, novel_fraction: float | None = None
) -> BenchProblem:
    """Phone acceleration of users with even numbers, and of those with odd ones, who move differently.

    Every activity but the new one is known. Gaps become the median of the known source rows, and columns, which
    have different units, are standardised by these rows.
    """
    check_choice("novel", novel, WISDM_CLASSES)
    table = _columns("wisdm-activity", data_dir, WISDM)
    is_source, kind = table["user"] % 2 == 0, table["activity"]
    X = _features(table, "user", "activity")
    is_known = is_source & (kind != novel)
    X = np.where(np.isnan(X), np.nanmedian(X[is_known], axis=0), X)
    spread = X[is_known].std(axis=0)
    rows = Rows((X - X[is_known].mean(axis=0)) / np.where(spread > 0, spread, 1), kind)
    source, target = rows.where(is_source), rows.where(~is_source)
    return _natural("wisdm-activity", setting, seed, source, target, WISDM_CLASSES, {novel}, novel_fraction)


def _pbmc_chemistries(
    setting: Setting, novel: str, seed: int, data_dir: Path | None, *, novel_fraction: float | None = None
) -> BenchProblem:
    """Blood cells of two sequencing chemistries, and of a third; T cells, monocytes and B cells are known."""
    table = _columns("pbmc-chemistries", data_dir, PBMC)
    rows = Rows(_features(table, "meta_donor", "meta_cell_type", "meta_cell_type_broad"), table["meta_cell_type"])
    check_choice("novel", novel, np.unique(rows.kind).tolist())
    source = rows.where(np.isin(table["meta_donor"], ("3pv1", "3pv2")))
    target = rows.where(table["meta_donor"] == "5p")
    return _natural("pbmc-chemistries", setting, seed, source, target, PBMC_CLASSES, {novel}, novel_fraction)


def _natural(
    name: str,
    setting: Setting,
    seed: int,
    source: Rows,
    target: Rows,
    classes: Mapping[str, str],
    new: Collection[str],
    novel_fraction: float | None,
) -> BenchProblem:
    """Label rows by the class of their kind, and thin the new ones to the share asked for.

    Kinds without a class are dropped, unless they are new; so are known kinds in target that source lacks.
    """
    if setting != "shift":
        raise ValueError(f'{name} has the shift that its data has: set settings = ["shift"].')
    known = {kind: label for kind, label in classes.items() if kind not in new}
    source = source.where(np.isin(source.kind, list(known)))
    is_known = np.isin(target.kind, list(known)) & np.isin(target.kind, source.kind)
    is_new = np.isin(target.kind, list(new))
    for part, count in (("source", len(source.kind)), ("target", int(is_known.sum()))):
        if not count:
            raise ValueError(f"{name} has no known rows in {part} with these options.")
    n_new = _new_rows(name, int(is_known.sum()), int(is_new.sum()), novel_fraction)
    chosen = _drawn(is_new, n_new, np.random.default_rng([seed, 1]))
    target = target.where(np.sort(np.concatenate([np.flatnonzero(is_known), chosen])))
    y = np.array([known[kind] for kind in source.kind.tolist()])
    truth = np.array([known.get(kind, NOVEL_LABEL) for kind in target.kind.tolist()])
    return problem_of(source.X, y, target.X, truth, target.X, truth, NOVEL_LABEL)


def _new_rows(name: str, n_known: int, n_new: int, novel_fraction: float | None) -> int:
    """Return how many new rows the target gets; an error if there are too few."""
    if novel_fraction is None:
        return n_new
    check_number("novel_fraction", novel_fraction, high=1, open_high=True)
    wanted = round(n_known * novel_fraction / (1 - novel_fraction))
    if wanted > n_new:
        most = n_new / (n_known + n_new)
        raise ValueError(
            f"novel_fraction={novel_fraction} is not valid for {name}: with {n_known} known and {n_new} new rows "
            f"the largest is {most:.4f}."
        )
    return wanted


def _drawn(among: NDArray[np.bool_], size: int, random: np.random.Generator) -> NDArray[np.intp]:
    """Return random rows, in their order; all of them if there are no more."""
    return np.sort(random.permutation(np.flatnonzero(among))[:size])


def _features(table: Columns, *others: str) -> NDArray[np.float32]:
    return np.column_stack([table[name] for name in table if name not in others]).astype(np.float32)


@lru_cache(maxsize=2)
def _columns(name: str, data_dir: Path | None, file: str) -> dict[str, NDArray[Any]]:
    """Read all columns of a file of the data folder; strings have NumPy's type of strings."""
    source = next(source for source in SOURCES if source.name == name)
    if data_dir is None or not (data_dir / file).is_file():
        where = "" if data_dir is None else f", which {data_dir} has not"
        raise ValueError(f"{name} needs a data folder with {listed(source.files)}{where}: pass --data FOLDER.")
    table = require("pyarrow.parquet", "Reading Parquet", "data").read_table(data_dir / file)
    columns = {key: table[key].to_numpy() for key in table.column_names}
    return {key: column.astype(str) if column.dtype == object else column for key, column in columns.items()}


SOURCES = (
    ProblemSource(
        "nsl-kdd",
        _nsl_kdd,
        "network traffic, another mix of attacks; natural",
        novel=("+".join(KDD_NEW),),
        files=(KDD_TRAIN, KDD_TEST),
        is_natural=True,
    ),
    ProblemSource(
        "gas-sensors",
        _gas_sensors,
        "drifting gas sensors, a later batch; natural",
        novel=("Toluene",),
        files=(GAS,),
        is_natural=True,
    ),
    ProblemSource(
        "ifnb-cells",
        _ifnb_cells,
        "blood cells, control and stimulated; natural",
        novel=("NK",),
        files=(IFNB,),
        is_natural=True,
    ),
    ProblemSource(
        "wisdm-activity",
        _wisdm_activity,
        "phone acceleration, other people; natural",
        novel=("Sitting",),
        files=(WISDM,),
        is_natural=True,
    ),
    ProblemSource(
        "pbmc-chemistries",
        _pbmc_chemistries,
        "blood cells, another sequencing chemistry; natural",
        novel=("NK", "DC"),
        files=(PBMC,),
        is_natural=True,
    ),
)
