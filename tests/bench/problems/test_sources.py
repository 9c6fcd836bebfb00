from __future__ import annotations

from inspect import signature
from types import SimpleNamespace

import numpy as np
import pytest

from openset.bench.problems import (
    ProblemSource,
    build_problem,
    get_source,
    problem_from_split,
    problem_sources,
    register_source,
)
from openset.bench.problems.datasets import _cifar_problem
from openset.shift import make_background_shift, make_subtype_shift, sentiment_shift, subtype_shift
from openset.theory.problem import LinearGaussianProblem

SMALL = {
    "digits": {},
    "synthetic": {"n_source": 90, "n_target": 60, "n_test": 40, "n_features": 5},
    "synthetic-subtypes": {"n_source": 90, "n_target": 60},
}


@pytest.mark.parametrize("setting", ["shift", "no-shift"])
@pytest.mark.parametrize("dataset", SMALL)
def test_every_source_keeps_the_contract(dataset, setting):
    novel = get_source(dataset).novel[0]
    problem = build_problem(dataset, setting, novel, 3, **SMALL[dataset])
    again = build_problem(dataset, setting, novel, 3, **SMALL[dataset])
    other = build_problem(dataset, setting, novel, 4, **SMALL[dataset])
    assert problem.manifest_checksum == again.manifest_checksum != other.manifest_checksum
    assert len(problem.X) == len(problem.y) and len(problem.X_target) == len(problem.y_target)
    assert problem.novel_label not in problem.y
    for truth in (problem.y_target, problem.y_test):
        assert set(truth) == {*problem.y, problem.novel_label}
    assert problem.novel_fraction == pytest.approx((problem.y_target == problem.novel_label).mean())
    rows = [tuple(row) for part in (problem.X, problem.X_target, problem.X_test) for row in part]
    assert len(set(rows)) == len(rows)  # no row is in two parts


def test_a_builder_s_split_becomes_a_problem():
    rows = np.arange(20.0).reshape(10, 2)
    split = SimpleNamespace(
        source=np.array([0, 1, 2]),
        target=np.array([3, 4, 9]),
        test_source=np.array([5]),
        test_target=np.array([6, 8]),
        label=np.array(["a", "b", "a", "a", "b", "a", "b", "a", "new", "new"]),
        novel_label="new",
        novel_fraction=1 / 3,
        manifest=SimpleNamespace(checksum="abc"),
    )
    problem = problem_from_split(rows, split, stand_in_for="Amazon Reviews")
    assert problem.X.tolist() == [[0, 1], [2, 3], [4, 5]] and problem.y.tolist() == ["a", "b", "a"]
    assert problem.y_target.tolist() == ["a", "b", "new"] and problem.y_test.tolist() == ["b", "new"]
    assert problem.X_test.tolist() == [[12, 13], [16, 17]]
    assert problem.stand_in_for == "Amazon Reviews"
    same, changed = (problem_from_split(r, split).manifest_checksum for r in (rows.copy(), rows + (rows == 16)))
    split.manifest.checksum = "abd"
    other = problem_from_split(rows, split).manifest_checksum
    assert problem.manifest_checksum == same and len({same, changed, other}) == 3


def test_bad_requests():
    with pytest.raises(ValueError, match="dataset='moon' is not valid"):
        build_problem("moon", "shift", "x", 0)
    with pytest.raises(ValueError, match="setting='windy'"):
        build_problem("digits", "windy", "9", 0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="its only new class is '9'"):
        build_problem("digits", "shift", "8", 0)
    with pytest.raises(ValueError, match="registered already"):
        register_source(problem_sources()[0])


def test_missing_files_are_named(tmp_path):
    (tmp_path / "here.npy").touch()
    source = ProblemSource("x", build_problem, "", (), files=("here.npy", "there.npy"))
    assert source.missing_files(tmp_path) == ["there.npy"]
    assert source.missing_files(None) == ["here.npy", "there.npy"]


def test_label_shift_thins_half_of_the_known_classes_and_keeps_the_novel_share():
    options = {"n_source": 300, "n_target": 900, "n_test": 400, "n_features": 4}
    plain = build_problem("synthetic", "shift", "novel", 3, **options)
    made = build_problem("synthetic", "shift", "novel", 3, label_shift=0.8, **options)
    assert (made.X == plain.X).all() and made.manifest_checksum != plain.manifest_checksum
    kept = {c: (made.y_target == c).sum() / (plain.y_target == c).sum() for c in np.unique(plain.y)}
    thin = [share for share in kept.values() if share < 1]
    assert len(thin) == len(kept) // 2 and all(0.05 < share < 0.4 for share in thin)
    assert made.novel_fraction == pytest.approx(plain.novel_fraction, abs=0.01)
    assert (made.y_test == -1).mean() == pytest.approx((plain.y_test == -1).mean(), abs=0.02)
    with pytest.raises(ValueError, match="needs two known classes"):
        build_problem("synthetic-subtypes", "shift", "novel", 0, label_shift=0.5)


PASSED_TO = {
    "amazon": sentiment_shift,
    "sun397": subtype_shift,
    "clinc150": subtype_shift,
    "cifar100": _cifar_problem,
    "cifar100-images": _cifar_problem,
    "synthetic": make_background_shift,
    "synthetic-subtypes": make_subtype_shift,
    "linear-gaussian": LinearGaussianProblem,
}


def test_options_that_are_passed_on_are_parameters_of_what_takes_them():
    passed_on = {source.name: source.passes_on for source in problem_sources() if source.passes_on}
    assert passed_on.keys() == PASSED_TO.keys()
    for name, options in passed_on.items():
        assert set(options) <= signature(PASSED_TO[name]).parameters.keys(), name
    takes_any = [
        source.name
        for source in problem_sources()
        if any(p.kind is p.VAR_KEYWORD for p in signature(source.build).parameters.values())
    ]
    assert set(takes_any) == passed_on.keys()  # so every source says which options it has


@pytest.mark.parametrize("source", problem_sources(), ids=lambda source: source.name)
def test_every_source_refuses_options_that_it_does_not_have(source):
    with pytest.raises(ValueError, match=r"unknown option 'novel_shar': expected some of .*label_shift"):
        source.check_options(["novel_shar"])


def test_options_are_checked_by_name():
    get_source("cifar100").check_options(["cells", "names", "encoder", "copies", "known", "label_shift"])
    with pytest.raises(ValueError, match=r"unknown option 'novel_shar': .* Did you mean 'novel_share'\?"):
        get_source("cifar100").check_options(["novel_shar"])
    with pytest.raises(ValueError, match="options lack 'label'"):
        get_source("table").check_options(["file"])
    anything = ProblemSource("mine", lambda setting, novel, seed, data_dir, **options: None, "", ())
    anything.check_options(["whatever"])
