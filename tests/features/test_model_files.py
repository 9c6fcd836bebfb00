from __future__ import annotations

import re
import sys
from pathlib import Path

import huggingface_hub
import pytest

import openset.features
from openset.errors import MissingExtraError
from openset.features import TextEncoder, downloads, encode_texts
from openset.features.model_files import fingerprint, load_pretrained, model_directory, model_files, read_json


def test_a_hub_name_is_fetched_then_read_as_a_directory(bert, monkeypatch):
    asked = []

    def fetch(name, *, allow_patterns, ignore_patterns, local_files_only):
        asked.append((name, allow_patterns))
        return str(bert)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    by_name = encode_texts(["the cat"], "someone/bert", cache=False, progress=False)
    assert asked == [("someone/bert", ["*.json", "*.txt", "*.model", "*.safetensors"])]
    assert (by_name == encode_texts(["the cat"], bert, cache=False, progress=False)).all()
    assert TextEncoder("someone/bert").fingerprint == TextEncoder(bert).fingerprint


def test_old_weights_are_fetched_only_where_there_are_no_safe_ones(tmp_path, monkeypatch):
    asked = []

    def fetch(name, *, allow_patterns, ignore_patterns, local_files_only):
        asked.append(allow_patterns)
        (tmp_path / ("pytorch_model.bin" if "*.bin" in allow_patterns else "config.json")).write_text("{}")
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    assert model_directory("someone/old") == tmp_path
    assert asked[1] == ["*.bin"]
    assert [path.name for path in model_files([tmp_path])] == ["config.json", "pytorch_model.bin"]


def test_a_hub_out_of_reach_is_told(monkeypatch):
    def fetch(*args, **kwargs):
        raise ConnectionError("no route to host")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    failed = "from the hub failed \\(no route to host\\); download the model"
    with downloads(True), pytest.raises(ValueError, match=failed):
        model_directory("someone/bert")


def test_the_network_is_asked_only_where_that_is_allowed(bert, monkeypatch):
    asked = []

    def fetch(name, *, local_files_only, **_):
        asked.append(local_files_only)
        if local_files_only:
            raise FileNotFoundError(name)
        return str(bert)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    with pytest.raises(ValueError, match="was not downloaded before.*pass allow_download=True"):
        model_directory("someone/bert")
    with downloads(True):
        assert model_directory("someone/bert") == bert
    assert asked == [True, False]


@pytest.mark.parametrize("name", ["./absent", "/absent", "a/b/c", "", Path("absent")])
def test_what_is_neither_a_directory_nor_a_name_is_told(name):
    with pytest.raises(ValueError, match="it is not a directory, a hub name .*efficientnet_lite0, minilm"):
        model_directory(name)


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setattr("openset.features.model_files.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=re.escape("pip install 'openset[encoders]'")):
        model_directory("minilm")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match="someone/bert"):
        model_directory("someone/bert")


def test_the_old_pickle_loader_is_never_trusted():
    source = "".join(path.read_text() for path in Path(openset.features.__file__).parent.glob("*.py"))
    calls = re.findall(r"torch\.load\((.*)\)", source)
    assert len(calls) == 2 and all("weights_only=True" in call for call in calls)
    assert "torchvision" not in re.sub(r'""".*?"""|#.*', "", source, flags=re.S)


def test_the_fingerprint_is_that_of_earlier_caches(tmp_path):
    (tmp_path / "one.txt").write_text("one")
    (tmp_path / "b.bin").write_bytes(bytes(range(256)) * 5000)
    files = [tmp_path / "one.txt", tmp_path / "b.bin"]
    expected = "678ccc25193402b2ae1ffad19b0741d9826c4933d48bc35770272672235d309d"
    assert fingerprint(files, {"pooling": "mean", "normalise": True}) == expected
    assert fingerprint(files, {"normalise": True, "pooling": "mean"}) == expected
    assert fingerprint([], {}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


def test_the_fingerprint_is_of_contents_and_names_but_not_of_folders(tmp_path):
    for folder, name, content in (("a", "x", "1"), ("b", "x", "1"), ("c", "y", "1"), ("d", "x", "2")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(content)
    prints = [fingerprint(sorted((tmp_path / folder).iterdir()), {}) for folder in "abcd"]
    assert prints[0] == prints[1] and len(set(prints)) == 3


def test_safe_weights_hide_old_ones_and_other_files_do_not_count(tmp_path):
    for name in ("config.json", "vocab.txt", "README.md", "model.safetensors", "pytorch_model.bin"):
        (tmp_path / name).write_text("")
    (tmp_path / "onnx").mkdir()
    found = [path.name for path in model_files([tmp_path])]
    assert found == ["config.json", "model.safetensors", "vocab.txt"]


def test_a_settings_file_that_is_absent_is_empty(tmp_path):
    (tmp_path / "config.json").write_text('{"size": 3}')
    assert read_json(tmp_path / "config.json") == {"size": 3} and read_json(tmp_path / "absent.json") == {}


def test_a_loaded_model_is_ready_and_leaves_the_settings_of_transformers(bert):
    import torch
    from transformers import AutoModel
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    model = load_pretrained(AutoModel, bert, "cpu")
    assert not model.training and {p.dtype for p in model.parameters()} == {torch.float32}
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
