"""Where the quotes of a CSV file open and close, block by block: a missing one loses rows without a word.

The rules are those of pyarrow's parser. A quote opens a value only at its beginning; inside, two quotes stand for
one; what follows a closing quote up to the separator is text, and quotes in it are plain characters.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_QUOTE, _NEWLINE, _RETURN = b'"\n\r'
_OUTSIDE, _INSIDE, _DOUBLED = range(3)  # doubled: after the first of two quotes that stand for one


class UnclosedQuoteError(ValueError):
    """A quote is missing, so that several rows would be read as one value."""


class QuoteScan:
    """Follows the quotes of one file. ``feed`` takes its bytes in order, ``finish`` comes after the last.

    ``longest`` is the largest number of lines that one quoted value goes over, and the line where it begins.

    >>> scan = QuoteScan(",")
    >>> scan.feed(b'x,t\\n1,"two\\nlines"\\n2,"never closed\\n3,c\\n')
    >>> scan.finish()
    Traceback (most recent call last):
    ...
    openset.data.readers.csv_quotes.UnclosedQuoteError: the quote that opens on line 4 is never closed
    """

    def __init__(self, delimiter: str) -> None:
        self.longest = (1, 1)
        self._ends = np.isin(np.arange(256), list(f"{delimiter}\n\r".encode()))  # bytes between two values
        self._state = _OUTSIDE
        self._line = 1  # of the next byte
        self._opened = 1  # the line where the last value in quotes begins
        self._before = _NEWLINE  # the byte before the next one
        self._held = b""  # a quote at the end of a block: what it means depends on the next byte

    def feed(self, block: bytes) -> None:
        """Follow the quotes of the next bytes; an error if a value goes over lines and on after its end."""
        data = self._held + block if self._held else block
        self._held = data[-1:] if data.endswith(b'"') else b""
        scanned = len(data) - len(self._held)
        if not scanned:
            return
        if data.find(b'"', 0, scanned) >= 0:
            self._scan(np.frombuffer(data, np.uint8), scanned)
        else:
            self._line += data.count(b"\n", 0, scanned)
        self._before = data[scanned - 1]
        self._note_length(self._line)

    def finish(self) -> None:
        """Say where the file ends inside a quote, if it does."""
        self.feed(b"\n")
        if self._state == _INSIDE:
            raise UnclosedQuoteError(f"the quote that opens on line {self._opened} is never closed")

    @property
    def open_since(self) -> int | None:
        """The line of the quote that is open now, None if none is."""
        return self._opened if self._state == _INSIDE else None

    def _scan(self, data: NDArray[np.uint8], scanned: int) -> None:
        """Follow the quotes of ``data[:scanned]``; a byte behind is what follows the last of them."""
        marks = np.flatnonzero(data[:scanned] == _QUOTE)
        newlines = np.flatnonzero(data == _NEWLINE)
        lines = self._line + np.searchsorted(newlines, marks)
        self._line += len(newlines)
        before, after = data[marks - 1], data[marks + 1]
        if marks[0] == 0:
            before[0] = self._before
        opening = (np.arange(len(marks)) + (self._state == _INSIDE)) % 2 == 0
        opens = self._ends[before]
        reopens = np.r_[self._state == _DOUBLED, after[:-1] == _QUOTE] & (before == _QUOTE)
        closes = self._ends[after] | (after == _QUOTE)
        if not np.where(opening, opens | reopens, closes).all():
            self._follow(before, after, lines)
            return
        # in a well-formed file quotes open and close in turn
        begins = np.flatnonzero(opening & ~reopens)
        starts = np.maximum.accumulate(np.where(opening & ~reopens, np.arange(len(marks)), -1))
        opened = np.where(starts >= 0, lines[starts], self._opened)
        closing = np.flatnonzero(~opening)
        if len(closing):
            index = closing[np.argmax(lines[closing] - opened[closing])]
            self._lengthen(int(opened[index]), int(lines[index]))
        if len(begins):
            self._opened = int(lines[begins[-1]])
        doubled = after[-1] == _QUOTE
        self._state = _INSIDE if opening[-1] else _DOUBLED if doubled else _OUTSIDE

    def _follow(self, before: NDArray[np.uint8], after: NDArray[np.uint8], lines: NDArray[np.int64]) -> None:
        """One quote after the other, where some are plain characters or out of place."""
        ends = set(np.flatnonzero(self._ends).tolist())
        for last, following, line in zip(before.tolist(), after.tolist(), lines.tolist(), strict=True):
            if self._state == _DOUBLED:
                self._state = _INSIDE
            elif self._state == _OUTSIDE:
                if last in ends:
                    self._state, self._opened = _INSIDE, line
            elif following == _QUOTE:
                self._state = _DOUBLED
            else:
                self._state = _OUTSIDE
                self._lengthen(self._opened, line)
                if following not in ends and line > self._opened:
                    raise UnclosedQuoteError(
                        f"the value in quotes that begins on line {self._opened} ends on line {line}, in the "
                        "middle of a value, so a quote is missing"
                    )

    def _note_length(self, line: int) -> None:
        if self._state == _INSIDE:
            self._lengthen(self._opened, line)

    def _lengthen(self, first: int, last: int) -> None:
        if last - first + 1 > self.longest[0]:
            self.longest = (last - first + 1, first)
