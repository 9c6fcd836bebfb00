"""From two files to an answer: settings, load, run, score, explain, result; and compare, simulate, tune."""

from __future__ import annotations
