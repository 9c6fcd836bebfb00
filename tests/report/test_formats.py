from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.report.formats import count, finite, fixed, level, moment, number, percent, unbroken


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.2249, "22.5%"),
        (0.01, "1.0%"),
        (0.004, "0.40%"),
        (0.0004, "0.040%"),
        (0, "0%"),
        (1, "100%"),
        (-0.05, "-5.0%"),
        (None, "—"),
        ("?", "—"),
        (float("nan"), "—"),
    ],
)
def test_percent(share, text):
    assert percent(share) == text


@given(st.floats(0.001, 1))
def test_percent_is_right_to_half_of_its_last_digit(share):
    text = percent(share).removesuffix("%")
    digits = len(text.partition(".")[2])
    assert abs(float(text) - 100 * share) <= 0.5 * 10**-digits + 1e-9


def test_a_level_keeps_its_digits():
    assert [level(share) for share in (0.95, 0.005, 0.999, None)] == ["95%", "0.5%", "99.9%", "—"]


def test_thousands_are_set_apart():
    assert count(1234567) == "1\u202f234\u202f567" and count(999) == "999" and count(None) == "—"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.2345, "1.23"),
        (-1.2345, "−1.23"),
        (12345.6, "12346"),
        (0.00001234, "1.23e-05"),
        ("a word", "a word"),
        ("2.50", "2.5"),
        (True, "True"),
        (None, "—"),
        (float("inf"), "—"),
    ],
)
def test_numbers_have_three_digits(value, text):
    assert number(value) == text


def test_scores_line_up():
    assert [fixed(score) for score in (-1.2, 3.456, float("nan"))] == ["−1.20", "3.46", "—"]


def test_dates_are_in_words_and_other_text_stays():
    assert moment("2026-11-06T09:05:00+00:00") == "6 November 2026, 09:05 UTC"
    assert moment("2026-11-16") == "16 November 2026, 00:00" and moment("</script>") == "</script>"


def test_a_number_stays_with_its_per_cent_sign():
    assert unbroken("5 % of 10 rows, 2.5 % more") == "5\xa0% of 10 rows, 2.5\xa0% more"


@given(st.one_of(st.floats(), st.text(), st.none(), st.booleans()))
def test_what_is_no_finite_number_is_none(value):
    found = finite(value)
    assert found is None or abs(found) < float("inf")
