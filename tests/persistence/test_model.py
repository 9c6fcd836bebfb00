"""Models on disk: scores come back bit for bit, and a damaged folder is refused in one sentence."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import sklearn

import openset
from mutations import mutations, outcome
from net.fixture import FOLDERS
from openset import KNN, CoLOR, DomainDiscriminator, ModelFormatError
from openset.persistence.model import MANIFEST, _manifest_digest


@pytest.fixture(scope="module")
def model(small):
    names = np.array(["ant", "bee", "cat"])[small.y]
    return CoLOR(max_steps=60, evaluate_every=20, random_state=0, fpr=0.1).fit(small.X, names, small.X_target)


@pytest.fixture
def folder(model, tmp_path):
    model.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.slow
def test_a_new_process_scores_bit_identically(model, folder, small, tmp_path):
    np.save(tmp_path / "rows.npy", small.X_test)
    code = (
        "import numpy as np, openset, sys; m = openset.load(sys.argv[1]); X = np.load(sys.argv[2]);"
        "np.savez(sys.argv[3], score=m.novelty_score(X), p=m.predict_proba(X), y=m.predict(X))"
    )
    out = tmp_path / "out.npz"
    subprocess.run([sys.executable, "-c", code, str(folder), str(tmp_path / "rows.npy"), str(out)], check=True)
    theirs = np.load(out)
    np.testing.assert_array_equal(theirs["score"], model.novelty_score(small.X_test))
    np.testing.assert_array_equal(theirs["p"], model.predict_proba(small.X_test))
    np.testing.assert_array_equal(theirs["y"], model.predict(small.X_test))


def test_everything_fitted_comes_back(model, folder):
    loaded = openset.load(folder)
    assert loaded.get_params() == model.get_params()
    assert loaded.novel_fraction_ == model.novel_fraction_
    assert loaded.selected_ == model.selected_ and loaded.selected_.fpr == model.selected_.fpr
    np.testing.assert_array_equal(loaded.heads_, model.heads_)
    assert loaded.history_ == model.history_
    assert loaded.architecture_ == model.architecture_
    assert (loaded.classes_ == model.classes_).all() and loaded.classes_.dtype == model.classes_.dtype


def test_the_folder_holds_tensors_json_and_a_card_and_no_pickle(model, folder):
    names = sorted(path.name for path in folder.iterdir())
    assert names[:2] == ["README.md", MANIFEST] and names[2].endswith(".safetensors") and len(names) == 3
    card = (folder / "README.md").read_text()
    for fact in ("source rows | 300", "target rows | 240", "FPR budget on source | 0.1", "ant, bee, cat"):
        assert fact in card
    manifest = json.loads((folder / MANIFEST).read_text())
    assert manifest["openset_version"] == openset.__version__ and manifest["format_version"] == 1


def test_a_model_prepared_for_a_pipeline_is_saved_too(small, tmp_path):
    with sklearn.config_context(enable_metadata_routing=True):
        model = CoLOR(max_steps=5, fpr=0.9, random_state=0).set_fit_request(X_target=True)
    model.fit(small.X, small.y, small.X_target).save(tmp_path)
    assert openset.load(tmp_path).threshold_ == model.threshold_


def test_another_device_can_be_asked_for(folder):
    assert openset.load(folder, device="cpu").device == "cpu"


def edit(folder, change):
    path = folder / MANIFEST
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def weights_of(folder):
    return next(folder.glob("*.safetensors"))


DAMAGE = {
    "no JSON": (lambda f: (f / MANIFEST).write_text("{"), "not JSON"),
    "binary": (lambda f: (f / MANIFEST).write_bytes(b"\xff\xfe\x00"), "damaged"),
    "foreign": (lambda f: (f / MANIFEST).write_text('{"model": 1}'), "not written by openset"),
    "a list": (lambda f: (f / MANIFEST).write_text("[]"), "not written by openset"),
    "no manifest": (lambda f: (f / MANIFEST).unlink(), "no model.json"),
    "newer": (lambda f: edit(f, lambda m: m.update(format_version=99)), "format 99.*upgrade openset"),
    "tampered": (
        lambda f: edit(f, lambda m: m["fitted"].update(threshold_=-1.0)),
        "changed after it was written",
    ),
    "no weights": (lambda f: weights_of(f).unlink(), "is missing"),
    "truncated": (lambda f: weights_of(f).write_bytes(weights_of(f).read_bytes()[:-100]), "truncated"),
    "bit flip": (lambda f: weights_of(f).write_bytes(weights_of(f).read_bytes()[:-1] + b"x"), "checksum"),
    "not a folder": (lambda f: (shutil.rmtree(f), f.write_text("hello")), "no openset model"),
    "nothing": (shutil.rmtree, "no openset model"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_folder_gives_one_clear_error(folder, damage):
    break_it, message = DAMAGE[damage]
    break_it(folder)
    with pytest.raises(ModelFormatError, match=message) as error:
        openset.load(folder)
    assert str(folder) in str(error.value)


@pytest.mark.slow
def test_a_manifest_with_one_thing_changed_is_refused(tmp_path):
    path, content = copied(tmp_path)
    for mutation in mutations(content):
        path.write_text(json.dumps(mutation.content))
        _, message = outcome(openset.load, tmp_path / "model")
        assert str(tmp_path / "model") in message and "\n" not in message, mutation[:2]


@pytest.mark.slow
def test_a_manifest_changed_by_somebody_who_mends_its_checksum_is_loaded_or_refused(tmp_path):
    path, content = copied(tmp_path)
    refused = []
    for mutation in mutations(content):
        changed = mutation.content
        if isinstance(changed, dict) and mutation.path[0] != "sha256":
            changed = {**changed, "sha256": _manifest_digest(changed)}
        path.write_text(json.dumps(changed))
        _, message = outcome(openset.load, tmp_path / "model")  # another error than a ValueError would pass
        assert not message or (str(tmp_path / "model") in message and "\n" not in message)
        if message:
            refused.append((mutation.what, mutation.path))
    assert len(refused) > 200
    for name in ("openset_version", "method", "saved", "parameters", "fitted", "weights"):
        assert ("drop", (name,)) in refused and ("retype", (name,)) in refused
    assert ("add", ("wrd",)) not in refused  # of a later version


def copied(tmp_path):
    shutil.copytree(FOLDERS / "models" / "pulse", tmp_path / "model")
    path = tmp_path / "model" / MANIFEST
    return path, json.loads(path.read_text())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda m: m.pop("method"), "model.json: method is missing."),
        (lambda m: m.update(saved=3), "model.json: saved is a whole number, expected text."),
        (lambda m: m["weights"].pop("sha256"), "model.json: weights.sha256 is missing."),
        (lambda m: m.update(fitted=[]), "model.json: fitted is a list, expected a table of names and values."),
        (
            lambda m: m["parameters"].update(classifier=[3]),
            "model.json: parameters.classifier is a list, expected",
        ),
        (lambda m: m["parameters"].update(classifier={}), "model.json: parameters.classifier.code is missing."),
        (lambda m: m.update(method="magic"), "holds a 'magic' model, which is not registered here"),
    ],
)
def test_a_field_that_is_wrong_is_named(tmp_path, change, sentence):
    path, content = copied(tmp_path)
    change(content)
    path.write_text(json.dumps({**content, "sha256": _manifest_digest(content)}))
    with pytest.raises(ModelFormatError) as caught:
        openset.load(tmp_path / "model")
    assert sentence in str(caught.value)


def test_a_manifest_cannot_reach_outside_its_folder(folder):
    def escape(manifest):
        manifest["weights"]["file"] = "../../etc/passwd"
        manifest["sha256"] = _manifest_digest(manifest)

    edit(folder, escape)
    with pytest.raises(ModelFormatError, match="outside its folder"):
        openset.load(folder)


def test_saving_again_replaces_the_old_model(folder, small):
    other = DomainDiscriminator(max_steps=20, random_state=1, fpr=0.2).fit(small.X, small.y, small.X_target)
    other.save(folder)
    assert isinstance(openset.load(folder), DomainDiscriminator)
    assert len(list(folder.iterdir())) == 3


@pytest.mark.slow
def test_a_kill_at_any_moment_leaves_a_whole_model(folder, small, tmp_path):
    """Save over and over in another process, kill it at random moments, and load what is there."""
    code = (
        "import sys, openset; a = openset.load(sys.argv[1]); b = openset.load(sys.argv[1]); b.fpr = 0.2\n"
        "print('ready', flush=True)\n"
        "while True: a.save(sys.argv[1]); b.save(sys.argv[1])"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True
    ) as process:
        process.stdout.readline()
        for pause in (0.0, 0.003, 0.001, 0.002):
            time.sleep(0.05 + pause)
            os.kill(process.pid, signal.SIGSTOP)  # frozen at some moment: what is on disk must load
            assert openset.load(folder).fpr in (0.1, 0.2)
            os.kill(process.pid, signal.SIGCONT)
        process.kill()
    assert openset.load(folder).novelty_score(small.X_test).shape == (len(small.X_test),)


def test_a_model_is_saved_to_a_folder_and_by_registered_methods_only(model, tmp_path, small):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ValueError, match="is a file"):
        model.save(tmp_path / "file")
    own = type("Own", (CoLOR,), {})(max_steps=5, random_state=0).fit(small.X, small.y)
    with pytest.raises(ValueError, match="not registered"):
        own.save(tmp_path / "own")


def test_persistence_knows_no_pickle():
    from pathlib import Path

    folder = Path(openset.__file__).parent
    for name in ("persistence/model.py", "persistence/codec.py", "_utils/files.py", "learn/checkpoint.py"):
        text = (folder / name).read_text(encoding="utf-8")
        assert "import pickle" not in text and "torch.load" not in text and "joblib" not in text, name


def test_a_folder_of_other_files_is_refused(small, tmp_path):
    model = KNN(fpr=0.1).fit(small.X, small.y, small.X_target)
    (tmp_path / "README.md").write_text("mine")
    (tmp_path / "weights-epoch1.safetensors").write_bytes(b"mine too")
    with pytest.raises(ValueError, match="other files and no model \\(README.md, weights-epoch1.safetensors\\)"):
        model.save(tmp_path)
    assert (tmp_path / "README.md").read_text() == "mine" and len(list(tmp_path.iterdir())) == 2
    own = tmp_path / "own"
    model.save(own)
    (own / "weights-epoch1.safetensors").write_bytes(b"mine too")
    model.save(own)
    assert (own / "weights-epoch1.safetensors").read_bytes() == b"mine too"
