from __future__ import annotations

import math
import sys

import pytest

from openset._utils.extras import require
from openset.errors import MissingExtraError


def test_a_module_that_is_there_is_returned():
    assert require("math", "counting", "data") is math
    assert require("xml.dom", "reading XML", "data").__name__ == "xml.dom"


def test_a_missing_module_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        MissingExtraError, match=r"^Reading Parquet needs .* pip install 'openset\[data\]'$"
    ) as caught:
        require("pyarrow", "Reading Parquet", "data")
    assert isinstance(caught.value.__cause__, ImportError)
