"""Tables of pages are read back as they were written."""

from __future__ import annotations

import pytest

from bench.made_up import PAGE
from openset.bench.result_pages import Pages


def test_every_heading_stands_once_and_a_table_has_both_its_titles(pages):
    first, _, tested = pages.tables("toys")
    assert first.headings == ("method", "AUROC", "AUROC wins", "AUPRC")
    assert (tested.title, tested.section) == ("color against every method", "toys, with shift")
    assert pages.text("toys", "with shift", "upu", "Δ AUPRC p", "color against") == "<.001"
    assert pages.number("toys", "with shift", "color", "AUROC") == 0.9


def test_what_a_page_lacks_is_told(pages):
    with pytest.raises(ValueError, match="toys.md has no row 'pulse' with AUROC in a section 'with shift'"):
        pages.text("toys", "with shift", "pulse", "AUROC")
    with pytest.raises(ValueError, match="has no page balls.md"):
        pages.tables("balls")


def test_an_old_label_counts_until_the_page_is_made_again(tmp_path):
    old = {"toys": {"color_paper": "color", "color": ""}}
    (tmp_path / "toys.md").write_text(PAGE)
    assert Pages(tmp_path, old).number("toys", "with shift", "color_paper", "AUROC") == 0.9
    (tmp_path / "toys.md").write_text(PAGE.replace("| color |", "| color | 0.99 | 2 | 0.50 |\n| color_paper |"))
    again = Pages(tmp_path, old)
    assert again.number("toys", "with shift", "color_paper", "AUROC") == 0.9
    assert again.number("toys", "with shift", "color", "AUROC") == 0.99
