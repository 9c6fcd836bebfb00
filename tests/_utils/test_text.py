from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openset._utils.text import did_you_mean, listed, shortened, wrapped


def test_lists_in_a_message():
    assert listed([]) == ""
    assert listed(["a"]) == "a"
    assert listed("abcde") == "a, b, c, d, e"
    assert listed(iter("abcdefg")) == "a, b, c, d, e and 2 more"
    assert listed([1, None, 2.5], limit=2) == "1, None and 1 more"


@given(st.text(max_size=12), st.integers(1, 12))
def test_shortened_text_fits_and_is_a_prefix(text, limit):
    short = shortened(text, limit)
    assert len(short) <= limit
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]) and len(text) > limit)


def test_the_most_similar_name_is_suggested():
    assert did_you_mean("lable", ["value", "label"]) == " Did you mean 'label'?"
    assert did_you_mean("lable", {"label": 1, "size": 2}) == " Did you mean 'label'?"
    assert did_you_mean("lable", ["x"]) == did_you_mean("lable", []) == ""


@given(st.text("ab cde", max_size=300), st.text("xy ", min_size=1, max_size=20))
def test_wrapped_lines_fit_a_terminal_and_keep_every_word(text, head):
    lines = wrapped(head, text)
    assert lines and max(map(len, lines)) <= 78
    assert "".join(lines).replace(" ", "") == (head + text).replace(" ", "")
    assert all(line.startswith(" " * len(head)) for line in lines[1:])
