"""Parts of files, folders and patterns, here and on S3; shards; names of the output."""

from __future__ import annotations

import pandas as pd
import pytest

from openset.cluster.plan import Shard, make_plan

NAMES = [f"part-{i}.parquet" for i in range(5)]


def test_a_pattern_a_folder_and_a_file(parts):
    for data in (f"{parts}/*.parquet", parts, f"{parts}/", f"file://{parts}"):
        plan = make_plan(data)
        assert [part.name for part in plan.parts] == [part.out for part in plan.parts] == NAMES
        assert plan.data.url == str(parts) and sum(part.share for part in plan.parts) == pytest.approx(1)
    (parts / "_SUCCESS").write_text("not a part")
    assert [part.name for part in make_plan(parts / "part-2.parquet").parts] == ["part-2.parquet"]


def test_the_same_on_a_store(on_s3):
    on_s3.put("bucket", "in/_openset/part-0.parquet", b"not a part")
    for data in (
        "s3://bucket/in/*.parquet",
        "s3://bucket/in",
        "s3://bucket/in/",
        "s3://bucket/i*/part-[0-9].parquet",
    ):
        names = [part.name.removeprefix("in/") for part in make_plan(data).parts]
        assert names == NAMES, data
    assert [part.name for part in make_plan("s3://bucket/in/part-3.parquet").parts] == ["part-3.parquet"]


@pytest.mark.parametrize(
    "data", ["s3://bucket/in/*.csv", "s3://bucket/none/", "{parts}/*.csv", "{parts}/none.csv"]
)
def test_what_matches_nothing_is_told(on_s3, parts, data):
    with pytest.raises(FileNotFoundError, match=r"matches no table file. Give a file, a folder of table files"):
        make_plan(data.format(parts=parts))


def test_what_is_no_set_of_parts_is_told(parts):
    with pytest.raises(ValueError, match="the data is a DataFrame: write it to a file first"):
        make_plan(pd.DataFrame({"x": [1]}))
    with pytest.raises(ValueError, match="a bucket is named, not a pattern"):
        make_plan("s3://buck*/in")
    (parts / "part-9.parquet").touch()
    with pytest.raises(ValueError, match="part-9.parquet is empty"):
        make_plan(parts)
    (parts / "part-9.parquet").rename(parts / "part-9.csv")
    with pytest.raises(ValueError, match="several formats"):
        make_plan(parts)


def test_formats_of_the_output(parts, tmp_path):
    assert make_plan(parts, "csv.gz").parts[0].out == "part-0.csv.gz"
    assert make_plan(parts, ".parquet").parts[0].out == "part-0.parquet"
    with pytest.raises(ValueError, match="'.xls' is unknown"):
        make_plan(parts, "xls")
    (tmp_path / "rows.npy").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"write .npz, or another with format='parquet'"):
        make_plan(tmp_path / "rows.npy")
    assert make_plan(tmp_path / "rows.npy", "parquet").parts[0].out == "rows.parquet"


def test_shards_share_out_all_parts():
    parts = list("abcdefg")
    found = [Shard.parsed(f"{i}/3").of(parts) for i in range(3)]
    assert sorted(part for own in found for part in own) == parts and Shard.parsed(None).of(parts) == parts
    assert Shard.parsed("7/9").of(parts) == []
    for wrong, words in (
        ("3/2", "of 2, shards are numbered from 0/2 to 1/2"),
        ("1/1", "0/1 alone"),
        ("1", "0/4"),
    ):
        with pytest.raises(ValueError, match=words):
            Shard.parsed(wrong)
