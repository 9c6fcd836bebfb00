"""The content of ``result.json``, one dataclass for each part of it, and the answer in words.

Free of numpy and scipy, so that a run can be inspected at once. The names of the fields are those of the file.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from openset._utils.text import counted, shortened, wrapped
from openset._utils.typed import Number, Scalar
from openset.pipeline.data_used import Data
from openset.pipeline.settings import RunSettings

MOST_CLASSES, MOST_ROWS = 12, 10
"""How many classes and rows a text shows."""

VERDICTS = {
    "found": "new class found",
    "probable": "probably a new class",
    "stands_out": "a group stands out, not proved",
    "nothing": "nothing new seen",
    "cannot_tell": "cannot tell",
}
"""The codes of a verdict, which stay the same, and its words."""
OF_PROOF = ("separability achieved", "tolerated shift")
"""Diagnostics of what is proved; they say nothing where something else explains the batch."""
OF_COLUMNS = ("separating column", "other unit")
"""Checks that name the columns whose features the diagnostic "separating features" counts."""
_FORMER_CODES = {"clear": "found", "likely": "probable", "none found": "nothing"}


@dataclass(frozen=True)
class Verdict:
    """Is there a new class? ``code`` and ``word`` are one of ``VERDICTS``."""

    word: str
    sentence: str
    caveat: str
    code: str = ""

    def __post_init__(self) -> None:
        if not self.code:  # a run of an earlier openset
            object.__setattr__(self, "code", _FORMER_CODES.get(self.word, "cannot_tell"))


@dataclass(frozen=True)
class Check:
    """A check of another explanation than a new class; ``state`` is ``passed``, ``caution`` or ``failed``."""

    name: str
    state: str
    sentence: str


@dataclass(frozen=True)
class NovelFraction:
    """The share of the new class, as :class:`~openset.stats.shares.ShareEstimate`.

    Where nothing supports an upper end, ``value`` and ``high`` are None: only the lower end is known.
    """

    value: float | None
    low: float
    high: float | None
    confidence: float
    method: str
    max_density_ratio: float | None = None
    profile: dict[str, float] = field(default_factory=dict)
    assumptions: str = ""
    high_identified: bool = True

    @property
    def text(self) -> str:
        """What is known of the share: its lower end, and the shift that it assumes.

        >>> NovelFraction(0.1, 0.08, 1.0, 0.95, "bounded shift", max_density_ratio=12.0).text
        'at least 8.0 % (95 % sure), if no known kind became more than 12 times as common'
        """
        return share_text(self.low, self.confidence, self.max_density_ratio)


@dataclass(frozen=True)
class NoveltyCounts:
    """Rows above the threshold, and all rows, that the test of a new class counts."""

    source_above: int
    n_source: int
    target_above: int
    n_target: int


@dataclass(frozen=True)
class NoveltyTest:
    """The test of "there is no new class", as :class:`~openset.stats.novelty.NoveltyTest`.

    ``word`` is only in runs of an earlier openset.
    """

    p_value: float
    max_density_ratio: float
    counts: NoveltyCounts
    word: str = ""
    code: str = ""
    tolerated_ratio: float | None = None
    limit: str = ""


@dataclass(frozen=True)
class ClassShares:
    """A known class: its share of the source's labels, and of the target rows that are not called novel.

    ``target`` is the share to use, ``counted`` that of plain predictions; the first runs did not have it.
    """

    source: float
    target: float
    counted: float | None = None


@dataclass(frozen=True)
class Accuracy:
    """The classifier's estimated accuracy on known target rows, beside that on source rows."""

    value: float
    low: float
    high: float
    source_accuracy: float
    confidence: float


@dataclass(frozen=True)
class KnownClasses:
    """How the target shares in ``class_mix`` were found, and how often the classifier is right."""

    corrected: bool = False
    sentence: str = ""
    accuracy: Accuracy | None = None
    accuracy_sentence: str = ""


@dataclass(frozen=True)
class Share:
    """A share of the target's rows with the interval of sampling."""

    value: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True)
class Group:
    """One group among the rows called novel: ids of its most central row and of more examples, and their rows."""

    size: int
    share: Share
    stability: float
    medoid: Scalar
    examples: list[Scalar]
    rows: list[int]

    @property
    def text(self) -> str:
        """The size and share of the group.

        >>> Group(40, Share(0.1, 0.072, 0.134, 0.95), 1.0, "a", ["a"], [7]).text
        '40 rows, 10.0 % of the target'
        """
        return f"{counted(self.size, 'row')}, {100 * self.share.value:.1f} % of the target"


@dataclass(frozen=True)
class Groups:
    """One new class or several; without a sentence in runs from before groups were looked for."""

    sentence: str = ""
    groups: list[Group] = field(default_factory=list)


