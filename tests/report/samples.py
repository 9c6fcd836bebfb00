"""Results to make pages of, in the shape that `openset.run` gives them, and hostile ones made by hand."""

from __future__ import annotations

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from openset import CoLOR, make_background_shift
from openset.data.readers.records import Records
from openset.features.maker import MadeFeatures
from openset.pipeline.data_used import Data, EncodedColumn, Origin
from openset.pipeline.explain import explain
from openset.pipeline.run import summarise
from openset.pipeline.scored_table import rows_at_fdr
from openset.pipeline.settings import RunSettings
from openset.pipeline.summary import (
    ClassShares,
    Diagnostic,
    Environment,
    Groups,
    Head,
    KnownClasses,
    NovelFraction,
    ResultSummary,
    Verdict,
)
from openset.report import Example, Group, ReportData, TargetMap

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>{{7*7}}'\"&\u2028\u202e"


def result_like(model, X, y, X_target, *, source_scores, **columns):
    """What a run leaves, by hand: the fields that the report reads."""
    score = model.novelty_score(X_target)
    at_least = len(source_scores) - np.searchsorted(np.sort(source_scores), score)
    rows = np.arange(len(X_target))
    scored = SimpleNamespace(
        id=columns.pop("ids", rows),
        predicted=model.predict(X_target),
        novelty_score=score,
        p_value=(1 + at_least) / (1 + len(source_scores)),
        nearest_known=model.predict_known(X_target),
    )
    scored.novel_at_fdr = rows_at_fdr(model, scored, 0.1)
    data = Data(
        source=Origin("labelled.parquet", len(X), 0, "9f86d081884c7d65"),
        target=Origin("production.parquet", len(X_target), 0, "60303ae22b998861"),
        label="category",
        id="id",
        features=EncodedColumn("text", "text", "all-MiniLM-L6-v2", "c0ffee"),
        left_out=[],
    )
    settings = RunSettings(label="category", text="text", method="color", fpr=model.fpr, fdr=0.1, seed=0)
    timings = {"encode": 41.2, "fit": 6.9, "score": 0.2}
    explanation, _ = explain(model, scored, X, y, X_target)
    records = Records(rows, **{"X": X_target, **columns})
    return SimpleNamespace(
        model=model,
        summary=summarise(model, scored, explanation, settings, data, timings, []),
        scored=scored,
        source=Records(np.arange(len(X)), X=X, y=y),
        target=records,
        made_source=MadeFeatures(X, X, records.feature_names),
        made_target=MadeFeatures(X_target, X_target, records.feature_names),
        features_source=X,
        features_target=X_target,
        source_scores=source_scores,
    )


