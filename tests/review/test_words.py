from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openset.review.words import marked, telling_words


def test_words_of_the_highest_texts_tell():
    highest = ["A toy robot for kids", "the robot broke", "Robot toy!", "my robot"]
    others = ["the music is good", "a good kitchen knife", "the toy", "for my kitchen"] * 5
    found = telling_words(highest, others)
    assert "robot" in found and "the" not in found and "music" not in found


@given(st.text(max_size=200), st.dictionaries(st.sampled_from(["toy", "ab"]), st.floats(1, 5)))
def test_the_pieces_are_the_text(text, words):
    assert "".join(piece for piece, _ in marked(text, words)) == text


def test_strength_is_at_most_three():
    assert marked("toy", {"toy": 9.0}) == [("toy", 3)]
