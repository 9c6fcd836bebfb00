"""Is there a new class? The verdict in words, and the diagnostics that limit it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from openset._utils.typed import plain
from openset.pipeline import summary
from openset.pipeline.summary import Verdict
from openset.stats.diagnostics import Diagnostic
from openset.stats.novelty import NoveltyTest
from openset.stats.shares import ShareEstimate
from openset.stats.thresholds import rows_for_threshold_after_choice, share_above

LOOK = "Look at the top rows before acting."
UNTESTED = (
    "The interval covers sampling error only. Known kinds of rows that are rare in the source but common in the "
    f"target can look new. {LOOK}"
)


def give_verdict(fraction: ShareEstimate, test: NoveltyTest | None = None) -> Verdict:
    """A word, a sentence and a caveat.

    The word is the test's: ``clear`` for p ≤ .01, ``likely`` for p ≤ .05, else ``none found``. A method that
    brings an estimate of its own and no test gets ``likely`` at most, where its interval excludes 0.

    >>> give_verdict(ShareEstimate(0.08, 0.06, 0.1, 0.95, "…")).word
    'likely'
    >>> from openset.stats.novelty import novelty_verdict
    >>> from openset.stats.validation_scores import ValidationScores
    >>> random = np.random.default_rng(0)
    >>> scores = ValidationScores.of_one_score(random.normal(size=2000), random.normal(size=1000))
    >>> found = novelty_verdict(scores)
    >>> give_verdict(found.fraction, found.test).word
    'none found'
    """
    word = test.word if test is not None else "likely" if fraction.low > 0 else "none found"
    return Verdict(word, _sentence(word, fraction), _caveat(fraction, test))


def _sentence(word: str, fraction: ShareEstimate) -> str:
    if word == "none found":
        if fraction.method == "not identified":
            return "No new class is proved, and none could be ruled out: no rule kept the budget on source rows."
        most = (
            f"at most {100 * fraction.high:.1f} %" if fraction.high_identified else "no upper end is identified"
        )
        return f"No new class is proved: its share could be 0 ({most})."
    start = "There is a new class" if word == "clear" else "There is likely a new class"
    share = f"about {100 * fraction.value:.1f} % of the target"
    if not fraction.high_identified:
        return f"{start}, {share} (at least {100 * fraction.low:.1f} %)."
    return f"{start}, {share} ({100 * fraction.low:.1f} to {100 * fraction.high:.1f} %)."


def _caveat(fraction: ShareEstimate, test: NoveltyTest | None) -> str:
    if test is None:
        return UNTESTED
    moves = ", ".join(f"{100 * low:.1f} % for {ratio}" for ratio, low in fraction.profile.items())
    return f"p = {test.p_value:.2g}. {fraction.assumptions} The lower end is {moves} times. {LOOK}"


def _rows_needed(model: Any) -> int:
    """Validation rows of the source that the model's kind of threshold needs to keep ``fpr``."""
    if getattr(model, "novelty_test_", None) is None:
        return math.ceil(1 / model.fpr - 1)
    return rows_for_threshold_after_choice(model.fpr, n_compared=len(model.heads_))


def diagnose(model: Any, warnings: Sequence[str]) -> list[summary.Diagnostic]:
    """What limits the verdict: each with a value, the threshold for it and what to do."""
    n_rows, needed = len(model.calibration_scores_), _rows_needed(model)
    words = f"The source has {n_rows} validation rows; a false-positive rate of {model.fpr:g} needs {needed}."
    advice = "" if n_rows >= needed else " Bring more source rows, or allow a larger fpr."
    found = [Diagnostic("validation rows of the source", n_rows, needed, n_rows >= needed, words + advice)]
    if n_rows and np.isfinite(model.threshold_):
        above = share_above(model.calibration_scores_, model.threshold_)
        words = "Of the validation rows of the source, {:.2g} % are called novel; the budget is {:.2g} %."
        sentence = words.format(100 * above, 100 * model.fpr)
        found.append(Diagnostic("source rows called novel", above, model.fpr, above <= model.fpr, sentence))
    reason = getattr(model, "stop_reason_", None)
    if reason is not None:
        steps = int(model.n_steps_)
        sentence = f"Training ended after {steps} steps ({reason.replace('_', ' ')})."
        found.append(Diagnostic("training steps", steps, None, True, sentence))
    found += getattr(model, "diagnostics_", [])
    found += [Diagnostic("warning", None, None, False, warning) for warning in warnings]
    return [summary.Diagnostic(**plain(vars(entry))) for entry in found]
