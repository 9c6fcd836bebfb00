"""Files of every format with some bytes changed, and how many rows each holds by a second opinion."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import re
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

TRICKS = (
    b'"',
    b'""',
    b"\n",
    b"\r\n",
    b",",
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"nan",
    b"1e999",
    b"=1+1",
    b"{",
    b"]",
)


def write_formats(folder: Path, target: Path) -> list[Path]:
    """The rows of a Parquet file in every format that is read."""
    frame = pd.read_parquet(target)
    text = frame.to_csv(index=False)
    lines = frame.to_json(orient="records", lines=True)
    quoted = frame.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    arrays = {name: frame[name].to_numpy() for name in frame if name != "rid"}
    arrays["rid"] = frame["rid"].to_numpy().astype(str)
    (folder / "t.csv").write_text(text)
    (folder / "q.csv").write_text(quoted)
    (folder / "t.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    with pa.output_stream(folder / "t.csv.zst", compression="zstd") as file:
        file.write(text.encode())
    (folder / "t.tsv").write_text(frame.to_csv(index=False, sep="\t"))
    (folder / "t.jsonl").write_text(lines)
    (folder / "t.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
    pq.write_table(table, folder / "t.parquet", row_group_size=100)
    pq.write_table(table, folder / "plain.parquet", compression="none", use_dictionary=False)
    feather.write_feather(table, folder / "t.feather")
    for name, opened in (("stream.arrow", pa.ipc.new_stream), ("file.arrow", pa.ipc.new_file)):
        with opened(folder / name, table.schema) as writer:
            writer.write_table(table, max_chunksize=100)
    np.savez(folder / "t.npz", **arrays)
    np.savez_compressed(folder / "packed.npz", **arrays)
    return sorted(path for path in folder.iterdir() if path.is_file())


def mutated(content: bytes, seed: int) -> bytes:
    """Content with a few bytes changed, removed, put in, or moved; the same for the same seed."""
    chance, data = random.Random(seed), bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        place, kind = chance.randrange(max(1, len(data))), chance.randrange(7)
        if kind == 0 and data:
            data[place] ^= 1 << chance.randrange(8)
        elif kind == 1 and data:
            data[place] = chance.choice((0, 1, 127, 128, 255))
        elif kind == 2:
            data[place:place] = chance.choice(TRICKS)
        elif kind == 3:
            del data[place : place + chance.choice((1, 2, 16, 1000))]
        elif kind == 4:
            del data[place:]
        elif kind == 5:
            width = chance.choice((2, 4, 8))
            extreme = chance.choice((0, 1, 2 ** (8 * width - 1), 2 ** (8 * width) - 1))
            data[place : place + width] = extreme.to_bytes(width, "little")
        else:
            start = chance.randrange(max(1, len(data)))
            data[place:place] = data[start : start + chance.choice((1, 30, 3000))]
    return bytes(data)


def rows_in(path: Path) -> int | None:
    """How many rows a file has, read by other means than openset's; None where that cannot be told."""
    content = path.read_bytes()
    if path.name.endswith(".gz"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            return None
    kind = path.name.removesuffix(".gz").rsplit(".", 1)[1]
    if kind in ("csv", "tsv"):
        return _csv_rows(content.decode("latin-1").removeprefix("ï»¿"), "\t" if kind == "tsv" else ",")
    if kind == "jsonl":
        return sum(1 for line in content.split(b"\n") if line.strip())
    return None


def _csv_rows(text: str, delimiter: str) -> int:
    """Records where the file is well formed; elsewhere lines, as no value of the original went over two."""
    csv.field_size_limit(2**30)
    try:
        records = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        return sum(1 for record in records if record) - 1
    except csv.Error:
        return sum(1 for line in re.split("\r\n|\n|\r", text) if line) - 1


def rows_written(path: Path) -> int:
    """How many rows of scores a CSV file has."""
    with path.open(newline="", encoding="utf-8") as file:
        return sum(1 for _ in csv.reader(file)) - 1


def evil_files(folder: Path, mark: Path) -> list[Path]:
    """Files that would create ``mark`` if their pickled content were loaded."""

    class Evil:
        def __reduce__(self) -> object:
            return open, (str(mark), "w")

    np.save(folder / "evil.npy", np.array([Evil()] * 30, dtype=object), allow_pickle=True)
    np.savez(folder / "evil.npz", width=np.array([Evil()] * 30, dtype=object), height=np.zeros(30))
    np.savez_compressed(folder / "evil-packed.npz", width=np.array([Evil()] * 30, dtype=object))
    rows = [{"width": 1, "height": 1, "weight": 1, "rid": f"__import__('os').mknod({str(mark)!r})"}] * 2
    (folder / "evil.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return sorted(folder.glob("evil*"))
