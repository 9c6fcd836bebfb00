from __future__ import annotations

from openset._utils.downloads import VARIABLE, are_downloads_allowed, downloads


def test_downloads_are_allowed_in_the_block_only(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert not are_downloads_allowed()
    with downloads(True):
        assert are_downloads_allowed()
        with downloads(False):
            assert are_downloads_allowed(), "who allowed them outside is not overruled"
        assert are_downloads_allowed()
    assert not are_downloads_allowed()


def test_a_value_in_the_environment_stays(monkeypatch):
    monkeypatch.setenv(VARIABLE, "1")
    with downloads(False):
        assert are_downloads_allowed()
    with downloads(True):
        pass
    assert are_downloads_allowed()
