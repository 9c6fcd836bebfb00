from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest
from samples import HOSTILE, hostile_data, large_data, minimal_summary

from openset.pipeline.summary import (
    Check,
    ClassShares,
    Diagnostic,
    Groups,
    Head,
    KnownClasses,
    ListedRows,
    NoveltyCounts,
    NoveltyTest,
    Verdict,
)
from openset.report import Group, ReportData, write_report
from openset.report.page import chosen_heads, details, render

VOID = {"meta", "img", "input", "br", "link", "hr"}


class Outline(HTMLParser):
    """Elements with their attributes, the text, and whether every element that was opened is closed in order."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.text, self.scripts, self.open, self.problems = [], [], [], [], []
        self.feed(page)
        self.close()
        self.problems += self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("script", "style"):
            self.scripts.append([tag, dict(attrs), ""])

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(tag)

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            self.scripts[-1][2] += data
        else:
            self.text.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def page(data):
    return render(data)


@pytest.fixture(scope="module")
def outline(page):
    return Outline(page)


def test_the_page_is_whole(outline, data):
    assert outline.problems == []
    text = " ".join(" ".join(outline.text).split())
    assert data.summary.verdict.sentence in text and data.summary.verdict.caveat in text
    low = data.summary.novel_fraction.low
    assert (f"at least {100 * low:.1f}%" if low else "nothing proved") in text
    assert "Only labels can show the upper limit" in text
    assert "of rows drawn like the source may be called new" in text
    for check in data.summary.diagnostics:
        assert check.sentence in text
    assert "labelled.parquet" in text and "9f86d081884c7d65" in text and "learning_rate" in text


def test_the_page_names_the_command_that_opens_a_review(page):
    assert "<code>openset review RUN</code>" in page


def test_headings_do_not_skip_a_level_and_ids_are_unique(outline):
    levels = [int(tag[1]) for tag, _ in outline.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = [attributes["id"] for _, attributes in outline.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [link["href"].removeprefix("#") for link in outline.all("a")]
    assert links and set(links) <= set(ids)
    assert all(canvas.get("aria-label") for canvas in outline.all("canvas"))
    assert all("alt" in image for image in outline.all("img"))


def test_the_policy_allows_what_is_bundled_and_nothing_else(outline):
    policy = next(m["content"] for m in outline.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy and "http" not in policy
    for tag, attributes, content in outline.scripts:
        if attributes.get("type") == "application/json":
            continue
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        kind = "script-src" if tag == "script" else "style-src"
        assert digest in policy.split(kind)[1].split(";")[0]


def test_nothing_points_outside_the_page(page, outline):
    for _, attributes in outline.elements:
        assert not attributes.keys() & {"onclick", "onload", "onerror", "style"}
        for name in ("src", "href"):
            assert attributes.get(name, "#").startswith(("#", "data:"))
    assert "sourceMappingURL" not in page and "@import" not in page and "url(" not in page


def test_hostile_text_shows_up_as_text():
    hostile = hostile_data()
    outline = Outline(render(hostile))
    assert outline.problems == []
    assert len(outline.all("script")) == 5 and outline.all("img") == []
    text = "".join(outline.text)
    visible = HOSTILE.replace("\u2028", " ").split("{{")[0]
    # verdict (title, badge, heading, caveat), table, group, diagnostics, classes, settings
    assert text.count(visible) >= 10
    assert "{{7*7}}" in text and "49}" not in text
    payload = next(content for _, attributes, content in outline.scripts if "id" in attributes)
    assert "<" not in payload and json.loads(payload)["map"]["id"][0].startswith("</script>")


@pytest.mark.parametrize("examples", [True, False])
def test_examples_can_be_left_out(data, examples):
    secret = tuple(replace(row, text="very private", image="data:image/jpeg;base64,AAAA") for row in data.rows)
    page = render(replace(data, rows=secret, groups=(Group("g", 3, secret[:2]),)), examples=examples)
    assert ("very private" in page) == ("base64,AAAA" in page) == examples
    assert ("content was left out" in page) != examples
    assert f"<bdi>{data.rows[0].id}</bdi>" in page
    assert not Outline(page).problems


def test_groups_appear_only_where_there_are_some(data):
    assert 'id="groups"' in render(data) and 'id="groups"' not in render(replace(data, groups=()))
    page = render(replace(data, groups=(Group("watches", 12, data.rows[:2], "Reviews of watches."),)))
    text = " ".join(" ".join(Outline(page).text).split())
    assert "watches 12 rows" in text and "Reviews of watches." in text and 'href="#groups"' in page


def test_what_the_statistics_say_is_on_the_page(data):
    summary = replace(
        data.summary,
        known_classes=KnownClasses(corrected=True, sentence="Shares by EM.", accuracy_sentence="About 0.9."),
        class_mix={"a": ClassShares(0.5, 0.625, 0.375)},
        groups=Groups("They fall into 2 groups.", []),
        novel_fraction=replace(data.summary.novel_fraction, low=0.05, profile={"1": 0.0813, "30": 0.0123}),
        novelty_test=NoveltyTest(0.0456, 12.0, NoveltyCounts(0, 10, 5, 10), code="probable"),
        listed=ListedRows(0.1, 12.0, 77),
    )
    page = render(replace(data, summary=summary, groups=(Group("Group 1", 3, data.rows[:1]),)))
    outline = Outline(page)
    text = " ".join(" ".join(outline.text).split())
    assert outline.problems == [] and "One new class or several They fall into 2 groups." in text
    assert "Shares by EM." in text and "About 0.9." in text and "62.5% 37.5%" in text
    assert "8.1% 1.2%" in text and "p = 0.0456" in text
    assert "77 rows are listed: at most 10 % of them known on average" in text


def test_checks_that_failed_stand_above_the_verdict(data):
    checks = [
        Check("separating column", "failed", "Column 'ticket' alone separates <b>."),
        Check("copies", "caution", "Some rows are copies."),
        Check("moved batch", "passed", "The batch did not move."),
    ]
    verdict = Verdict("cannot tell", "Something else explains it.", "", "cannot_tell")
    page = render(replace(data, summary=replace(data.summary, checks=checks, verdict=verdict)))
    text = " ".join(" ".join(Outline(page).text).split())
    assert Outline(page).problems == [] and "<b>." not in page
    order = [text.index(words) for words in ("alone separates", "Some rows are copies", "cannot tell Something")]
    assert order == sorted(order)
    assert "These checks passed: The batch did not move." in text and "found none" not in text


def test_nothing_of_a_proof_is_shown_where_nothing_can_be_told(data):
    proved = "Proved as long as no known kind became more than 35.8 times as common; 12 is assumed."
    unproved = "Proved only if no known kind became more than 4 times as common; 12 is assumed. Not proved."
    steps = Diagnostic("training steps", 60, None, True, "Training ended.")

    def shown(code, diagnostic, *checks):
        verdict = Verdict("…", "A check failed (copies).", "", code)
        summary = replace(data.summary, checks=checks, verdict=verdict, diagnostics=[steps, diagnostic])
        return " ".join(" ".join(Outline(render(replace(data, summary=summary))).text).split())

    failed = Check("copies", "failed", "All rows are copies.")
    text = shown("cannot_tell", Diagnostic("tolerated shift", 35.8, 12.0, True, proved), failed)
    assert proved not in text and "✓ fine training steps" in text and "openset review" not in text
    text = shown("found", Diagnostic("tolerated shift", 35.8, 12.0, True, proved))
    assert f"✓ fine tolerated shift {proved}" in text and "openset review" in text
    text = shown("nothing", Diagnostic("tolerated shift", 4.0, 12.0, True, unproved))
    assert f"– not proved tolerated shift {unproved}" in text


def test_the_rule_that_chose_the_head_is_the_one_described(data):
    heads = data.summary.heads
    pooled = " ".join(" ".join(Outline(render(data)).text).split())
    assert heads[0].value is not None and "The head with the highest value is used" in pooled
    assert "Value" in pooled and "Within budget" not in pooled
    published = [replace(head, value=None) for head in heads]
    page = render(replace(data, summary=replace(data.summary, heads=published)))
    text = " ".join(" ".join(Outline(page).text).split())
    assert "Of the heads within the false-alarm budget" in text and "Within budget" in text
    assert "highest value" not in text and Outline(page).problems == []


def test_a_run_with_next_to_nothing_has_a_page():
    outline = Outline(render(ReportData(minimal_summary(), np.empty(0), np.empty(0), ())))
    text = " ".join(" ".join(outline.text).split())
    assert outline.problems == []
    assert "nothing proved" in text and "No checks were run" in text and "no scores to show" in text
    assert {canvas["id"] for canvas in outline.all("canvas")} == {"chart-mix"}


def test_no_threshold_is_said(data):
    page = render(replace(data, summary=replace(data.summary, threshold=None)))
    text = " ".join(" ".join(Outline(page).text).split())
    assert "There is no threshold" in text and "the model was not trained on them" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "id_"),
    [("x" * 3000, "a long identifier of a row, number {}"), ("<" * 3000, "<" * 90), ("漢" * 3000, "字" * 90)],
    ids=["plain", "escaped", "wide"],
)
def test_a_hundred_thousand_rows_fit_two_megabytes(tmp_path, text, id_):
    make = large_data(100_000, text=text, id_=id_)
    start = time.perf_counter()
    path = write_report(make(), tmp_path / "report.html")
    assert path.stat().st_size <= 2_000_000
    assert time.perf_counter() - start < 30  # a few seconds on a free core


def test_writing_replaces_the_old_page_whole_or_not_at_all(tmp_path, data, monkeypatch):
    path = tmp_path / "report.html"
    assert write_report(data, str(path)) == path
    before = path.read_bytes()
    assert write_report(data, path).read_bytes() == before  # the same data gives the same bytes
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("no space left")))
    with pytest.raises(OSError, match="no space left"):
        write_report(replace(data, groups=(Group("g", 1, ()),)), path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_the_bundled_charts_are_the_published_ones_with_their_licence():
    known = {
        "chart.umd.min.js": "87364cc2b2a76a6684929e7d6b80b18a897794db38400caff1fcf1791c6925d2",
        "chartjs-plugin-zoom.min.js": "e4a088e5bab93be6ee47c939eeb9ebaa80e0b39156d4bdfd1af9c844be81b6c4",
    }
    assets = files("openset.report") / "assets"
    for name, digest in known.items():
        assert hashlib.sha256((assets / name).read_bytes()).hexdigest() == digest
    for name in ("chart.LICENSE.md", "chartjs-plugin-zoom.LICENSE.md"):
        assert "The MIT License (MIT)" in (assets / name).read_text()


def test_only_the_lower_end_is_shown(data):
    assumptions = "The lower end assumes little."
    fraction = replace(
        data.summary.novel_fraction, low=0.02, high=1.0, high_identified=False, assumptions=assumptions
    )
    summary = replace(data.summary, novel_fraction=fraction)
    text = " ".join(Outline(render(replace(data, summary=summary))).text)
    assert (
        "at least 2" in text
        and "assumes little" in text
        and "covers sampling error" not in " ".join(text.split())
    )


def test_the_heads_shown_are_those_of_the_chosen_step_and_member():
    heads = [
        Head(member, step, head, 0.1, 0.0, 0.1, 1.0, True, selected=(member, step, head) == (1, 20, 0))
        for member in (0, 1)
        for step in (10, 20)
        for head in (0, 1)
    ]
    assert [(head.member, head.step, head.head) for head in chosen_heads(heads)] == [(1, 20, 0), (1, 20, 1)]
    assert chosen_heads(heads[:4]) == []


def test_details_are_flat_and_short():
    summary = minimal_summary(parameters={"grid": [0.1, 0.2], "hidden": {"first": 1 / 3}, "note": "x" * 999})
    shown = {title: dict(pairs) for title, pairs in details(summary)}
    assert shown["Parameters of the method"] == {
        "grid": "0.1, 0.2", "hidden · first": "0.333333", "note": "x" * 199 + "…",
    }  # fmt: skip
    assert shown["Data"]["source · path"] == "—" and shown["Data"]["source · rows"] == "10"
    assert shown["Settings"]["method"] == "color" and "Seconds taken" not in shown
