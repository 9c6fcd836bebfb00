"""Is there a new class? The verdict in words, and the diagnostics that limit it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from openset._utils.text import counted
from openset._utils.typed import plain
from openset.pipeline import summary
from openset.pipeline.fit_notes import TOO_FEW_ROWS
from openset.pipeline.summary import VERDICTS, Check, Verdict
from openset.stats.bounded_shift import smallest_noticed
from openset.stats.diagnostics import Diagnostic
from openset.stats.novelty import LIKELY, NoveltyTest
from openset.stats.shares import ShareEstimate
from openset.stats.thresholds import rows_for_threshold_after_choice, share_above

LOOK = "Look at the top rows before acting."
UNTESTED = (
    "This method has no test for a new class. Known kinds of rows that are rare in the source but common in the "
    f"target can stand out too. {LOOK}"
)
_LIMITS = {
    "moved": "The whole batch moved: known rows stand out as much as new ones.",
    "column": "A column alone tells source from target: it explains every difference.",
    "seen": "No source rows could be kept from training: every class has one or two rows.",
    "half": "More than half of the target would be new: source and target seem to be different data.",
    "aligned": "The whole batch moved and was aligned with source, perhaps wrongly, so nothing is proved.",
    "unmixed": (
        "Rows of source and target do not mix even at the finest scale, as if each had kinds of its own (other "
        "people, machines, months). The group may be such a kind of a known class."
    ),
}


def give_verdict(
    fraction: ShareEstimate,
    test: NoveltyTest | None = None,
    *,
    checks: Sequence[Check] = (),
    n_called: int = 0,
    n_groups: int = 0,
) -> Verdict:
    """A code, a word, a sentence and a caveat.

    A failed check makes it ``cannot_tell``. Else the code is the test's. A method without a test says at most
    that a group stands out, where its interval excludes 0.

    >>> give_verdict(ShareEstimate(0.08, 0.06, 0.1, 0.95, "…"), n_called=80, n_groups=1).word
    'a group stands out, not proved'
    >>> from openset.stats.novelty import novelty_verdict
    >>> random = np.random.default_rng(0)
    >>> found = novelty_verdict(random.normal(size=2000), random.normal(size=1000))
    >>> give_verdict(found.fraction, found.test).code
    'nothing'
    """
    if cannot_tell(test, checks):
        code = "cannot_tell"
    elif test is not None:
        code = test.code
    else:
        code = "stands_out" if fraction.low > 0 and n_called else "nothing"
    # the test may see rows that the budget of source rows does not let through
    n_rows = n_called or (test.counts.target_above if test is not None else 0)
    failed = list(dict.fromkeys(check.name for check in checks if check.state == "failed"))
    if failed:
        return Verdict(VERDICTS[code], _failed_text(failed), "", code)
    if code == "nothing":
        return Verdict(VERDICTS[code], *_nothing(test, n_called), code)
    sentence, caveat = _words(code, fraction, test, n_rows, n_groups)
    return Verdict(VERDICTS[code], sentence, caveat, code)


def cannot_tell(test: NoveltyTest | None, checks: Sequence[Check]) -> bool:
    """Whether something else may explain the batch: a failed check, or a limit of the test."""
    is_limited = test is not None and test.code == "cannot_tell"
    return is_limited or any(check.state == "failed" for check in checks)


def _failed_text(names: Sequence[str]) -> str:
    what = f"A check failed ({names[0]})" if len(names) == 1 else f"Checks failed ({', '.join(names)})"
    return f"{what}: something else may explain how source and target differ."


def _rows_text(n_called: int, n_groups: int) -> str:
    rows = "1 row stands out" if n_called == 1 else f"{n_called} rows stand out"
    if n_called == 1:
        return rows
    return (
        f"{rows} and form one group" if n_groups == 1 else f"{rows}, in {n_groups} groups" if n_groups else rows
    )


def _words(
    code: str, fraction: ShareEstimate, test: NoveltyTest | None, n_rows: int, n_groups: int
) -> tuple[str, str]:
    """The sentence and the caveat of a code where no check failed."""
    rows = _rows_text(n_rows, n_groups)
    if test is None:
        return f"{rows}.", UNTESTED
    if code == "cannot_tell":
        return _LIMITS[test.limit], LOOK
    if code in ("found", "probable"):
        start = "A new class makes up" if code == "found" else "A new class probably makes up"
        called = rows.replace("stand out", "are called new").replace("stands out", "is called new")
        return f"{start} at least {100 * fraction.low:.1f} % of the target; {called}.", _proof(fraction, test)
    return f"{rows}; {_explained(test, n_rows)}.", f"{_LIMITS.get(test.limit, _nearly(test))} {LOOK}"


def _nothing(test: NoveltyTest | None, n_called: int) -> tuple[str, str]:
    """The sentence and the caveat of "nothing new seen": why rows that are called new are no proof, and B."""
    called = f"{counted(n_called, 'row')} {'is' if n_called == 1 else 'are'} called new"
    if test is None:
        if not n_called:
            return "No rows stand out from the source.", UNTESTED
        return f"{called}, no more than chance explains.", UNTESTED
    ratio, them = test.max_density_ratio, "it" if n_called == 1 else "them"
    if not n_called:
        sentence = "No rows stand out more than known rows that became more common would."
    elif test.tolerated_ratio > 1:
        sentence = (
            f"{called}, but known rows that became more than {test.tolerated_ratio:.1f} times as common would "
            f"explain {them}, and {ratio:g} times is assumed possible."
        )
    else:
        sentence = f"{called}, but so few that chance explains {them}."
    least = smallest_noticed(test.counts.n_source, test.counts.n_target, ratio, LIKELY)
    noticed = (
        f"With these rows, a new class of less than about {100 * least:.1f} % cannot be proved"
        if least < 1
        else "With so few rows no new class can be proved"
    )
    return sentence, f"{noticed}, assuming that no known kind became more than {ratio:g} times as common."


def _explained(test: NoveltyTest, n_rows: int) -> str:
    they, rows, them = ("it", "a known row", "it") if n_rows == 1 else ("they", "known rows", "them")
    return (
        f"{they} could be {rows} only if some kind became {test.tolerated_ratio:.1f} times as common"
        if test.tolerated_ratio > 0
        else f"known rows that became more common explain {them}"
    )


def _nearly(test: NoveltyTest) -> str:
    return (
        f"Up to {test.max_density_ratio:g} times is assumed possible, so that is no proof: more source rows, a "
        "smaller --max-density-ratio if you know it, or a few labels would decide."
    )


def _proof(fraction: ShareEstimate, test: NoveltyTest) -> str:
    lows = ", ".join(f"{100 * low:.1f} % for {ratio}" for ratio, low in fraction.profile.items())
    return (
        f"p = {test.p_value:.2g}. {fraction.assumptions} A new class is proved up to {test.tolerated_ratio:.1f} "
        f"times. The least share is {lows} times. {LOOK}"
    )


def _rows_needed(model: Any) -> int:
    """Validation rows of the source that the model's kind of threshold needs to keep ``fpr``."""
    if getattr(model, "novelty_test_", None) is None:
        return math.ceil(1 / model.fpr - 1)
    return rows_for_threshold_after_choice(model.fpr, n_compared=len(model.heads_))


