from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import openset.data
from openset.data import DATASETS, load_dataset


def test_names_are_the_catalogues():
    assert sorted(DATASETS) == ["amazon", "amazon_fdu_mtl", "cifar100", "clinc150", "sun397", "sun_scenes"]


def test_every_loader_is_public():
    for loader in DATASETS.values():
        assert getattr(openset.data, loader.__name__) is loader and loader.__name__ in openset.data.__all__


def test_a_dataset_is_loaded_by_its_name(tmp_path):
    columns = {"text": ["hello"], "intent": ["greeting"], "domain": ["small_talk"], "split": ["train"]}
    pq.write_table(pa.table(columns), tmp_path / "queries.parquet")
    data = load_dataset("clinc150", tmp_path)
    assert data.name == "clinc150" and data.label.tolist() == ["small_talk"] and data.texts.tolist() == ["hello"]


def test_an_unknown_name_lists_all_names(tmp_path):
    with pytest.raises(ValueError, match=re.escape("no dataset 'mnist': choose " + ", ".join(DATASETS) + ".")):
        load_dataset("mnist", tmp_path)


@pytest.mark.parametrize("name", DATASETS)
def test_files_that_are_absent_are_an_error(tmp_path, name):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load_dataset(name, tmp_path / "absent")
