"""The page of batches over time: charts' numbers, escaping, and the whole page in a real browser."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from openset.report.timeline import (
    MOST_GROUPS,
    Timeline,
    TimelineBatch,
    TimelineGroup,
    render_timeline,
    timeline_charts,
    write_timeline,
)

HOSTILE = "</script><img src=x onerror=alert(1)>&\u2028"


def sample(**more):
    batches = tuple(
        TimelineBatch(
            name=f"week-{week}", rows=1000, called=10 * week, share=0.01 * week, low=0.008 * week,
            high=0.013 * week, moved="yes" if week == 3 else "no", moved_sentence="Most rows lie elsewhere.",
            evidence=0.02 * 8.0**week,
            state="moved" if week == 3 else "", model=week // 4, groups="group 1" if week > 3 else "",
        )
        for week in range(1, 7)
    )  # fmt: skip
    groups = (
        TimelineGroup("group 1", "confirmed as new", (None, None, None, 0.02, 0.03, 0.05), 100, ("a7", "b9")),
        TimelineGroup("group 2", "", (None, None, None, None, 0.01, 0.01), 20, ("c1",)),
    )
    values = {
        "mood": "found", "word": "new class noticed", "headline": "A new class was noticed in week-5.",
        "sentence": "The evidence reached 20 at week-5 (batch 5).",
        "advice": "Fit a run with the last batch as target.", "command": "openset fit a b", "run": "run",
        "max_density_ratio": 6.0, "evidence": "5200", "limit": 20.0, "error": 0.05,
        "created": "2026-11-18T09:30+00:00", "version": "0.1.0", "batches": batches, "groups": groups,
        "models": (("Model 0, before the first batch", "the run's target: 900 rows"),),
        "notes": ("width: look.",),
    }  # fmt: skip
    return Timeline(**{**values, **more})


def test_the_numbers_of_the_charts():
    charts = timeline_charts(sample())
    assert charts["shares"]["called"] == [0.01, 0.02, None, 0.04, 0.05, 0.06], "week 3 moved"
    assert charts["shares"]["groups"][0] == {"name": "group 1", "shares": [None, None, None, 0.02, 0.03, 0.05]}
    assert charts["evidence"]["counted"] == [True, True, False, True, True, True]
    assert charts["evidence"]["limit"] == 20 and charts["evidence"]["evidence"] == sorted(
        charts["evidence"]["evidence"]
    )


def test_a_logarithmic_axis_has_no_zero_and_no_infinity():
    batch = sample().batches[0]
    charts = timeline_charts(
        sample(batches=(replace(batch, evidence=0.0), replace(batch, evidence=float("inf"))))
    )
    assert 0 < charts["evidence"]["evidence"][0] < charts["evidence"]["evidence"][1] < float("inf")


def test_the_largest_groups_have_lines():
    group = sample().groups[0]
    many = tuple(replace(group, name=f"g{i}", rows=i) for i in range(10))
    lines = timeline_charts(sample(groups=many))["shares"]["groups"]
    assert [line["name"] for line in lines] == [f"g{i}" for i in range(10 - MOST_GROUPS, 10)]


def test_without_a_batch_there_is_a_page_without_charts():
    page = render_timeline(sample(batches=(), groups=()))
    assert "<canvas" not in page and "No batch was counted yet" in page


def test_hostile_names_stay_text():
    batch, group = sample().batches[0], sample().groups[0]
    page = render_timeline(
        sample(
            batches=(replace(batch, name=HOSTILE, groups=HOSTILE, state=HOSTILE),),
            groups=(replace(group, name=HOSTILE, shares=(0.1,), examples=(HOSTILE,)),),
            notes=(HOSTILE,), sentence=HOSTILE, headline=HOSTILE, advice=HOSTILE, command=HOSTILE, run=HOSTILE,
        )
    )  # fmt: skip
    assert "<img" not in page and page.count("<script") == 3
    payload = re.search(r'id="report-data">(.*?)</script>', page, re.DOTALL)[1]
    assert json.loads(payload)["shares"]["labels"][0].startswith("</script>")


@pytest.fixture
def page(browser, tmp_path):
    with browser.open(write_timeline(sample(), tmp_path / "watch.html")) as opened:
        yield opened
        assert opened.complaints() == [] and opened.requests() == [] and opened.dialogs() == []


AXES = "Object.values(Chart.getChart('chart-{}').options.scales).map(axis => axis.title.text)"


def test_both_charts_are_drawn_with_labelled_axes(page):
    assert page.run(AXES.format("shares")) == ["Batch, in order of time", "Share of the batch's rows"]
    assert page.run(AXES.format("evidence")) == ["Batch, in order of time", "Evidence (logarithmic)"]
    sets = page.run("Chart.getChart('chart-shares').data.datasets.map(set => set.label)")
    assert sets == ["all rows called new", "95% interval", "", "group 1", "group 2"]
    assert page.run("Chart.getChart('chart-evidence').data.datasets[1].data.every(value => value === 20)")
    assert page.run("document.querySelectorAll('tbody tr').length") == 6


@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_on_a_phone_in_light_and_dark(browser, tmp_path, dark):
    with browser.open(
        write_timeline(sample(), tmp_path / "watch.html"), width=360, height=740, dark=dark
    ) as page:
        assert page.run("document.documentElement.scrollWidth") <= 360
        background = page.run("getComputedStyle(document.body).backgroundColor")
        assert background == ("rgb(18, 22, 27)" if dark else "rgb(255, 255, 255)")
        assert page.complaints() == []