def diagnose(model: Any, warnings: Sequence[str]) -> list[summary.Diagnostic]:
    """What limits the verdict: each with a value, the threshold for it and what to do."""
    n_rows, needed = len(model.calibration_scores_), _rows_needed(model)
    words = f"The source has {n_rows} validation rows; a false-positive rate of {model.fpr:g} needs {needed}."
    advice = "" if n_rows >= needed else " Bring more source rows, or allow a larger rate (--fpr)."
    found = [Diagnostic("validation rows of the source", n_rows, needed, n_rows >= needed, words + advice)]
    if n_rows and np.isfinite(model.threshold_):
        above = share_above(model.calibration_scores_, model.threshold_)
        words = "Of the validation rows of the source, {:.2g} % are called new; the budget is {:.2g} %."
        sentence = words.format(100 * above, 100 * model.fpr)
        found.append(Diagnostic("source rows called novel", above, model.fpr, above <= model.fpr, sentence))
    reason = getattr(model, "stop_reason_", None)
    if reason is not None:
        steps = int(model.n_steps_)
        sentence = f"Training ended after {steps} steps ({reason.replace('_', ' ')})."
        found.append(Diagnostic("training steps", steps, None, True, sentence))
    found += getattr(model, "diagnostics_", [])
    for warning in warnings:
        if n_rows >= needed or TOO_FEW_ROWS not in warning:  # else the first diagnostic says it
            found.append(Diagnostic("warning", None, None, False, warning))
    return [summary.Diagnostic(**plain(vars(entry))) for entry in found]
