"""The whole page in a real browser (no single module): a session by keyboard, two tabs, a killed server."""

from __future__ import annotations

import json

import numpy as np
import pytest
from real_problems import write_reviews, write_scenes
from serving import Serving

import openset
from openset.review.session import Session

MOVES = "Number(document.body.dataset.moves)"
ANSWERS = "document.getElementById('progress').textContent"


def opened(browser, serving, **more):
    page = browser.open(serving.url, **more)
    page.wait("document.body.dataset.shown !== undefined")
    return page


def move(page, letter, **more):
    """One key, and wait until what it does is done."""
    before = page.run(MOVES)
    page.press(letter, **more)
    page.wait(f"{MOVES} > {before}")


def shown(page):
    return int(page.run("document.body.dataset.shown"))


def answer(page, truth, new):
    """The key that is right for the row that is shown."""
    row = shown(page)
    if truth[row] == new:
        move(page, "n")
    else:
        keys = page.run("[...document.querySelectorAll('#classes button')].map(b => b.firstChild.textContent)")
        number = keys.index(truth[row]) + 1
        before = page.run(MOVES)
        page.key(str(number), f"Digit{number}", 48 + number)
        page.wait(f"{MOVES} > {before}")
    return row


def quiet(page, serving):
    """Nothing complained, nothing left the machine, and the token is out of sight."""
    assert page.complaints() == [] and page.dialogs() == []
    assert all(url.startswith(serving.origin + "/") for url in page.requests())
    assert "token" not in page.run("location.href") and page.run("document.cookie") == ""


def full_session(browser, run, truth, new):
    """Sixty answers by keyboard, with undo, reload, a second tab and a server that is killed in the middle."""
    answered = {}
    with Serving(run) as serving:
        with opened(browser, serving) as page:
            for _ in range(12):
                row = answer(page, truth, new)
                answered[row] = truth[row]
            move(page, "u")
            last = shown(page)
            assert last == row and "11 answers" in page.run(ANSWERS)
            answered[answer(page, truth, new)] = truth[row]
            move(page, "z", modifiers=2)  # Ctrl
            assert shown(page) == last
            answer(page, truth, new)
            next_row = shown(page)
            page.load()
            page.wait("document.body.dataset.shown !== undefined")
            assert shown(page) == next_row and "12 answers" in page.run(ANSWERS)
            move(page, "x")
            for _ in range(13):
                row = answer(page, truth, new)
                answered[row] = truth[row]
            with opened(browser, serving) as other:  # a second tab, of another person
                before = other.run(MOVES)
                other.run("annotator.value = 'ben'; annotator.dispatchEvent(new Event('change'))")
                other.wait(f"{MOVES} > {before}")
                row = answer(other, truth, new)
                answered[row] = truth[row]
                page.do("Page.bringToFront")
                page.wait(f"{ANSWERS}.startsWith('{len(answered)} answers')")
                quiet(other, serving)
            quiet(page, serving)
        port = serving.port
    # killed, and started again
    with Serving(run, port=port) as serving, opened(browser, serving) as page:
        assert page.run(ANSWERS).startswith(f"{len(answered)} answers")
        while len(answered) < 60:
            row = answer(page, truth, new)
            assert row not in answered
            answered[row] = truth[row]
        assert page.run(ANSWERS).startswith("60 answers")
        assert "new class" in page.run("document.getElementById('names').textContent")
        quiet(page, serving)
    session = Session(run)
    found = {row: ("new" if is_new else label) for row, (label, is_new) in session.labels().items()}
    assert found == {row: "new" if label == new else label for row, label in answered.items()}
    share = session.numbers().estimates.share
    assert share.low <= np.mean(truth == new) <= share.high
    return session


def test_a_full_session_on_a_table(browser, run_folder, truth):
    session = full_session(browser, run_folder, truth, "new")
    assert session.numbers().evidence > 20


@pytest.mark.slow
def test_a_full_session_on_reviews(browser, shared_data, tmp_path):
    truth = write_reviews(shared_data, tmp_path)
    files = (tmp_path / "known.parquet", tmp_path / "batch.parquet")
    result = openset.run(*files, label="category", text="text", id="rid", parameters={"effort": "fast"}, fpr=0.02)
    result.save(tmp_path / "run")
    full_session(browser, tmp_path / "run", truth.astype(str), "toys_games")


@pytest.mark.slow
def test_a_full_session_on_scenes(browser, shared_data, tmp_path):
    truth = write_scenes(shared_data, tmp_path)
    result = openset.run(tmp_path / "known", tmp_path / "batch", parameters={"effort": "fast"}, fpr=0.03)
    result.save(tmp_path / "run")
    full_session(browser, tmp_path / "run", truth, "windmill")


