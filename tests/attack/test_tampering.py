"""Holes that an attack found in runs and models that somebody changed, each closed."""

from __future__ import annotations

import json
import shutil
import socket

import pytest

import openset
from attack.schemas import failures
from command_line import call
from openset.errors import ModelFormatError
from openset.persistence.model import _manifest_digest


@pytest.fixture
def run(problem_files, tmp_path):
    shutil.copytree(problem_files / "run", tmp_path / "run")
    return tmp_path / "run"


def change_model(run, change):
    path = run / "model" / "model.json"
    content = json.loads(path.read_text())
    change(content)
    content["sha256"] = _manifest_digest(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    "name", ["predict", "_outputs", "__class__", "__dict__", "get_params", "fpr", "_estimator_type", "made_up_"]
)
def test_a_model_sets_no_name_that_is_not_a_fitted_one(run, name):
    change_model(run, lambda content: content["fitted"].update({name: 3}))
    with pytest.raises(ModelFormatError, match=f"'{name}' is no fitted attribute of Mahalanobis"):
        openset.load(run / "model")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("classes_", 3), ("classes_", []), ("threshold_", "high"), ("threshold_", {"$float": "nan"}),
        ("n_features_in_", 2**70), ("n_features_in_", True), ("n_target_", -1), ("scaling_", 3),
        ("whitening_", "text"), ("calibration_scores_", {"some": "name"}), ("means_", None),
        ("novel_label_", {"a": 1}),
    ],
)  # fmt: skip
def test_fitted_values_of_another_kind_are_refused_when_loaded(run, problem_files, tmp_path, name, value):
    change_model(run, lambda content: content["fitted"].update({name: value}))
    done = call("score", run, problem_files / "target.parquet", "--out", tmp_path / "out.csv")
    assert done.exit_code == 2 and "is damaged" in done.stderr, (done.output, done.exception)


@pytest.mark.parametrize("name", ["means_", "whitening_", "scaling_", "threshold_"])
def test_a_model_without_something_that_it_needs_is_refused_when_loaded(run, name):
    change_model(run, lambda content: content["fitted"].pop(name))
    with pytest.raises(ModelFormatError, match="is damaged"):
        openset.load(run / "model")


def test_a_model_that_lost_a_class_is_refused_when_loaded(run):
    change_model(run, lambda content: content["fitted"]["classes_"]["$labels"].pop())
    with pytest.raises(ModelFormatError, match="one logit for each class"):
        openset.load(run / "model")


def test_parameters_are_checked_as_those_of_a_new_fit(run):
    change_model(run, lambda content: content["parameters"].update(fpr="small"))
    with pytest.raises(ModelFormatError, match="fpr='small' is not valid"):
        openset.load(run / "model")


def test_a_run_that_names_a_model_of_a_hub_asks_no_network(run, problem_files, tmp_path, monkeypatch):
    path = run / "result.json"
    content = json.loads(path.read_text())
    content["settings"].update(text="rid", encoder="somebody/else", features=None)
    path.write_text(
        json.dumps({**content, "settings": {k: v for k, v in content["settings"].items() if v is not None}})
    )
    asked = []

    def refuse(*address, **_):
        asked.append(address)
        raise OSError("no network in this test")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    done = call("score", run, problem_files / "target.parquet", "--out", tmp_path / "out.csv")
    assert done.exit_code == 2 and asked == [] and "--allow-download" in done.stderr, done.output


def test_the_code_of_a_model_is_never_run(tmp_path):
    """A directory whose configuration names code of its own, which would write a file."""
    from openset.features import TextEncoder

    (tmp_path / "model").mkdir()
    auto = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model", "AutoTokenizer": ["evil.Tokenizer", None]}
    (tmp_path / "model" / "config.json").write_text(json.dumps({"model_type": "evil", "auto_map": auto}))
    (tmp_path / "model" / "tokenizer_config.json").write_text(json.dumps({"auto_map": auto}))
    mark = tmp_path / "executed"
    (tmp_path / "model" / "evil.py").write_text(
        f"open({str(mark)!r}, 'w')\nclass Config: pass\nclass Model: pass\n"
    )
    with pytest.raises(ValueError, match="evil|no tokenizer"):
        openset.features.encode_texts(["a"], TextEncoder(tmp_path / "model"), cache=False, progress=False)
    assert not mark.exists()


def test_some_runs_with_one_thing_changed_are_read_or_refused_in_a_sentence(problem_files, tmp_path):
    found = list(failures(problem_files / "run", problem_files / "labelled.csv", tmp_path, most=40))
    assert len(found) > 60 and [failure for failure in found if failure] == []


@pytest.mark.slow
def test_every_run_with_one_thing_changed_is_read_or_refused_in_a_sentence(problem_files, tmp_path):
    found = list(failures(problem_files / "run", problem_files / "labelled.csv", tmp_path))
    assert len(found) > 1000 and [failure for failure in found if failure] == []
