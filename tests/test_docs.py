"""No single module: README, CONTRIBUTING and pages: examples run, links work, prose is wrapped, site builds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib

import numpy as np
import pandas as pd
import pytest
import sklearn

from doc_blocks import ROOT, blocks, run_page

PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))
ELSEWHERE = {"docs/encoders.md": "tests/features/test_encoders_page.py", "docs/data.md": "below"}
ALL = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]

QUICK = {
    f"docs/{name}.md"
    for name in (
        "adding-a-method",
        "align",
        "api",
        "architecture",
        "cli",
        "contributing",
        "index",
        "theory",
        "thresholds",
    )
}
"""Pages whose examples take about a second; those of the others are slow tests."""
WIDTH = 100
WRAPPED = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    *PAGES,
    *(page for page in ALL if page.startswith("docs/decisions/")),
    "docs/results/README.md",
]

pytestmark = pytest.mark.filterwarnings("ignore::openset.errors.FitWarning")


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
def test_the_readme_runs(capsys, tmp_path):
    assert [kind for kind, _ in blocks("README.md")].count("python") >= 4
    with sklearn.config_context():
        run_page("README.md")
    assert "OpenSetMetrics(auroc=" in capsys.readouterr().out
    assert (tmp_path / "my-model" / "model.json").exists()
    assert (tmp_path / "demo" / "run" / "report.html").exists()
    assert len(pd.read_parquet("demo/scored.parquet")) == 738


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=() if page in QUICK else pytest.mark.slow)
        for page in PAGES
        if page not in ELSEWHERE
    ],
)
def test_the_pages_examples_run(page):
    from openset import registry

    before = dict(registry._METHODS)
    try:
        run_page(page)
    finally:
        registry._METHODS.clear()
        registry._METHODS.update(before)


def test_the_page_on_data_runs():
    frame = pd.DataFrame({"sku": ["a", "b", "c"], "product": ["x", "y", "x"], "embedding": np.eye(3).tolist()})
    frame.to_parquet("labelled.parquet")
    frame.drop(columns="product").to_parquet("target.parquet")
    assert run_page("docs/data.md")["records"].y.tolist() == ["x", "y", "x"]


def test_readme_and_quickstart_show_the_same_answer():
    shown = []
    for page in ("README.md", "docs/quickstart.md"):
        found = blocks(page)
        (fit,) = (
            i for i, (kind, text) in enumerate(found) if kind == "console" and "$ openset fit demo/" in text
        )
        assert found[fit + 1][0] == "text"
        shown.append(found[fit + 1][1])
    assert shown[0] == shown[1]


@pytest.mark.parametrize("page", ALL)
def test_every_block_says_what_it_is(page):
    assert {kind for kind, _ in blocks(page)} <= {"python", "console", "text", "toml"}


@pytest.mark.parametrize("page", ALL)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        assert "://" in link or ((ROOT / page).parent / link).exists(), link


@pytest.mark.parametrize("page", WRAPPED)
def test_prose_is_wrapped(page):
    """Tables and code may be wider; pages of results are written by the bench."""
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    wide = [line for line in text.splitlines() if len(line) > WIDTH and not line.startswith("|")]
    assert not wide, wide


def test_what_the_architecture_page_names_exists():
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+\.py)(?::(\w+))?`", text)
    assert len(named) >= 40
    for file, name in named:
        root = ROOT if file.startswith(("src/", "tests/")) else ROOT / "src/openset"
        code = (root / file).read_text(encoding="utf-8")
        defined = rf"^(?:(?:def|class) {name}\b|{name}\b[^=\n]*=)"
        assert not name or re.search(defined, code, flags=re.MULTILINE), (file, name)


def test_the_architecture_page_has_the_layers_of_the_import_contract():
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    table = text.partition("| layer |")[2].partition("\n\n")[0].splitlines()[2:]
    shown = [re.findall(r"`(\w+)`", line.split("|")[1]) for line in table]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = next(c for c in project["tool"]["importlinter"]["contracts"] if c["type"] == "layers")
    assert shown == [
        [part.strip().removeprefix("openset.") for part in re.split("[:|]", layer)]
        for layer in contract["layers"]
    ]


def test_the_readme_names_every_method_and_the_commands():
    from openset.registry import methods

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for method in methods():
        assert f"`{method.name}`" in text and f"`{method.class_name}`" in text
    assert "make demo" in text and "make test" in text


def test_every_method_is_in_the_package_and_on_the_python_page():
    from openset.registry import methods

    page = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    package = (ROOT / "src/openset/__init__.py").read_text(encoding="utf-8")
    for method in methods():
        named = re.compile(rf"\b{method.class_name}\b")
        assert named.search(page), method.class_name
        assert len(named.findall(package)) >= 3, f"{method.class_name}: import for type checkers, _HOME, __all__"


@pytest.mark.slow
def test_the_method_in_contributing_passes_every_check(tmp_path):
    """Its blocks, written to the files that they name in a copy of the repository, are green."""
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "folders"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    files = [text.split("\n", 1) for kind, text in blocks("CONTRIBUTING.md") if kind == "python"]
    names = []
    for heading, code in files:
        name, _, where = heading.removeprefix("# ").partition(", ")
        with (tmp_path / name).open("a" if where == "at the end" else "x", encoding="utf-8") as file:
            file.write("\n\n" + code if where else code)
        names.append(name)
    assert len(names) >= 4 and "src/openset/methods/nearest_centre.py" in names
    tests = ["tests/methods/test_nearest_centre.py", "tests/methods/test_contract.py", "-k", "nearest_centre"]
    for command in (
        ["ruff", "check", *names],
        ["ruff", "format", "--check", *names],
        ["mypy", "src/openset/methods/nearest_centre.py"],
        ["pytest", *tests],
    ):
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(tmp_path / "src"), "MYPYPATH": str(tmp_path / "src")},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.findall(r"(\d+) passed", done.stdout)[0]) >= 15, done.stdout


def test_the_readmes_benchmarks_are_those_of_the_page():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[[^]]+\]\((\S+) \"(\w+)\"\) \| (.+) \|$", text, flags=re.MULTILINE)
    assert len(rows) >= 5
    for page, family, figures in rows:
        assert f"| {family} | {figures} | " in (ROOT / page).read_text(encoding="utf-8"), (family, figures)


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs", reason="needs openset[docs]: make docs builds the site")
    pytest.importorskip("mkdocstrings", reason="needs openset[docs]: make docs builds the site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {path.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("*.html")}
    assert {"index.html", "cli.html", "api.html", "results/quick.html", "decisions/0014-product.html"} <= pages
    commands = (tmp_path / "site" / "cli.html").read_text(encoding="utf-8")
    for name in ("openset fit", "openset bench run", "openset theory sweep", "--ignore-target-labels"):
        assert name in commands
    everything = "".join((tmp_path / "site" / page).read_text(encoding="utf-8") for page in pages)
    fetched = re.findall(
        r'<(?:script|img|iframe)[^>]* src="(https?:[^"]+)|<link[^>]* href="(https?:[^"]+)', everything
    )
    assert not [first or second for first, second in fetched if "fonts" in first + second]
