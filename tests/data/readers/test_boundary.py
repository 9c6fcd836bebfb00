from __future__ import annotations

import errno
import os

import pytest

from openset.data.readers.boundary import reading, refuse_special
from openset.errors import UnreadableError


@pytest.mark.parametrize(
    "raised", [RuntimeError("r"), KeyError("k"), OverflowError("o"), OSError("no number"), NotImplementedError()]
)
def test_what_a_library_raises_becomes_one_sentence_with_its_cause(tmp_path, raised):
    with (
        pytest.raises(UnreadableError, match="t.npz is not a readable .npz file: ") as caught,
        reading(tmp_path / "t.npz", ".npz file"),
    ):
        raise raised
    assert caught.value.__cause__ is raised and "\n" not in str(caught.value)


def test_memory_and_early_ends_are_told_apart(tmp_path):
    with pytest.raises(UnreadableError, match="asks for more memory"), reading(tmp_path, "table"):
        raise MemoryError
    with pytest.raises(UnreadableError, match="ends too early"), reading(tmp_path, "table"):
        raise EOFError


def test_our_errors_and_those_of_the_system_pass(tmp_path):
    with pytest.raises(UnreadableError, match="^as it is$"), reading(tmp_path, "table"):
        raise UnreadableError("as it is")
    with pytest.raises(PermissionError), reading(tmp_path, "table"):
        raise PermissionError(errno.EACCES, "denied")
    with pytest.raises(KeyboardInterrupt), reading(tmp_path, "table"):
        raise KeyboardInterrupt


def test_the_error_says_how_far_reading_came(tmp_path):
    def read():
        with reading(tmp_path, "table") as place:
            place.row = 30
            raise IndexError("broken")

    with pytest.raises(UnreadableError, match="table beyond row 30: broken"):
        read()


def test_files_and_folders_are_no_special_files(tmp_path):
    (tmp_path / "file").touch()
    refuse_special(tmp_path)
    refuse_special(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is a pipe: give a file or a folder"):
        refuse_special(tmp_path / "pipe")