def test_a_group_is_audited_and_accepted_by_keyboard_and_clicks(browser, run_folder, truth):
    Session(run_folder, seed=0).close()  # a fixed order, for a fixed audit
    with Serving(run_folder) as serving, opened(browser, serving) as page:
        page.type("#name", "kettle")
        page.key("Enter", "Enter", 13)
        before = page.run(MOVES)
        page.press("g")
        page.wait(f"{MOVES} > {before} && !!document.querySelector('.audit button')")
        before = page.run(MOVES)
        page.run("document.querySelector('.audit button').click()")
        page.wait(f"{MOVES} > {before}")
        assert "audit of group 1" in page.run("document.getElementById('row-reason').textContent")
        while not page.run("!!document.querySelector('#groups[open] .audit .go')"):
            if page.run("document.getElementById('groups').open"):  # not pure enough yet: some more rows
                before = page.run(MOVES)
                page.run("document.querySelector('.audit button').click()")
                page.wait(f"{MOVES} > {before}")
            answer(page, truth, "new")
        assert "at least" in page.run("document.querySelector('.audit').textContent")
        before = page.run(MOVES)
        page.run("document.querySelector('.audit .go').click()")
        page.wait(f"{MOVES} > {before}")
        assert "by group" in page.run(ANSWERS)
        page.run("document.querySelector('#groups [data-close]').click()")
        move(page, "u")
        assert "by group" not in page.run(ANSWERS)
        quiet(page, serving)


def test_classes_are_named_renamed_and_merged(browser, run_folder):
    with Serving(run_folder) as serving, opened(browser, serving) as page:
        for name in ("kettle", "teapot"):
            page.run("document.getElementById('name').value = ''")
            page.type("#name", name)
            page.key("Enter", "Enter", 13)
            move(page, "n")
        page.run("document.querySelector('#names li:last-child .edit').click()")
        page.run("document.querySelector('#names input').value = 'kettle'")
        before = page.run(MOVES)
        page.key("Enter", "Enter", 13)
        page.wait(f"{MOVES} > {before}")
        assert page.run("document.getElementById('names').textContent") == "kettle2Rename"
        move(page, "u")
        assert page.run("document.querySelectorAll('#names li').length") == 2
        quiet(page, serving)


HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'&{{7*7}}"


def test_markup_in_every_field_is_text(browser, tmp_path):
    import pandas as pd

    random = np.random.default_rng(0)
    kinds = [f"a{HOSTILE}", f"b{HOSTILE}"]
    known = pd.DataFrame({"x<b>": random.normal(size=200), "y": random.normal(size=200), "kind": kinds * 100})
    known["y"] += 4 * (known["kind"] == kinds[0])
    batch = pd.DataFrame({"x<b>": random.normal(size=120), "y": random.normal(size=120)})
    batch.loc[:29, "x<b>"] += 12
    batch["note"] = known["note"] = HOSTILE
    batch = batch.assign(rid=[f"{HOSTILE}{i}" for i in range(120)])
    known.to_parquet(tmp_path / "known.parquet")
    batch.to_parquet(tmp_path / "batch.parquet")
    files = (tmp_path / "known.parquet", tmp_path / "batch.parquet")
    result = openset.run(*files, label="kind", id="rid", method="mahalanobis", fpr=0.05)
    result.save(tmp_path / "run")
    Session(tmp_path / "run").new(0, HOSTILE[:70], annotator=HOSTILE[:70])
    with Serving(tmp_path / "run") as serving, opened(browser, serving) as page:
        page.run(f"document.getElementById('name').value = {json.dumps(HOSTILE[:60])}")
        for letter in "nkxn":
            move(page, letter)
        assert HOSTILE in page.run("document.getElementById('row-title').textContent")
        assert HOSTILE in page.run("document.getElementById('content').textContent")
        assert kinds[0] in page.run("document.getElementById('classes').textContent")
        assert page.run("document.querySelectorAll('main img, main script, main b b').length") == 0
        before = page.run(MOVES)
        page.press("g")
        page.wait(f"{MOVES} > {before}")
        assert page.run("document.querySelectorAll('#groups img, #groups script').length") == 0
        quiet(page, serving)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_and_can_be_read(browser, run_folder, width, dark):
    with Serving(run_folder) as serving, opened(browser, serving, width=width, height=800, dark=dark) as page:
        move(page, "n")
        assert page.run("document.documentElement.scrollWidth <= innerWidth")
        unnamed = "[...document.querySelectorAll('button, input, img')].filter(e => !(e.textContent.trim() || " \
            "e.ariaLabel || e.alt !== undefined || e.labels?.length || e.placeholder)).length"  # fmt: skip
        assert page.run(unnamed) == 0
        said = page.run("document.getElementById('said').textContent")
        assert said.startswith("Saved: new, new class. Row t") and "width" in said
        background = page.run("getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(15, 19, 23)") == dark
        quiet(page, serving)
