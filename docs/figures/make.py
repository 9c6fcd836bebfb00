"""The figures of the site, drawn from synthetic data: ``python docs/figures/make.py`` (about a minute)."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from openset import CoLOR, DomainDiscriminator, make_background_shift
from openset.errors import FitWarning
from openset.stats.metrics import auroc

HERE = Path(__file__).parent
GREY, BLUE, SKY, ORANGE = "#7f8790", "#0072b2", "#56b4e9", "#d55e00"
mpl.rcParams.update({
    "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10,
    "axes.titlelocation": "left", "legend.frameon": False, "legend.fontsize": 8, "axes.titlepad": 8,
})  # fmt: skip


def histogram(axes, groups, threshold=None, counts=True):
    """Overlaid histograms of scores, each of (label, colour, scores)."""
    everything = np.concatenate([scores for _, _, scores in groups])
    bins = np.linspace(*np.quantile(everything, [0.002, 0.998]), 45)
    for label, colour, scores in groups:
        inside = np.clip(scores, bins[0], bins[-1])
        axes.hist(inside, bins, color=colour, alpha=0.55, label=f"{label} ({len(scores)})" if counts else label)
        axes.hist(inside, bins, color=colour, histtype="step")
    if threshold is not None:
        axes.axvline(threshold, color="black", linestyle="--", linewidth=1)
    axes.set_yticks([])
    axes.set_ylim(0, 1.45 * axes.get_ylim()[1])  # room for the legend
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("novelty score")
    axes.legend(loc="upper left")


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
        ("Not separable: new rows are like known ones", {"novel_distance": 0.5, "resembles": 1.0}),
        ("Not covered: source lacks a known subtype", {"novel_fraction": 0.0}),
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
        source = model.calibration_scores_
        weighted = np.random.default_rng(0).choice(
            source, len(scores)
        )  # as many rows as target, to compare shapes
        threshold = model.threshold_ if np.isfinite(model.threshold_) else None
        histogram(
            shown, [("source, validation rows", GREY, weighted), ("target", BLUE, scores)], threshold, False
        )
        found = model.novel_fraction_
        shown.set_title(f"{title}\nestimated {found.value:.0%} [{found.low:.0%}, {found.high:.0%}], "
                        f"truly {data.novel_fraction:.0%}")  # fmt: skip
        known = ~data.is_novel_target
        absent = known & (data.subtype_target == grown) if lacking else np.zeros_like(known)
        groups = [("known", SKY, scores[known & ~absent]), ("known, absent from source", BLUE, scores[absent]),
                  ("new class", ORANGE, scores[data.is_novel_target])]  # fmt: skip
        histogram(truth, [group for group in groups if len(group[2])], threshold)
        truth.set_title("The truth behind it")
        truth.set_xlim(shown.get_xlim())
    figure.savefig(HERE / "failures.png", dpi=130)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # the failures are meant
        how_it_works()
        failures()
