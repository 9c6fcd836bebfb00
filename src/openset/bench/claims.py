"""Whether a claim of the paper holds here, by cells of pages of results that are compared as they are printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import product
from pathlib import Path

from openset.bench.result_pages import MissingCell, Pages, number_of

WITH_SHIFT = "with shift"
SIGNIFICANT = 0.05


@dataclass(frozen=True, kw_only=True)
class Rule:
    """When cells speak for a claim.

    ``left`` must be above the best of ``right``, or with a ``margin`` at most that far below it; if it is
    ``tested``, the page's paired test must find it above the only one of ``right``. Or all ``rows``, in all
    sections ``across`` if they are given, must lie within ``spread``; or one of them below ``below``; or all of
    them above ``above``.
    """

    left_section: str = ""
    right_section: str = ""
    margin: float = 0.0
    tested: bool = False
    rows: tuple[str, ...] = ()
    across: tuple[str, ...] = ()
    spread: float = 0.0
    below: float = 0.0
    above: float = 0.0
    run: str = ""
    """The experiment that gives these cells; if they are not there yet, the evidence is not measured."""


@dataclass(frozen=True, kw_only=True)
class Evidence(Rule):
    """One comparison of cells of a page."""

    data: str
    page: str
    metric: str
    section: str = WITH_SHIFT
    left: str = ""
    right: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Comparisons(Rule):
    """Evidence as a file has it: one comparison for each page, section, metric and pair of rows."""

    pages: dict[str, str]
    """Each page, and what data it is of: the paper's, the paper's rows, a stand-in, natural or built."""
    metrics: tuple[str, ...]
    sections: tuple[str, ...] = (WITH_SHIFT,)
    left: tuple[str, ...] = ()
    """Each is compared with the best of ``right``; if they are ``tested``, with each of ``right``."""
    right: tuple[str, ...] = ()
    pairs: dict[str, str] = field(default_factory=dict)
    """Or each row, and the one that it is compared with."""

    def each(self) -> Iterator[Evidence]:
        """Every comparison."""
        rule = {part.name: getattr(self, part.name) for part in fields(Rule)}
        for (page, data), section, metric, (left, right) in product(
            self.pages.items(), self.sections, self.metrics, list(self._pairs())
        ):
            yield Evidence(**rule, data=data, page=page, section=section, metric=metric, left=left, right=right)

    def _pairs(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        if self.rows:
            yield "", ()
        for left in self.left:
            yield from ((left, (other,)) for other in self.right) if self.tested else [(left, self.right)]
        for left, other in self.pairs.items():
            yield left, (other,)


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, where it stands, and what speaks for or against it here."""

    text: str
    where: str
    evidence: tuple[Comparisons, ...]
    remark: str = ""

    def each(self) -> Iterator[Evidence]:
        """Every comparison of its evidence."""
        return (one for comparisons in self.evidence for one in comparisons.each())


@dataclass(frozen=True)
class Finding:
    """What one piece of evidence shows; ``holds`` is None if it was not measured."""

    holds: bool | None
    text: str

    @property
    def word(self) -> str:
        """For, against or not measured."""
        return {True: "for", False: "against", None: "not measured"}[self.holds]


def judge(evidence: Evidence, pages: Pages) -> Finding:
    """Compare the cells of a piece of evidence."""
    page = evidence.page
    section = f", {evidence.section}" if evidence.section not in ("", WITH_SHIFT) else ""
    link = f"[{Path(page).name}]({page}.md)" if pages.has(page) else f"{page}.md"
    about = f"{evidence.metric}, {link}{section} ({evidence.data})"
    compare = _spread if evidence.rows else _test if evidence.tested else _difference
    try:
        return compare(evidence, pages, about)
    except MissingCell:
        if not evidence.run:
            raise
        return Finding(None, f"{about}: `openset bench run {evidence.run}` measures it")