@dataclass(frozen=True)
class ListedRows:
    """How many rows are listed at a false discovery rate, and the shift assumed for it.

    If none is: the smallest rate at which some would be, up to one half, and the source rows that the rate asked
    for needs; or ``why_none``, if nothing can be promised. ``called`` is the number of rows called new, None in
    runs of an earlier openset.
    """

    fdr: Number
    max_density_ratio: Number
    rows: int
    smallest_fdr: Number | None = None
    source_rows_needed: int | None = None
    called: int | None = None
    why_none: str = ""

    @property
    def labels_to_settle(self) -> int:
        """Random rows of those called new to label: if all are new, at most a share ``fdr`` is known (95 % sure).

        >>> [ListedRows(0.1, 1.0, 0, called=called).labels_to_settle for called in (102, 2)]
        [29, 2]
        """
        enough = math.ceil(math.log(0.05) / math.log1p(-self.fdr))
        return enough if self.called is None else min(enough, self.called)

    @property
    def text(self) -> str:
        """What the list promises, or what would make it some rows.

        >>> ListedRows(0.1, 1.0, 40).text
        '40 rows are listed: at most 10 % of them known on average, if the known rows did not shift'
        """
        if self.why_none:
            return f"no row is listed: {self.why_none}"
        ratio = self.max_density_ratio
        shift = (
            "the known rows did not shift"
            if ratio == 1
            else f"no known kind became more than {ratio:g} times as common"
        )
        if self.rows:
            are = "row is" if self.rows == 1 else "rows are"
            return f"{self.rows} {are} listed: at most {100 * self.fdr:g} % of them known on average, if {shift}"
        could = ""
        if self.smallest_fdr is not None:
            could = f"; some could be from --fdr {self.smallest_fdr:.2g} on"
            if self.source_rows_needed is not None:
                could += f", or with about {self.source_rows_needed} source rows"
        return f"no row can be listed, assuming only that {shift}{could}"

    @property
    def next_step(self) -> str:
        """How labels settle it where no row can be listed, and otherwise nothing."""
        if self.rows or self.why_none or not self.labels_to_settle:
            return ""
        number = self.labels_to_settle
        if self.called is not None and number == self.called:
            if number == 1:
                return "Label the row called new: then you know."
            return f"Label the {number} rows called new: then you know which are."
        drawn = "rows called new" if self.called is None else f"of the {self.called} rows called new"
        return f"Label {number} {drawn}, drawn at random: if all are new, the rows called new keep this rate."


@dataclass(frozen=True)
class Head:
    """One head of CoLOR at one evaluation point, on validation rows.

    ``value`` to ``sharpness`` are None for heads that are not compared by a value; ``logit_multiplier`` was the
    name of ``sharpness`` in earlier files.
    """

    member: int
    step: int
    head: int
    candidate_recall: float
    fpr: float | None
    recall: float | None
    multiplier: float | None
    feasible: bool
    value: float | None = None
    bound: float | None = None
    dropout: float | None = None
    sharpness: float | None = None
    logit_multiplier: float | None = None
    selected: bool = False


@dataclass(frozen=True)
class Diagnostic:
    """One check of what limits the verdict: a value, the threshold for it, and what to do."""

    name: str
    value: Number | None
    threshold: Number | None
    ok: bool
    sentence: str

    @property
    def is_unproved(self) -> bool:
        """Whether it is about a proof that is not there: nothing to correct, and no reason to feel sure."""
        if self.name not in OF_PROOF or self.value is None or self.threshold is None:
            return False
        return self.value < self.threshold


@dataclass(frozen=True)
class Environment:
    """The versions and threads that a run was made with."""

    python: str
    platform: str
    numpy: str
    torch: str
    threads: int


