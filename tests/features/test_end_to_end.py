"""End to end: from raw text and pictures to a report, by the command line and by ``openset.run``."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner

import openset
from openset.cli import app

QUICK = ("--set", "max_steps=300", "--fpr", "0.1")
COLOURS = {"apple": (200, 30, 30), "plum": (60, 30, 160), "new": (240, 230, 90)}
WORDS = {"cat": "the big cat sleeps", "dog": "a small dog runs over the red house", "new": "zebra 4711 xylophone"}


def call(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "80", "NO_COLOR": "1"})


def paint(random, kind, path):
    """A plain picture with some noise, of a size of its own."""
    size = (*random.integers(20, 40, 2), 3)
    pixels = np.clip(np.array(COLOURS[kind]) + random.normal(0, 25, size), 0, 255)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels.astype(np.uint8)).save(path)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Folders ``known/<class>/<n>.png`` and ``batch/<n>.png``; of the batch the last twelve are new."""
    folder, random = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    for kind in ("apple", "plum"):
        for i in range(40):
            paint(random, kind, folder / "known" / kind / f"{i:02}.png")
    kinds = ["apple"] * 15 + ["plum"] * 33 + ["new"] * 12
    for i, kind in enumerate(kinds):
        paint(random, kind, folder / "batch" / f"{i:02}.png")
    return folder


def new_rows(scored, id_name):
    return set(scored.loc[scored["novelty_score"].nlargest(12).index, id_name])


@pytest.mark.slow
def test_folders_of_pictures_from_the_command_line(pictures, vision, tmp_path):
    files = (pictures / "known", pictures / "batch")
    done = call("fit", *files, "--encoder", vision["resnet"], *QUICK, "--out", tmp_path / "run")
    assert done.exit_code == 0, done.output
    assert "apple" in done.output and "image column 'image' through" in " ".join(done.output.split())
    scored = pd.read_parquet(tmp_path / "run" / "scored_target.parquet")
    assert new_rows(scored, "image") == {f"{i}.png" for i in range(48, 60)}
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "data:image/jpeg;base64," in page and "59.png" in page
    done = call("score", tmp_path / "run", pictures / "batch", "--out", tmp_path / "again.csv")
    assert done.exit_code == 0, done.output
    again = pd.read_csv(tmp_path / "again.csv")
    np.testing.assert_allclose(again["novelty_score"], scored["novelty_score"], atol=1e-5)
    assert again["image"].tolist() == scored["image"].tolist()


@pytest.mark.slow
def test_a_table_of_picture_paths_gives_what_the_folder_gives(pictures, vision, tmp_path):
    names = sorted(p.relative_to(pictures).as_posix() for p in pictures.rglob("known/*/*.png"))
    source = pd.DataFrame({"photo": names, "kind": [name.split("/")[1] for name in names]})
    source.to_csv(pictures / "known.csv", index=False)
    batch = pd.DataFrame({"photo": [f"batch/{i:02}.png" for i in range(60)], "nr": range(60)})
    batch.to_csv(pictures / "batch.csv", index=False)
    given = ("--label", "kind", "--image", "photo", "--id", "nr", "--encoder", vision["resnet"])
    done = call("fit", pictures / "known.csv", pictures / "batch.csv", *given, *QUICK, "--out", tmp_path / "run")
    assert done.exit_code == 0, done.output  # though the source has no column of ids
    scored = pd.read_parquet(tmp_path / "run" / "scored_target.parquet")
    assert new_rows(scored, "nr") == set(range(48, 60)), "ids keep their name and type"
    given = {"encoder": str(vision["resnet"]), "fpr": 0.1, "parameters": {"max_steps": 300}}
    result = openset.run(pictures / "known", pictures / "batch", **given)
    np.testing.assert_array_equal(result.scored.novelty_score, scored["novelty_score"])
    assert [entry.kind for entry in result.summary.data.encoded] == ["image"]


