from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from openset.bench.execute import execute
from openset.bench.provenance import _mkl_takes_it_for_intel, _processor, code_version, environment
from openset.bench.runs import Run
from openset.bench.store import Store


def test_the_code_version_is_stable_and_names_the_version():
    assert code_version() == code_version.__wrapped__() and code_version().startswith("0.")


def test_a_run_names_where_it_was_carried_out_and_the_store_keeps_that(tmp_path, monkeypatch):
    run = Run("synthetic", None, '{"n_source":60,"n_target":60}', "shift", "novel", 0, "knn", '{"fpr":7}')
    elsewhere = {"processor": "another kind"}
    monkeypatch.setattr("openset.bench.execute.environment", lambda: elsewhere)
    result = execute(run, None)
    assert "fpr=7" in result.failure and result.environment == elsewhere
    store = Store(tmp_path / "runs.sqlite")
    store.put(run, result, spec="mine")
    assert store.all()[0].result == result
    assert environment()["torch"] and environment()["processor"]


@pytest.mark.parametrize(
    ("cpuinfo", "processor"),
    [
        ("cpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nstepping\t: 1\n", "AMD EPYC (25 17)"),
        ("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n", "unknown (0x41 0xd0c)"),
        ("processor\t: 0\n", "unknown"),
        (None, "a maker's word"),
    ],
)
def test_the_kind_of_processor_is_told_wherever_it_can_be(cpuinfo, processor, monkeypatch):
    def read_text(path, encoding):
        if cpuinfo is None:
            raise FileNotFoundError(path)
        return cpuinfo

    monkeypatch.setattr(Path, "read_text", read_text)
    monkeypatch.setattr("platform.processor", lambda: "a maker's word")
    assert _processor() == processor


@pytest.mark.parametrize(
    ("vendor", "answer", "told"),
    [
        ("AuthenticAMD", lambda: 1, True),
        ("AuthenticAMD", lambda: 0, False),
        ("AuthenticAMD", None, False),  # no library was preloaded
        ("GenuineIntel", lambda: 1, False),  # it is Intel's
    ],
)
def test_kernels_for_another_maker_are_told_because_they_round_differently(vendor, answer, told, monkeypatch):
    functions = SimpleNamespace(**({"mkl_serv_intel_cpu_true": answer} if answer else {}))
    monkeypatch.setattr("ctypes.CDLL", lambda name: functions)
    assert _mkl_takes_it_for_intel(vendor) is told
    monkeypatch.setattr(Path, "read_text", lambda path, encoding: f"vendor_id\t: {vendor}\nmodel name\t: EPYC\n")
    assert _processor() == ("EPYC, MKL as on Intel" if told else "EPYC")
