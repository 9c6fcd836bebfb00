from __future__ import annotations

import pytest

from openset.errors import FitWarning, ManifestError, MissingExtraError, ModelFormatError


def test_a_missing_extra_says_what_to_install():
    error = MissingExtraError("the report", "report")
    assert str(error) == "the report needs an optional dependency: pip install 'openset[report]'"


@pytest.mark.parametrize(
    ("own", "built_in"),
    [
        (ModelFormatError, ValueError),
        (ManifestError, ValueError),
        (MissingExtraError, ImportError),
        (FitWarning, UserWarning),
    ],
)
def test_they_can_be_caught_as_what_they_are(own, built_in):
    assert issubclass(own, built_in)
