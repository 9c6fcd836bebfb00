"""Small helpers for all of openset: parameters, arrays, files, hashing, threads, progress, text."""

from __future__ import annotations
