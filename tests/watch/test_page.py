from __future__ import annotations

from openset.watch import Watch
from openset.watch.page import timeline_of, write_page


def test_the_page_has_what_the_answer_has(watched, tmp_path):
    answer = watched.answer()
    data = timeline_of(answer)
    assert data.mood == "found" and data.word == answer.word and len(data.batches) == 8
    assert data.batches[7].state == "moved" and data.batches[7].evidence == data.batches[6].evidence
    assert data.headline == f"A new class was noticed in {data.batches[answer.noticed_at - 1].name}."
    (group,) = data.groups
    assert group.shares[0] is None and group.shares[6] > group.shares[5] and group.examples[0].startswith("w7-")
    assert data.models[0] == ("Model 0, before the first batch", "the run's target: 365 rows")
    page = write_page(answer, tmp_path / "watch.html").read_text("utf-8")
    assert "new class noticed" in page and "week-8.parquet" in page and "http:" not in page.split("<script")[0]


def test_the_headlines_of_the_other_answers(watched, run, weeks, tmp_path):
    quiet = Watch(run, state=tmp_path / "quiet.sqlite")
    assert timeline_of(quiet.answer()).headline == "No batch was counted yet."
    quiet.add(weeks[0])
    assert timeline_of(quiet.answer()).headline == "Nothing new was noticed in 1 batch."
    quiet.add(weeks[7])
    assert timeline_of(quiet.answer()).headline == "week-8.parquet cannot be judged."
