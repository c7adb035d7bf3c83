"""`arco import`: registers the tables of another catalog, or without --apply only plans that, and reports the outcome
for each."""

import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.errors import CliError, describe_os_error
from arco_catalog.cli.finders import find_catalog
from arco_catalog.cli.identifiers import parse_namespace
from arco_catalog.cli.import_sources import FolderSource, ListSource, Source, parse_list
from arco_catalog.cli.options import parse_pairs
from arco_catalog.cli.output import table
from arco_catalog.cli.session import DAY_MS, another, carry_out, open_session
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.recorded_locations import record_locations
from arco_catalog.planning.names import format_identifier
from arco_catalog.state.index import Namespace
from arco_catalog.upkeep.importing import Importer
from arco_catalog.upkeep.pace import Pace
from arco_catalog.upkeep.source_tables import ImportResult, Outcome, SourceTable
from storage_backends.open import canonical_url, opener_in

HEADINGS = ("RESULT", "TABLE", "METADATA FILE", "WHY")


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The options of `arco import`: the `kind` of source (folder, list or catalog) and its URL, file or name;
    `properties` for PyIceberg, as KEY=VALUE; whether to `apply` the plan; `only` the namespace to import, and the
    namespace `into` which to put what it has; the `limit` of printed lines for each outcome."""

    kind: str
    source: str
    properties: Sequence[str]
    apply: bool
    only: str | None
    into: str | None
    limit: int | None
    as_json: bool


@dataclass(slots=True)
class Report:
    """The report of an import: the outcome of each table, and the namespaces that were made, or without `apply` would
    be."""

    apply: bool
    tables: list[ImportResult] = field(default_factory=list)
    namespaces: list[Namespace] = field(default_factory=list)

    @property
    def counts(self) -> Counter[Outcome]:
        """The number of tables with each outcome."""
        return Counter(imported.outcome for imported in self.tables)


def run(catalog: CatalogOptions, options: ImportOptions) -> int:
    """Imports the tables of a source, only of the namespace that --only names, and below the one that --into names, or
    without --apply only reports what an import would do. If it registers a table, it also records the allowed locations
    of the command in the catalog, unless that is one of a realm. Writes the progress to stderr. Returns 1 if some table
    failed, else 0. Raises `CliError` if the source or the catalog can't be read."""
    only = () if options.only is None else parse_namespace(options.only)
    into = () if options.into is None else parse_namespace(options.into)

    async def work() -> Report:
        report = Report(options.apply)
        async with (
            open_session(catalog, "import", find_catalog, DAY_MS, writes=options.apply) as session,
            _source(catalog, options, only) as source,
        ):

            async def chosen() -> AsyncIterator[SourceTable]:
                async for found in source.tables():
                    if found.namespace[: len(only)] == only:
                        yield replace(found, namespace=(*into, *found.namespace))

            async def properties_of(namespace: Namespace) -> dict[str, str]:
                own = namespace[len(into) :]
                return dict(await source.properties_of(own)) if own else {}

            importer = Importer(lambda: another(session), properties_of, apply=options.apply)
            pace = Pace(session.runtime.now_ms)
            async for imported in importer.run(chosen()):
                report.tables.append(imported)
                if pace.is_due():
                    print(f"arco: tables read so far: {len(report.tables):,}", file=sys.stderr, flush=True)
            report.namespaces = importer.namespaces
            if options.apply and report.counts[Outcome.REGISTERED]:
                await record_locations(another(session))
        return report

    report = carry_out(work)
    print(json_text(as_document(report)) if options.as_json else as_text(report, options.limit))
    return 1 if report.counts[Outcome.FAILED] else 0


@asynccontextmanager
async def _source(catalog: CatalogOptions, options: ImportOptions, only: Namespace) -> AsyncIterator[Source]:
    """Yields the source of the kind that the options name: a folder, a list, or a catalog of PyIceberg."""
    match options.kind:
        case "folder":
            url = canonical_url(options.source, catalog.environment)
            store = opener_in(catalog.environment)(url)
            try:
                yield FolderSource(url, store)
            finally:
                await store.close()
        case "list":
            yield ListSource(parse_list(*_lines(options.source)))
        case _:
            from arco_catalog.cli.import_pyiceberg import PyIcebergSource

            yield PyIcebergSource(options.source, parse_pairs("-P", "type=hive", options.properties), only)


def _lines(source: str) -> tuple[Sequence[str], str]:
    """Returns the lines of a file, or of standard input for `-`, and its name for messages. Raises `CliError`."""
    try:
        if source == "-":
            return sys.stdin.read().splitlines(), "standard input"
        return Path(source).read_text(encoding="utf-8").splitlines(), source
    except OSError as error:
        raise CliError(f"can't read {describe_os_error(error)}: nothing was imported") from error
    except UnicodeDecodeError as error:
        name = "standard input" if source == "-" else f"the file {source}"
        raise CliError(f"can't read {name} as UTF-8 text, so nothing was imported: {error}") from error


def as_text(report: Report, limit: int | None) -> str:
    """Formats the tables by outcome, failures last, at most `limit` of each outcome (None: all); then new namespaces,
    the counts and the next step."""
    parts: list[str] = []
    counts = report.counts
    for outcome in (Outcome.ALREADY, Outcome.REGISTERED, Outcome.WOULD_REGISTER, Outcome.FAILED):
        lines = [_line(imported) for imported in report.tables if imported.outcome is outcome]
        if lines:
            more = len(lines) - len(lines[:limit])
            parts.append(table(HEADINGS, lines[:limit]) + (f"\n... and {more:,} more" if more else ""))
    made = ", ".join(map(format_identifier, report.namespaces))
    if made:
        parts.append(f"Namespaces {'made' if report.apply else 'to make'}: {made}")
    counted = [f"{counts[outcome]:,} {outcome}" for outcome in Outcome if counts[outcome]]
    parts.append(f"{len(report.tables):,} tables: {', '.join(counted) or 'nothing to do'}.")
    if counts[Outcome.WOULD_REGISTER]:
        parts.append("Nothing was written. To register the tables, add --apply.")
    if report.apply and counts[Outcome.FAILED]:
        parts.append("Run the same command again to retry the tables that failed.")
    return "\n\n".join(parts)


def _line(imported: ImportResult) -> tuple[str, ...]:
    """Returns the row of a table in the report: the outcome, the name, the metadata file and the reason."""
    name = format_identifier((*imported.table.namespace, imported.table.name))
    return imported.outcome, name, imported.table.metadata_location or "-", imported.reason or ""


def as_document(report: Report) -> JsonObject:
    """Returns the report as JSON: counts by outcome, new namespaces, and each table with its outcome."""
    tables: list[JsonValue] = [
        {
            "name": format_identifier((*each.table.namespace, each.table.name)),
            "metadata_location": each.table.metadata_location,
            "result": each.outcome,
            "reason": each.reason,
        }
        for each in report.tables
    ]
    counts: JsonObject = {outcome: report.counts[outcome] for outcome in Outcome}
    namespaces: list[JsonValue] = [format_identifier(namespace) for namespace in report.namespaces]
    return {"dry_run": not report.apply, "counts": counts, "namespaces": namespaces, "tables": tables}
