"""The bytes of a CSV file on their way to pyarrow: quotes are followed, and bytes that are no UTF-8 are escaped.

pyarrow drops what follows a quote that is never closed, and cannot pass on a broken row that is not UTF-8. An
escaped byte is one character of a private range, which ``restored`` turns back into the byte.
"""

from __future__ import annotations

import codecs
import re
import warnings
from pathlib import Path
from typing import Any

from openset.data.readers.csv_quotes import QuoteScan, UnclosedQuoteError
from openset.data.readers.packed import open_unpacked
from openset.errors import DataWarning, UnreadableError

LONG_VALUE = 200
"""Lines in one quoted value from which on a warning asks whether a quote is missing."""
_BASE = 0x10FF00
_ESCAPED = re.compile(b"\xf4\x8f[\xbe\xbf][\x80-\xbf]")


def _escape(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "".join(chr(_BASE + byte) for byte in error.object[error.start : error.end]), error.end


codecs.register_error("openset.escape", _escape)


class CsvText:
    """A file that pyarrow reads from. ``escapes`` says whether a byte was escaped so far."""

    def __init__(self, path: Path, delimiter: str) -> None:
        self.closed = False
        self.escapes = False
        self._path = path
        self._file = open_unpacked(path)
        self._quotes = QuoteScan(delimiter)
        self._decoder = codecs.getincrementaldecoder("utf-8")("openset.escape")
        self._waiting = b""
        self._begun = self._ended = False

    def read(self, size: int) -> bytes:
        """The next bytes, at most ``size``; an error at the end of a file that ends inside a quote."""
        while not self._waiting and not self._ended:
            block = self._file.read(size)
            self._ended = not block
            text = self._as_utf8(block)
            self._waiting = text if self._begun else text.lstrip(b"\r\n")  # blank lines above the header
            self._begun = self._begun or bool(self._waiting)
            try:
                self._quotes.feed(block) if block else self._finish()
            except UnclosedQuoteError as error:
                raise self._refusal(str(error)) from None
        data, self._waiting = self._waiting[:size], self._waiting[size:]
        return data

    def __enter__(self) -> CsvText:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.closed = True
        self._file.__exit__(None, None, None)

    def refuse_open_quote(self) -> None:
        """Raise if a quote is open now; pyarrow gives up where one value has more than a block of bytes."""
        if self._quotes.open_since is not None:
            raise self._refusal(f"the quote that opens on line {self._quotes.open_since} is not closed for 1 MB")

    def _as_utf8(self, block: bytes) -> bytes:
        if block.isascii() and block and not self._decoder.getstate()[0]:
            return block
        text = self._decoder.decode(block, final=not block)
        data = text.encode()
        self.escapes = self.escapes or _ESCAPED.search(data) is not None
        return data

    def _finish(self) -> None:
        self._quotes.finish()
        lines, first = self._quotes.longest
        if lines >= LONG_VALUE:
            message = (
                f"{self._path}: the value in quotes that begins on line {first} goes over {lines} lines, which "
            )
            warnings.warn(f"{message}are one row. If they are many rows, a quote is missing.", DataWarning, 2)

    def _refusal(self, reason: str) -> UnreadableError:
        return UnreadableError(f"{self._path}: {reason}. Rows would be lost: close or double the quote.")


def is_escaped(text: str) -> bool:
    """Whether a text has a byte that was escaped.

    >>> is_escaped("é"), is_escaped(b"\\xe9".decode("utf-8", "openset.escape"))
    (False, True)
    """
    return _ESCAPED.search(text.encode()) is not None


def restored(batch: Any) -> Any:
    """A record batch of binary columns, with the bytes that were escaped as they are in the file."""
    import pyarrow as pa

    columns = [
        pa.array([None if value is None else _unescape(value) for value in column.to_pylist()], pa.binary())
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _unescape(value: bytes) -> bytes:
    return _ESCAPED.sub(lambda found: bytes([ord(found[0].decode()) - _BASE]), value)
