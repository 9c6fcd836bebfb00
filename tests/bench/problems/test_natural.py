from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from openset.bench.execute import execute
from openset.bench.problems import build_problem, get_source, natural
from openset.bench.runs import expand
from openset.bench.spec import load_spec, parse_spec
from openset.bench.store import Store
from openset.bench.sweep import sweep
from openset.errors import MissingExtraError

NAMES = ("nsl-kdd", "gas-sensors", "ifnb-cells", "wisdm-activity", "pbmc-chemistries")
SHARE = 0.1


@pytest.fixture(autouse=True)
def forget_tables():
    yield
    natural._columns.cache_clear()


def write(folder, file, columns):
    path = folder / file
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), path)


def traffic(random, attacks):
    """Connections of each attack: family and number of rows."""
    kind = np.repeat([name for name, _, _ in attacks], [count for _, _, count in attacks])
    n = len(kind)
    return {
        "duration": random.integers(0, 1000, n),
        "protocol_type": random.choice(["tcp", "udp"], n),
        "service": np.where(kind == "warezclient", "ftp", "http"),
        "flag": random.choice(["SF", "S0"], n),
        "src_bytes": random.integers(0, 10**6, n),
        "serror_rate": random.random(n),
        "attack": kind,
        "difficulty": random.integers(0, 21, n),
        "family": np.repeat([family for _, family, _ in attacks], [count for _, _, count in attacks]),
    }


