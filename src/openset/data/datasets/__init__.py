"""The paper's datasets, from files as they are downloaded, and their stand-ins."""

from __future__ import annotations
