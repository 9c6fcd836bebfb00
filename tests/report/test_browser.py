"""The whole page in a real browser (no single module): reading, sorting, zooming; no errors, no network."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from samples import hostile_data

from openset.report import build, write_report

VISIBLE = "Array.from(document.querySelectorAll('#candidates tbody tr:not([hidden])'))"
SCROLL = "document.getElementById('chart-{}').scrollIntoView({{block: 'center', behavior: 'instant'}})"
SCORES = f"{VISIBLE}.map(row => Number(row.querySelector('[data-key=score]').dataset.value))"


@pytest.fixture(scope="module")
def path(data, tmp_path_factory):
    return write_report(data, tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture
def page(browser, path):
    with browser.open(path) as opened:
        yield opened
        assert opened.complaints() == [] and opened.requests() == [] and opened.dialogs() == []


def header(key):
    return f"document.querySelector('[data-sort={key}]')"


def test_sorting_by_mouse_and_by_keyboard(page):
    best = page.run(SCORES)
    assert len(best) == 10 and best == sorted(best, reverse=True)
    page.run(f"{header('score')}.click()")
    page.run(f"{header('score')}.focus()")
    page.key("Enter", "Enter", 13)
    lowest = page.run(SCORES)
    assert lowest == sorted(lowest) and max(lowest) < min(best)
    assert page.run(f"{header('score')}.closest('th').getAttribute('aria-sort')") == "ascending"
    page.run(f"{header('rank')}.click()")
    assert page.run(SCORES) == best
    assert page.run("document.querySelectorAll('th[aria-sort=ascending]').length") == 1


def test_searching_and_showing_more(page, data):
    page.type("#search", data.rows[321].id)
    shown = page.run(f"{VISIBLE}.map(row => row.textContent)")
    assert shown and all(data.rows[321].id in text for text in shown)
    assert "matching rows shown" in page.run("document.getElementById('shown').textContent")
    page.run("search.value = 'no such row'; search.dispatchEvent(new Event('input'))")
    assert page.run(f"{VISIBLE}.length") == 0
    page.run("search.value = ''; search.dispatchEvent(new Event('input')); more.click()")
    assert page.run(f"{VISIBLE}.length") == 35
    page.run("all.click()")
    assert page.run(f"{VISIBLE}.length") == len(data.rows) and page.run("more.hidden")


def hover(page, chart, expression):
    """Put the mouse on a chart's element, and give back the text of what pops up."""
    page.run(SCROLL.format(chart))
    x, y = page.run(
        f"(() => {{ const chart = Chart.getChart('chart-{chart}');"
        " const box = chart.canvas.getBoundingClientRect();"
        f" const point = {expression}; return [box.x + point.x, box.y + point.y]; }})()"
    )
    page.mouse("mouseMoved", x, y)
    for _ in range(100):
        lines = page.run(
            f"(() => {{ const tip = Chart.getChart('chart-{chart}').tooltip;"
            " return tip.opacity ? tip.title.concat(...tip.body.map(part => part.lines)) : []; })()"
        )
        if lines:
            return " | ".join(lines)
        time.sleep(0.02)
    return ""


@pytest.mark.parametrize(
    ("chart", "point", "said"),
    [
        ("scores", "chart.getDatasetMeta(1).data[30]", "target"),
        ("map", "chart.getDatasetMeta(0).data[0]", "novel (-1) · score"),
        ("mix", "chart.getDatasetMeta(0).data[0]", "source"),
        ("heads", "chart.getDatasetMeta(0).data[0]", "candidate recall"),
        ("losses", "chart.getDatasetMeta(0).data[0]", "step 50"),
        ("rates", "chart.getDatasetMeta(0).data[0]", "fpr"),
    ],
)
def test_hovering_says_the_numbers(page, chart, point, said):
    assert said in hover(page, chart, point)


def test_zooming_by_button_and_by_dragging(page):
    span = "(() => { const x = Chart.getChart('chart-map').scales.x; return x.max - x.min; })()"
    whole = page.run(span)
    page.run("document.querySelector('[data-chart=map][data-zoom=in]').click()")
    assert page.run(span) < whole
    page.run("document.querySelector('[data-chart=map][data-zoom=reset]').click()")
    assert page.run(span) == pytest.approx(whole)
    page.run(SCROLL.format("map"))
    x, y = page.run("(() => { const b = document.getElementById('chart-map').getBoundingClientRect();"
                    " return [b.x + 200, b.y + 120]; })()")  # fmt: skip
    page.mouse("mousePressed", x, y, button="left", clickCount=1)
    page.mouse("mouseMoved", x + 200, y + 150, button="left", buttons=1)
    page.mouse("mouseReleased", x + 200, y + 150, button="left", clickCount=1)
    deadline = time.monotonic() + 5
    while page.run(span) >= whole / 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert page.run(span) < whole / 2


