"""The answer in words and for programs; :mod:`tests.pipeline.test_score` has answers of whole files."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from openset.data.readers.records import Records
from openset.data.readers.source import Source
from openset.features.maker import MadeFeatures
from openset.features.table.apply import TableNotes
from openset.pipeline.batch_answer import BatchAnswer, CalledShare, ChangedColumn, Moved, answer_of, percent
from openset.pipeline.batch_facts import FactCounter
from openset.pipeline.fit_profile import make_profile
from openset.pipeline.summary import Check, ListedRows, Verdict
from openset.problem import Predictions

NAMES = tuple(f"column {i}" for i in range(8))
FIT = SimpleNamespace(
    called_novel=21,
    data=SimpleNamespace(target=SimpleNamespace(rows=500)),
    verdict=Verdict("nothing new seen", "No rows stand out.", "", "nothing"),
    checks=[],
)


def draw(n, seed, move=0.0):
    return np.random.default_rng(seed).normal(size=(n, 8)) + move


def made(X, names=NAMES, **notes):
    return MadeFeatures(X, X if names else None, names, TableNotes(**notes))


def answer(
    rows, *, source=None, target=None, novel=0, names=NAMES, kinds=None, at_fit=None, id=None, fit=FIT, **notes
):
    source, target = draw(500, 0) if source is None else source, draw(500, 1) if target is None else target
    at_fit = dict.fromkeys(NAMES, "number") if at_fit is None else at_fit
    records = [Records(np.arange(len(X)), kinds=at_fit) for X in (source, target)]
    profile = make_profile(made(source, names), made(target, names), *records)
    counter = FactCounter(profile)
    index = np.where(np.arange(len(rows)) < novel, 1, 0)
    found = Predictions(np.array(["cat", "novel"]), index, index, index * 1.0, index[:, None] * 1.0)
    counter.add(counter.facts_of(made(rows, names, **notes), found, np.arange(len(rows))))
    data = Source("march.csv", Path(), at_fit if kinds is None else kinds, None)
    return answer_of(counter.facts, profile, fit, data, id)


def text_of(found):
    text = found()
    assert max(map(len, text.splitlines())) <= 80 and "  \n" not in text
    return " ".join(text.split())


def test_the_called_share_has_the_interval_of_its_count():
    found = answer(draw(2000, 2), novel=37)
    assert found.called_novel == 37 and found.called_share.value == 37 / 2000 and int(found) == found.rows == 2000
    assert round(found.called_share.low, 5) == 0.01306 and round(found.called_share.high, 5) == 0.02541
    shown = text_of(found)
    assert "Called new 37 of 2000 rows, 1.8 % (1.3 to 2.5 %); 4.2 % when the run was fitted" in shown
    assert "Moved no. The batch lies where the target of the fit lay (overlap 0." in shown
    assert shown.endswith("Out of range no column, beyond what chance explains")


def test_a_moved_batch_and_the_columns_that_moved():
    found = answer(draw(300, 2, [0, 0, 30, 0, 0, -9, 0, 0]))
    assert found.moved.answer == "yes" and found.moved.overlap == found.moved.overlap_with_source == 0
    assert found.moved.columns == ["column 2", "column 5"] and found.moved.limit == pytest.approx(
        0.0412, abs=0.001
    )
    shown = text_of(found)
    assert "Moved yes. Most rows lie where the fit had none (overlap 0.00)" in shown
    assert "Moved most: column 2, column 5." in shown
    assert found.cannot_tell == "the batch moved away from the rows of the fit"
    assert not answer(draw(300, 2)).cannot_tell


def test_another_mix_of_the_sources_kinds_and_a_way_back_to_the_source():
    both = np.concatenate([draw(250, 0), draw(250, 3, 9)])
    mix = answer(draw(300, 2, 9), source=both, target=draw(500, 1))
    assert mix.moved.answer == "no" and mix.moved.overlap == 0 and mix.moved.overlap_with_source > 0.2
    assert "another mix of the known kinds" in text_of(mix)
    back = answer(draw(300, 2), target=draw(500, 1, 9))
    assert back.moved.answer == "yes" and back.moved.overlap_with_source > 0.4
    assert "this batch lies with the source (overlap 0.00)" in text_of(back)
    assert answer(draw(300, 2, 9), target=draw(500, 1, 9)).moved.answer == "no"


def test_few_rows_cannot_tell_whether_a_batch_moved():
    assert answer(draw(64, 2, 99)).moved == Moved("unknown", "The batch has 64 rows; it takes 65 to tell.")
    few = answer(draw(300, 2, 99), source=draw(40, 0))
    assert few.moved == Moved("unknown", "The fit has 40 rows; it takes 65 to tell.")
    assert "Moved unknown. The fit has 40 rows" in text_of(few)


def test_columns_out_of_range_are_told_with_both_ranges_and_what_to_do():
    rows = draw(1000, 2)
    rows[:4, 1] = -999
    rows[:60, 4] += 6
    rows[:, 6] += 100
    found = answer(rows)
    counts = {i: int(((rows[:, i] < fit_low(i)) | (rows[:, i] > fit_high(i))).sum()) for i in (6, 4, 1)}
    assert [(entry.column, entry.rows) for entry in found.out_of_range] == [
        (f"column {i}", count) for i, count in counts.items()
    ]
    assert counts[6] == 1000 and counts[4] >= 55 and counts[1] == 6  # two by chance
    last = found.out_of_range[-1]
    assert (last.fit_low, last.fit_high, last.low) == (fit_low(1), fit_high(1), -999) and last.share == 0.006
    assert last.sentence == (
        f"column 1: 6 of 1000 rows (0.6 %) lie outside {fit_low(1):.4g} to {fit_high(1):.4g}, the range in the "
        f"fit; the batch has -999 to {rows[:, 1].max():.4g}. Look for another unit, or a code for missing values."
    )
    shown = text_of(found)
    assert "another column under this name?" in shown and "fitted without such values" in shown
    assert shown.count("Out of range") == 3


def fit_low(column):
    return min(draw(500, 0)[:, column].min(), draw(500, 1)[:, column].min())


def fit_high(column):
    return max(draw(500, 0)[:, column].max(), draw(500, 1)[:, column].max())


def test_five_columns_are_shown_and_the_others_counted():
    found = answer(draw(300, 2, 50))
    assert len(found.out_of_range) == 8
    shown = text_of(found)
    assert shown.count("Out of range") == 5 and shown.endswith("and 3 more columns; --json lists them")


def test_a_column_that_never_varied():
    fit, rows = draw(500, 0), draw(300, 2)
    fit[:, 3] = rows[:, 3] = 7
    rows[8, 3] = 7.25
    (found,) = answer(rows, source=fit, target=fit).out_of_range
    assert (
        "1 of 300 rows (0.3 %) lie outside 7, the only value in the fit; the batch has 7 to 7.25."
        in found.sentence
    )
    rows[:, 3] = 8
    (found,) = answer(rows, source=fit, target=fit).out_of_range
    assert (
        "lie outside 7, the only value in the fit; the batch has only 8. Is it in another unit" in found.sentence
    )


def test_new_and_changed_columns():
    at_fit = {**dict.fromkeys(NAMES, "number"), "town": "other", "size": "number"}
    kinds = {**at_fit, "size": "other", "town": "number", "zip": "number", "Unnamed: 0": "number", "nr": "number"}
    found = answer(draw(300, 2), kinds=kinds, at_fit=at_fit, id="nr")
    assert found.new_columns == ["zip"]  # not the id, and no row numbers
    assert found.changed_columns == [
        ChangedColumn("town", "other", "number"), ChangedColumn("size", "number", "other")
    ]  # fmt: skip
    shown = text_of(found)
    assert "New columns zip: not in the fit's data, so not used" in shown
    assert "Changed columns town holds numbers (in the fit's target no numbers), size holds no numbers (" in shown
    many = answer(draw(300, 2), kinds={**at_fit, **{f"new\n{i}" * 20: "number" for i in range(9)}}, at_fit=at_fit)
    assert len(many.new_columns) == 9 and "… and 4 more: not in the fit's data" in text_of(many)


def test_embeddings_have_no_ranges():
    found = answer(draw(300, 2, 50), names=())
    assert not found.ranges_compared and found.out_of_range == [] and found.moved.answer == "yes"
    assert (
        found.moved.columns == [] and "Out of range" not in text_of(found) and "Moved most" not in text_of(found)
    )


def test_without_a_profile_the_answer_says_that_nothing_could_be_compared():
    facts = answer(draw(300, 2), novel=3)
    counter = FactCounter(None)
    index = np.zeros(300, np.intp)
    counter.add(
        counter.facts_of(
            made(draw(300, 2)), Predictions(np.array(["cat", "novel"]), index, index, index, index), index
        )
    )
    found = answer_of(counter.facts, None, FIT, Source("x", Path(), {"zip": "number"}, None), None)
    assert found.moved.answer == "unknown" and not found.ranges_compared and found.new_columns == []
    shown = text_of(found)
    assert "Not compared An earlier openset wrote this run without a profile of its rows" in shown
    assert "Moved" not in shown and not facts.not_compared


def test_cells_that_source_lacks_are_told():
    found = answer(draw(300, 2), unseen={"town": Counter(Ulm=7)}, unusable=Counter({"column 1": 4}))
    assert found.cells == [
        "Column 'town' has levels that source lacks: 'Ulm' (7 rows). They count as one level, (other).",
        "4 values of column 'column 1' cannot be read as in source: taken as missing.",
    ]
    shown = text_of(found)
    assert shown.count("Cells") == 2 and all(sentence in shown for sentence in found.cells)
    assert answer(draw(300, 2)).cells == [] and "Cells" not in text_of(answer(draw(300, 2)))


def test_the_answer_for_programs_has_every_field():
    rows = draw(300, 2, 50)
    found = answer(rows, kinds={**dict.fromkeys(NAMES, "number"), "zip": "other"})
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["out_of_range"][0]["column"] in NAMES and content["moved"]["answer"] == "yes"
    again = BatchAnswer(
        **{**content, "called_share": CalledShare(**content["called_share"]), "moved": Moved(**content["moved"]),
           "out_of_range": found.out_of_range, "fit_verdict": found.fit_verdict}
    )  # fmt: skip
    assert again == found and again() == found()
    assert replace(found, rows=1) != found


@pytest.mark.parametrize(
    ("share", "shown"), [(0.5, "50.0"), (0.00049, "0.05"), (3.3e-8, "0.000003"), (0.9999, "100.0")]
)
def test_small_shares_are_not_shown_as_none(share, shown):
    assert percent(share) == shown


def test_a_run_whose_verdict_was_cannot_tell_is_named_with_the_reason():
    failed = [Check("separating column", "failed", "Column 'no' alone separates source and target.")]
    fit = SimpleNamespace(
        **{**vars(FIT), "verdict": Verdict("cannot tell", "A check failed.", "", "cannot_tell")}
    )
    for checks, reason in ((failed, failed[0].sentence), ([], "A check failed.")):
        fit.checks = checks
        found = answer(draw(300, 2), fit=fit)
        assert (found.fit_verdict.code, found.fit_verdict.reason) == ("cannot_tell", reason)
        assert found.cannot_tell == 'the verdict of the run was "cannot tell"'
        assert f'Run its verdict was "cannot tell": {reason} Do not trust its scores' in text_of(found)
    assert answer(draw(300, 2)).fit_verdict.code == "nothing" and "Run " not in text_of(answer(draw(300, 2)))


def test_the_list_is_told_or_why_it_is_empty():
    found = answer(draw(300, 2), novel=3)
    for listed, words in (
        (ListedRows(0.1, 12.0, 7), "At FDR 0.1 7 rows are listed: at most 10 % of them known on average"),
        (ListedRows(0.1, 12.0, 7), "column novel_at_fdr marks them"),
        (ListedRows(0.1, 12.0, 0, 0.2, 4000, called=3), "from --fdr 0.2 on, or with about 4000 source rows."),
        (ListedRows(0.1, 12.0, 0, called=3), "Label the 3 rows called new"),
        (ListedRows(0.1, 12.0, 0, called=3, why_none="the batch moved"), "no row is listed: the batch moved."),
    ):
        told = replace(found, listed=listed)
        assert words in text_of(told) and told.to_dict()["listed"]["rows"] == listed.rows