def _spread(evidence: Evidence, pages: Pages, about: str) -> Finding:
    """Whether all rows lie within the spread asked for, or one of them below a value, or all above it."""
    sections = evidence.across or (evidence.section,)
    cells = [(section, row) for section in sections for row in evidence.rows]
    numbers = [pages.number(evidence.page, section, row, evidence.metric) for section, row in cells]
    least, most = min(numbers), max(numbers)
    first, last = evidence.rows[0], evidence.rows[-1]
    limit = evidence.below or evidence.above
    if limit:
        alone = len(cells) == 1
        text = f"{first} is {least:.2f}" if alone else f"{first} to {last} go from {least:.2f} to {most:.2f}"
        asked = f"{'' if alone else 'one '}below" if evidence.below else "above"
        holds = least < limit if evidence.below else least > limit
        return Finding(holds, f"{about}: {text}; {asked} {limit:.2f} asked for")
    width = round(most - least, 4)
    rows = f"{first} to {last} lie" if len(evidence.rows) > 1 else f"{first} in {len(sections)} sections lies"
    text = f"{about}: {rows} within {width:.2f} ({least:.2f} to {most:.2f})"
    return Finding(width <= evidence.spread, f"{text}; {evidence.spread:.2f} asked for")


def _difference(evidence: Evidence, pages: Pages, about: str) -> Finding:
    """Whether one row is above the best of others, or at most the margin below it."""
    page, metric = evidence.page, evidence.metric
    left_section = evidence.left_section or evidence.section
    right_section = evidence.right_section or evidence.section
    left = pages.number(page, left_section, evidence.left, metric)
    others = {row: pages.number(page, right_section, row, metric) for row in evidence.right}
    best = max(others, key=lambda row: others[row])
    among = f", the best of {len(others)}" if len(others) > 1 else ""
    of_left, of_right = _where_they_differ(left_section, right_section)
    allowed = f", {evidence.margin:.2f} allowed" if evidence.margin else ""
    ours, theirs = _as_printed(left, others[best])
    text = f"{about}: {evidence.left}{of_left} {ours}, {best}{of_right} {theirs}{among}{allowed}"
    lead = round(left - others[best], 4)
    return Finding(lead >= -evidence.margin if evidence.margin else lead > 0, text)


def _where_they_differ(*sections: str) -> list[str]:
    """The parts of titles from the first that differs on, with a space before; nothing if they are equal.

    >>> _where_they_differ("scenes, ResNet, with shift", "scenes, ResNet, without shift")
    [' with shift', ' without shift']
    """
    parts = [section.split(", ") for section in sections]
    shared = next((i for i, same in enumerate(zip(*parts, strict=False)) if len(set(same)) > 1), len(parts[0]))
    return [f" {', '.join(rest)}" if (rest := part[shared:]) else "" for part in parts]


def _test(evidence: Evidence, pages: Pages, about: str) -> Finding:
    """Whether the page's paired test finds one row above another."""
    page, metric, (other,) = evidence.page, evidence.metric, evidence.right
    title = f"{pages.label(page, evidence.left)} against every method"
    lead = pages.text(page, evidence.section, other, f"Δ {metric}", title)
    p = pages.text(page, evidence.section, other, f"Δ {metric} p", title)
    text = f"{about}: {evidence.left} {lead} to {other}, p {'' if p.startswith('<') else '= '}{p}"
    return Finding(number_of(lead) > 0 and float(p.lstrip("<")) < SIGNIFICANT, text)


def _as_printed(*numbers: float) -> list[str]:
    """Figures with two digits, or three where one of them has more than two."""
    digits = 2 if all(round(number, 2) == number for number in numbers) else 3
    return [f"{number:.{digits}f}" for number in numbers]


def verdict_of(findings: Sequence[Finding]) -> str:
    """Holds, holds in part or does not, by how many of the measured findings speak for a claim.

    >>> verdict_of([Finding(True, ""), Finding(False, ""), Finding(None, "")])
    'holds in part (1 of 2; 1 not measured)'
    """
    measured = [finding for finding in findings if finding.holds is not None]
    if not measured:
        return "is not measured"
    n, total = sum(bool(finding.holds) for finding in measured), len(measured)
    left = f"; {len(findings) - total} not measured" if total < len(findings) else ""
    word = "holds" if n == total else "holds in part" if n else "does not hold"
    return f"{word} ({n} of {total}{left})"
