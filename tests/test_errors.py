from __future__ import annotations

import pickle

import pytest

from openset.errors import (
    BadRowsError,
    FitWarning,
    ManifestError,
    MissingExtraError,
    ModelFormatError,
    Parameter,
    ParameterError,
)


def test_a_missing_extra_says_what_to_install():
    error = MissingExtraError("the report", "report")
    assert str(error) == "the report needs an optional dependency: pip install 'openset[report]'"


@pytest.mark.parametrize(
    ("own", "built_in"),
    [
        (ModelFormatError, ValueError),
        (ManifestError, ValueError),
        (ParameterError, ValueError),
        (MissingExtraError, ImportError),
        (FitWarning, UserWarning),
    ],
)
def test_they_can_be_caught_as_what_they_are(own, built_in):
    assert issubclass(own, built_in)


def test_parameters_are_written_as_each_interface_takes_them():
    error = ParameterError(
        "use ", Parameter("fdr", 0.1), " or ", Parameter("label", ...), " without ", Parameter("id")
    )
    assert str(error) == "use fdr=0.1 or label=... without id"
    assert error.written(lambda parameter: f"<{parameter.name}>") == "use <fdr> or <label> without <id>"


def test_an_error_with_parameters_survives_a_process(tmp_path):
    error = BadRowsError("row 3 is bad.", " Skip it with ", Parameter("skip_bad", True), ".")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is BadRowsError and str(again) == str(error) == "row 3 is bad. Skip it with skip_bad=True."
    assert again.found == "row 3 is bad."
