"""Settings from flags and files, and back into a file that repeats a run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutations import mutations, outcome, toml_file
from openset.pipeline.settings import RunSettings, merged, parse_assignments, read_settings, to_toml

words = st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda text: text != "none")
values = st.one_of(
    st.booleans(), st.integers(-(2**60), 2**60), st.floats(allow_nan=False, allow_infinity=False), words
)


@given(
    label=words,
    features=st.none() | st.lists(words, min_size=1, max_size=3),
    carry=st.none() | st.lists(words, min_size=1, max_size=3),
    kinds=st.dictionaries(words, st.sampled_from(["category", "number", "date"]), max_size=3),
    seed=st.integers(0, 2**31),
    parameters=st.dictionaries(
        st.sampled_from(["hidden", "grid", "clip", "tol"]),
        values
        | st.none()
        | st.lists(st.floats(0, 1), max_size=3)
        | st.dictionaries(words, values | st.dictionaries(words, values, max_size=2), max_size=2),
    ),
)
def test_a_settings_file_reads_back_as_it_was(tmp_path_factory, **given_):
    settings = RunSettings(**given_)
    path = tmp_path_factory.mktemp("settings") / "settings.toml"
    path.write_bytes(to_toml(settings).encode())
    assert read_settings(path) == merged(settings, {}) == settings


def test_flags_win_one_by_one_and_text_stays_beside_features():
    file = RunSettings(text="review", method="dd", parameters={"hidden": 8, "tol": 0.1})
    found = merged(file, {"features": ("a", "b"), "method": None, "parameters": {"hidden": 16}})
    parameters = {"hidden": 16, "tol": 0.1}
    assert found == RunSettings(features=("a", "b"), text="review", method="dd", parameters=parameters)
    assert merged(found, {"text": "note", "features": ("c",)}) == RunSettings(
        features=("c",), text="note", method="dd", parameters=parameters
    )


def test_kinds_are_joined_and_name_the_text_and_the_id():
    file = RunSettings(kinds={"zip": "category", "day": "date"}, carry="note")
    found = merged(file, {"kinds": {"zip": "number", "nr": "id"}})
    assert found.kinds == {"zip": "number", "day": "date", "nr": "id"} and found.id == "nr"
    assert file.carry == ("note",) and merged(file, {"carry": ("a", "b")}).carry == ("a", "b")
    named = RunSettings(kinds={"review": "text"}, image="photo", features=["a"])
    assert (named.text, named.image, named.features) == ("review", "photo", ("a",)), "all three go together"


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        (
            {"kinds": {"a": "words"}},
            r"kinds=\{'a': 'words'\} is not valid. Known are category, number, date, text",
        ),
        ({"kinds": {"a": "categry"}}, "is not valid. Did you mean 'category'?"),
        ({"kinds": ["a"]}, "expected columns and kinds"),
        ({"kinds": {"a": "text", "b": "text"}}, "names 2 columns as text: name one"),
        ({"kinds": {"a": "id"}, "id": "b"}, "contradicts id='b'"),
        ({"kinds": {"a": "text"}, "text": "b"}, "contradicts text='b'"),
        ({"features": ["a"], "encoder": "minilm"}, "an encoder is given for features that are numbers"),
        ({"seed": -1}, "seed=-1"),
        ({"fit_rows": 19}, "fit_rows=19 is not valid: expected an integer of at least 20, or 'all'"),
        ({"fit_rows": "many"}, "fit_rows='many' is not valid"),
        ({"fit_rows": "-50"}, "fit_rows='-50' is not valid"),
        ({"fit_rows": 1e5}, "fit_rows=100000.0 is not valid"),
        ({"fit_rows": True}, "fit_rows=True is not valid"),
        ({"fit_rows": None}, "fit_rows=None is not valid"),
        ({"label": 3}, "label=3"),
        ({"skip_bad": "yes"}, "expected True or False"),
        ({"parameters": {"random_state": 3}}, "parameters has random_state: use seed of the run instead"),
        ({"parameters": 3}, "expected names and values"),
    ],
)
def test_wrong_settings_are_told(given_, words):
    with pytest.raises(ValueError, match=words):
        RunSettings(**given_)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("label = ", "s.toml is not valid TOML: "),
        ('labl = "x"', "s.toml: 'labl' is unknown. Did you mean 'label'?"),
        ("zzz = 1", "s.toml: 'zzz' is unknown. Known are source, target, label, "),
        ("label = 3", "s.toml: label is a whole number, expected text."),
        ('skip_bad = "yes"', "s.toml: skip_bad is text, expected true or false."),
        ("features = [1]", "s.toml: features[0] is a whole number, expected text."),
        ("seed = 1.5", "s.toml: seed is a number, expected a whole number."),
        ("fit_rows = 5", "s.toml: fit_rows=5 is not valid"),
        ("fit_rows = [5]", "s.toml: fit_rows is a list, expected"),
        ("seed = -1", "s.toml: seed=-1 is not valid: expected an integer of at least 0."),
        ("fdr = 1.5", "s.toml: fdr=1.5 is not valid"),
        ("carry = [1]", "s.toml: carry[0] is a whole number, expected text."),
        ('[kinds]\nzip = "digits"', "s.toml: kinds={'zip': 'digits'} is not valid. Known are category, number"),
        ("kinds = 3", "s.toml: kinds is a whole number, expected a table of names and values."),
        ("[parameters]\nfpr = 0.1", "s.toml: parameters has fpr"),
        ("parameters = 3", "s.toml: parameters is a whole number, expected a table of names and values."),
    ],
)
def test_a_settings_file_that_is_wrong_is_told_with_its_name(tmp_path, text, words):
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(ValueError, match="s.toml") as caught:
        read_settings(tmp_path / "s.toml")
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_settings_file_may_name_one_feature_and_none(tmp_path):
    (tmp_path / "s.toml").write_text('features = "embedding"\nfpr = 1\n[parameters]\nclip = "none"')
    found = read_settings(tmp_path / "s.toml")
    assert found == RunSettings(features=("embedding",), fpr=1, parameters={"clip": None})
    with pytest.raises(FileNotFoundError, match=r"no\.toml does not exist"):
        read_settings(tmp_path / "no.toml")


def test_a_settings_file_with_one_thing_changed_is_read_or_refused_in_one_sentence(tmp_path):
    content = {
        "source": "a.csv", "label": "kind", "features": ["x", "y"], "method": "dd", "fpr": 0.01, "fdr": 0.2,
        "max_density_ratio": 4, "seed": 0, "skip_bad": False, "carry": ["x"], "kinds": {"x": "number"},
        "parameters": {"hidden": 8, "grid": [0.1]},
    }  # fmt: skip
    path = tmp_path / "settings.toml"
    read = refused = 0
    for mutation in mutations(content, others=(True, 3, 0.5, "text", [], [1], {}, {"some": "name"})):
        if not mutation.path or mutation.content is None:
            continue  # a TOML file is a table
        path.write_text(toml_file(mutation.content))
        settings, message = outcome(read_settings, path)
        if message:
            refused += 1
            assert message.startswith(f"{path}: ") and "\n" not in message
            assert mutation.path[0] in message and mutation.what != "drop"
            continue
        read += 1
        path.write_text(to_toml(settings))
        assert read_settings(path) == settings.as_stored()
        assert mutation.what == "drop" or mutation.path[0] in ("parameters", "features", "carry", "kinds")
    assert read > 20 and refused > 50


def test_stored_settings_are_plain_and_written_without_what_is_not_set():
    settings = RunSettings(seed=np.int64(3), fdr=np.float32(0.5), features=["a"], parameters={"grid": (0.1,)})
    stored = settings.as_stored()
    assert type(stored.seed) is int and type(stored.fdr) is float and stored.parameters == {"grid": [0.1]}
    assert stored.features == ("a",)
    assert settings.to_dict() == {
        "features": ["a"], "method": "color", "fpr": 0.01, "fdr": 0.5, "seed": 3,
        "fit_rows": 100_000, "skip_bad": False, "ignore_target_labels": False, "parameters": {"grid": [0.1]},
    }  # fmt: skip


def test_rows_to_fit_on_as_a_number_or_a_word(tmp_path):
    assert RunSettings().most_rows == 100_000 and RunSettings(fit_rows="all").most_rows is None
    assert RunSettings(fit_rows="250").fit_rows == RunSettings(fit_rows=np.int64(250)).most_rows == 250
    for rows in ("all", 250):
        (tmp_path / "s.toml").write_text(to_toml(RunSettings(fit_rows=rows)))
        assert read_settings(tmp_path / "s.toml").fit_rows == rows


def test_assignments_that_are_none():
    for text in ("steps", "=3", " = 3"):
        with pytest.raises(ValueError, match="write NAME=VALUE"):
            parse_assignments([text])
    assert parse_assignments(["a=x=1", "b = [1, 2]"]) == {"a": "x=1", "b": [1, 2]}
