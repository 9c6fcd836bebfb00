"""Holes that an attack found in reading, each closed: files that lost rows, crashed, hung or gave a traceback.

Nothing here uses what was added to close them, so that the file can be run on an older openset, where it is red.
"""

from __future__ import annotations

import io
import json
import os
import re
import resource
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pytest

from command_line import COMMAND, call
from openset.data import read_table
from openset.data.readers.records import SeenIds


def refused(path, match, **roles):
    with pytest.raises(ValueError, match=match):
        read_table(path, **roles)


@pytest.mark.parametrize("rows", [20_000, 400_000])
def test_a_quote_that_is_never_closed(tmp_path, rows):
    lines = [f"{i},t{i}\n" for i in range(rows)]
    lines[17_000] = '17000,"t17000\n'
    (tmp_path / "t.csv").write_text("x,t\n" + "".join(lines))
    refused(tmp_path / "t.csv", "quote that opens on line 17002", text="t")


def test_a_quote_that_the_next_one_closes(tmp_path):
    (tmp_path / "t.csv").write_text('x,t\n1,"a"\n2,"b\n3,"c"\n4,"d"\n')
    refused(tmp_path / "t.csv", "line 3 ends on line 4.*a quote is missing", text="t")


def test_a_value_over_very_many_lines_is_warned_of(tmp_path):
    (tmp_path / "t.csv").write_text('x,t\n1,"b\n' + "2,c\n" * 3000 + '3,d"\n4,e\n')
    with pytest.warns(UserWarning, match="goes over 3002 lines"):
        assert len(read_table(tmp_path / "t.csv", text="t")) == 2


def test_blank_lines_of_one_column_are_missing_values(tmp_path):
    (tmp_path / "t.csv").write_text("x\n1\n\n3\n")
    refused(tmp_path / "t.csv", "row 1: column 'x' is missing")
    records = read_table(tmp_path / "t.csv", skip_bad=True)
    assert records.rows.tolist() == [0, 2] and [bad.row for bad in records.skipped] == [1]


def test_a_short_row_that_is_not_utf_8_is_a_bad_row(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"x,t\n1,a\n\xff\xfe\n3,b\n")
    records = read_table(tmp_path / "t.csv", features="x", skip_bad=True)
    assert records.rows.tolist() == [0, 2] and [bad.row for bad in records.skipped] == [1]


READ_ALL = """
import sys
from openset.data import read_table
try:
    read_table(sys.argv[1], id="t")
except ValueError:
    sys.exit(2)
"""


@pytest.mark.parametrize("kind", ["stream", "file"])
def test_offsets_of_an_arrow_file_that_point_anywhere(tmp_path, kind):
    path = tmp_path / "t.arrow"
    table = pa.table({"x": np.arange(50.0), "t": [f"text {i}" for i in range(50)]})
    with (pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file)(path, table.schema) as writer:
        writer.write_table(table)
    offsets = np.cumsum([0] + [len(f"text {i}") for i in range(50)]).astype("<i4").tobytes()
    content = path.read_bytes()
    assert content.count(offsets) == 1
    for far in (10**9, 10**5, -(10**9)):
        damaged = offsets[:80] + np.int32(far).tobytes() + offsets[84:]
        path.write_bytes(content.replace(offsets, damaged))
        done = subprocess.run([sys.executable, "-c", READ_ALL, path], capture_output=True, check=False)
        assert done.returncode == 2, (far, done.stderr)


@pytest.mark.parametrize("name", ["t.csv", "t.npz"])
def test_a_pipe_is_refused_at_once(tmp_path, name):
    os.mkfifo(tmp_path / name)
    files = (tmp_path / name, tmp_path / name, "--label", "x", "--out", tmp_path / "run")
    done = subprocess.run([*COMMAND, "fit", *files], capture_output=True, timeout=60, check=False, text=True)
    assert done.returncode == 2 and "is a pipe" in done.stderr, done.stderr


def test_a_pipe_among_images_is_a_bad_row(tmp_path):
    os.mkfifo(tmp_path / "a.png")
    (tmp_path / "t.csv").write_text("image\na.png\n")
    code = "import sys; from openset.data import read_table\nread_table(sys.argv[1], image='image')"
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "t.csv"], capture_output=True, timeout=60, check=False
    )
    assert b"'a.png' is unreadable" in done.stderr


def test_a_device_and_a_loop_of_links_are_refused(tmp_path):
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    refused(tmp_path / "zero.csv", "is a device")
    for name in ("zero.csv", "loop.csv"):
        done = call("fit", tmp_path / name, tmp_path / name, "--label", "x", "--out", tmp_path / "run")
        assert done.exit_code == 2, done.output


def test_the_home_of_a_user_who_is_not_there(tmp_path):
    given = "~nobody-of-this-name/rows.csv"
    done = call("fit", given, given, "--label", "x", "--out", tmp_path / "run")
    assert done.exit_code == 2 and "does not exist" in done.output, done.exception


def npy(shape, data=b"\0" * 160):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return file.getvalue() + data


