from __future__ import annotations

import pytest

from openset.methods._presets import PAPER_GRID, PRESETS
from openset.registry import get_method, methods

PAPERS = ("amazon_reviews", "cifar100", "sun397_resnet50", "sun397_vitl14")


def test_the_grid_is_the_papers():
    assert PAPER_GRID == (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)


def test_every_network_method_has_presets_and_every_preset_a_method():
    names = {method.name for method in methods()} - {"color"}
    assert names <= PRESETS.keys(), "CoLOR has defaults of its own"
    assert PRESETS.keys() <= names


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_valid_parameters(name):
    for preset in PRESETS[name]:
        given = {"candidate_embeddings": [[1.0]]} if name == "zoc" else {}
        model = get_method(name).load().preset(preset, **given)
        model._check_parameters()
    assert set(PRESETS[name]) == {*PAPERS, "amazon_minilm"}


@pytest.mark.parametrize("name", PRESETS)
def test_the_stand_in_for_the_reviews_is_the_same_narrower_and_shorter(name):
    theirs, ours = PRESETS[name]["amazon_reviews"], PRESETS[name]["amazon_minilm"]
    changed = {key for key in theirs if theirs[key] != ours[key]}
    assert changed <= {"hidden", "max_steps"} and theirs.keys() == ours.keys()
    if "hidden" in changed:
        assert (theirs["hidden"], ours["hidden"]) == (768, 384)
    if "max_steps" in changed:
        assert (theirs["max_steps"], ours["max_steps"]) == (None, 1000)


@pytest.mark.parametrize(
    ("name", "learning_rates", "l2"),
    [
        ("color_paper", (1e-3, 1e-3, 1e-3, 1e-3), (1e-4, 3e-7, 3e-7, 3e-7)),
        ("conop", (1e-3, 1e-3, 1e-3, 1e-3), (1e-4, 3e-7, 3e-7, 3e-7)),
        ("dd", (1e-2, 1e-2, 1e-2, 1e-1), (1e-4, 3e-5, 3e-5, 3e-5)),
        ("source_only", (1e-2, 1e-2, 1e-2, 1e-1), (1e-4, 3e-5, 3e-5, 3e-5)),
        ("upu", (1e-3, 1e-3, 1e-3, 1e-1), (1e-4, 3e-7, 3e-7, 3e-7)),
        ("nnpu", (1e-3, 1e-3, 1e-3, 1e-1), (1e-4, 3e-7, 3e-7, 3e-7)),
        ("pulse", (1e-3, 1e-3, 1e-3, 1e-3), (1e-4, 3e-5, 3e-5, 3e-5)),
        ("boda", (1e-3, 1e-3, 1e-3, 1e-3), (1e-4, 3e-3, 3e-3, 3e-3)),
        ("arpl", (1e-2, 1e-2, 1e-2, 1e-2), (1e-4, 3e-5, 3e-5, 3e-5)),
        ("cac", (1e-2, 1e-2, 1e-2, 1e-2), (1e-4, 3e-5, 3e-5, 3e-5)),
        ("shot", (1e-2, 1e-2, 1e-2, 1e-2), (5e-4, 5e-4, 5e-4, 5e-4)),
        ("anna", (1e-3, 1e-3, 1e-3, 1e-3), (5e-5, 5e-5, 5e-5, 5e-5)),
    ],
)
def test_rates_are_those_of_the_papers_table_or_of_the_authors(name, learning_rates, l2):
    found = [PRESETS[name][preset] for preset in PAPERS]
    assert tuple(preset["learning_rate"] for preset in found) == learning_rates
    assert tuple(preset["l2"] for preset in found) == l2
    hidden = (256, 256, 256, 256) if name == "shot" else (768, 512, 1024, 512)
    assert tuple(preset["hidden"] for preset in found) == hidden
    for preset in found:
        assert preset["fpr"] == 0.01 and preset["standardize"] is None and preset["tol"] == 0
        assert preset["batch_size"] == (32 if name == "anna" else 200)
