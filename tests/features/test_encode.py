"""The loop around the model: cached, resumable, shared, in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_encoder import TinyEncoder

from openset.features import FeatureCache, ImageEncoder, TextEncoder, encode_images, encode_texts, load_encoder
from openset.features.encode import encode


def run(items, encoder, cache, batch_size=16):
    return encode(items, encoder, batch_size=batch_size, cache=cache, progress=False)


def python(code, *arguments, **options):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
    )  # fmt: skip


@given(st.lists(st.text(max_size=3), min_size=1, max_size=40), st.integers(1, 9))
def test_rows_keep_their_order_and_equal_rows_are_computed_once(texts, batch_size):
    encoder = TinyEncoder(noise=1e-3)
    features = run(texts, encoder, False, batch_size)
    assert features.dtype == np.float32 and features.shape == (len(texts), 16)
    assert encoder.rows_computed == len(set(texts))
    for i, text in enumerate(texts):
        assert np.array_equal(features[i], features[texts.index(text)])


def test_only_rows_that_are_not_cached_are_computed(tmp_path):
    first, second = TinyEncoder(noise=1e-3), TinyEncoder(noise=1e-3)
    a = run([f"text {i}" for i in range(100)], first, tmp_path)
    b = run([f"text {i}" for i in range(50, 200)], second, tmp_path)
    assert (first.rows_computed, second.rows_computed) == (100, 100)
    assert np.array_equal(a[50:], b[:50])


def test_a_row_that_was_spoilt_on_disk_is_computed_again(tmp_path):
    import sqlite3

    texts = [f"text {i}" for i in range(20)]
    before = run(texts, TinyEncoder(), tmp_path)
    with sqlite3.connect(FeatureCache(tmp_path).file) as connection:
        connection.execute("UPDATE features SET data = zeroblob(64) WHERE id IN (3, 4)")
    connection.close()
    encoder = TinyEncoder()
    assert np.array_equal(run(texts, encoder, tmp_path), before)
    assert encoder.rows_computed == 2


@pytest.mark.slow
def test_data_larger_than_the_limit_still_encode(tmp_path):
    texts = [f"text {i}" for i in range(15_000)]
    cache = FeatureCache(tmp_path, limit=2**20)
    features = run(texts, TinyEncoder(), cache, 2000)
    assert np.array_equal(features, run(texts, TinyEncoder(), False, 2000))
    assert cache.file.stat().st_size <= 2**20


SLOW = """
import sys
from tiny_encoder import TinyEncoder
from openset.features.encode import encode
texts = [f"text {i}" for i in range(1000)]
encode(texts, TinyEncoder(pause=0.02, announce=True), batch_size=10, cache=sys.argv[1], progress=False)
"""


@pytest.mark.slow
def test_a_killed_run_continues(tmp_path):
    with python(SLOW, tmp_path) as process:
        for line in process.stdout:
            if int(line) >= 500:
                break
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    texts = [f"text {i}" for i in range(1000)]
    encoder = TinyEncoder()
    features = run(texts, encoder, tmp_path)
    assert np.array_equal(features, run(texts, TinyEncoder(), False))
    assert 400 <= encoder.rows_computed <= 510  # the batch announced last may not have been kept yet


SHARED = """
import sys
import numpy as np
from tiny_encoder import TinyEncoder
from openset.features.encode import encode
texts = [f"text {i}" for i in range(600)]
encoder = TinyEncoder(noise=1e-3, pause=0.002)
np.save(sys.argv[2], encode(texts, encoder, batch_size=int(sys.argv[3]), cache=sys.argv[1], progress=False))
print(encoder.rows_computed)
"""


@pytest.mark.slow
def test_processes_that_share_a_cache_end_with_the_same_bits(tmp_path):
    processes = [
        python(SHARED, tmp_path / "cache", tmp_path / f"{i}.npy", size) for i, size in enumerate((7, 10, 16))
    ]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    results = [np.load(tmp_path / f"{i}.npy") for i in range(3)]
    assert np.array_equal(results[0], results[1]) and np.array_equal(results[0], results[2])
    exact = run([f"text {i}" for i in range(600)], TinyEncoder(), False)
    np.testing.assert_allclose(results[0], exact, atol=0.01)


def test_features_that_are_not_finite_are_refused_and_not_kept(tmp_path):
    with pytest.raises(ValueError, match="row 0: the encoder returned features that are not finite"):
        run(["a", "b"], TinyEncoder(noise=np.inf), tmp_path)
    encoder = TinyEncoder()
    run(["a", "b"], encoder, tmp_path)
    assert encoder.rows_computed == 2


@pytest.mark.slow
def test_a_thousand_short_texts_come_from_the_cache_within_a_second(tmp_path):
    texts = [f"move {i} dollars" for i in range(1000)]

    def timed():
        start = time.perf_counter()
        return encode_texts(texts, cache=tmp_path, progress=False), time.perf_counter() - start

    first, computing = timed()
    readings = [timed() for _ in range(3)]
    assert all(np.array_equal(first, again) for again, _ in readings)
    reading = min(seconds for _, seconds in readings)  # other work on the machine only ever adds
    assert reading < 1.0 and reading < computing / 3


def test_reading_the_cache_needs_no_torch(bert, tmp_path):
    expected = encode_texts(["the cat", "a dog"], bert, cache=tmp_path, progress=False)
    code = """
