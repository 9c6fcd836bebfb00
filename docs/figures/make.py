"""The figures of the site, drawn from synthetic data: ``python docs/figures/make.py`` (about two minutes)."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, ScalarFormatter

import openset
from openset import CoLOR, DomainDiscriminator, make_background_shift
from openset.errors import FitWarning
from openset.pipeline.summary import VERDICTS
from openset.shift.samples import make_sample
from openset.stats.metrics import auroc
from openset.stats.p_values import benjamini_hochberg, conformal_p_values

HERE = Path(__file__).parent
GREY, BLUE, SKY, ORANGE = "#7f8790", "#0072b2", "#56b4e9", "#d55e00"
mpl.rcParams.update({
    "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10,
    "axes.titlelocation": "left", "legend.frameon": False, "legend.fontsize": 8, "axes.titlepad": 8,
})  # fmt: skip


def histogram(axes, groups, threshold=None, counts=True, log=False):
    """Overlaid histograms of scores, each of (label, colour, scores)."""
    everything = np.concatenate([scores for _, _, scores in groups])
    bins = np.linspace(*np.quantile(everything, [0.002, 0.998]), 45)
    for label, colour, scores in groups:
        inside = np.clip(scores, bins[0], bins[-1])
        axes.hist(inside, bins, color=colour, alpha=0.55, label=f"{label} ({len(scores)})" if counts else label)
        axes.hist(inside, bins, color=colour, histtype="step")
    if threshold is not None:
        axes.axvline(threshold, ymax=0.78, color="black", linestyle="--", linewidth=1)
    if log:
        axes.set_yscale("log")
        axes.set(ylim=(0.7, 30 * axes.get_ylim()[1]), ylabel="rows")  # room for the legend
    else:
        axes.set_yticks([])
        axes.set_ylim(0, 1.45 * axes.get_ylim()[1])
        axes.spines["left"].set_visible(False)
    axes.set_xlabel("novelty score")
    axes.legend(loc="upper right" if log else "upper left")


def common_and_rare(data):
    """Which known target rows are of subtypes that are common in source, and which of rare ones."""
    is_rare = (data.source_mix < data.target_mix).ravel()
    known = ~data.is_novel_target
    rare = known & is_rare[np.where(known, data.subtype_target, 0)]
    return known & ~rare, rare


def how_it_works():
    """The mix of subtypes, and the scores of a discriminator and of CoLOR on the same target rows."""
    data = make_background_shift(random_state=0)
    common, rare = common_and_rare(data)
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    mix, left, right = figure.subplots(1, 3)
    names = [f"{c}{s}" for c in "ABC" for s in "₁₂"]
    positions = np.arange(len(names) + 1)
    source = np.append(data.source_mix.ravel() / 3, 0)
    target = np.append(data.target_mix.ravel() / 3 * (1 - data.novel_fraction), data.novel_fraction)
    mix.bar(positions - 0.2, source, 0.4, color=GREY, label="source")
    mix.bar(positions + 0.2, target, 0.4, color=[BLUE] * 6 + [ORANGE], label="target")
    mix.set_xticks(positions, [*names, "new"])
    mix.set_yticks([])
    mix.spines["left"].set_visible(False)
    mix.set_title("Rows of each subtype of A, B and C:\nevery share changed")
    mix.set_ylim(0, 0.45)
    mix.legend(loc="upper left", ncols=2)
    for axes, model, title in (
        (left, DomainDiscriminator(random_state=0), "A discriminator finds what is rare in source"),
        (right, CoLOR(random_state=0), "CoLOR finds what source cannot be"),
    ):
        model.fit(data.X, data.y, data.X_target)
        scores = model.novelty_score(data.X_target)
        groups = [("known, common in source", SKY, scores[common]), ("known, rare in source", BLUE, scores[rare]),
                  ("new class", ORANGE, scores[data.is_novel_target])]  # fmt: skip
        histogram(axes, groups)
        axes.set_title(f"{title}\nAUROC {auroc(data.is_novel_target, scores):.2f}")
    figure.savefig(HERE / "how-color-works.png", dpi=130)


def failures():
    """What a report shows, and the truth behind it: as it should be, not separable, not covered."""
    cases = (
        ("As it should be", {}),
        ("Not separable: new rows like known ones", {"novel_distance": 0.5, "resembles": 1.0}),
        ("Not covered: source lacks a subtype", {"novel_fraction": 0.0}),
    )
    figure = Figure(figsize=(10.5, 5.6), layout="constrained")
    for (shown, truth), (title, settings) in zip(figure.subplots(2, 3).T, cases, strict=True):
        data = make_background_shift(random_state=1, **settings)
        lacking = title.startswith("Not covered")
        if lacking:
            grown = int((data.target_mix - data.source_mix).argmax())
            covered = data.subtype != grown
            data = replace(data, X=data.X[covered], y=data.y[covered])
        model = CoLOR(random_state=0).fit(data.X, data.y, data.X_target)
        scores = model.novelty_score(data.X_target)
        source = model.calibration_scores_  # about as many rows as target
        threshold = model.threshold_ if np.isfinite(model.threshold_) else None
        groups = [("source, validation rows", GREY, source), ("target", BLUE, scores)]
        histogram(shown, groups, threshold, counts=False, log=True)
        low = model.novel_fraction_.low
        share = f", at least {low:.0%}" if low else ""
        word = VERDICTS[model.novelty_test_.code]
        shown.set_title(f"{title}\n“{word}”{share}; truly {data.novel_fraction:.0%}")
        known = ~data.is_novel_target
        absent = known & (data.subtype_target == grown) if lacking else np.zeros_like(known)
        groups = [("known", SKY, scores[known & ~absent]), ("known, absent from source", BLUE, scores[absent]),
                  ("new class", ORANGE, scores[data.is_novel_target])]  # fmt: skip
        histogram(truth, [group for group in groups if len(group[2])], threshold, log=True)
        truth.set_title("The truth behind it")
        truth.set_xlim(shown.get_xlim())
    figure.savefig(HERE / "failures.png", dpi=130)


CENTRES = np.array([[-5, 0], [-2, 3], [0, -4], [2, 3], [5, 0], [3.5, -4]])
"""Where the kinds of the tables below lie, in the first two of six columns."""
QUICK = {"max_steps": 250, "evaluate_every": 125, "members": 5, "groups": [[0.3, 0.0, 0.6]]}


def table(X, kind):
    """Six columns and the known class of each row."""
    return pd.DataFrame(X).add_prefix("x").assign(kind=np.array(["a", "b", "c"])[kind % 3])


def batch(seed, n_rows, n_new=0, move=0.0):
    """Rows of three known classes with two kinds each; the first ``n_new`` are of a fourth class."""
    random = np.random.default_rng(seed)
    kind = random.integers(len(CENTRES), size=n_rows)
    X = random.normal(size=(n_rows, 6))
    X[:, :2] += CENTRES[kind]
    X[:n_new, :2] = 0.7 * random.normal(size=(n_new, 2)) - 7
    return table(X + move, kind)


def people(seed, n_people=20, n_rows=25):
    """Rows of people: each belongs to a known kind and has habits of their own."""
    random = np.random.default_rng(seed)
    kind = np.repeat(np.arange(n_people) % len(CENTRES), n_rows)
    X = np.repeat(1.2 * random.normal(size=(n_people, 6)), n_rows, axis=0)
    X += 0.4 * random.normal(size=X.shape)
    X[:, :2] += CENTRES[kind]
    return table(X, kind)


def gate_cases():
    """The tables of each case: title, source, target."""
    random, source, target = np.random.default_rng(5), batch(0, 600), batch(1, 500)
    numbers = 10_000 + np.arange(1100)
    yield "(a) a ticket number", source.assign(ticket=numbers[:600]), target.assign(ticket=numbers[600:])
    weight = random.normal(7, 2, size=1100).clip(1)
    grams = source.assign(weight=weight[:600]), target.assign(weight=1000 * weight[600:])
    yield "(b) kilograms and grams", *grams
    yield "(c) one label a row", source.assign(kind=[f"r{row}" for row in range(600)]), target
    yield "(d) the whole batch moved", source, batch(1, 500, move=np.array([4, 3, 2.2, 2.2, 2.2, 2.2]))
    yield "(e) a small group", source, batch(1, 500, n_new=20)
    yield "(f) other people", people(0), people(1)
    yield "(g) copies of source rows", source, source.sample(500, random_state=0).drop(columns="kind")
    moved = target.assign(x2=target["x2"] + 9 * (target["kind"] == "c"))
    yield "(h) one known class moved", source, moved


def gate():
    """What openset says where something else explains the batch, or where too little is proved."""
    with mpl.rc_context({"font.size": 10, "axes.titlesize": 10, "legend.fontsize": 9}):
        figure = Figure(figsize=(5.6, 10.9), layout="constrained")
        for axes, (title, source, target) in zip(figure.subplots(4, 2).ravel(), gate_cases(), strict=True):
            found = openset.run(source, target, label="kind", ignore_target_labels=True, parameters=QUICK)
            word = found.summary.verdict.word.replace("out, ", "out,\n")
            axes.set_title(f"{title}:\n“{word}”")
            draw_case(axes, title[1], source, target)
        figure.savefig(HERE / "gate.png", dpi=140)


def answers():
    """Digits with a new class: rows that are listed by rate, the share that is proved, and seeds."""
    found = make_sample("digits")
    is_new = np.isin(found.y_target, found.new_classes)
    default = CoLOR(random_state=0).fit(found.X, found.y, found.X_target)
    fewer = found.X_target[~is_new | (np.cumsum(is_new) % 3 == 0)]
    fits = [CoLOR(random_state=seed).fit(found.X, found.y, fewer) for seed in range(5)]
    figure = Figure(figsize=(9.6, 3.2), layout="constrained")
    of_rates, of_share, of_seeds = figure.subplots(1, 3)
    rates = np.linspace(0.01, 0.5, 99)
    fast = CoLOR(effort="fast", max_density_ratio=4, random_state=0).fit(found.X, found.y, found.X_target)
    full = CoLOR(max_density_ratio=4, random_state=0).fit(found.X, found.y, found.X_target)
    for model, name, colour in ((full, "effort=full", BLUE), (fast, "effort=fast", ORANGE)):
        own = model.target_novelty_score_
        own = np.where(np.isnan(own), model.novelty_score(found.X_target), own)
        p = conformal_p_values(model.calibration_scores_, own)
        listed = [int(benjamini_hochberg(p, rate, max_density_ratio=4).sum()) for rate in rates]
        of_rates.plot(rates, listed, color=colour, label=f"{name}: {len(model.calibration_scores_)} source rows")
    of_rates.set(xlabel="rate asked for (--fdr)", ylabel="rows listed", title="(i) --fdr lists no row")
    of_rates.set_ylim(0, 1.5 * of_rates.get_ylim()[1])
    of_rates.legend(loc="upper left")
    scores, threshold = default.novelty_score(found.X_target), default.threshold_
    groups = (("known, in truth", GREY, scores[~is_new]), ("new, in truth", ORANGE, scores[is_new]))
    histogram(of_share, groups, threshold, log=True)
    low, called = default.novel_fraction_.low, int((scores > threshold).sum())
    of_share.set_title(f"(j) “at least {100 * low:.1f} %”: {called} called,\nof {is_new.sum()} new rows")
    ratio = fits[0].novelty_test_.max_density_ratio
    for start, word in ((0.4, "stands out"), (1, "probably"), (3, "found")):
        of_seeds.axhline(start * ratio, color=GREY, linewidth=0.8, linestyle="--")
        of_seeds.text(4.4, 1.03 * start * ratio, word, ha="right", va="bottom", color=GREY)
    of_seeds.plot([fit.novelty_test_.tolerated_ratio for fit in fits], "o", color=BLUE)
    of_seeds.set(
        xlabel="--seed", ylabel="times as common", title="(k) a third of the new rows,\nfive seeds", yscale="log"
    )
    of_seeds.set(xlim=(-0.5, 4.5), ylim=(0.2 * ratio, 9 * ratio), xticks=range(5), yticks=(2, 5, 10, 20, 50))
    of_seeds.yaxis.set_major_formatter(ScalarFormatter())
    of_seeds.yaxis.set_minor_locator(NullLocator())
    figure.savefig(HERE / "answers.png", dpi=140)


def draw_case(axes, case, source, target):
    """The columns, or the labels, that the case is about."""
    if case in "ab":
        column, both = ("ticket", "weight")[case == "b"], (source, target)
        values = pd.concat(both)[column]
        bins = np.geomspace(values.min(), values.max(), 40) if case == "b" else 40
        bins = np.histogram_bin_edges(values, bins)
        for rows, colour, name in zip(both, (GREY, BLUE), ("source", "target"), strict=True):
            axes.hist(rows[column], bins, color=colour, alpha=0.8, label=name)
        if case == "a":
            axes.set_xticks([10_000, 10_500, 11_000])
        else:
            axes.set_xscale("log")
        axes.set(xlabel=f"column “{column}”", ylabel="rows")
    elif case == "c":
        for labels, colour, name in (
            (source["kind"], ORANGE, "as given"),
            (batch(0, 600)["kind"], GREY, "as it should be"),
        ):
            counts = labels.value_counts().to_numpy()
            axes.plot(1 + np.arange(len(counts)), counts, "o", color=colour, markersize=4, label=name)
        axes.set(xscale="log", yscale="log", ylim=(0.5, 1500))
        axes.set(xlabel="number of the class", ylabel="source rows of the class")
    else:
        size = 22 if case == "g" else 4  # every copy lies within the row that it is a copy of
        other = "x2" if case == "h" else "x1"
        for rows, colour, name, area in ((source, GREY, "source", size), (target, BLUE, "target", 4)):
            axes.scatter(rows["x0"], rows[other], area, color=colour, alpha=0.6, linewidths=0, label=name)
        axes.set(xlabel="column “x0”", ylabel=f"column “{other}”")
    low, high = axes.get_ylim()
    if case != "c":
        axes.set_ylim(low, high + 0.25 * (high - low))  # room for the legend
    place = {"loc": "center right"} if case == "c" else {"loc": "upper left", "ncols": 2, "markerscale": 2}
    axes.legend(**place, handletextpad=0.3, columnspacing=0.8)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # the failures are meant
        how_it_works()
        failures()
        gate()
        answers()
