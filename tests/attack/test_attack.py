"""A short attack in every run of the tests; ``make attack`` is the same for as long as one likes."""

from __future__ import annotations

from itertools import islice

import pytest

from attack.campaigns import CAMPAIGNS, SHARES, damaged_files, make_ground
from attack.oracle import FAILURES, Server, Tally, failed_ways

CASES = {"damaged files": 98, "tampered runs": 30, "odd paths": 52, "evil files": 8, "killed writers": 3}


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    with Server() as server:
        yield make_ground(tmp_path_factory.mktemp("attack"), server, Tally())


@pytest.mark.parametrize("name", CASES)
def test_no_row_is_lost_no_file_half_written_and_nothing_crashes_hangs_or_runs(ground, name):
    ground.tally.failures.clear()
    before = ground.tally.cases[name]
    for _ in islice(CAMPAIGNS[name](ground, 7), CASES[name]):
        pass
    assert ground.tally.cases[name] - before == CASES[name]
    assert ground.tally.failures == []


def test_every_campaign_has_a_share():
    assert SHARES.keys() == CAMPAIGNS.keys() == CASES.keys()


def test_the_oracle_sees_what_it_is_for(ground):
    """A command that loses rows, leaves half a file, gives a traceback, dies, hangs or runs code fails."""
    honest, tally = ground.server, ground.tally

    class Fake:
        def __init__(self, answer, content):
            self.answer, self.content = answer, content

        def __call__(self, *arguments):
            (ground.folder / "out.csv").write_text(self.content)
            return self.answer

    seen = set()
    try:
        for answer, content, kind in [
            ((0, ""), "id\n1\n", "rows lost"),
            ((0, ""), "id\n1\n2", "half files"),
            ((2, ""), "id\n", "half files"),
            ((1, "KeyError()"), "old scores\n", "tracebacks"),
            ((-11, "it died"), "old scores\n", "crashes"),
            ((None, "it hangs"), "old scores\n", "hangs"),
        ]:
            tally.failures.clear()
            ground.server = Fake(answer, content)
            ground.scored("fake", "case", ground.folder, rows=2)
            assert [found for found, _ in tally.failures] == [kind]
            seen.add(kind)
        tally.failures.clear()
        ground.mark.touch()
        ground.finish("fake", "case", 0, [])
        seen |= {found for found, _ in tally.failures}
    finally:
        ground.server = honest
        tally.failures.clear()
    assert seen == set(FAILURES)


def test_equal_seeds_try_equal_cases(ground):
    contents = []
    for _ in range(2):
        next(damaged_files(ground, 11))
        contents.append((ground.folder / "damaged" / "file.arrow").read_bytes())
    assert contents[0] == contents[1]


def test_how_a_command_ended_is_told():
    assert failed_ways(0, "") == failed_ways(2, "") == []
    assert failed_ways(7, "") == ["tracebacks"] and failed_ways(-6, "") == ["crashes"]


def test_a_server_that_dies_is_started_again():
    with Server() as server:
        assert server("--version") == (0, "")
        server._process.kill()
        server._process.wait()
        with pytest.raises(BrokenPipeError):
            server("--version")
        server.close()
        assert server("methods")[0] == 0
