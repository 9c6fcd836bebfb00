"""The paper's datasets and their stand-ins as problems: which is taken, what a page says of it, who encodes."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest

from openset.bench.problems import build_problem, datasets, get_source, source_for
from openset.bench.problems.loading import forget_datasets
from openset.bench.runs import expand
from openset.bench.spec import load_spec, parse_spec
from openset.bench.store import Store
from openset.bench.sweep import sweep
from openset.data.datasets.amazon import PAPER_CATEGORIES
from openset.data.datasets.dataset import Dataset
from openset.errors import MissingExtraError


@pytest.fixture(autouse=True)
def forget_features():
    yield
    forget_datasets()


@pytest.fixture
def official_amazon(tmp_path):
    """Official files of a few reviews each, beside nothing else."""
    folder = tmp_path / "amazon_reviews"
    folder.mkdir()
    for category in PAPER_CATEGORIES:
        with gzip.open(folder / f"{category}_5.json.gz", "wt") as file:
            for i in range(80):
                review = {"overall": 5.0 if i % 2 else 1.0, "reviewText": f"{category} review {i}"}
                file.write(json.dumps(review) + "\n")
    return tmp_path


@pytest.fixture
def counted_encoder(monkeypatch):
    """An encoder of eight features that tells how often it was asked, and with which model."""
    asked = []

    def encode(texts, encoder, *, progress):
        asked.append((str(encoder), progress))
        random = np.random.default_rng(0)
        return random.normal(size=(len(texts), 8)).astype(np.float32)

    monkeypatch.setattr("openset.features.encode_texts", encode)
    return asked


def test_the_stand_in_is_taken_where_the_official_files_are_not(tmp_path, official_amazon):
    assert source_for("amazon", None).name == "amazon-fdu-mtl"
    assert source_for("amazon", official_amazon).name == "amazon"
    (official_amazon / "amazon_reviews" / "Software_5.json.gz").unlink()
    assert source_for("amazon", official_amazon).name == "amazon-fdu-mtl"
    assert source_for("sun397", tmp_path).name == "sun"
    (tmp_path / "SUN397").mkdir()
    assert source_for("sun397", tmp_path).name == "sun397"


def test_a_plan_on_a_stand_in_has_its_classes_name_and_width_and_else_the_papers_parameters(official_amazon):
    spec = load_spec("table-amazon")
    on_stand_in, on_official = expand(spec), expand(spec, official_amazon)
    assert {plan.run.dataset for plan in on_stand_in} == {"amazon-fdu-mtl"}
    assert {plan.run.novel for plan in on_stand_in} == set(datasets.STAND_IN_CATEGORIES)
    assert {plan.problem for plan in on_stand_in} == {"amazon-fdu-mtl, settings of amazon_minilm"}
    assert {plan.run.encoder for plan in on_stand_in} == {None}
    assert {plan.run.novel for plan in on_official} == set(PAPER_CATEGORIES)
    assert {plan.run.encoder for plan in on_official} == {"FacebookAI/roberta-base"}
    for here, there in zip(on_stand_in[:18], on_official[:18], strict=True):
        assert here.run.parameters == there.run.parameters.replace('"hidden":768', '"hidden":384').replace(
            '"max_steps":null', '"max_steps":1000'
        )
    both = [plan.problem for plan in expand(load_spec("figure-bars"))]
    assert set(both) == {"sun, settings of sun397_resnet50", "sun, settings of sun397_vitl14"}


@pytest.mark.parametrize(
    ("asked", "planned"),
    [(("music", "Digital_Music"), {"music"}), (("Digital_Music",), set(datasets.STAND_IN_CATEGORIES))],
)
def test_a_stand_in_keeps_the_new_classes_asked_for_that_it_has(asked, planned):
    spec = load_spec("table-amazon")
    spec = replace(spec, problems=tuple(replace(problem, novel=asked) for problem in spec.problems))
    assert {plan.run.novel for plan in expand(spec)} == planned


def test_a_stand_in_pools_as_asked_by_its_own_encoder(shared_data, counted_encoder, monkeypatch):
    spec = load_spec("table-amazon-pooler")
    (plan, *_) = expand(spec, shared_data)
    assert plan.problem == "amazon-fdu-mtl (pooling=pooler, max_tokens=512), settings of amazon_minilm"
    assert plan.run.encoder is None and "authors' text encoding" not in spec.title
    options = {"pooling": "pooler", "max_tokens": 512}
    problem = build_problem("amazon-fdu-mtl", "shift", "music", 0, shared_data, **options)
    assert problem.X.shape == (2500, 8) and problem.stand_in_for
    ((encoder, _),) = counted_encoder
    assert "'minilm', pooling='pooler'" in encoder and "max_tokens=512" in encoder


def test_scenes_are_compared_with_names_by_a_clip_of_the_data_folder(monkeypatch, tmp_path):
    names = [*(f"room{i}" for i in range(3)), *(f"road{i}" for i in range(3)), "desert"]
    levels = ["indoor"] * 3 + ["outdoor_manmade"] * 3 + ["outdoor_natural"]
    scenes = Dataset(
        name="sun_scenes",
        title="",
        citation="",
        label=np.repeat(levels, 40),
        subtype=np.repeat(names, 40),
        images=np.arange(280.0)[:, None],
        features=np.arange(840, dtype=np.float32).reshape(280, 3),
    )
    asked = []

    def encode(images, encoder, progress):
        asked.append(encoder)
        return np.asarray(images, np.float32).repeat(2, axis=1)

    monkeypatch.setattr("openset.data.datasets.catalogue.load_dataset", lambda name, path, **options: scenes)
    monkeypatch.setattr("openset.features.encode_images", encode)
    monkeypatch.setattr("openset.features.captions.embed_names", lambda folder, names: np.ones((len(names), 2)))
    clip = tmp_path / "encoders" / "clip-vit-base-patch32"
    clip.mkdir(parents=True)
    (problem, _) = load_spec("table-names").problems
    here = problem.resolved(tmp_path)
    assert (here.dataset, here.encoder) == ("sun", problem.encoder) and here.takes("zoc")
    made = build_problem(here.dataset, "shift", "desert", 0, tmp_path, encoder=here.encoder, **here.options)
    assert asked == [clip] and made.X.shape[1] == 2
    assert list(made.names["class_embeddings"]) == ["indoor", "outdoor_manmade"]
    assert len(made.names["candidate_embeddings"]) > 300
    with pytest.raises(ValueError, match="names = true needs an encoder of images and text"):
        build_problem("sun", "shift", "desert", 0, tmp_path, names=True)


def test_official_reviews_are_encoded_by_a_model_of_the_data_folder(official_amazon, counted_encoder):
    (official_amazon / "encoders" / "roberta-base").mkdir(parents=True)
    problem = build_problem(
        "amazon", "shift", "Software", 0, official_amazon, encoder="FacebookAI/roberta-base", novel_fraction=0.1
    )
    assert problem.stand_in_for == "" and problem.X.shape[1] == 8
    assert set(problem.y) == set(PAPER_CATEGORIES) - {"Software"}
    assert problem.novel_fraction == pytest.approx(0.1, abs=0.01)
    assert counted_encoder == [(str(official_amazon / "encoders" / "roberta-base"), False)]


@pytest.fixture
def amazon_with_copies(tmp_path):
    """Official files in which every review is there twice; all texts differ otherwise."""
    folder = tmp_path / "amazon_reviews"
    folder.mkdir()
    for category in PAPER_CATEGORIES:
        with gzip.open(folder / f"{category}_5.json.gz", "wt") as file:
            for i in range(160):
                review = {"overall": 5.0 if i % 2 else 1.0, "reviewText": f"{category} review {i // 4} {i % 2}"}
                file.write(json.dumps(review) + "\n")
    return tmp_path


@pytest.fixture
def texts_as_features(monkeypatch):
    def encode(texts, encoder, *, progress):
        return np.array([[int.from_bytes(sha256(text.encode()).digest()[:3])] for text in texts], np.float32)

    monkeypatch.setattr("openset.features.encode_texts", encode)


def in_two_parts(problem):
    source, target, test = (set(rows.ravel().tolist()) for rows in (problem.X, problem.X_target, problem.X_test))
    return source & target | source & test | target & test


def test_copies_of_a_review_are_dropped_unless_they_are_asked_for(amazon_with_copies, texts_as_features):
    options = {"novel_fraction": 0.1}
    made = build_problem("amazon", "shift", "Software", 0, amazon_with_copies, **options)
    assert in_two_parts(made) == set()
    with_copies = build_problem("amazon", "shift", "Software", 0, amazon_with_copies, copies=True, **options)
    assert in_two_parts(with_copies) and len(with_copies.X) > 1.5 * len(made.X)


def test_copies_of_a_scene_are_dropped_unless_they_are_asked_for(monkeypatch, tmp_path):
    names = [f"{level}{i}" for level in ("indoor", "outdoor_manmade") for i in range(3)] + ["desert"]
    scenes = Dataset(
        "sun_scenes", "", "", np.array([name.rstrip("012") for name in np.repeat(names, 40)]),
        subtype=np.repeat(names, 40), features=np.repeat(np.arange(140.0), 2)[:, None],
    )  # fmt: skip
    monkeypatch.setattr("openset.data.datasets.catalogue.load_dataset", lambda name, path, **options: scenes)
    made = build_problem("sun", "shift", "desert", 0, tmp_path)
    with_copies = build_problem("sun", "shift", "desert", 0, tmp_path, copies=True)
    assert in_two_parts(made) == set() and in_two_parts(with_copies)


def test_a_new_class_that_is_not_there_is_told_with_those_that_are(official_amazon, counted_encoder):
    with pytest.raises(ValueError, match="novel='Books' is not valid: expected one of 'Digital_Music', 'Indus"):
        build_problem("amazon", "shift", "Books", 0, official_amazon)
    assert counted_encoder == [], "nothing is encoded before"


def test_a_new_class_of_the_stand_in_that_is_not_there_is_told(shared_data):
    with pytest.raises(ValueError, match="novel='Books' is not valid: expected one of 'apparel'"):
        build_problem("amazon-fdu-mtl", "shift", "Books", 0, shared_data)
    with pytest.raises(ValueError, match="no novel_fraction for 'books', only for Musical_Instruments"):
        build_problem("amazon-fdu-mtl", "shift", "books", 0, shared_data)
    others = build_problem("amazon-fdu-mtl", "shift", "books", 0, shared_data, novel_fraction=0.1)
    assert len(set(others.y)) == 6


@pytest.mark.parametrize("option", ["known", "without"])
def test_one_class_must_be_in_a_list(shared_data, option):
    with pytest.raises(ValueError, match=f"{option}='flowers' is not valid: expected a list"):
        build_problem("cifar100-images", "shift", "baby", 0, shared_data, **{option: "flowers"})


def test_encoding_happens_once_and_before_the_runs(official_amazon, counted_encoder, tmp_path, monkeypatch):
    spec = parse_spec('[[problem]]\ndataset = "amazon"\nseeds = [0]\n[[method]]\nname = "knn"', "s")
    order = []

    def results(on, runs, data_dir, jobs, progress):
        order.extend(counted_encoder)
        return iter(())

    monkeypatch.setattr("openset.bench.sweep._results", results)
    store = Store(tmp_path / "runs.sqlite")
    sweep(spec, store, data_dir=official_amazon, show_progress=True)
    assert order == [("minilm", True)]


def test_an_extra_that_encoding_lacks_is_told_before_anything_runs(official_amazon, tmp_path, monkeypatch):
    def encode(texts, encoder, *, progress):
        raise MissingExtraError("Encoding texts", "text")

    monkeypatch.setattr("openset.features.encode_texts", encode)
    spec = parse_spec('[[problem]]\ndataset = "amazon"\nseeds = [0]\n[[method]]\nname = "knn"', "s")
    store = Store(tmp_path / "runs.sqlite")
    with pytest.raises(MissingExtraError, match=r"openset\[text\]"):
        sweep(spec, store, data_dir=official_amazon)
    assert store.all() == []


def test_sun397_takes_subtypes_of_a_natural_group_for_new(monkeypatch, tmp_path):
    names = [(c, f"/{c}/{s}", "indoor") for c in ("home", "work") for s in "abcd"]
    names += [(g, f"/{g}/{i}", "outdoor_natural") for g in get_source("sun397").novel for i in range(16)]
    rows = [name for name in names for _ in range(30)]
    random = np.random.default_rng(0)
    made = Dataset(
        "sun397", "SUN397", "", np.array([r[0] for r in rows]), subtype=np.array([r[1] for r in rows]),
        features=random.normal(size=(len(rows), 4)), columns={"level1": np.array([r[2] for r in rows])},
    )  # fmt: skip
    monkeypatch.setattr("openset.data.datasets.catalogue.load_dataset", lambda name, path, **options: made)
    problem = build_problem("sun397", "shift", "water_ice_snow", 0, tmp_path)
    assert set(problem.y) == {"home", "work"} and problem.novel_label not in problem.y
    assert 0 < problem.novel_fraction < 0.3
    for fraction in (0.05, 0.2, 0.4):  # as in the figure over α: known rows are dropped where new ones are few
        options = {"novel_fraction": fraction}
        thin = build_problem("sun397", "shift", "mountains_hills_desert_sky", 0, tmp_path, **options)
        assert thin.novel_fraction == pytest.approx(fraction, abs=0.01) and len(thin.X) == len(problem.X)


@pytest.mark.parametrize(
    ("dataset", "classes", "n_features"),
    [("amazon-fdu-mtl", 5, 384), ("sun", 2, 1280)],
)
def test_stand_ins_say_so_and_split_alike_twice(shared_data, dataset, classes, n_features):
    novel = get_source(dataset).novel[0]
    problem, again = (build_problem(dataset, "shift", novel, 0, shared_data) for _ in range(2))
    assert problem.stand_in_for in ("Amazon Reviews 2018", "SUN397")
    assert problem.manifest_checksum == again.manifest_checksum
    assert len(set(problem.y)) == classes and problem.X.shape[1] == n_features
    assert set(problem.y_target) == {*problem.y, problem.novel_label}


@pytest.mark.parametrize("fraction", [0.02, 0.5])
def test_the_small_stand_in_reaches_any_novel_fraction(shared_data, fraction):
    whole = build_problem("sun", "shift", "desert", 0, shared_data)
    problem = build_problem("sun", "shift", "desert", 0, shared_data, novel_fraction=fraction)
    assert problem.novel_fraction == pytest.approx(fraction, abs=0.002) and problem.stand_in_for == "SUN397"
    assert (problem.y_test == problem.novel_label).mean() == pytest.approx(fraction, abs=0.01)
    assert (problem.X == whole.X).all() and problem.manifest_checksum != whole.manifest_checksum
    assert set(map(bytes, problem.X_test)).isdisjoint(map(bytes, problem.X_target))


@pytest.fixture
def pixels_as_features(monkeypatch):
    def encode(images, encoder, *, progress):
        return np.asarray(images)[:, ::8, ::8].reshape(len(images), -1).astype(np.float32)

    monkeypatch.setattr("openset.features.encode_images", encode)


@pytest.mark.slow
@pytest.mark.parametrize("novel", ["tulip", "dolphin"])
def test_a_new_class_can_be_taken_out_of_a_known_superclass(shared_data, pixels_as_features, novel):
    (problem,) = [p for p in load_spec("table-joint-learning").problems if "tulip" in p.novel]
    made = build_problem("cifar100", "shift", novel, 0, shared_data, **problem.options)
    assert set(made.y) == {"aquatic_mammals", "flowers"}
    assert 0.25 < made.novel_fraction < 0.32  # the paper's is .29
    outside = {key: value for key, value in problem.options.items() if key != "without"}
    fractions = [
        build_problem("cifar100", "shift", "baby", seed, shared_data, **outside).novel_fraction
        for seed in (0, 8, 103, 573, 1057)
    ]
    assert np.mean(fractions) == pytest.approx(0.23, abs=0.005)  # the paper prints .23±.05
    assert np.std(fractions, ddof=1) == pytest.approx(0.05, abs=0.01)


def test_no_data_folder_is_an_error_that_names_what_is_missing():
    with pytest.raises(ValueError, match="needs a data folder: pass --data FOLDER, a folder with clinc150"):
        build_problem("clinc150", "shift", "credit_cards", 0)
    spec = replace(load_spec("results-clinc150"))
    assert spec.missing_files(None) == ["clinc150/queries.parquet"]