@dataclass(frozen=True)
class ResultSummary:
    """All of a run that is not a large array: the content of ``result.json``.

    ``class_mix`` has the shares of every known class, ``known_classes`` says how they were found; ``groups`` are
    those among the rows called novel, ``listed`` the rows listed at a false discovery rate, ``novelty_test`` the
    test of a new class where the method has one, ``checks`` what the gate before the verdict looked at.
    ``threshold`` is None where no score is high enough to be called novel. ``timings`` has the seconds of every
    step, ``history`` a record for every evaluation point.
    """

    openset_version: str
    created: str
    method: str
    parameters: dict[str, Any]
    seed: int
    data: Data
    classes: list[Scalar]
    novel_label: Scalar
    verdict: Verdict
    novel_fraction: NovelFraction
    threshold: float | None
    fpr: Number
    called_novel: int
    class_mix: dict[str, ClassShares]
    heads: list[Head] | None
    history: list[dict[str, Scalar]]
    diagnostics: list[Diagnostic]
    top_rows: list[Scalar]
    settings: RunSettings
    timings: dict[str, float]
    environment: Environment
    novelty_test: NoveltyTest | None = None
    known_classes: KnownClasses = field(default_factory=KnownClasses)
    groups: Groups = field(default_factory=Groups)
    listed: ListedRows | None = None
    checks: list[Check] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The content of ``result.json`` as plain values."""
        import msgspec

        content: dict[str, Any] = msgspec.to_builtins(self)
        content["settings"] = self.settings.to_dict()
        if self.heads is not None:
            content["heads"] = [_columns(head) for head in self.heads]
        return content

    @property
    def shown_diagnostics(self) -> list[Diagnostic]:
        """The diagnostics, without those of a proof where nothing can be told, and what checks say by name."""
        hidden = OF_PROOF if self.verdict.code == "cannot_tell" else ()
        if any(check.state == "failed" and check.name in OF_COLUMNS for check in self.checks):
            hidden = (*hidden, "separating features")
        return [entry for entry in self.diagnostics if entry.name not in hidden]

    def __call__(self) -> str:
        """The result in words, at most 80 columns wide."""
        parts = (
            self._checks(),
            self._answer(),
            self.data.column_lines(),
            self._classes(),
            self._rows(),
            self._doubts(),
        )
        return "\n\n".join("\n".join(lines) for lines in parts if lines)

    def _checks(self) -> list[str]:
        """The checks that did not pass, before the verdict."""
        heads = {"failed": "Check failed    ", "caution": "Note            "}
        return [
            line
            for check in self.checks
            if check.state in heads
            for line in wrapped(heads[check.state], check.sentence)
        ]

    def _answer(self) -> list[str]:
        target, source = self.data.target, self.data.source
        sentences = [text for text in (self.verdict.sentence, self.verdict.caveat) if text]
        listed = []
        if self.listed is not None:
            head, ranked = f"{f'At FDR {self.listed.fdr:g}':<16}", ""
            if not self.listed.rows:
                ranked = ". Column rank of the scored table has all rows, most novel first. "
            listed = wrapped(head, f"{self.listed.text}{ranked}{self.listed.next_step}".rstrip())
        return [
            f"Verdict: {self.verdict.word}",
            *(line for text in sentences for line in wrapped("  ", text)),
            "",
            *wrapped("Share           ", self.novel_fraction.text),
            f"Called new      {self.called_novel} of {target.rows} target rows, budget {self.fpr:g} of source",
            f"Fitted          {self.method}, seed {self.seed}, on {source.fitted_text('source')}",
            *(wrapped("Sample          ", self.data.sample_text) if self.data.is_sample else ()),
            *wrapped("Features        ", self.data.features_text),
            *listed,
        ]

    def _classes(self) -> list[str]:
        lines = [f"{'Known classes':<32}{'source':>8}    {'target':>6}"]
        for name, shares in list(self.class_mix.items())[:MOST_CLASSES]:
            lines.append(f"  {_short(name, 28):<30}{shares.source:>8.1%} -> {shares.target:>6.1%}")
        if len(self.class_mix) > MOST_CLASSES:
            lines.append(f"  and {len(self.class_mix) - MOST_CLASSES} more")
        for sentence in (self.known_classes.sentence, self.known_classes.accuracy_sentence):
            lines += wrapped("  ", sentence) if sentence else []
        return lines

    def _rows(self) -> list[str]:
        lines = wrapped("Groups          ", self.groups.sentence or "not looked for")
        several = self.groups.groups if len(self.groups.groups) > 1 else []
        for number, group in enumerate(several, 1):
            examples = ", ".join(_short(row, 30) for row in group.examples)
            lines += wrapped(f"  {number}  ", f"{group.text}, such as {examples}")
        return lines + wrapped(
            "Top novel rows  ", ", ".join(_short(row, 30) for row in self.top_rows[:MOST_ROWS])
        )

    def _doubts(self) -> list[str]:
        doubts = [entry.sentence for entry in self.shown_diagnostics if not entry.ok]
        lines = [line for doubt in doubts for line in wrapped("  - ", doubt)]
        return ["To check", *lines] if lines else []


def _columns(head: Head) -> dict[str, Any]:
    """The columns that heads of its kind have."""
    of_some = ("value", "bound", "dropout", "sharpness", "logit_multiplier")
    return {name: value for name, value in asdict(head).items() if value is not None or name not in of_some}


def share_text(low: float, confidence: float, max_density_ratio: float | None) -> str:
    """The least share of a new class; nothing is said of the most, which needs labels.

    >>> share_text(0.0, 0.95, None)
    'nothing proved. Only labels can show the upper limit'
    """
    if low <= 0:
        return "nothing proved. Only labels can show the upper limit"
    shift = (
        "known rows did not shift"
        if max_density_ratio is None
        else f"no known kind became more than {max_density_ratio:g} times as common"
    )
    return f"at least {100 * low:.1f} % ({100 * confidence:.0f} % sure), if {shift}"


def _short(value: Any, most: int) -> str:
    return shortened(" ".join(str(value).split()), most)
