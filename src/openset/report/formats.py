"""Numbers and dates as text on the page."""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import Any


def finite(value: Any) -> float | None:
    """A finite number, or None for anything else; JSON has no infinity.

    >>> finite("0.5"), finite(float("inf")), finite(None)
    (0.5, None, None)
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def percent(share: Any) -> str:
    """A share in per cent; smaller shares have more digits.

    >>> percent(0.2249), percent(0.004), percent(1), percent(0), percent(None)
    ('22.5%', '0.40%', '100%', '0%', '—')
    """
    number = finite(share)
    if number is None:
        return "—"
    value = 100 * number
    if value in (0, 100):
        return f"{value:.0f}%"
    digits = 1 if abs(value) >= 1 else 2 if abs(value) >= 0.1 else 3
    return f"{value:.{digits}f}%"


def level(share: Any) -> str:
    """A level in per cent, with all the digits that it was given with.

    >>> level(0.95), level(0.005)
    ('95%', '0.5%')
    """
    given = finite(share)
    return "—" if given is None else f"{100 * given:.6g}%"


def count(value: Any) -> str:
    """A whole number with thin spaces between thousands.

    >>> count(100000)
    '100\\u202f000'
    """
    return "—" if value is None else f"{int(value):,}".replace(",", "\u202f")


def number(value: Any) -> str:
    """A number to three significant digits.

    >>> number(1.2345), number(0.00001234), number(None)
    ('1.23', '1.23e-05', '—')
    """
    if isinstance(value, bool) or (isinstance(value, str) and finite(value) is None):
        return str(value)
    given = finite(value)
    if given is None:
        return "—"
    return (
        f"{given:.0f}" if abs(given) >= 100 else f"{given:.3g}".replace("-", "−" if abs(given) >= 1e-4 else "-")
    )


def fixed(value: float) -> str:
    """A score with two decimals and a minus sign, so that a column of scores is aligned.

    >>> fixed(-1.2)
    '−1.20'
    """
    return f"{value:.2f}".replace("-", "−") if math.isfinite(value) else "—"


def moment(text: str) -> str:
    """A date and time in words, or the text itself if it is not a date.

    >>> moment("2026-11-06T09:30:00+00:00"), moment("yesterday")
    ('6 November 2026, 09:30 UTC', 'yesterday')
    """
    try:
        then = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{then.day} {then:%B %Y, %H:%M} {then.tzname() or ''}".rstrip()


def unbroken(text: str) -> str:
    """A sentence in which no line breaks between a number and its per cent sign.

    >>> unbroken("about 15.2 % of the target")
    'about 15.2\\xa0% of the target'
    """
    return re.sub(r"(?<=\d) (?=%)", "\u00a0", text)
