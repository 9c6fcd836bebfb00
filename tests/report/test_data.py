from __future__ import annotations

import numpy as np
import pytest
from samples import minimal_summary

from openset.report import ReportData, TargetMap


def test_too_much_for_a_page_is_refused(data):
    with pytest.raises(ValueError, match="1000 rows: pass at most 500"):
        ReportData(minimal_summary(), np.zeros(1), np.zeros(1), data.rows * 2)
    many = ("a",) * 5001
    with pytest.raises(ValueError, match="5001 rows: draw at most 5000"):
        TargetMap(np.zeros((5001, 2)), many, many, np.zeros(5001), (0,) * 5001, 5001, 1.0)
    with pytest.raises(ValueError, match="different lengths"):
        TargetMap(np.zeros((2, 2)), ("a",), ("a",), np.zeros(1), (0,), 1, 1.0)
