"""A run that is loaded to score: its columns, and the rows that it scores."""

from __future__ import annotations

import pytest

from openset.data.readers.open import open_source
from openset.pipeline.batch_facts import FactCounter
from openset.pipeline.loaded_run import LoadedRun


def test_tables_are_those_of_the_fit(problem_files, result):
    loaded = LoadedRun.load(problem_files / "run", carry="width")
    assert loaded.settings.id == "rid" and loaded.settings.carry == ("width",) and not loaded.encodes
    counter = FactCounter(loaded.profile)
    with loaded.threads() as workers:
        batches = loaded.batches(open_source(problem_files / "target.parquet"), 150)
        tables = list(loaded.tables(batches, workers, counter))
    assert [len(table) for table in tables] == [150, 150, 100] and counter.facts.rows == 400
    scores = [score for table in tables for score in table.novelty_score.tolist()]
    assert scores == result.scored.novelty_score.tolist()
    assert all(list(table.carried) == ["width"] for table in tables)


def test_settings_are_checked(problem_files, tmp_path):
    with pytest.raises(ValueError, match="fdr=2 is not valid"):
        LoadedRun.load(problem_files / "run", fdr=2)
    with pytest.raises(FileNotFoundError, match="is no run"):
        LoadedRun.load(tmp_path)
