from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.data.readers.csv_quotes import QuoteScan, UnclosedQuoteError


def follow(data):
    """The rules, one byte at a time: where a quote is never closed, or closes in the middle of a value."""
    state, line, opened, index = "start", 1, 0, 0
    while index < len(data):
        byte, following = data[index : index + 1], data[index + 1 : index + 2]
        if state == "start" and byte == b'"':
            state, opened = "quoted", line
        elif state != "quoted":
            state = "start" if byte in b",\n\r" else "plain"
        elif byte == b'"' and following == b'"':
            index += 1
        elif byte == b'"':
            if following and following not in b",\n\r" and line > opened:
                return "middle", opened
            state = "plain"
        line += byte == b"\n"
        index += 1
    return ("open", opened) if state == "quoted" else ("closed", 0)


def scan(data, cuts):
    quotes, start = QuoteScan(","), 0
    try:
        for cut in (*cuts, len(data) + 1):
            quotes.feed(data[start : start + cut])
            start += cut
        quotes.finish()
    except UnclosedQuoteError as error:
        line = int(str(error).split("line ")[1].split()[0])
        return "open" if "never" in str(error) else "middle", line
    return "closed", 0


@given(st.lists(st.sampled_from(b'"",\n\rab'), max_size=60).map(bytes), st.lists(st.integers(1, 9), max_size=12))
def test_blocks_of_any_length_give_what_single_bytes_give(data, cuts):
    assert scan(data, cuts) == follow(data)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b'x,t\n1,"a"\n', ("closed", 0)),
        (b'x,t\n1,"a ""b"" c"\n', ("closed", 0)),
        (b'x,t\n1,5" wide\n2,6"\n', ("closed", 0)),
        (b'x,t\n1,"a"b\n', ("closed", 0)),
        (b'x,t\n1,"two\nlines"\n', ("closed", 0)),
        (b'x,t\n1,"a\n2,"b"\n', ("middle", 2)),
        (b'x,t\n1,b\n2,"a\n', ("open", 3)),
        (b'x,t\n1,"a""', ("open", 2)),
    ],
)
def test_what_is_a_missing_quote(text, found):
    assert scan(text, []) == found == follow(text)


def test_the_longest_value_is_found():
    quotes = QuoteScan(",")
    quotes.feed(b'x,t\n1,"a\nb"\n2,"' + b"line\n" * 30)
    quotes.feed(b'end"\n3,"c\nd"\n')
    quotes.finish()
    assert quotes.longest == (31, 4)
    assert quotes.open_since is None