@pytest.mark.parametrize("pack", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("shape", [(10**13,), (10**30,), (21,), (19,)])
def test_an_npz_whose_header_lies(tmp_path, pack, shape):
    with zipfile.ZipFile(tmp_path / "t.npz", "w", pack) as archive:
        archive.writestr("x.npy", npy(shape))
        archive.writestr("y.npy", npy((20,)))
    refused(tmp_path / "t.npz", "not a readable .npz", features="x")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_npz_that_is_encrypted(tmp_path, save):
    save(tmp_path / "t.npz", x=np.arange(20.0))
    content = bytearray((tmp_path / "t.npz").read_bytes())
    for mark, flags in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        for found in re.finditer(mark, bytes(content)):
            content[found.start() + flags] |= 1
    (tmp_path / "t.npz").write_bytes(content)
    refused(tmp_path / "t.npz", "encrypted")


def test_an_npz_whose_bytes_changed(tmp_path):
    np.savez(tmp_path / "t.npz", x=np.arange(100.0))
    content = bytearray((tmp_path / "t.npz").read_bytes())
    content[500] ^= 1
    (tmp_path / "t.npz").write_bytes(content)
    refused(tmp_path / "t.npz", "CRC")


def test_an_npy_whose_header_asks_for_more_than_there_is(tmp_path):
    (tmp_path / "t.npy").write_bytes(npy((10**30, 3)))
    refused(tmp_path / "t.npy", "not a readable .npy")


def test_numbers_of_thousands_of_digits_and_deep_lists_are_bad_rows(tmp_path):
    deep = "[" * 100_000 + "]" * 100_000
    (tmp_path / "t.jsonl").write_text(f'{{"x": 1}}\n{{"x": {"9" * 5000}}}\n{{"x": {deep}}}\n{{"x": 2}}\n')
    records = read_table(tmp_path / "t.jsonl", skip_bad=True)
    assert records.rows.tolist() == [0, 3]


def test_a_line_without_end_meets_the_limit(tmp_path):
    with (tmp_path / "t.jsonl").open("wb") as file:
        file.write(b'{"x": 1}\n')
        file.truncate(300 * 2**20)
    refused(tmp_path / "t.jsonl", "a line is longer than 64 MB")


def test_ids_beyond_64_bits_are_bad_rows(tmp_path):
    lines = [{"x": 1, "i": 2**70}, {"x": 2, "i": 2**63}, {"x": 3, "i": -3}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    refused(tmp_path / "t.jsonl", "row 0: column 'i' holds a whole number beyond 64 bits", id="i")
    assert read_table(tmp_path / "t.jsonl", id="i", skip_bad=True).ids.tolist() == [2**63, -3]


def test_minus_one_and_minus_two_are_two_ids(tmp_path):
    lines = [{"x": 1, "i": -1}, {"x": 2, "i": -2}, {"x": 3, "i": 2**63}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_table(tmp_path / "t.jsonl", id="i").ids.tolist() == [-1, -2, 2**63]
    seen = SeenIds()
    assert not seen.repeated(np.array([-1, -2])).any()
    assert not seen.repeated(np.array([2**64 - 1, 2**64 - 2], dtype=np.uint64)).any(), "not the same 64 bits"
    assert seen.repeated(np.array([2**64 - 1, 5], dtype=np.uint64)).tolist() == [True, False]


def test_ids_of_both_signs_and_64_bits_are_written(problem_files, tmp_path):
    import pandas as pd

    target = pd.read_parquet(problem_files / "target.parquet")
    ids = [-1, -2, 2**63, 2**64 - 1, *range(len(target) - 4)]
    rows = [{**row, "rid": key} for row, key in zip(target.to_dict("records"), ids, strict=True)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = call("score", problem_files / "run", tmp_path / "t.jsonl", "--out", tmp_path / "out.csv")
    assert done.exit_code == 0, done.output
    assert pd.read_csv(tmp_path / "out.csv", dtype=str).iloc[:, 0].tolist() == list(map(str, ids))


def test_a_cache_on_a_full_disk_is_an_error_of_the_machine(tmp_path):
    code = """
import sys, numpy as np
from openset.features.cache import FeatureCache
from openset.commands.console import helpful_errors
with helpful_errors(False), FeatureCache(sys.argv[1]).open() as cache:
    for i in range(400):
        cache.put({bytes([i % 256, j, i // 256]): np.ones(5000, np.float32) for j in range(20)})
"""

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    run = {"capture_output": True, "text": True, "check": False, "preexec_fn": small_files}
    done = subprocess.run([sys.executable, "-c", code, tmp_path], **run)
    assert "feature cache" in done.stderr and "sqlite3" not in done.stderr.splitlines()[-1], done.stderr


def test_memory_that_a_file_asks_for_and_there_is_not(problem_files, tmp_path):
    (tmp_path / "t.npy").write_bytes(npy((2**40, 3), b""))
    done = call("score", problem_files / "run", tmp_path / "t.npy", "--out", tmp_path / "out.csv")
    assert done.exit_code == 2, done.output
