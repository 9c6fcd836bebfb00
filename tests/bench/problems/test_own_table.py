"""The user's own table as a dataset: splits that keep their word, and wrong words told before anything runs."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner

from openset.bench.problems import build_problem
from openset.bench.spec import parse_spec
from openset.bench.store import Store
from openset.bench.sweep import sweep
from openset.cli import app

TOPICS = {"refund": "billing", "invoice": "billing", "login": "access", "password": "access", "crash": "bugs"}
SPEC = """
[[problem]]
dataset = "table"
label = "tickets"
settings = ["shift"]
{novel}
seeds = [0]
options = {{ {options} }}
[[method]]
name = "knn"
"""
OPTIONS = 'file = "tickets.parquet", label = "queue", subtype = "topic"'


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    topic = np.repeat(list(TOPICS), 80)
    centres = rng.normal(scale=3, size=(len(TOPICS), 4))
    frame = pd.DataFrame(np.repeat(centres, 80, axis=0) + rng.normal(size=(400, 4)), columns=list("abcd"))
    frame = frame.assign(topic=topic, queue=[TOPICS[name] for name in topic], number=np.arange(400) // 80)
    frame = frame.assign(team=["novel" if name == "login" else "old" for name in topic])
    frame.to_parquet(tmp_path / "tickets.parquet")
    for kind in ("cat", "dog"):
        (tmp_path / "photos" / kind).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(tmp_path / "photos" / kind / "1.png")
    return tmp_path


def built(folder, setting="shift", novel="crash", **options):
    options = {
        "file": "tickets.parquet",
        "label": "queue",
        "subtype": "topic",
        "features": list("abcd"),
        **options,
    }
    return build_problem("table", setting, novel, 0, folder, **options)


def test_subtypes_shift_and_one_is_new(folder):
    problem = built(folder)
    assert problem.X.shape[1] == 4 and set(problem.y) == {"billing", "access"}
    assert set(problem.y_target) == {"billing", "access", problem.novel_label}
    assert (
        len(problem.X_target[problem.y_target == problem.novel_label]) == 32
    )  # half of the 64 that are not for testing
    rows = pd.read_parquet(folder / "tickets.parquet")
    topic_of = {tuple(row[:4]): row[4] for row in rows[[*"abcd", "topic"]].itertuples(index=False)}
    in_source = pd.Series([topic_of[tuple(row)] for row in problem.X]).value_counts()
    in_target = pd.Series([topic_of[tuple(row)] for row in problem.X_target]).value_counts()
    share = in_source / (in_source + in_target.drop("crash"))
    assert ((share < 0.2) | (share > 0.8)).all(), share
    assert built(folder, novel_fraction=0.1).novel_fraction == pytest.approx(0.1, abs=0.01)


def test_some_classes_may_be_kept_and_one_needs_no_brackets(folder):
    assert set(built(folder, known=["billing"]).y) == set(built(folder, known="billing").y) == {"billing"}


def test_without_subtypes_the_classes_shift(folder):
    problem = built(folder, novel="bugs", subtype=None)
    assert set(problem.y) == {"billing", "access"} and problem.novel_fraction > 0


def test_numbers_that_stand_for_subtypes_are_no_features(folder):
    problem = built(folder, novel="4", subtype="number", features=None)
    rows = pd.read_parquet(folder / "tickets.parquet")[list("abcd")]
    assert set(map(tuple, problem.X)) < set(rows.itertuples(index=False, name=None))


def test_what_tells_the_answer_is_no_feature(folder):
    for names in (["a", "queue"], ["topic"]):
        with pytest.raises(ValueError, match="the column of classes or subtypes: remove it"):
            built(folder, features=names)


def test_a_file_that_changed_is_read_again(folder):
    before = built(folder).manifest_checksum
    frame = pd.read_parquet(folder / "tickets.parquet")
    frame.assign(a=frame["a"] + 1).to_parquet(folder / "tickets.parquet")
    assert built(folder).manifest_checksum != before


def test_bad_rows_are_told_or_left_out_of_both_columns(folder):
    frame = pd.read_parquet(folder / "tickets.parquet")
    frame.loc[3, "a"], frame.loc[5, "topic"] = np.nan, None
    frame.to_parquet(folder / "bad.parquet")
    with pytest.raises(ValueError, match=r"row 3: .* skip_bad"):
        built(folder, file="bad.parquet")
    frame.drop([3, 5]).to_parquet(folder / "good.parquet")
    kept, good = built(folder, file="bad.parquet", skip_bad=True), built(folder, file="good.parquet")
    assert np.array_equal(kept.X, good.X) and np.array_equal(kept.y, good.y)


def test_a_vector_column_is_taken_whole(folder):
    frame = pd.read_parquet(folder / "tickets.parquet")
    vectors = frame.assign(embedding=frame[list("abcd")].to_numpy().tolist())[["topic", "queue", "embedding"]]
    vectors.to_parquet(folder / "vectors.parquet")
    assert np.array_equal(built(folder, file="vectors.parquet", features="embedding").X, built(folder).X)
    vectors.assign(number=frame["number"]).to_parquet(folder / "vectors.parquet")
    numbered = built(folder, file="vectors.parquet", features=None, subtype="number", novel="4")
    assert numbered.X.shape[1] == 4  # the numbers of subtypes are no feature beside the vectors


@pytest.mark.slow
def test_from_the_command_line(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "mine.toml").write_text(SPEC.format(novel='novel = ["crash", "login"]', options=OPTIONS), "utf-8")
    ran = CliRunner().invoke(app, ["bench", "run", "mine.toml"], env={"COLUMNS": "80"})
    assert ran.exit_code == 0, ran.output
    assert "tickets, with shift: 2 splits" in ran.stdout
    stored = Store(folder / "openset-bench.sqlite").all()
    assert [run.run.novel for run in stored] == ["crash", "login"]
    assert all(run.result.metrics["auroc"] > 0.8 for run in stored)


@pytest.mark.parametrize(
    ("novel", "options", "message"),
    [
        ("", OPTIONS, 'tickets: set the new class, as in novel = ["returns"]'),
        ('novel = ["crush"]', OPTIONS, "tickets, novel crush: subtype has no rows of 'crush': it holds 'crash'"),
        ('novel = ["crash"]', OPTIONS.replace('"topic"', '"topik"'), "no column 'topik'.*Did you mean 'topic'"),
        (
            'novel = ["crash"]',
            OPTIONS.replace("subtype", "subtyp"),
            "unknown option 'subtyp': expected some of file",
        ),
        ('novel = ["crash"]', OPTIONS.replace(', label = "queue"', ""), "options lack 'label'"),
        ('encoder = "minilm"\nnovel = ["crash"]', OPTIONS, "unknown option 'encoder'"),
        ('novel = ["crash"]', OPTIONS.replace("tickets", "nothing"), "nothing.parquet does not exist"),
        ('novel = ["crash"]', OPTIONS.replace('"tickets.parquet"', "3"), "file: 3 is not valid: expected a name"),
        ('novel = ["crash"]', OPTIONS + ', features = ["a", 2]', "features: 2 is not valid: expected a name"),
        ('novel = ["crash"]', OPTIONS + ", known = 1.5", "known: 1.5 is not valid: expected a name"),
        ('novel = ["crash"]', OPTIONS + ", test_fraction = 0", "0 new and 0 known rows in the test rows"),
        ('novel = ["crash"]', OPTIONS + ", novel_share = 0", "leaves 0 new and"),
        (
            'novel = ["crash"]',
            OPTIONS.replace('"queue"', '"team"'),
            "a class 'novel', the name of new rows",
        ),
        ('novel = ["crash"]', OPTIONS.replace("tickets.parquet", "photos"), "no columns of numbers for features"),
        ('novel = ["crash"]', OPTIONS + ', known = "bill"', "no rows of 'bill': it holds 'access'"),
    ],
)
def test_wrong_words_are_told_before_anything_runs(folder, novel, options, message):
    store = Store(folder / "s.sqlite")
    with pytest.raises((ValueError, FileNotFoundError), match=message if ".*" in message else re.escape(message)):
        sweep(parse_spec(SPEC.format(novel=novel, options=options), "mine"), store, data_dir=folder)
    assert store.all() == []


@pytest.mark.slow
def test_another_table_of_the_same_name_is_noticed(folder):
    spec = parse_spec(SPEC.format(novel='novel = ["crash"]', options=OPTIONS), "mine")
    store = Store(folder / "s.sqlite")
    assert sweep(spec, store, data_dir=folder).failed == 0
    frame = pd.read_parquet(folder / "tickets.parquet")
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    frame.assign(a=frame["a"] + 1).to_parquet(elsewhere / "tickets.parquet")
    with pytest.raises(ValueError, match="the store has runs on other rows of table"):
        sweep(spec, store, data_dir=elsewhere)