def cells(random, meta):
    """Cells of six genes, after the columns that describe them."""
    n = len(next(iter(meta.values())))
    return {**meta, **{f"G{i}": random.random(n).astype(np.float32) for i in range(6)}}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A data folder with files of the same columns and kinds as the real ones, and few rows."""
    folder, random = tmp_path_factory.mktemp("natural"), np.random.default_rng(0)
    train = [("normal", "normal", 60), ("neptune", "dos", 40), ("satan", "probe", 30), ("warezclient", "r2l", 9)]
    test = [("normal", "normal", 50), ("neptune", "dos", 30), ("mailbomb", "dos", 20), ("satan", "probe", 20),
            ("guess_passwd", "r2l", 15), ("rootkit", "u2r", 5)]  # fmt: skip
    write(folder, natural.KDD_TRAIN, traffic(random, train))
    write(folder, natural.KDD_TEST, traffic(random, test))
    gas = np.array(["Ethanol", "Acetone", "Toluene"] * 40)
    batch = np.repeat([3, 4, 5, 6], 30)
    gas[(batch < 6) & (gas == "Toluene")] = "Ethanol"
    sensors = {f"s{i:03}": random.random(120).astype(np.float32) for i in range(5)}
    write(folder, natural.GAS, {"gas": gas, "concentration": random.random(120), "batch": batch, **sensors})
    kind = np.array([*natural.IFNB_CLASSES, "NK", "Mk"] * 10)
    condition = np.where(np.arange(110) < 55, "CTRL", "STIM")
    write(folder, natural.IFNB, cells(random, {"cell_type": kind, "condition": condition}))
    activity = np.array([*natural.WISDM_CLASSES] * 20)
    peaks = 500 * random.random(120).astype(np.float32)
    peaks[::7] = np.nan
    user = np.repeat(np.arange(1, 13), 10)
    write(folder, natural.WISDM, {"user": user, "x0": random.random(120), "xpeak": peaks, "activity": activity})
    kind = np.array([*natural.PBMC_CLASSES, "NK", "DC", "MK"] * 12)
    donor = np.repeat(["3pv1", "3pv2", "5p"], 32)
    meta = {"meta_donor": donor, "meta_cell_type": kind, "meta_cell_type_broad": kind}
    write(folder, natural.PBMC, cells(random, meta))
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_every_natural_problem_keeps_the_contract(made, name):
    novel = get_source(name).novel[0]
    options = {"novel_fraction": SHARE}
    problem, again = (build_problem(name, "shift", novel, 3, made, **options) for _ in range(2))
    assert problem.manifest_checksum == again.manifest_checksum
    assert problem.X.dtype == np.float32 and np.isfinite(problem.X).all() and np.isfinite(problem.X_target).all()
    assert len(problem.X) == len(problem.y) and set(problem.y_target) == {*problem.y, "novel"}
    assert problem.X_test is problem.X_target and problem.y_test is problem.y_target
    assert problem.novel_fraction == pytest.approx(SHARE, abs=0.02)
    assert get_source(name).is_natural


@pytest.mark.parametrize("name", NAMES)
def test_at_zero_only_the_new_rows_are_gone(made, name):
    novel = get_source(name).novel[0]
    null, whole = (build_problem(name, "shift", novel, 3, made, novel_fraction=share) for share in (0, SHARE))
    known = whole.y_target != "novel"
    assert null.novel_fraction == 0 and "novel" not in null.y_target
    np.testing.assert_array_equal(null.X_target, whole.X_target[known])
    np.testing.assert_array_equal(null.X, whole.X)


def test_traffic_is_drawn_and_coded_by_the_levels_of_source(made):
    problem = build_problem("nsl-kdd", "shift", "r2l+u2r", 0, made, novel_fraction=0.1)
    assert set(problem.y) == {"normal", "dos", "probe"} and len(problem.X) == 130
    # mailbomb is no attack of source, and 100 known rows remain; ftp is a service of r2l alone
    assert (problem.y_target != "novel").sum() == 100 and (problem.y_target == "novel").sum() == 11
    assert problem.X.shape[1] == 3 + 2 + 1 + 2
    table = pq.read_table(made / natural.KDD_TRAIN).slice(0, 130)
    for column, name in ((0, "duration"), (1, "src_bytes")):
        np.testing.assert_allclose(problem.X[:, column], np.log1p(table[name].to_numpy()), rtol=1e-6)
    np.testing.assert_allclose(problem.X[:, 2], table["serror_rate"].to_numpy(), rtol=1e-6)
    np.testing.assert_array_equal(problem.X[:, 3:5].sum(axis=1), 1)
    some = build_problem("nsl-kdd", "shift", "r2l+u2r", 0, made, n_source=50, n_target=40, novel_fraction=0.2)
    other = build_problem("nsl-kdd", "shift", "r2l+u2r", 1, made, n_source=50, n_target=40, novel_fraction=0.2)
    assert len(some.X) == 50 and some.manifest_checksum != other.manifest_checksum


def test_thinning_follows_the_seed_and_known_rows_stay(made):
    one, two = (
        build_problem("gas-sensors", "shift", "Toluene", seed, made, novel_fraction=0.2) for seed in (0, 1)
    )
    novel = one.y_target == "novel"
    assert novel.sum() == 5 and one.manifest_checksum != two.manifest_checksum
    np.testing.assert_array_equal(one.X_target[~novel], two.X_target[two.y_target != "novel"])


def test_batches_can_be_chosen_and_a_new_gas_is_not_in_source(made):
    problem = build_problem("gas-sensors", "shift", "Acetone", 0, made, source_batches=[3, 4], target_batch=5)
    assert set(problem.y) == {"Ethanol"} and len(problem.X) == 40
    assert problem.novel_fraction == pytest.approx(1 / 3)
    natural_share = build_problem("gas-sensors", "shift", "Toluene", 0, made)
    assert natural_share.novel_fraction == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="batch=7 is not valid"):
        build_problem("gas-sensors", "shift", "Toluene", 0, made, target_batch=7)
    with pytest.raises(ValueError, match="target_batch=4 is in source_batches"):
        build_problem("gas-sensors", "shift", "Toluene", 0, made, target_batch=4)


def test_cells_of_no_class_are_dropped(made):
    ifnb = build_problem("ifnb-cells", "shift", "NK", 0, made)
    assert set(ifnb.y) == {"mono", "T", "B"} and len(ifnb.X) == 45 and len(ifnb.X_target) == 50
    nk, dc = (build_problem("pbmc-chemistries", "shift", novel, 0, made) for novel in ("NK", "DC"))
    assert set(nk.y) == set(dc.y) == {"T", "mono", "B"}
    assert len(nk.X_target) == len(dc.X_target) == 24 and (nk.y_target == "novel").sum() == 4
    assert nk.manifest_checksum != dc.manifest_checksum
    # without the new class they are one problem
    assert len({build_problem("pbmc-chemistries", "shift", novel, 0, made, novel_fraction=0).manifest_checksum
                for novel in ("NK", "DC")}) == 1  # fmt: skip


def test_gaps_are_filled_and_columns_scaled_by_known_source_rows(made):
    problem = build_problem("wisdm-activity", "shift", "Sitting", 0, made)
    assert set(problem.y) == {"walking", "jogging", "standing", "stairs"}
    np.testing.assert_allclose(problem.X.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(problem.X.std(axis=0), 1, atol=1e-5)
    table = pq.read_table(made / natural.WISDM)
    user, activity, peak = (table[name].to_numpy() for name in ("user", "activity", "xpeak"))
    known = (user % 2 == 0) & (activity != "Sitting")
    median = np.nanmedian(peak[known])
    filled = np.where(np.isnan(peak), median, peak)
    expected = (filled - filled[known].mean()) / filled[known].std()
    np.testing.assert_allclose(problem.X[:, 1], expected[known], atol=1e-5)
    np.testing.assert_allclose(problem.X_target[:, 1], expected[user % 2 == 1], atol=1e-5)
    other = build_problem("wisdm-activity", "shift", "Standing", 0, made)
    assert set(other.y) == {"walking", "jogging", "sitting", "stairs"}


@pytest.mark.parametrize("name", NAMES)
def test_bad_requests_are_named(made, tmp_path, name):
    novel = get_source(name).novel[0]
    with pytest.raises(ValueError, match=rf'{name} has the shift that its data has: set settings = \["shift"\]'):
        build_problem(name, "no-shift", novel, 0, made)
    with pytest.raises(ValueError, match="novel='moon' is not valid"):
        build_problem(name, "shift", "moon", 0, made)
    with pytest.raises(ValueError, match=r"novel_fraction=0.9 .* for .*: with \d+ known and \d+ new rows"):
        build_problem(name, "shift", novel, 0, made, novel_fraction=0.9)
    with pytest.raises(ValueError, match=r"novel_fraction=-1 is not valid: expected a number in \[0, 1\)"):
        build_problem(name, "shift", novel, 0, made, novel_fraction=-1)
    for folder in (None, tmp_path):
        with pytest.raises(ValueError, match=f"{name} needs a data folder with .*parquet.*pass --data FOLDER"):
            build_problem(name, "shift", novel, 0, folder)


def test_a_missing_extra_is_named(made, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"openset\[data\]"):
        build_problem("ifnb-cells", "shift", "NK", 0, made)


SPEC = """
table = "natural"
metrics = ["auprc", "top1", "called", "estimated_low", "p_value"]
[[problem]]
dataset = "ifnb-cells"
label = "cells"
settings = ["shift"]
seeds = [0]
[[problem]]
dataset = "ifnb-cells"
label = "cells, none novel"
settings = ["shift"]
seeds = [0]
options = { novel_fraction = 0.0 }
[[method]]
name = "color"
parameters = { max_steps = 20, evaluate_every = 10, members = 2, groups = [[0.1, 0.0, 1.0]] }
[[method]]
name = "knn"
"""


def test_a_null_has_the_metrics_that_need_no_new_row(made):
    spec = parse_spec(SPEC, "s")
    (planned,) = expand(replace(spec, problems=spec.problems[1:], methods=spec.methods[1:]))
    metrics = execute(planned.run, made).metrics
    assert (metrics["n_known"], metrics["n_novel"], metrics["novel_fraction"]) == (45, 0, 0)
    assert 0 <= metrics["called"] <= 1 and 0 <= metrics["top1"] <= 1 and metrics["estimated_low"] >= 0
    assert not {"auprc", "auroc", "oscr", "unk", "p_value"} & metrics.keys()


@pytest.mark.slow
def test_a_sweep_with_a_null_runs_and_resumes(made, tmp_path):
    spec, store = parse_spec(SPEC, "s"), Store(tmp_path / "runs.sqlite")
    report = sweep(replace(spec, problems=spec.problems[:1]), store, data_dir=made)
    assert (report.planned, report.failed) == (2, 0)
    report = sweep(spec, store, data_dir=made)
    assert (report.planned, report.skipped, report.failed) == (4, 2, 0)
    null = {run.run.method: run.result for run in store.all() if '"novel_fraction":0.0' in run.run.options}
    for result in null.values():
        assert result.metrics["novel_fraction"] == result.metrics["n_novel"] == 0
        assert result.metrics["n_known"] == 45 and "auprc" not in result.metrics
        assert 0 <= result.metrics["called"] <= 1 and 0 <= result.metrics["top1"] <= 1
    assert 0 <= null["color"].metrics["p_value"] <= 1 and "p_value" not in null["knn"].metrics
    assert null["color"].heads and not any("auprc" in head for head in null["color"].heads)


def test_the_natural_spec_has_every_natural_source_with_and_without_its_new_class():
    spec = load_spec("natural")
    ours = [problem for problem in spec.problems if get_source(problem.dataset).is_natural]
    with_new = {p.dataset for p in ours if p.options.get("novel_fraction") != 0}
    without = {p.dataset for p in ours if p.options.get("novel_fraction") == 0}
    assert with_new == without == set(NAMES) and len(ours) == 14 < len(spec.problems)
    assert [method.name for method in spec.methods] == [
        "color", "color_paper", "knn", "deep_knn", "cac", "mls", "dd", "pulse", "mahalanobis",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "novel", "options", "n_source", "n_target", "share"),
    [
        ("gas-sensors", "Toluene", {"novel_fraction": 0.05}, 1944, 1929, 0.05),
        ("gas-sensors", "Toluene", {}, 1944, 2300, 467 / 2300),
        ("ifnb-cells", "NK", {}, 928, 971, 43 / 971),
        ("wisdm-activity", "Sitting", {}, 2543, 2684, 115 / 2684),
        ("pbmc-chemistries", "NK", {}, 706, 417, 20 / 417),
        ("pbmc-chemistries", "DC", {}, 706, 407, 10 / 407),
    ],
)
def test_the_real_data_has_the_rows_of_the_recipe(shared_data, name, novel, options, n_source, n_target, share):
    problem = build_problem(name, "shift", novel, 10, shared_data, **options)
    assert (len(problem.X), len(problem.X_target)) == (n_source, n_target)
    assert problem.novel_fraction == pytest.approx(share, abs=5e-4)


@pytest.mark.parametrize("share", [0.0, 0.03, 0.1, 0.15])
def test_real_traffic_has_the_share_asked_for(shared_data, share):
    problem = build_problem("nsl-kdd", "shift", "r2l+u2r", 10, shared_data, novel_fraction=share)
    assert len(problem.X) == 4000 and set(problem.y) == {"normal", "dos", "probe"}
    assert problem.novel_fraction == pytest.approx(share, abs=5e-4)
    assert 3300 < (problem.y_target != "novel").sum() < 3450
