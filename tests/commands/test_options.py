"""Options that commands share: their help, and the settings that they make up."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from command_line import call
from openset.cli import app
from openset.commands.options import _method_names, settings_from
from openset.pipeline.settings import RunSettings

COMMANDS = ("fit", "score", "report", "inspect", "compare", "evaluate", "simulate", "export")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_and_fits_80_columns(command):
    shown = call(command, "--help").output
    assert re.search(rf"Examples?:\s+openset {command} ", shown)
    assert max(map(len, shown.splitlines())) <= 80


def test_options_become_settings_over_those_of_a_file():
    params = {
        "source": Path("a.csv"), "label": "kind", "features": ["x", "y"], "fpr": None, "skip_bad": True,
        "as_": ["zip=category", "a=b = date"], "carry": ["review, amount", "zip"], "set_": ["hidden=8"],
        "out": Path("run"), "quiet": True,
    }  # fmt: skip
    file = RunSettings(text="review", fpr=0.05, kinds={"zip": "number", "day": "date"}, carry="day",
                       parameters={"tol": 0.1, "hidden": 4})  # fmt: skip
    found = settings_from(SimpleNamespace(params=params), file)
    assert found == RunSettings(
        source="a.csv", label="kind", features=("x", "y"), text="review", fpr=0.05, skip_bad=True,
        kinds={"zip": "category", "day": "date", "a=b ": "date"}, carry=("review", "amount", "zip"),
        parameters={"tol": 0.1, "hidden": 8},
    )  # fmt: skip
    assert settings_from(SimpleNamespace(params={"features": [], "set_": None})) == RunSettings()


@pytest.mark.parametrize("given", ["zip", "=number", "zip:number"])
def test_a_kind_without_a_column_is_told(given):
    with pytest.raises(ValueError, match=f"--as {given} is not valid: write --as COL=KIND"):
        settings_from(SimpleNamespace(params={"as_": [given]}))


def test_every_setting_is_an_option_of_fit():
    names = {option.name for option in typer.main.get_command(app).commands["fit"].params}
    assert {field.name for field in fields(RunSettings)} - names == {"parameters", "kinds"} and {
        "set_",
        "as_",
    } <= names


def test_methods_complete():
    assert _method_names("col") == ["color", "color_paper"] and _method_names("zzz") == []