def _fitted(X, y, X_target, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CoLOR(random_state=0, **parameters).fit(X, y, X_target)


def synthetic_result():
    made = make_background_shift(n_source=900, n_target=700, n_features=12, random_state=0)
    fresh = np.arange(len(made.X)) % 3 == 0
    X, y = made.X[~fresh], made.y[~fresh]
    model = _fitted(X, y, made.X_target, max_steps=200, evaluate_every=50, hidden=32, fpr=0.02)
    scores = model.novelty_score(made.X[fresh])
    return result_like(model, X, y, made.X_target, source_scores=scores)


def amazon_result(folder, *, novel="software"):
    from openset.data.datasets.stand_ins import load_amazon_fdu_mtl
    from openset.shift import sentiment_shift

    reviews = load_amazon_fdu_mtl(folder / "amazon_reviews")
    known = [name for name in dict.fromkeys(reviews.label.tolist()) if name != novel][:6]
    split = sentiment_shift(
        category=reviews.label,
        sentiment=reviews.sentiment,
        novel=novel,
        known=known,
        novel_fraction=0.15,
        n_train=400,
    )
    X = np.asarray(reviews.features, np.float32)
    source, target = split.source, split.target
    fresh = np.arange(len(source)) % 5 == 0
    held, source = source[fresh], source[~fresh]
    model = _fitted(X[source], reviews.label[source], X[target], max_steps=750, fpr=0.02)
    return result_like(
        model,
        X[source],
        reviews.label[source],
        X[target],
        source_scores=model.novelty_score(X[held]),
        texts=np.asarray(reviews.texts, object)[target],
        ids=np.array([f"review-{row:05d}" for row in target]),
    )


def large_data(n_rows=100_000, *, text="x" * 3000, id_="a long identifier of a row, number {}"):
    """A page of as many rows as a batch may have, each with more text than is shown."""
    from openset.report.build import build

    random = np.random.default_rng(0)
    scores = random.standard_normal(n_rows)
    labels = np.where(scores > 2, "novel", random.choice([f"class {c}" for c in range(40)], n_rows))
    features = random.standard_normal((n_rows, 16))
    summary = minimal_summary(
        n_rows,
        class_mix={f"class {c}": ClassShares(1 / 40, 1 / 40) for c in range(40)},
        called_novel=int((scores > 2).sum()),
        heads=[
            Head(0, s, h, 0.1, 0.01, 0.1, 1.0, True, selected=s == 199 and h == 3)
            for s in range(200)
            for h in range(10)
        ],
        history=[{"step": step, "member": 0, "loss": 1 / (1 + step)} for step in range(3000)],
    )
    scored = SimpleNamespace(
        id=np.array([id_.format(row) for row in range(n_rows)], object),
        predicted=labels,
        novelty_score=scores,
        p_value=np.full(n_rows, 0.5),
        nearest_known=np.full(n_rows, "class 0"),
    )
    target = Records(np.arange(n_rows), texts=np.full(n_rows, text, object))
    result = SimpleNamespace(
        summary=summary, scored=scored, target=target, features_target=features, source_scores=scores[:1000]
    )
    return lambda: build(result)


def minimal_summary(n_rows=3, **changes):
    """A summary with nothing that may be absent."""
    summary = ResultSummary(
        openset_version="0.1.0",
        created="2026-11-16",
        method="msp",
        parameters={},
        seed=0,
        data=Data(Origin(None, 10, 0, None), Origin(None, n_rows, 0, None), None, None, [], []),
        classes=["a", "b"],
        novel_label="novel",
        verdict=Verdict("none found", "No new class is proved.", "A small one may be there."),
        novel_fraction=NovelFraction(0.0, 0.0, 1.0, 1.0, "not identified"),
        threshold=None,
        fpr=0.01,
        called_novel=0,
        class_mix={"a": ClassShares(0.5, 0.6), "b": ClassShares(0.5, 0.4)},
        heads=None,
        history=[],
        diagnostics=[],
        top_rows=[],
        settings=RunSettings(),
        timings={},
        environment=Environment("3.12.4", "Linux", "2.4.6", "2.13.0", 2),
    )
    return replace(summary, **changes)


def hostile_data():
    """Every text that comes from data, settings or file names tries to break out of the page."""
    row = Example(HOSTILE, 1.0, 0.1, HOSTILE, HOSTILE, text=HOSTILE)
    plane = TargetMap(
        np.array([[0.0, 1.0], [1.0, 0.0]]), (HOSTILE, HOSTILE), ("novel", HOSTILE), np.zeros(2), (0, -1), 2, 1.0
    )
    summary = minimal_summary(
        2,
        method=HOSTILE,
        created=HOSTILE,
        parameters={HOSTILE: [HOSTILE]},
        data=Data(Origin(HOSTILE, 2, 0, HOSTILE), Origin(HOSTILE, 2, 0, HOSTILE), HOSTILE, None, [HOSTILE], []),
        verdict=Verdict(HOSTILE, HOSTILE, HOSTILE),
        class_mix={HOSTILE: ClassShares(1.0, 1.0)},
        history=[{"step": 1, "member": 0, f"loss{HOSTILE}": 1.0, HOSTILE: 0.5}],
        diagnostics=[Diagnostic(HOSTILE, 2.0, 1.0, False, HOSTILE)],
        settings=RunSettings(label=HOSTILE, parameters={HOSTILE: {HOSTILE: HOSTILE}}),
        groups=Groups(HOSTILE, []),
        known_classes=KnownClasses(corrected=True, sentence=HOSTILE, accuracy_sentence=HOSTILE),
    )
    return ReportData(
        summary, np.zeros(3), np.ones(3), (row,), plane, (Group(HOSTILE, 2, (row,), sentence=HOSTILE),)
    )
