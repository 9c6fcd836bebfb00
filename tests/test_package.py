"""The wheel, installed into an empty environment, as somebody who never saw the repository would."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

FIVE_LINES = """
from openset import CoLOR, make_background_shift
data = make_background_shift(n_source=300, n_target=300, random_state=0)
model = CoLOR(max_steps=50, fpr=0.5, random_state=0).fit(data.X, data.y, data.X_target)
assert model.predict(data.X_test).shape == (2000,)
print("novel fraction", model.novel_fraction_)
"""


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(tmp_path):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}

    def run(*command, cwd=tmp_path):
        result = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr[-2000:] + result.stdout[-2000:]
        return result.stdout

    quiet = ("--quiet", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", "wheel", *quiet, "--no-deps", "-w", str(tmp_path), str(ROOT))
    (wheel,) = tmp_path.glob("openset-*.whl")
    run(sys.executable, "-m", "venv", str(tmp_path / "env"))
    bin_ = tmp_path / "env" / "bin"
    run(
        str(bin_ / "python"), "-m", "pip", "install", *quiet, "--no-compile",
        "-c", str(ROOT / "constraints.txt"), str(wheel),
    )  # fmt: skip
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run(str(bin_ / "openset"), "--version", cwd=empty).startswith("openset ")
    assert "novel fraction" in run(str(bin_ / "python"), "-c", FIVE_LINES, cwd=empty)
    assert list(empty.iterdir()) == []


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_base_dependencies_stay_few(project):
    names = sorted(spec.split(">")[0] for spec in project["dependencies"])
    assert names == [
        "msgspec", "narwhals", "numpy", "rich", "safetensors", "scikit-learn", "scipy", "torch", "typer",
    ]  # fmt: skip
    assert all("==" not in spec for spec in project["dependencies"]), "the package keeps ranges"


def test_constraints_pin_torch_and_everything_else():
    lines = (ROOT / "constraints.txt").read_text().split()
    assert "torch==2.13.0" in lines
    assert all("==" in line for line in lines)
    assert not any(line.startswith("torchvision") for line in lines)
