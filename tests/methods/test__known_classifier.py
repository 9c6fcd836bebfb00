from __future__ import annotations

import re
from pathlib import Path

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import openset
from openset import CoLOR, ConOp, PaperCoLOR
from openset.methods._known_classifier import MASKED, SOURCE, TARGET, class_logits, fit_classifier, takes_domains
from openset.model_selection import split_by_domain

pytestmark = pytest.mark.filterwarnings("ignore::openset.errors.FitWarning")
QUICK = {
    "max_steps": 60,
    "evaluate_every": 30,
    "hidden": 16,
    "fpr": 0.05,
    "random_state": 0,
}


class Recorder(ClassifierMixin, BaseEstimator):
    """Predicts the nearest class mean and remembers what it was fitted on."""

    def __init__(self, power=1.0):
        self.power = power

    def fit(self, X, y, sample_domain=None):
        self.seen_ = (X, y, sample_domain)
        source = slice(None) if sample_domain is None else sample_domain > 0
        X, y = X[source], y[source]
        self.means_ = np.array([X[y == c].mean(axis=0) for c in np.unique(y)])
        return self

    def predict(self, X):
        return ((X[:, None] - self.means_) ** 2).sum(axis=2).argmin(axis=1)


class Unaware(Recorder):
    """The same, knowing nothing of domains."""

    def fit(self, X, y):
        return super().fit(X, y)


@pytest.fixture(scope="module")
def own_head(small):
    return PaperCoLOR(**QUICK).fit(small.X, small.y, small.X_target)


@pytest.fixture
def skada():
    """skada switches scikit-learn's metadata routing on for everybody: only here."""
    with sklearn.config_context():
        module = pytest.importorskip("skada")
        sklearn.set_config(enable_metadata_routing=True)
        yield module


def test_known_classes_are_the_classifiers_and_novelty_stays_the_networks(small, own_head):
    classifier = GaussianNB()
    model = PaperCoLOR(**QUICK, classifier=classifier, classifier_input="features")
    model.fit(small.X, small.y, small.X_target)
    assert not hasattr(classifier, "classes_"), "it is a clone that is fitted"
    plain = GaussianNB().fit(small.X, small.y)
    X = small.X_test
    np.testing.assert_array_equal(model.novelty_score(X), own_head.novelty_score(X))
    assert model.threshold_ == own_head.threshold_ and model.novel_fraction_ == own_head.novel_fraction_
    np.testing.assert_array_equal(model.predict_known(X), plain.predict(X))
    novel = model.novelty_score(X) > model.threshold_
    np.testing.assert_array_equal(model.predict(X), np.where(novel, model.novel_label_, plain.predict(X)))
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(
        probabilities[:, :-1], plain.predict_proba(X) * (1 - probabilities[:, -1:]), atol=1e-12
    )
    np.testing.assert_array_equal(model.predictions(X).probabilities, probabilities)


def test_the_representation_is_that_of_the_body_with_the_classes(small):
    for method, members in ((PaperCoLOR, 2), (ConOp, 1)):
        model = method(**QUICK, members=members, classifier=Unaware()).fit(small.X, small.y, small.X_target)
        seen, y, domains = model.classifier_.seen_
        assert seen.shape == (len(small.X), members * 16) and domains is None
        np.testing.assert_array_equal(model.classes_[y], small.y)
        body = "shared" if method is PaperCoLOR else "known"
        weight, bias = (model.weights_[f"bodies.{body}.{part}"] for part in ("weight", "bias"))
        expected = np.maximum(model.scaling_.apply(small.X) @ weight[-1] + bias[-1], 0)
        np.testing.assert_allclose(seen[:, -16:], expected, rtol=1e-3, atol=1e-4)


def test_rows_called_novel_are_kept_out_of_the_adaptation(small):
    model = PaperCoLOR(**QUICK, classifier=Recorder(), classifier_input="features")
    model.fit(small.X, small.y, small.X_target)
    rows, y, domain = model.classifier_.seen_
    called = model.predict(small.X_target) == model.novel_label_
    assert called.any()
    np.testing.assert_array_equal(rows, np.concatenate([small.X, small.X_target[~called]]))
    np.testing.assert_array_equal(domain, np.repeat([SOURCE, TARGET], [len(small.X), (~called).sum()]))
    assert (y[domain < 0] == MASKED).all() and (model.classes_[y[domain > 0]] == small.y).all()
    np.testing.assert_array_equal(split_by_domain(rows, y, domain)[2], small.X_target[~called])


def test_an_estimator_that_adapts_needs_known_target_rows(small):
    with pytest.raises(ValueError, match="adapts to known target rows, but there is no X_target"):
        PaperCoLOR(**QUICK, classifier=Recorder()).fit(small.X, small.y)
    with pytest.raises(ValueError, match="every target row is called novel"):
        fit_classifier(Recorder(), small.X, small.y, small.X_target[:0])
    closed = PaperCoLOR(**QUICK, classifier=GaussianNB(), classifier_input="features").fit(small.X, small.y)
    np.testing.assert_array_equal(closed.predict(small.X), GaussianNB().fit(small.X, small.y).predict(small.X))


def test_logits_of_every_kind_of_classifier():
    random = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = random.normal(size=(90, 4)) + 4 * np.eye(4)[y]
    logistic = LogisticRegression().fit(X, y)
    np.testing.assert_allclose(np.exp(class_logits(logistic, X, 3)), logistic.predict_proba(X))
    margins = LinearSVC().fit(X, y)
    np.testing.assert_array_equal(class_logits(margins, X, 3), margins.decision_function(X))
    two = LinearSVC().fit(X[y < 2], y[y < 2])
    np.testing.assert_allclose(np.diff(class_logits(two, X, 2))[:, 0], two.decision_function(X))
    labels = class_logits(Recorder().fit(X, y), X, 3)
    assert (labels.argmax(axis=1) == Recorder().fit(X, y).predict(X)).all() and np.isfinite(labels).all()
    one_by_one = SVC(decision_function_shape="ovo").fit(X, np.arange(90) % 4)
    with pytest.raises(ValueError, match=r"shape \(90, 6\) for 90 rows and 4 classes"):
        class_logits(one_by_one, X, 4)


