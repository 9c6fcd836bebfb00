"""What limits an answer: each a number, the threshold it is held against, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Diagnostic:
    """One check: ``ok`` says whether ``value`` is on the good side of ``threshold``, the sentence what to do."""

    name: str
    value: float | None
    threshold: float | None
    ok: bool
    sentence: str
