"""Loaders of the paper's datasets, from the files as they are downloaded, and of their stand-ins."""

from __future__ import annotations
