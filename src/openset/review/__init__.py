"""The review: a person confirms and names what a run found. In Python: ``openset.review.Session(run)``."""

from __future__ import annotations

from openset.review.session import Session

__all__ = ["Session"]
