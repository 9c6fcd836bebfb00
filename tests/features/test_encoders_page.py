"""The examples of docs/encoders.md, with tiny models where it names some of a user's own."""

from __future__ import annotations

import shutil

import numpy as np
from PIL import Image

from doc_blocks import run_page


def test_the_page_on_encoders_runs(bert, vision, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(bert, "models/bge-small")
    shutil.copytree(vision["clip"], "models/clip-vit-base-patch32")
    Image.fromarray(np.zeros((20, 30, 3), np.uint8)).save("a.png")
    names = {"reviews": ["good", "bad"], "texts": ["the red cat", "a dog"], "paths": ["a.png"]}
    found = run_page("docs/encoders.md", names)
    assert found["X_images"].shape == (1, 1280) and found["X"].shape == (2, 24)
