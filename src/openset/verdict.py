"""Is there a new class? A plain word, from the estimated novel fraction, and what to check before trusting it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from openset.stats.proportions import ProportionEstimate
from openset.stats.thresholds import share_above

CAVEAT = (
    "The interval covers sampling error only. Known kinds of rows that are rare in the source but common in the "
    "target can look new: look at the top rows before acting."
)


def give_verdict(fraction: ProportionEstimate, fpr: float) -> dict[str, str]:
    """A word, a sentence and a caveat.

    ``none found``: the interval of the novel fraction reaches 0. ``likely``: it does not. ``clear``: its lower
    end is above ``fpr``, so that something would be left if the shift made known target rows pass the threshold
    twice as often as the budget allows source rows to.

    >>> give_verdict(ProportionEstimate(0.08, 0.06, 0.1, 0.95, "…"), 0.01)["word"]
    'clear'
    >>> give_verdict(ProportionEstimate(0.01, 0.002, 0.02, 0.95, "…"), 0.01)["word"]
    'likely'
    """
    share = f"{100 * fraction.value:.1f} %"
    between = f"{100 * fraction.low:.1f} to {100 * fraction.high:.1f} %"
    if fraction.method == "not identified":
        sentence = "No new class was found, and none could be ruled out: no rule kept the budget on source rows."
        return {"word": "none found", "sentence": sentence, "caveat": CAVEAT}
    if fraction.low <= 0:
        sentence = f"No new class was found: its share could be 0 (at most {100 * fraction.high:.1f} %)."
        return {"word": "none found", "sentence": sentence, "caveat": CAVEAT}
    if fraction.low <= fpr:
        sentence = f"There is likely a new class, about {share} of the target ({between})."
        return {"word": "likely", "sentence": sentence, "caveat": CAVEAT}
    sentence = f"There is a new class, about {share} of the target ({between})."
    return {"word": "clear", "sentence": sentence, "caveat": CAVEAT}


def diagnose(model: Any, warnings: Sequence[str]) -> list[dict[str, Any]]:
    """What limits the verdict: each with a value, the threshold it is held against and what to do."""
    held, needed = len(model.calibration_scores_), math.ceil(1 / model.fpr - 1)
    found = [
        _entry(
            "held-out source rows",
            held,
            needed,
            held >= needed,
            f"{held} source rows were held out; a false-positive rate of {model.fpr:g} takes {needed} to check."
            + ("" if held >= needed else " Bring more source rows, or allow a larger fpr."),
        )
    ]
    if held and np.isfinite(model.threshold_):
        above = share_above(model.calibration_scores_, model.threshold_)
        words = "Of the source rows held out, {:.2g} % are called novel; the budget is {:.2g} %."
        sentence = words.format(100 * above, 100 * model.fpr)
        found.append(_entry("source rows called novel", above, model.fpr, above <= model.fpr, sentence))
    reason = getattr(model, "stop_reason_", None)
    if reason is not None:
        steps = int(model.n_steps_)
        sentence = f"Training ended after {steps} steps ({reason.replace('_', ' ')})."
        found.append(_entry("training steps", steps, None, True, sentence))
    return found + [_entry("warning", None, None, False, warning) for warning in warnings]


def _entry(name: str, value: Any, threshold: Any, ok: bool, sentence: str) -> dict[str, Any]:
    return {"name": name, "value": value, "threshold": threshold, "ok": bool(ok), "sentence": sentence}
