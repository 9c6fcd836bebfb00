"""The same operations on this machine, on S3 and on what fsspec knows; errors of a store in a sentence."""

from __future__ import annotations

import errno

import pytest

from openset.cluster.folders import LocalFolder, open_folder, telling


@pytest.fixture(params=["local", "s3", "memory"])
def folder(request, tmp_path, s3):
    urls = {"local": str(tmp_path / "some"), "s3": "s3://bucket/some/", "memory": f"memory://{tmp_path.name}/x"}
    return open_folder(urls[request.param])


def test_files_are_written_listed_read_and_deleted(folder):
    assert folder.files() == {} and folder.found("a/b c=1.txt") is None
    folder.write("a/b c=1.txt", b"one")
    folder.write("a/b c=1.txt", b"three")
    with folder.writing("z.bin") as temporary:
        temporary.write_bytes(b"0" * 100)
        assert folder.found("z.bin") is None
    assert {name: file.size for name, file in folder.files().items()} == {"a/b c=1.txt": 5, "z.bin": 100}
    assert folder.files()["z.bin"] == folder.found("z.bin")
    with folder.fetched("a/b c=1.txt") as root:
        assert (root / "a/b c=1.txt").read_bytes() == folder.read("a/b c=1.txt") == b"three"
    folder.delete("z.bin")
    folder.delete("z.bin")
    assert list(folder.files()) == ["a/b c=1.txt"]


def test_a_write_that_fails_leaves_the_old_file(folder):
    folder.write("a.txt", b"old")

    def write_half():
        with folder.writing("a.txt") as temporary:
            temporary.write_bytes(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert folder.read("a.txt") == b"old" and list(folder.files()) == ["a.txt"]


def test_file_urls_are_this_machine(tmp_path):
    assert open_folder(f"file://{tmp_path}") == LocalFolder(tmp_path)


def test_buckets_that_are_missing_or_refused(s3):
    with pytest.raises(FileNotFoundError, match="s3://nobody/x: there is no bucket 'nobody'. Check its name"):
        open_folder("s3://nobody/x")
    s3.buckets["private"] = {}
    s3.refused.add("private")
    with pytest.raises(PermissionError, match="s3://private/x: access is refused. Set AWS_ACCESS_KEY_ID"):
        open_folder("s3://private/x").files()


def test_a_folder_of_a_bucket_that_may_not_be_looked_at(s3):
    s3.not_looked_at.add("bucket")
    folder = open_folder("s3://bucket/mine")
    folder.write("a.txt", b"text")
    assert list(folder.files()) == ["a.txt"] and folder.read("a.txt") == b"text"
    folder.delete("a.txt")
    assert folder.found("a.txt") is None


def test_protocols_that_nobody_knows():
    with pytest.raises(ValueError, match="nothing is known of nosuch://"):
        open_folder("nosuch://bucket/x")


def test_a_full_disk_and_other_errors_keep_their_kind():
    with pytest.raises(OSError, match="no room for a copy of s3://b/x in ") as raised, telling("s3://b/x"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert raised.value.errno == errno.ENOSPC
    with pytest.raises(OSError, match="^something else$"), telling("s3://b/x"):
        raise OSError("something else")
    with pytest.raises(ConnectionError, match="the store cannot be reached"), telling("s3://b/x"):
        raise OSError("AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 7")
