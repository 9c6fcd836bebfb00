from __future__ import annotations

import sys

import pytest

from bench.made_up import SPEC, fill
from openset.bench.figures import draw
from openset.errors import MissingExtraError


@pytest.fixture
def results(tmp_path):
    return fill(tmp_path / "runs.sqlite")


@pytest.mark.slow
def test_bars_and_lines_are_drawn_alike_twice(results, tmp_path):
    for name in ("a.svg", "b.svg", "c.png"):
        draw(results, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    lines = SPEC.replace('"bars"', '"lines"\nx_label = "FPR budget"').replace(
        'name = "dd"', 'name = "dd"\nsweep = { fpr = [0.01, 0.05] }'
    )
    swept = fill(tmp_path / "lines.sqlite", lines)
    assert [row.label for row in swept.blocks[0].rows] == ["color", "dd 0.01", "dd 0.05", "k_NN"]
    draw(swept, tmp_path / "lines.svg")
    assert (tmp_path / "lines.svg").stat().st_size > 5000


def test_figures_that_cannot_be_drawn(results, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"\.svg or \.png"):
        draw(results, tmp_path / "a.gif")
    with pytest.raises(ValueError, match="sweeps nothing"):
        draw(fill(tmp_path / "x.sqlite", SPEC.replace('"bars"', '"lines"')), tmp_path / "a.svg")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"openset\[plot\]"):
        draw(results, tmp_path / "a.svg")
