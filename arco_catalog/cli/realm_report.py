"""The report of `arco import realm` and `arco export --to`: results by kind and object, as text or JSON."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from arco_catalog.cli.output import facts, table
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.characters import escaped

HEADINGS = ("RESULT", "KIND", "NAME", "WHY")


class Result(StrEnum):
    """The result for one object of the source; `ONLY_HERE` is for one that the source does not have."""

    EQUAL = "equal"
    WOULD_MAKE = "would make"
    WOULD_REPLACE = "would replace"
    MADE = "made"
    REPLACED = "replaced"
    COMMITTED_HERE = "committed here"
    ONLY_HERE = "only here"
    MISSING = "missing"
    SKIPPED = "skipped"
    NO_COUNTERPART = "no counterpart"
    DIFFERENT = "different"
    FAILED = "failed"


AT_FAULT = (Result.DIFFERENT, Result.FAILED)
"""The results for which an import ends with 1."""
UNEQUAL = (*AT_FAULT, Result.MISSING)
"""The results for which a comparison ends with 1."""


@dataclass(frozen=True, slots=True)
class Line:
    """The result for one object, with the reason if it has one."""

    kind: str
    name: str
    result: Result
    reason: str | None = None

    def to_json(self) -> JsonObject:
        """Returns the line as JSON: kind, name, result and reason, which is null if there is none."""
        return {"kind": self.kind, "name": self.name, "result": self.result, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class NewSecret:
    """The credentials of a principal, kept before the principal is made; no later answer has the secret."""

    principal: str
    client_id: str
    client_secret: str

    def to_json(self) -> JsonObject:
        """Returns the principal's name, the client id and the secret in clear text, as JSON."""
        return {"principal": self.principal, "clientId": self.client_id, "clientSecret": self.client_secret}


@dataclass(slots=True)
class RealmReport:
    """The report of one run, and the secrets to print: none if they were written to a file. `apply` is whether the run
    writes, `compared` whether it compares only; without both it plans."""

    apply: bool
    compared: bool
    lines: list[Line] = field(default_factory=list)
    secrets: list[NewSecret] = field(default_factory=list)
    secrets_file: str | None = None

    def add(self, kind: str, name: str, result: Result, reason: str | None = None) -> None:
        """Adds the result for an object."""
        self.lines.append(Line(kind, name, result, reason))

    @property
    def made(self) -> Result:
        """The result for an object that this run makes, or would make."""
        return Result.MADE if self.apply else Result.WOULD_MAKE

    @property
    def replaced(self) -> Result:
        """The result for an object that this run replaces, or would replace."""
        return Result.REPLACED if self.apply else Result.WOULD_REPLACE

    @property
    def code(self) -> int:
        """The exit code: 1 if an object has failed or is different, in a comparison also if one is missing, else 0."""
        bad = UNEQUAL if self.compared else AT_FAULT
        return int(any(line.result in bad for line in self.lines))

    def count(self, *results: Result) -> int:
        """The number of objects with one of these results."""
        return sum(line.result in results for line in self.lines)


def result_of(unequal: Sequence[str]) -> tuple[Result, str | None]:
    """Returns the result for an object of the source whose counterpart here differs in these fields, and the reason;
    `EQUAL` and None without any."""
    return (Result.DIFFERENT, f"here differ: {', '.join(unequal)}") if unequal else (Result.EQUAL, None)


def as_text(report: RealmReport, limit: int | None) -> str:
    """Formats the lines by result, at most `limit` of one result (None: all), without equal objects that have no
    reason; then the counts by kind, the secrets and the next step."""
    parts: list[str] = []
    for result in Result:
        lines = (line for line in report.lines if line.result is result)
        shown = [line for line in lines if result is not Result.EQUAL or line.reason]
        if shown:
            cells = [(line.result, line.kind, line.name, line.reason or "") for line in shown[:limit]]
            more = len(shown) - len(cells)
            parts.append(table(HEADINGS, cells) + (f"\n... and {more:,} more" if more else ""))
    parts.append(_counts(report))
    parts += _secrets(report)
    parts += _next(report)
    return "\n\n".join(parts)


def _counts(report: RealmReport) -> str:
    """Formats a table of the numbers of results by kind of object, without results that no object has; without objects
    one sentence."""
    counts = Counter((line.kind, line.result) for line in report.lines)
    kinds = dict.fromkeys(line.kind for line in report.lines)
    results = [item for item in Result if report.count(item)]
    if not kinds:
        return "The source has nothing to import."
    headings = ("", *(item.upper() for item in results))
    return table(headings, [(kind, *(f"{counts[kind, item]:,}" for item in results)) for kind in kinds])


def _secrets(report: RealmReport) -> Sequence[str]:
    """Returns the text about new secrets: the name of the file with them, if there is a new principal; without a
    file the secrets, also of a principal that could then not be made, none if there are none."""
    principals = any(line.kind == "principal" and line.result is Result.MADE for line in report.lines)
    if report.secrets_file is not None and principals:
        return [escaped(f"New secrets of principals are in {report.secrets_file}.")]
    if not report.secrets:
        return []
    shown = [facts([("client id", item.client_id), ("client secret", item.client_secret)]) for item in report.secrets]
    blocks = (f"{escaped(item.principal)}\n{text}" for item, text in zip(report.secrets, shown, strict=True))
    return ["New secrets of principals, which are shown this once:\n" + "\n".join(blocks)]


def _next(report: RealmReport) -> Sequence[str]:
    """Returns the last line of the report: the command to run next, or that all is here; none if there is nothing to do
    or to state."""
    if report.compared and report.code:
        moved = "When commits at the source have ended, run again with --apply --refresh, in place of --compare."
        return [moved] if report.count(Result.DIFFERENT, Result.MISSING) else []
    if report.compared:
        ahead = report.count(Result.COMMITTED_HERE)
        return [f"All that has a counterpart is here, and equal{', but for what was committed here' if ahead else ''}."]
    if not report.apply and report.count(Result.WOULD_MAKE, Result.WOULD_REPLACE):
        return ["Nothing was written. To make it, add --apply."]
    if report.apply and report.count(Result.FAILED):
        return ["Do what the reasons above name, then run the same command again: it retries what failed."]
    return []


def as_document(report: RealmReport) -> JsonObject:
    """Returns the report as JSON: counts by result, each object with its result, and the secrets."""
    lines: list[JsonValue] = [line.to_json() for line in report.lines]
    secrets: list[JsonValue] = [item.to_json() for item in report.secrets]
    counts: JsonObject = {result: report.count(result) for result in Result}
    run: JsonObject = {"dry_run": not report.apply, "compared": report.compared, "counts": counts}
    return {**run, "objects": lines, "secrets": secrets, "secrets_file": report.secrets_file}
