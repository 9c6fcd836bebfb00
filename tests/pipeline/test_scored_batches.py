"""Batches become scored tables in order; a row that cannot be scored is named by its place in the data."""

from __future__ import annotations

import numpy as np
import pytest

from openset.data.readers.open import open_source
from openset.errors import Parameter, ParameterError
from openset.pipeline.batch_facts import FactCounter
from openset.pipeline.loaded_run import LoadedRun
from openset.pipeline.scored_batches import scored_batches, scoring_threads


@pytest.fixture(scope="module")
def loaded(result, tmp_path_factory):
    folder = tmp_path_factory.mktemp("scored_batches") / "run"
    result.save(folder)
    return LoadedRun.load(folder)


def tables(loaded, problem_files, maker=None, batch_rows=64):
    counter = FactCounter(loaded.profile)
    batches = loaded.batches(open_source(problem_files / "target.parquet"), batch_rows)
    made = scored_batches(loaded.model, maker or loaded.maker, batches, 2, counter, loaded.settings.id)
    return counter, made


def test_every_row_is_scored_once_in_order_however_rows_are_cut(loaded, problem_files):
    whole = np.concatenate([table.novelty_score for table in tables(loaded, problem_files, batch_rows=10_000)[1]])
    counter, cut = tables(loaded, problem_files)
    parts = list(cut)
    assert len(parts) == -(-len(whole) // 64) and counter.facts.rows == len(whole) == 400
    np.testing.assert_array_equal(np.concatenate([table.novelty_score for table in parts]), whole)


def test_an_error_of_a_batch_says_where_its_rows_are_counted_from(loaded, problem_files):
    def fail(records):
        raise ValueError("row 3 is odd.")

    with pytest.raises(ValueError, match="counted from row 0 of the data: row 3 is odd"):
        list(tables(loaded, problem_files, fail)[1])


def test_an_error_of_a_parameter_is_of_no_row(loaded, problem_files):
    def fail(records):
        raise ParameterError("wrong ", Parameter("text"))

    with pytest.raises(ParameterError, match="^wrong"):
        list(tables(loaded, problem_files, fail)[1])


def test_a_method_without_a_network_gets_every_core(loaded):
    with scoring_threads(loaded.model, loaded.settings) as workers:
        assert workers == 1