def test_nested_parameters_and_clones():
    model = CoLOR(classifier=LogisticRegression(C=2.0))
    assert model.get_params()["classifier__C"] == 2.0
    other = clone(model).set_params(classifier__C=3.0, classifier_input="features")
    assert other.classifier.C == 3.0 and model.classifier.C == 2.0
    assert ConOp(classifier=GaussianNB()).get_params()["classifier__var_smoothing"] == 1e-9


@pytest.mark.parametrize("wrong", ["logistic", LogisticRegression, 3])
def test_what_is_no_estimator_is_refused(small, wrong):
    with pytest.raises(ValueError, match="classifier=.* expected an estimator"):
        CoLOR(classifier=wrong).fit(small.X, small.y, small.X_target)


def test_wrong_inputs_are_refused(small):
    with pytest.raises(ValueError, match="classifier_input='rows'"):
        CoLOR(classifier_input="rows").fit(small.X, small.y, small.X_target)
    with pytest.raises(ValueError, match="with a backbone"):
        CoLOR(backbone="resnet18", classifier=GaussianNB(), classifier_input="features").fit(small.X, small.y)


def test_one_known_class_needs_no_classifier(small, tmp_path):
    model = PaperCoLOR(**QUICK, classifier=LogisticRegression()).fit(
        small.X, np.zeros(len(small.X)), small.X_target
    )
    assert not hasattr(model, "classifier_")
    assert set(model.predict(small.X_test)) <= {0, model.novel_label_}
    model.save(tmp_path)
    np.testing.assert_array_equal(openset.load(tmp_path).predict(small.X_test), model.predict(small.X_test))


def test_saved_without_the_classifier_and_loaded_with_it(small, own_head, tmp_path):
    model = PaperCoLOR(**QUICK, classifier=make_pipeline(StandardScaler(), LogisticRegression()))
    model.fit(small.X, small.y.astype(str), small.X_target)
    model.save(tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "| known classes by | Pipeline, not in this folder |" in card and "classifier=fitted" in card
    joblib.dump(model.classifier_, tmp_path / "classifier.joblib")
    with pytest.raises(
        openset.ModelFormatError, match="leaves the known classes to a Pipeline.*classifier=fitted"
    ):
        openset.load(tmp_path / "model")
    again = openset.load(tmp_path / "model", classifier=joblib.load(tmp_path / "classifier.joblib"))
    np.testing.assert_array_equal(again.predict_proba(small.X_test), model.predict_proba(small.X_test))
    assert "classifier__logisticregression__C" in again.get_params()
    with pytest.raises(ValueError, match="is a GaussianNB, but this model was fitted with a Pipeline"):
        openset.load(tmp_path / "model", classifier=GaussianNB().fit(small.X, small.y))
    with pytest.raises(sklearn.exceptions.NotFittedError):
        openset.load(tmp_path / "model", classifier=make_pipeline(LogisticRegression()))
    own_head.save(tmp_path / "own")
    with pytest.raises(ValueError, match="fitted with classifier=None"):
        openset.load(tmp_path / "own", classifier=GaussianNB())


def test_detection_of_what_adapts(skada):
    assert takes_domains(Recorder()) and not takes_domains(Unaware())
    assert not takes_domains(make_pipeline(StandardScaler(), LogisticRegression()))
    assert takes_domains(skada.CORAL(LogisticRegression())) and takes_domains(skada.JDOTClassifier())


def test_skada_adapts_to_a_shift_of_all_known_rows_and_saves(skada, tmp_path):
    random = np.random.default_rng(0)
    centres = 3 * np.eye(6)[:3]
    y, y_target = np.arange(300) % 3, np.arange(270) % 3
    X = random.normal(size=(300, 6)) + centres[y]
    moved = random.normal(size=(270, 6)) + centres[y_target] + (2, -2, 0, 0, 0, 0)
    target = np.concatenate([moved, random.normal((0, 0, 0, 9, 9, 9), size=(30, 6))])
    models = [
        PaperCoLOR(**QUICK, grid=(0.1,), classifier=classifier, classifier_input="features").fit(X, y, target)
        for classifier in (LogisticRegression(), skada.LinearOTMapping(LogisticRegression()))
    ]
    plain, adapted = ((model.predict_known(moved) == y_target).mean() for model in models)
    assert adapted > plain + 0.05
    with sklearn.config_context(enable_metadata_routing=False):  # as in a process that has not imported skada
        before = models[1].predict(target)
    models[1].save(tmp_path)
    again = openset.load(tmp_path, classifier=models[1].classifier_)
    np.testing.assert_array_equal(again.predict(target), before)
    assert any(name.endswith("logisticregression__C") for name in clone(models[1]).get_params())


def test_the_documented_example_runs(skada, capsys):
    text = (Path(__file__).parents[2] / "docs" / "adaptation.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}  # the blocks of a page are one program
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(block, "docs/adaptation.md", "exec"), names)
    lines = [list(map(float, re.findall(r"\d\.\d+", line))) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 3
    assert all(0.9 < top1 <= 1 and 0 < oscr <= top1 for top1, oscr in lines[:2])
    by_entropy, before, after = lines[2]
    assert 0.9 < by_entropy <= 1 and after < before