@pytest.mark.slow
def test_pictures_through_the_packaged_encoder(pictures, tmp_path):
    for kind in ("apple", "plum"):
        (tmp_path / "few" / kind).mkdir(parents=True)
        for path in sorted((pictures / "known" / kind).iterdir())[:10]:
            (tmp_path / "few" / kind / path.name).write_bytes(path.read_bytes())
    batch = pd.DataFrame({"path": [str(pictures / "batch" / f"{i}.png") for i in range(38, 58)]})
    source = pd.DataFrame({"path": [str(path) for path in sorted((tmp_path / "few").rglob("*.png"))]})
    source["kind"] = source["path"].str.split("/").str[-2]
    result = openset.run(source, batch, label="kind", image="path", method="knn", fpr=0.3)
    assert result.features_target.shape == (20, 1280)
    assert result.scored.novelty_score[10:].mean() > result.scored.novelty_score[:10].mean()


def write_reviews(folder, source=None, target=None):
    known = [(f"{WORDS[kind]} {i}", kind) for kind in ("cat", "dog") for i in range(40)]
    texts = [
        f"{WORDS[kind]} {i}" for kind, n in (("cat", 12), ("dog", 36), ("new", 12)) for i in range(50, 50 + n)
    ]
    table = pd.DataFrame(known, columns=["review", "kind"]).assign(nr=range(80))
    if source is not None:
        table["review"] = source
    table.to_parquet(folder / "labelled.parquet")
    batch = pd.DataFrame({"review": pd.Series(texts if target is None else [target] * 60, dtype="str")})
    batch.assign(nr=range(60)).to_parquet(folder / "batch.parquet")
    return ("fit", folder / "labelled.parquet", folder / "batch.parquet", "--label", "kind", "--text", "review",
            "--id", "nr", "--out", folder / "run")  # fmt: skip


@pytest.mark.slow
def test_text_from_the_command_line(bert, tmp_path):
    fit = write_reviews(tmp_path)
    done = call(*fit, "--encoder", bert, *QUICK)
    assert done.exit_code == 0, done.output
    scored = pd.read_parquet(tmp_path / "run" / "scored_target.parquet")
    assert new_rows(scored, "nr") == set(range(48, 60))
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "zebra 4711 xylophone 50" in page
    assert call("report", tmp_path / "run", "--no-examples").exit_code == 0
    assert "zebra" not in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    done = call("score", tmp_path / "run", tmp_path / "batch.parquet", "--out", tmp_path / "s.jsonl", "--json")
    answer = json.loads(done.stdout)
    assert done.exit_code == 0 and answer["rows"] == 60 and answer["not_compared"] == ""
    assert not answer["ranges_compared"] and answer["new_columns"] == answer["out_of_range"] == []  # embeddings
    again = pd.read_json(tmp_path / "s.jsonl", lines=True)
    np.testing.assert_allclose(again["novelty_score"], scored["novelty_score"], atol=1e-5)


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        (None, "  ", "every text in column 'review' is blank"),
        ("", None, "every text in column 'review' is blank"),
        (None, None, "has no column 'review2'. Did you mean 'review'?"),
    ],
)
def test_text_that_says_nothing_is_refused(bert, tmp_path, source, target, words):
    fit = write_reviews(tmp_path, source, target)
    if source is None and target is None:
        fit = [("review2" if word == "review" else word) for word in fit]
    done = call(*fit, "--encoder", bert)
    shown = " ".join(done.output.split())
    assert done.exit_code == 2 and done.output.count("error: ") == 1 and "Traceback" not in shown
    assert words.split(".")[0] in shown and words.split(". ")[-1] in shown
    assert not (tmp_path / "run").exists()


def test_pictures_that_are_not_there_or_broken_are_refused(pictures, vision, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken" / "apple").mkdir(parents=True)
    (tmp_path / "broken" / "apple" / "a.png").write_bytes(b"no picture")
    for source, words in (
        (tmp_path / "empty", "is a folder without images"),
        (tmp_path / "broken", "'apple/a.png' is unreadable"),
        (pictures / "batch", "has no class folders"),
        (tmp_path / "nowhere", "nowhere does not exist"),
    ):
        done = call("fit", source, pictures / "batch", "--encoder", vision["resnet"], "--out", tmp_path / "run")
        assert done.exit_code == 2 and words in " ".join(done.output.split()), done.output
        assert done.output.count("error: ") == 1 and "Traceback" not in done.output
    assert not (tmp_path / "run").exists()
