"""Connecting to Ray; without it the extra is named."""

from __future__ import annotations

import sys

import pytest

from openset.cluster.ray_cluster import cluster_cpus, ray_cluster
from openset.errors import MissingExtraError


class FakeRay:
    """What of Ray is called, and with what."""

    def __init__(self):
        self.calls = []

    def init(self, **options):
        self.calls.append(options)

    def shutdown(self):
        self.calls.append("shutdown")

    def cluster_resources(self):
        return {"CPU": 8.0}


def test_a_local_cluster_or_that_of_the_address(monkeypatch):
    fake = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", fake)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with ray_cluster(3) as ray:
        assert ray is fake and cluster_cpus(ray) == 8
    assert fake.calls[0]["num_cpus"] == 3 and fake.calls[1] == "shutdown"
    monkeypatch.setenv("RAY_ADDRESS", "ray://head:10001")
    with pytest.raises(RuntimeError), ray_cluster():
        raise RuntimeError
    assert "num_cpus" not in fake.calls[2] and fake.calls[3] == "shutdown"


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"openset\[ray\]"), ray_cluster():
        pass
