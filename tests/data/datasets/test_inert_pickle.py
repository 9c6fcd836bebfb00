from __future__ import annotations

import os
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import openset
from official_files import python2_pickle
from openset.data.datasets import inert_pickle
from openset.data.datasets.inert_pickle import read_inert

SOURCES = Path(openset.__file__).parent


class Payload:
    """Would create a file if unpickled."""

    def __init__(self, function, *arguments):
        self.how = function, arguments

    def __reduce__(self):
        return self.how


def test_official_pickles_give_their_data():
    data = np.arange(24, dtype=np.uint8).reshape(4, 6)
    content = {"data": data, "fine_labels": [3, 1], "batch_label": "one", "filenames": ["a", "b"]}
    written = python2_pickle(content)
    np.testing.assert_array_equal(pickle.loads(written, encoding="latin1")["data"], data)  # the helper is right
    for raw in (written, pickle.dumps(content, protocol=2), pickle.dumps(content, protocol=4)):
        read = read_inert(raw, "train")
        np.testing.assert_array_equal(read.pop("data"), data)
        assert read == {key: value for key, value in content.items() if key != "data"}


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_nothing_in_a_malicious_pickle_runs(tmp_path, protocol):
    flag = tmp_path / "flag"
    command = f"touch {flag}"
    for payload in (
        Payload(os.system, command),
        Payload(eval, f"open({str(flag)!r}, 'w')"),
        Payload(open, str(flag), "w"),
        Payload(np.save, str(flag), np.zeros(1)),
    ):
        for content in (payload, {"data": payload}, {"fine_labels": [payload]}):
            raw = pickle.dumps(content, protocol)
            with pytest.raises(ValueError, match="refused: it names .*nothing in it was executed"):
                read_inert(raw, "train")
    assert not flag.exists() and list(tmp_path.iterdir()) == []
    pickle.loads(pickle.dumps(Payload(os.system, command), protocol))
    assert flag.exists(), "the payload itself does not work, so the test shows nothing"


@pytest.mark.parametrize(
    "raw",
    [
        b"cos\nsystem\n(S'true'\ntR.",
        b"\x80\x04\x8c\x05numpy\x8c\x17ndarray.__init__.__self__\x93.",
        b"\x80\x04\x8c\x05numpy\x8c\x05dtype\x93}b.",  # state set on a class of ours
        b"\x80\x04\x8c\x07_codecs\x8c\x06encode\x93N}\x8c\x0c__defaults__\x8c\x01xs\x86b.",
        b"\x80\x04\x8c\x07_codecs\x8c\x06encode\x93\x8c\x01x\x8c\x03hex\x86R.",
        b"P1\n.",
        b"\x80\x02\x82\x01.",
        b"",
        b"not a pickle",
        pickle.dumps([1, 2]),
        pickle.dumps({"data": {"nested": 1}}),
        pickle.dumps({"data": 1.5}),
        pickle.dumps({"data": np.zeros(3)}, 2),
        pickle.dumps({"data": np.array([object()])}, 2),
        python2_pickle({"data": np.zeros((2, 3), np.uint8)}).replace(
            b"J\x03\x00\x00\x00tc", b"J\x09\x00\x00\x00tc"
        ),
    ],
)
def test_forged_pickles_are_refused(raw):
    before = {name: dict(vars(getattr(inert_pickle, name))) for name in ("_Type", "_Array", "_Encoded")}
    with pytest.raises(ValueError, match="train was refused"):
        read_inert(raw, "train")
    assert before == {name: dict(vars(getattr(inert_pickle, name))) for name in before}


@given(st.binary(max_size=60))
def test_any_bytes_give_plain_data_or_one_error(raw):
    try:
        read = read_inert(raw, "train")
    except ValueError:  # anything else fails the test
        return
    assert all(isinstance(value, (str, int, list, np.ndarray)) for value in read.values())


def _without_weights(path):
    """A source file, less the calls of torch.load that read nothing but tensors."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"torch\.load\([^()]*weights_only=True\)", "", text)


def test_this_is_the_only_unpickler_in_the_package():
    unpicklers = re.compile(
        r"\b(cloudpickle|dill|pickle|joblib|torch|marshal|shelve)\.(load|loads|Unpickler|open)\b"
    )
    users = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if unpicklers.search(text := _without_weights(path)) or "allow_pickle=True" in text
    }
    # the check suite pickles a model that it fitted itself, and reads that back
    assert users - {"testing.py"} == {"data/datasets/inert_pickle.py"}