def test_hostile_text_runs_nothing(browser, tmp_path):
    with browser.open(write_report(hostile_data(), tmp_path / "report.html")) as page:
        assert page.run("document.querySelectorAll('img').length") == 0
        assert "<script>alert(1)</script>" in page.run("document.querySelector('#candidates td.id').textContent")
        assert "alert(1)" in page.run("Chart.getChart('chart-mix').data.labels[0] + document.title")
        assert page.dialogs() == [] and page.complaints() == [] and page.requests() == []


def test_the_policy_stops_what_would_slip_through(browser, path):
    with browser.open(path) as page:
        page.run(
            "const body = document.body, script = document.createElement('script');"
            "body.insertAdjacentHTML('beforeend', '<img src=https://example.org/x.png onerror=alert(1)>');"
            "script.textContent = 'window.ran = 1'; body.append(script);"
            "fetch('https://example.org/').catch(() => 0)"
        )
        time.sleep(0.2)
        assert page.run("window.ran ?? 0") == 0 and page.dialogs() == []
        assert len(page.complaints()) >= 3  # a refusal each


CONTRAST = """(() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const colour = rgb(getComputedStyle(node).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const read = "p, h1, h2, h3, a, td, th, bdi, summary, figcaption, dt, dd, .tag, .state";
  return Array.from(document.querySelectorAll(read))
    .filter((node) => node.checkVisibility() && node.textContent.trim())
    .map((node) => {
      const pair = [light(rgb(getComputedStyle(node).color)), light(behind(node))].sort((a, b) => b - a);
      return [(pair[0] + 0.05) / (pair[1] + 0.05), node.textContent.trim().slice(0, 30)];
    }).sort((a, b) => a[0] - b[0])[0];
})()"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_its_width_with_readable_contrast(browser, path, width, dark):
    with browser.open(path, width=width, dark=dark) as page:
        assert page.run("document.documentElement.scrollWidth") <= width
        ratio, text = page.run(CONTRAST)
        assert ratio >= 4.5, text
        canvases = page.run(
            "Array.from(document.querySelectorAll('canvas'), (c) => [c.id, c.clientWidth, c.clientHeight])"
        )
        assert len(canvases) == 6 and all(40 < w <= width and h > 40 for _, w, h in canvases)


def test_without_scripts_every_row_is_there(browser, path, data, tmp_path):
    with browser.open(path, scripts=False) as page:
        root = page.do("DOM.getDocument")["root"]["nodeId"]
        rows = page.do("DOM.querySelectorAll", nodeId=root, selector="#candidates tbody tr:not([hidden])")
        assert len(rows["nodeIds"]) == len(data.rows)


@pytest.mark.slow
def test_printing_gives_pages(browser, path):
    with browser.open(path, dark=True) as page:
        printed = page.pdf()
        assert printed.startswith(b"%PDF") and 3 <= printed.count(b"/Type /Page\n") <= 12
        assert page.complaints() == []


@pytest.mark.slow
def test_a_report_on_reviews_with_their_texts(browser, amazon, tmp_path):
    """A realistic page. With OPENSET_SCREENSHOTS set to a folder, pictures of it are written there."""
    path = write_report(build(amazon), tmp_path / "report.html")
    folder = Path(os.environ.get("OPENSET_SCREENSHOTS", tmp_path))
    views = (("desktop", 1280, False, "main"), ("dark", 1280, True, "#scores"), ("phone", 390, False, "main"))
    for name, width, dark, first in views:
        with browser.open(path, width=width, dark=dark) as page:
            page.screenshot(folder / f"{name}.png", first=first, height=1500)
            assert (folder / f"{name}.png").stat().st_size > 20_000
            assert page.complaints() == [] and page.requests() == []
            if name == "desktop":
                page.type("#search", "software")
                texts = page.run(f"{VISIBLE}.map(row => row.textContent.toLowerCase())")
                assert texts and all("software" in text for text in texts)
