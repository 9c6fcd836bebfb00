"""Of several folders together: digests that files of earlier versions hold, as golden numbers of openset 0.1."""

from __future__ import annotations

import numpy as np

from openset.bench.runs import Run
from openset.features.cache import _checksum
from openset.persistence.model import _manifest_digest
from openset.shift.content import content_keys
from openset.shift.manifest import column_checksum


def test_columns_of_a_manifest():
    assert column_checksum([1, 2]) == "49a64717d5d4cb19952e6eac2946415cf6879adacf9908e7d872332d32c6e684"
    assert column_checksum(["a", "é"]) == "91bd7b5d30b2d6b32212d31553dcaca2b9e172330cd6325f9476e3e0ac9028cd"


def test_content_keys_of_rows():
    assert content_keys(["good", "bad"]).tolist() == [3509812042012788487, 5988929842673410215]
    rows = np.array([[1.5, -0.0], [2.0, 3.0]])
    assert content_keys(rows).tolist() == [7935767524728862047, 5860359242174373824]


def test_the_manifest_of_a_model():
    manifest = {"b": [1, 2.5, None], "a": {"y": "é", "x": True}, "sha256": "not counted"}
    assert _manifest_digest(manifest) == "e4dfc0a85121cff6b90ec64f865953db567e1c0100b8fa8610ef850f5fd319bd"


def test_an_entry_of_the_feature_cache():
    assert _checksum(b"key", b"data").hex() == "24f887b7e126d4bfb7391b9f5712d7a5"


def test_the_key_of_a_run_in_a_store(monkeypatch):
    run = Run("synthetic", None, "{}", "no-shift", "novel", 3, "color", '{"a":1}')
    monkeypatch.setattr("openset.bench.runs.reached_code", lambda method: "0.1+abc")
    assert run.key == "e6681ee097e02dc41bdf2cff02fe101a13274f8e78888885e33db6f8e646acca"