import sys
from openset.features import encode_texts
features = encode_texts(["the cat", "a dog"], sys.argv[1], cache=sys.argv[2])
assert not {"torch", "transformers"} & sys.modules.keys()
print(features.tobytes().hex())
"""
    with python(code, bert, tmp_path) as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert output.strip() == expected.tobytes().hex()
    assert errors == ""


def test_the_default_cache_is_used_and_can_be_switched_off(bert, tmp_path):
    encode_texts(["the cat"], bert, cache=False, progress=False)
    assert not FeatureCache().file.exists()
    encode_texts(["the cat"], bert, progress=False)
    assert FeatureCache().file.exists()


def test_the_bar_shows_what_is_computed(bert, capsys):
    encode_texts(["the cat", "a dog"], bert)
    assert "encoding" in capsys.readouterr().err
    encode_texts(["the cat", "a dog"], bert)
    assert capsys.readouterr().err == ""


def test_columns_and_arrays_are_texts_too(bert):
    import pandas as pd
    import polars as pl

    texts = ["the cat", "a dog"]
    expected = encode_texts(texts, bert, progress=False)
    for column in (np.array(texts), pd.Series(texts), pl.Series(texts), pa.chunked_array([texts]), iter(texts)):
        assert np.array_equal(encode_texts(column, bert, progress=False), expected)


def test_bad_input_is_told_with_its_row(bert):
    with pytest.raises(ValueError, match="row 1: expected a text, got None"):
        encode_texts(["a", None], bert)
    with pytest.raises(ValueError, match="row 0: the text is not valid Unicode"):
        encode_texts(["\ud800"], bert)
    with pytest.raises(ValueError, match="one string; pass a list"):
        encode_texts("a text", bert)
    with pytest.raises(ValueError, match="pass a list of images"):
        encode_images("one.jpg")
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        encode_texts(["a"], bert, batch_size=0)


def test_nothing_gives_an_empty_table(bert):
    assert encode_texts([], bert).shape == (0, 24)


def test_load_encoder_tells_text_from_images(bert, vision):
    assert isinstance(load_encoder(bert, pooling="cls"), TextEncoder)
    assert isinstance(load_encoder("minilm"), TextEncoder)
    assert isinstance(load_encoder("efficientnet_lite0"), ImageEncoder)
    assert isinstance(load_encoder(vision["clip"], normalise=True), ImageEncoder)
