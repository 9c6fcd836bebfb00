"""ONNX graphs against the estimators they come from, in onnxruntime."""

from __future__ import annotations

import json
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from typer.testing import CliRunner

import openset
from openset import CoLOR, DeepKNN, PaperCoLOR, SourceOnly
from openset.cli import app
from openset.data import read_table
from openset.errors import FitWarning, MissingExtraError
from openset.persistence.onnx.graph import IR_VERSION, OPSET
from openset.registry import get_method, methods
from openset.testing import Subject

NETWORKS = (
    "color", "color_paper", "conop", "dd", "source_only", "msp", "entropy", "mls", "energy", "upu", "nnpu",
    "pulse", "boda", "shot", "anna", "arpl", "cac",
)  # fmt: skip
OTHERS = ("knn", "mahalanobis", "sar_em", "mcm", "zoc")

pytestmark = pytest.mark.filterwarnings("ignore::openset.errors.FitWarning")


def test_every_method_is_exported_or_refused():
    assert {m.name for m in methods()} == {*NETWORKS, *OTHERS, "deep_knn"}


def run_graph(path, X):
    session = onnxruntime.InferenceSession(path)
    return dict(zip(["novelty_score", "probabilities", "label"], session.run(None, {"x": X}), strict=True))


def assert_same(path, model, X):
    found, said = run_graph(path, X), model.predictions(X)
    apart = np.abs(found["novelty_score"] - said.novelty_score) / (1 + np.abs(said.novelty_score))
    # ranks rise steeply between close reference rows: there the last bits of single precision count for more
    assert np.quantile(apart, 0.98 if len(getattr(model, "pool_references_", ())) else 1) < 1e-5
    assert apart.max() < 1e-3
    np.testing.assert_allclose(found["probabilities"], said.probabilities, atol=1e-5)
    sure = np.abs(said.novelty_score - model.threshold_) > 1e-4  # elsewhere rounding may decide
    np.testing.assert_array_equal(found["label"][sure], said.predicted_index[sure])


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("name", NETWORKS)
def test_scores_are_equal(name, members, tmp_path):
    model = get_method(name).make(max_steps=40, evaluate_every=20, members=members, random_state=0, fpr=0.1)
    data = Subject(model).data
    model.fit(data.X, data.y, data.X_target)
    model.to_onnx(tmp_path / "model.onnx")
    X = np.asarray(data.X_test, np.float32)
    for rows in (X, X[:1]):
        assert_same(tmp_path / "model.onnx", model, rows)


@pytest.mark.parametrize("name", OTHERS)
def test_methods_without_a_network_say_so(name, tmp_path):
    model = Subject(get_method(name).make()).fitted
    with pytest.raises(ValueError, match="has no network, so it has no ONNX graph"):
        model.to_onnx(tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_a_search_in_stored_rows_is_refused(small, tmp_path):
    model = DeepKNN(max_steps=5, random_state=0, fpr=0.1).fit(small.X, small.y, small.X_target)
    with pytest.raises(ValueError, match="searches its source rows, which an ONNX graph does not do"):
        model.to_onnx(tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_a_backbone_and_a_score_of_ones_own_are_refused(small, tmp_path):
    import torch

    fitted = SourceOnly(backbone=torch.nn.Linear(8, 4), max_steps=5, random_state=0).fit(small.X, small.y)
    with pytest.raises(ValueError, match="has a backbone, which is not exported"):
        fitted.to_onnx(tmp_path / "m.onnx")
    own = type("Own", (SourceOnly,), {"_member_scores": lambda self, outputs: outputs["classes"][..., 0]})
    with pytest.raises(ValueError, match="Own defines _member_scores but not _onnx_scores"):
        own(max_steps=5, random_state=0, fpr=0.1).fit(small.X, small.y, small.X_target).to_onnx(
            tmp_path / "m.onnx"
        )


def test_a_classifier_of_ones_own_is_refused(small, tmp_path):
    from sklearn.dummy import DummyClassifier

    model = CoLOR(classifier=DummyClassifier(), max_steps=20, random_state=0, fpr=0.2)
    with pytest.raises(ValueError, match="come from DummyClassifier, which is not exported"):
        model.fit(small.X, small.y, small.X_target).to_onnx(tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


def test_unfitted_and_without_the_extra(small, tmp_path, monkeypatch):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        CoLOR().to_onnx(tmp_path / "m.onnx")
    model = SourceOnly(max_steps=5, random_state=0).fit(small.X, small.y)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"openset\[onnx\]"):
        model.to_onnx(tmp_path / "m.onnx")


@pytest.mark.parametrize("standardize", ["feature", None])
def test_without_a_target_it_is_a_classifier_of_the_known(small, tmp_path, standardize):
    model = CoLOR(max_steps=40, members=2, standardize=standardize, random_state=0).fit(small.X, small.y)
    model.to_onnx(tmp_path / "m.onnx")
    assert_same(tmp_path / "m.onnx", model, small.X_test.astype(np.float32))
    assert run_graph(tmp_path / "m.onnx", small.X_test.astype(np.float32))["probabilities"].shape[1] == 3


def test_where_nothing_is_feasible_nothing_is_novel(small, tmp_path):
    with pytest.warns(FitWarning):
        model = PaperCoLOR(max_steps=2, evaluate_every=1, fpr=1e-6, grid=(0.9,), random_state=0).fit(
            small.X, small.y, small.X_target
        )
    assert model.threshold_ == np.inf
    model.to_onnx(tmp_path / "m.onnx")
    found = run_graph(tmp_path / "m.onnx", small.X_test.astype(np.float32))
    assert (found["probabilities"][:, -1] == 0).all() and found["label"].max() < 3
    np.testing.assert_allclose(found["probabilities"].sum(axis=1), 1, atol=1e-6)


def test_the_file_says_what_it_needs_and_which_labels_it_gives(small, tmp_path):
    y = np.array(["ant", "bee", "cow"])[small.y]
    model = CoLOR(max_steps=40, random_state=0, fpr=0.1).fit(small.X, y, small.X_target)
    model.to_onnx(tmp_path / "m.onnx")
    proto = onnx.load(tmp_path / "m.onnx")
    properties = {p.key: p.value for p in proto.metadata_props}
    labels = json.loads(properties["labels"])
    assert labels == ["ant", "bee", "cow", "novel"] and float(properties["threshold"]) == model.threshold_
    found = run_graph(tmp_path / "m.onnx", small.X_test.astype(np.float32))
    assert np.array(labels)[found["label"]].tolist() == model.predict(small.X_test.astype(np.float32)).tolist()
    assert proto.ir_version == IR_VERSION and proto.opset_import[0].version == OPSET
    assert proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"


def test_the_command(problem_files, tmp_path):
    def call(*arguments):
        return CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "80", "NO_COLOR": "1"})

    files = (problem_files / "source.parquet", problem_files / "target.parquet")
    out = ("--set", "max_steps=50", "--out", tmp_path / "run", "-q")
    assert call("fit", *files, "--label", "kind", "--id", "rid", *out).exit_code == 0
    done = call("export", tmp_path / "run", "--onnx", tmp_path / "m.onnx")
    assert done.exit_code == 0 and "width, height, weight" in done.output
    result = read_table(files[1], features=["width", "height", "weight"])
    assert_same(tmp_path / "m.onnx", openset.load(tmp_path / "run" / "model"), result.X.astype(np.float32))
    refused = call("export", problem_files / "run", "--onnx", tmp_path / "no.onnx")
    assert refused.exit_code == 2 and "Mahalanobis has no network" in refused.output
    assert not (tmp_path / "no.onnx").exists()
