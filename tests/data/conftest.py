"""The helpers beside the tests are importable."""

from __future__ import annotations

import sys
from pathlib import Path

for folder in ("readers", "datasets"):
    sys.path.insert(0, str(Path(__file__).parent / folder))
