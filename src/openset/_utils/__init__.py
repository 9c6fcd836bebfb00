"""Small helpers that know nothing of the rest: parameters, arrays, files, threads, progress, text."""

from __future__ import annotations
