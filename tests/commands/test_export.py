"""``openset export``."""

from __future__ import annotations

import json

from command_line import call


def test_a_network_is_written_with_its_columns(problem_files, tmp_path):
    files = (problem_files / "source.parquet", problem_files / "target.parquet")
    quick = ("--method", "source_only", "--set", "max_steps=50", "--out", tmp_path / "run", "-q")
    assert call("fit", *files, "--label", "kind", "--id", "rid", *quick).exit_code == 0
    done = call("export", tmp_path / "run", "--onnx", tmp_path / "m.onnx")
    assert done.exit_code == 0 and "Its input x is made of: width, height, weight" in " ".join(
        done.output.split()
    )
    assert (tmp_path / "m.onnx").stat().st_size > 0
    done = call("export", tmp_path / "run", "--onnx", tmp_path / "m.onnx", "--json")
    assert json.loads(done.stdout) == {
        "out": str(tmp_path / "m.onnx"), "method": "SourceOnly", "inputs": ["x"],
        "features": ["width", "height", "weight"], "reason": "",
    }  # fmt: skip
    assert call("export", tmp_path / "run", "--onnx", tmp_path / "m.onnx", "-q").output == ""


def test_a_method_without_a_network_is_refused(problem_files, tmp_path):
    refused = call("export", problem_files / "run", "--onnx", tmp_path / "no.onnx")
    assert refused.exit_code == 2 and "Mahalanobis has no network" in refused.output
    assert not (tmp_path / "no.onnx").exists()
