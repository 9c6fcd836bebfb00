"""Batches in order: what is noticed and when, resumed after a kill, and wrong input."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import openset
from openset.stats.e_process import ERROR, LIMIT, weight
from openset.watch import Watch, fits
from openset.watch.fits import WatchedRun
from openset.watch.records import Count, OwnFit
from openset.watch.watch import evidence_by_batch


def test_a_growing_class_is_noticed_and_stays_one_group(watched):
    answer = watched.answer()
    assert answer.code == "noticed" and answer.noticed_at in (5, 6)
    evidence = [batch.evidence for batch in answer.batches]
    assert max(evidence[:3]) < 1 and evidence == sorted(evidence)
    assert [batch.record.called_novel >= new for batch, new in zip(answer.batches, (6, 12, 24, 40), strict=False)]
    (group,) = answer.groups
    assert list(group.sizes) == sorted(group.sizes) and group.last == 7
    assert list(group.sizes.values()) == sorted(group.sizes.values())
    records = [batch.record for batch in answer.batches]
    assert not records[group.first - 1].groups[0].again and records[6].groups[0].again
    assert all(str(row).startswith("w7-") for row in records[6].groups[0].examples)


def test_a_batch_that_moved_does_not_count(watched):
    answer = watched.answer()
    last, before = answer.batches[-1], answer.batches[-2]
    assert last.record.moved == "yes" and last.record.cannot_tell == "moved" and last.record.counts == []
    assert last.evidence == before.evidence and last.record.groups == []
    assert "moved" in answer.advice.sentence and answer.advice.command.startswith("openset fit ")


def test_nothing_new_is_nothing_noticed(run, weeks, state):
    watch = Watch(run, state=state)
    watch.add_all(weeks[:3])
    answer = watch.answer()
    assert answer.code == "nothing" and answer.noticed_at is None and answer.evidence < LIMIT
    assert answer.max_density_ratio == 1.0 and "more common than in source" in answer.sentence


def test_a_moved_batch_alone_cannot_be_told(run, weeks, state):
    watch = Watch(run, state=state)
    watch.add(weeks[7])
    assert watch.answer().code == "cannot_tell" and watch.answer().sentence == "week-8.parquet: moved."


def test_the_same_batch_is_counted_once(run, weeks, state, tmp_path):
    watch = Watch(run, state=state)
    first = watch.add(weeks[0])
    copy = tmp_path / "copy.parquet"
    shutil.copy(weeks[0], copy)
    assert watch.add(copy) == first and watch.add(weeks[0]) == first
    assert len(Watch(run, state=state).answer().batches) == 1
    frame = pd.read_parquet(weeks[1])
    second = watch.add(frame, name="a frame")
    assert watch.add(frame).number == second.number == 2 and second.name == "a frame"


def test_a_stale_copy_and_a_file_that_grew_are_told(run, weeks, state, tmp_path):
    watch = Watch(run, state=state)
    latest = tmp_path / "latest.parquet"
    latest.write_bytes(weeks[0].read_bytes())
    watch.add(weeks[0])
    watch.add(latest)
    assert watch.answer().notes == [
        "latest.parquet has the content of week-1.parquet, batch 1, and is not counted again. Was the right file "
        "written?"
    ]
    pd.concat([pd.read_parquet(weeks[1])[:300], pd.read_parquet(weeks[0])[:100]]).to_parquet(latest)
    assert not any("counted as batch" in note for note in watch.add(latest).notes)
    latest.write_bytes(weeks[2].read_bytes())
    (note,) = [note for note in watch.add(latest).notes if "counted as batch" in note]
    assert note.startswith("latest.parquet was counted as batch 2 too, with other content. Rows that are in both")
    assert note in Watch(run, state=state).answer().notes


def test_batches_are_counted_in_order_of_time(run, weeks, state):
    watch = Watch(run, state=state)
    watch.add_all(weeks[1:3])
    with pytest.raises(ValueError, match=r"week-1\.parquet is new, but it is given before .*week-2\.parquet"):
        watch.add_all(weeks[:3])
    with pytest.raises(ValueError, match="was counted as batch 1, before batch 2"):
        watch.add_all([weeks[2], weeks[1]])
    assert len(watch.store.batches()) == 2
    watch.add_all(weeks[1:4])
    assert len(watch.store.batches()) == 3


def test_one_call_or_many_give_the_same(watched, run, weeks, state):
    for week in weeks:
        Watch(run, state=state).add(week)
    one, many = watched.answer(), Watch(run, state=state).answer()
    assert [batch.evidence for batch in one.batches] == [batch.evidence for batch in many.batches]
    assert [model.thresholds for model in one.models] == [model.thresholds for model in many.models]
    assert one.groups == many.groups


def test_killed_while_it_fits_or_stores_it_goes_on(watched, run, weeks, state, monkeypatch):
    watch = Watch(run, state=state)
    watch.add_all(weeks[:5])
    due = Watch(run, state=state)

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(fits.WatchedRun, "fit", killed)
        with pytest.raises(KeyboardInterrupt):
            due.add(weeks[5])
    with monkeypatch.context() as patched:
        patched.setattr(type(due.store), "add_batch", killed)
        with pytest.raises(KeyboardInterrupt):
            Watch(run, state=state).add(weeks[5])
    assert len(Watch(run, state=state).store.batches()) == 5
    again = Watch(run, state=state)
    again.add_all(weeks)
    assert [b.evidence for b in again.answer().batches] == [b.evidence for b in watched.answer().batches]


@pytest.mark.parametrize(("refit", "models"), [("never", 1), ("each", 5)])
def test_when_models_are_fitted(run, weeks, state, refit, models):
    watch = Watch(run, state=state, refit=refit)
    watch.add_all(weeks[:5])
    answer = watch.answer()
    assert len(answer.models) == models
    assert [model.after for model in answer.models] == list(range(models))
    if refit == "each":
        assert answer.models[-1].target == [week.name for week in weeks[1:4]]
        assert [count.model for count in answer.batches[-1].record.counts] == [2, 3, 4]


def test_a_larger_ratio_is_less_evidence(watched, run):
    records = watched.store.batches()
    by_ratio = [evidence_by_batch(records, ratio) for ratio in (1.0, 3.0, 12.0)]
    assert by_ratio[0][-1] > by_ratio[1][-1] > by_ratio[2][-1]
    assert Watch(run, state=watched.store.path, max_density_ratio=12).answer().evidence == by_ratio[2][-1]


def test_a_series_lasts_while_its_model_is_in_use(watched):
    records = watched.store.batches()
    counts = [[Count(0, [5, 6, 9], 300)], [Count(0, [5, 6, 9], 300)], [Count(1, [0, 0, 1], 300)]]
    short = [
        replace(record, counts=found, model=found[0].model)
        for record, found in zip(records, counts, strict=False)
    ]
    evidence = evidence_by_batch(short, 1.0)
    assert evidence[1] > evidence[0] and evidence[2] == evidence[1]


def test_an_own_fit_counts_by_its_p_value_for_half_of_the_error(watched):
    (record,) = watched.store.batches()[:1]
    quiet = replace(record, counts=[Count(0, [0, 0, 0], 300)])
    small = replace(quiet, own_fit=OwnFit(1e-4, 6.0, 400))
    assert evidence_by_batch([small], 6.0, own_fits=True)[0] == pytest.approx(0.5 * weight(1) / 1e-4)
    assert evidence_by_batch([small], 6.0, own_fits=True, least_ratio=12.0)[0] < 1, "it assumed less shift"
    limited = replace(quiet, own_fit=OwnFit(1e-4, 6.0, 400, limit="moved"))
    assert evidence_by_batch([limited], 6.0, own_fits=True)[0] < 1
    later = evidence_by_batch([quiet, quiet, small], 6.0, own_fits=True)
    assert later[-1] == pytest.approx(0.5 * weight(3) / 1e-4)


def test_the_answer_names_the_ratio_that_it_was_noticed_under(watched, run, state, monkeypatch):
    (record,) = watched.store.batches()[:1]
    quiet, loud = Count(0, [0, 0, 0], 300), Count(0, [90, 90, 90], 300)
    monkeypatch.setattr(WatchedRun, "has_test", True)
    for counts, p_value, ratio in ((quiet, 1e-6, 2.5), (loud, 1e-6, 6.0), (quiet, 1.0, 6.0)):
        monkeypatch.setattr(WatchedRun, "max_density_ratio", 6.0)
        watch = Watch(run, state=state)
        found = replace(record, counts=[counts], own_fit=OwnFit(p_value, 2.5, 400))
        monkeypatch.setattr(watch.store, "batches", lambda found=found: [found])
        monkeypatch.setattr(watch.store, "models", watched.store.models)
        answer = watch.answer()
        assert answer.max_density_ratio == ratio and f"more than {ratio:g} times as common" in answer.sentence
        assert (answer.noticed_at == 1) == (p_value < 1)


def test_own_fits_keep_the_error_over_any_number_of_batches():
    """Uniform p-values: the chance that a weighted one is ever small enough is at most half of the error."""
    random = np.random.default_rng(0)
    p_values = random.random((20_000, 60))
    weights = np.array([weight(number) for number in range(1, 61)])
    alarms = ((0.5 * weights / p_values).max(axis=1) >= LIMIT).mean()
    assert alarms <= 0.5 * ERROR + 3 * np.sqrt(0.025 / 20_000)


@pytest.mark.slow
def test_a_method_with_a_test_fits_each_batch_alone(weeks_folder, weeks, tmp_path):
    settings = {"label": "kind", "id": "rid", "parameters": {"effort": "fast", "max_steps": 250}}
    files = (weeks_folder / "source.parquet", weeks_folder / "target.parquet")
    openset.run(*files, **settings).save(tmp_path / "run")
    watch = Watch(tmp_path / "run")
    quiet, loud = watch.add(weeks[0]), watch.add(weeks[6])
    assert quiet.own_fit.p_value > 0.01 and loud.own_fit.p_value < quiet.own_fit.p_value
    assert loud.own_fit.rows == loud.rows == 440 and loud.called_novel > quiet.called_novel
    assert len(loud.groups) >= 1 and str(loud.groups[0].examples[0]).startswith("w7-")
    never = Watch(tmp_path / "run", refit="never", state=tmp_path / "never.sqlite")
    assert never.add(weeks[0]).own_fit is None
    moved = watch.add(weeks[7])
    assert moved.own_fit is None and moved.moved == "yes"


@pytest.mark.parametrize(("change", "words"), [
    (lambda frame: frame.drop(columns="height"), "height"),
    (lambda frame: frame.iloc[:0], "no rows"),
])  # fmt: skip
def test_a_batch_that_cannot_be_read_is_told_and_not_counted(run, weeks, state, tmp_path, change, words):
    bad = tmp_path / "bad.parquet"
    change(pd.read_parquet(weeks[0])).to_parquet(bad)
    watch = Watch(run, state=state)
    with pytest.raises(ValueError, match=words):
        watch.add(bad)
    assert watch.store.batches() == []


def test_few_rows_cannot_be_judged(run, weeks, state, tmp_path):
    few = tmp_path / "few.parquet"
    pd.read_parquet(weeks[0]).head(30).to_parquet(few)
    watch = Watch(run, state=state)
    record = watch.add(few)
    assert record.moved == "unknown" and record.cannot_tell.startswith("too few rows")
    assert "larger batches" in watch.answer().advice.sentence


def test_a_source_that_changed_is_told_when_a_model_is_fitted(weeks_folder, tmp_path):
    for name in ("source.parquet", "target.parquet", "week-1.parquet"):
        shutil.copy(weeks_folder / name, tmp_path / name)
    from product_files import fit_problem

    fit_problem(tmp_path).save(tmp_path / "run")
    with (tmp_path / "source.parquet").open("ab") as file:
        file.write(b" ")
    with pytest.raises(ValueError, match="the source .* changed since the run was fitted"):
        Watch(tmp_path / "run").add(tmp_path / "week-1.parquet")
    (tmp_path / "source.parquet").unlink()
    with pytest.raises(FileNotFoundError, match="which is gone: put it back"):
        Watch(tmp_path / "run").add(tmp_path / "week-1.parquet")


def test_wrong_parameters_and_folders(run, tmp_path):
    with pytest.raises(ValueError, match="refit"):
        Watch(run, refit="weekly")
    with pytest.raises(ValueError, match="max_density_ratio"):
        Watch(run, max_density_ratio=0.5)
    with pytest.raises(FileNotFoundError, match=r"no result\.json"):
        Watch(tmp_path)
    with pytest.raises(ValueError, match="cannot be a state"):
        Watch(run, state=tmp_path)


def test_an_answer_without_a_batch(run, state):
    answer = Watch(run, state=state).answer()
    assert answer.code == "cannot_tell" and answer.batches == [] and "first one" in answer.advice.sentence


def test_the_page_is_written_beside_the_run_or_elsewhere(watched, run, tmp_path):
    assert watched.write_page(tmp_path / "page.html").read_text("utf-8").count("<canvas") == 2
    with pytest.raises(ValueError, match="run"):
        watched.write_page(run / "result.json")


def test_it_is_a_name_of_the_package_and_the_file_is_sqlite(watched):
    assert openset.Watch is Watch
    with sqlite3.connect(watched.store.path) as connection:
        assert connection.execute("SELECT count(*) FROM batch").fetchone() == (8,)
    assert np.isfinite(watched.answer().evidence)
