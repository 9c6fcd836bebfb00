"""Every spec that comes with openset runs to its end on data of the official formats, tiny, as a user runs it."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature

import pytest
from typer.testing import CliRunner

from bench.tiny_data import CIFAR_ROWS, SUN_ROWS, save_caption_decoder, write_tiny_data
from official_files import whole_cifar, write_cifar_binary
from openset.bench.execute import execute, load_problem
from openset.bench.problems import get_source
from openset.bench.problems.loading import forget_datasets
from openset.bench.runs import expand
from openset.bench.spec import built_in_specs, parse_spec
from openset.bench.store import Store
from openset.bench.sweep import sweep
from openset.cli import app
from openset.errors import ParameterError
from openset.features import captions
from openset.registry import get_method

SPECS = built_in_specs()
SMALL = {"max_steps": 4, "evaluate_every": 2, "batch_size": 16, "hidden": 4, "members": 2, "epochs": 1}
SMALL_BACKBONE = "resnet18(width=2)"
SMALL_OPTIONS = {
    "linear-gaussian": {"d": 300, "n_source": 80, "n_target": 40, "n_test": 60},
    "synthetic": {"n_source": 200, "n_target": 200, "n_test": 100, "n_features": 8},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    forget_datasets()
    yield write_tiny_data(tmp_path_factory.mktemp("data"))
    forget_datasets()


@pytest.fixture(autouse=True)
def tiny_releases(monkeypatch, tmp_path_factory):
    """The loaders' checks of completeness, with the tiny files' numbers; and a cache of features of its own."""
    monkeypatch.setattr("openset.data.datasets.cifar100.ROWS_PER_CLASS", CIFAR_ROWS)
    monkeypatch.setattr("openset.data.datasets.sun397.FEWEST_IMAGES", SUN_ROWS)
    cache = tmp_path_factory.getbasetemp() / "tiny-features"
    monkeypatch.setenv("OPENSET_CACHE", str(cache))


def shrunk(spec):
    """The spec with one new class, one seed, the first and last value of a sweep, and a few steps of training."""
    ends = {problem.title: {p.x for p in spec.problems if p.title == problem.title} for problem in spec.problems}
    problems = [
        replace(
            problem,
            seeds=problem.seeds[:1],
            novel=(problem.novel or get_source(problem.dataset).novel)[:1],
            options={**problem.options, **SMALL_OPTIONS.get(problem.dataset, {})},
        )
        for problem in spec.problems
        if problem.x in (None, min(ends[problem.title]), max(ends[problem.title]))
    ]
    return replace(spec, problems=tuple(problems), methods=tuple(_shrunk_method(m) for m in spec.methods))


def _shrunk_method(method):
    allowed = signature(get_method(method.name).load()).parameters
    small = {name: value for name, value in SMALL.items() if name in allowed}
    backbone = {"backbone": SMALL_BACKBONE} if "backbone" in method.parameters else {}
    return replace(method, parameters={**method.parameters, **small, **backbone})


@pytest.mark.slow
@pytest.mark.parametrize("name", SPECS)
def test_a_spec_runs_to_its_table_and_figure(name, data, tmp_path, monkeypatch):
    spec = shrunk(SPECS[name])
    monkeypatch.setattr("openset.bench.spec.built_in_specs", lambda: {name: spec})
    monkeypatch.setattr("openset.bench.sweep.local_results", in_this_process)
    where = ["--data", str(data), "--store", str(tmp_path / "runs.sqlite")]
    ran = CliRunner().invoke(app, ["bench", "run", name, *where])
    stored = Store(tmp_path / "runs.sqlite").all()
    assert [run.result.failure for run in stored if run.result.failure] == []
    assert ran.exit_code == 0, ran.output
    assert len(stored) == len({planned.run for planned in expand(spec, data)}) > 0
    page = tmp_path / "page.md"
    assert CliRunner().invoke(app, ["bench", "table", name, *where, "--out", str(page)]).exit_code == 0
    assert spec.title in page.read_text() and "not stored yet" not in page.read_text()
    if spec.figure is not None:
        figure = tmp_path / "figure.svg"
        assert CliRunner().invoke(app, ["bench", "figure", name, *where, "--out", str(figure)]).exit_code == 0
        assert "<svg" in figure.read_text()


def in_this_process(runs, data_dir, jobs, on_start):
    """Carry out runs without a worker, whose start would take longer than they do; workers have tests."""
    return ((run, execute(run, data_dir)) for run in runs)


PAPERS_ZOC = """
[[problem]]
dataset = "sun397"
encoder = "openai/clip-vit-base-patch32"
novel = ["mountains_hills_desert_sky"]
settings = ["shift"]
seeds = [0]
options = { names = true }
[[method]]
name = "zoc"
parameters = { decoder = "somebody/caption-decoder" }
"""


@pytest.mark.slow
def test_zoc_runs_with_a_caption_decoder(data, tmp_path, monkeypatch):
    monkeypatch.setattr("openset.bench.sweep.local_results", in_this_process)
    embedded = []
    embed = captions.embed_names
    monkeypatch.setattr(
        captions, "embed_names", lambda folder, names: embedded.append((folder, names)) or embed(folder, names)
    )
    spec, store = parse_spec(PAPERS_ZOC, "paper-zoc"), Store(tmp_path / "runs.sqlite")
    with pytest.raises(ParameterError, match="model 'somebody/caption-decoder' is not here: put its folder at"):
        sweep(spec, store, data_dir=data)
    assert store.all() == []
    save_caption_decoder(data / "encoders" / "caption-decoder", width=24)
    report = sweep(spec, store, data_dir=data)
    assert (report.planned, report.failed) == (1, 0), store.all()[0].result.failure
    folder, names = embedded[0]
    assert folder == str(data / "encoders" / "clip-vit-base-patch32")  # the problem's, which the rows are made by
    assert "shopping dining" in names and not any("_" in name for name in names)


@pytest.mark.slow
def test_a_spec_runs_from_the_binary_archive(tmp_path, monkeypatch):
    (tmp_path / "cifar100").mkdir()
    write_cifar_binary(tmp_path / "cifar100" / "cifar-100-binary.tar.gz", whole_cifar(CIFAR_ROWS))
    forget_datasets()
    name = "cifar100-from-scratch"
    test_a_spec_runs_to_its_table_and_figure(name, tmp_path, tmp_path, monkeypatch)
    forget_datasets()


@pytest.mark.slow
def test_every_split_of_every_spec_can_be_built(data):
    """All new classes, seeds and values of a sweep: what ran out of novel rows did so in one of them."""
    runs = {
        replace(planned.run, method="", parameters="")
        for spec in SPECS.values()
        for planned in expand(spec, data)
        if planned.run.dataset in ("sun397", "amazon", "amazon-fdu-mtl", "cifar100", "cifar100-images", "sun")
    }
    assert len(runs) > 400
    for run in runs:
        problem = load_problem(run, data)
        assert 0 < problem.novel_fraction < 1 and (problem.y_test == problem.novel_label).any(), run
