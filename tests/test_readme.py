"""The README's own examples run, in order, as one program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import sklearn

ROOT = Path(__file__).parents[1]


@pytest.mark.filterwarnings("ignore::openset.errors.FitWarning")
def test_the_readmes_python_examples_run(tmp_path, monkeypatch, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert len(blocks) >= 4
    monkeypatch.chdir(tmp_path)
    with sklearn.config_context():
        exec("\n".join(blocks), {"__name__": "readme"})
    assert "OpenSetMetrics(auroc=" in capsys.readouterr().out
    assert (tmp_path / "my-model" / "model.json").exists()


def test_the_readme_names_every_method_and_both_commands():
    from openset.registry import methods

    text = (ROOT / "README.md").read_text()
    for method in methods():
        assert f"`{method.name}`" in text and f"`{method.class_name}`" in text
    assert "make demo" in text and "make test" in text


def test_links_in_the_readme_lead_somewhere():
    for link in re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text()):
        assert "://" in link or (ROOT / link).exists(), link
