"""Settings from flags and files, and back into a file that repeats a run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.pipeline.settings import RunSettings, merged, read_settings, to_toml

words = st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda text: text != "none")
values = st.one_of(
    st.booleans(), st.integers(-(2**60), 2**60), st.floats(allow_nan=False, allow_infinity=False), words
)


@given(
    label=words,
    features=st.none() | st.lists(words, min_size=1, max_size=3),
    seed=st.integers(0, 2**31),
    parameters=st.dictionaries(
        st.sampled_from(["hidden", "grid", "clip", "tol"]),
        values | st.none() | st.lists(st.floats(0, 1), max_size=3),
    ),
)
def test_a_settings_file_reads_back_as_it_was(tmp_path_factory, label, features, seed, parameters):
    settings = RunSettings(label=label, features=features, seed=seed, parameters=parameters)
    path = tmp_path_factory.mktemp("settings") / "settings.toml"
    path.write_bytes(to_toml(settings).encode())
    assert merged(read_settings(path), {}) == settings


def test_flags_win_and_replace_the_kind_of_features(tmp_path):
    file = {"text": "review", "method": "dd", "parameters": {"hidden": 8, "tol": 0.1}}
    found = merged(file, {"features": ("a", "b"), "method": None, "parameters": {"hidden": 16}})
    assert found == RunSettings(features=("a", "b"), method="dd", parameters={"hidden": 16, "tol": 0.1})


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ({"text": "a", "image": "b"}, "text and image are given together"),
        ({"features": ["a"], "encoder": "minilm"}, "an encoder is given for features that are numbers"),
        ({"seed": -1}, "seed=-1"),
        ({"label": 3}, "label=3"),
        ({"skip_bad": "yes"}, "expected True or False"),
        ({"parameters": {"random_state": 3}}, "use fpr, max_density_ratio and seed"),
        ({"parameters": 3}, "expected names and values"),
    ],
)
def test_wrong_settings_are_told(given_, words):
    with pytest.raises(ValueError, match=words):
        merged(given_, {})


def test_files_that_are_no_settings(tmp_path):
    (tmp_path / "a.toml").write_text("label = ")
    with pytest.raises(ValueError, match="not a readable TOML file"):
        read_settings(tmp_path / "a.toml")
    (tmp_path / "a.toml").write_text('labl = "x"')
    with pytest.raises(ValueError, match="Did you mean 'label'?"):
        read_settings(tmp_path / "a.toml")
