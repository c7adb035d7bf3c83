"""Imports, or compares, the namespaces, tables and views of one catalog for `arco import realm`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from arco_catalog.cli.counterparts import unequal_names
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.ls import entries_below
from arco_catalog.cli.realm_report import RealmReport, Result, result_of
from arco_catalog.cli.rest_source import RestSource
from arco_catalog.cli.session import another
from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.operations.namespaces import namespace_properties, update_properties
from arco_catalog.planning.names import format_identifier
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import namespace_entry
from arco_catalog.state.index import Namespace
from arco_catalog.upkeep.comparing import Standing, compare
from arco_catalog.upkeep.importing import Importer
from arco_catalog.upkeep.source_tables import ImportResult, Outcome, SourceTable, copied_properties

OUTCOMES = {
    Outcome.REGISTERED: Result.MADE,
    Outcome.WOULD_REGISTER: Result.WOULD_MAKE,
    Outcome.REGISTERED_AGAIN: Result.REPLACED,
    Outcome.WOULD_REGISTER_AGAIN: Result.WOULD_REPLACE,
    Outcome.ALREADY: Result.EQUAL,
    Outcome.FAILED: Result.FAILED,
}
STANDINGS = {
    Standing.EQUAL: Result.EQUAL,
    Standing.AHEAD_HERE: Result.COMMITTED_HERE,
    Standing.MOVED: Result.DIFFERENT,
    Standing.MADE_ANEW: Result.DIFFERENT,
    Standing.DIVERGED: Result.DIFFERENT,
    Standing.OTHER: Result.DIFFERENT,
    Standing.MISSING: Result.MISSING,
    Standing.UNREADABLE: Result.FAILED,
}
COMPARED = ("namespace", "table", "view")


@dataclass(slots=True)
class TableCopy:
    """The import of what is in the catalog `name`, from `source`: whether to `refresh` objects that the source has
    changed since. It adds to `seen` what the source has, to `failed` what was not imported, and to `replaced` what is
    registered again, or would be, by the catalog, the type and the levels of its name."""

    name: str
    source: RestSource
    refresh: bool
    seen: set[tuple[str, ...]]
    failed: set[tuple[str, ...]]
    replaced: set[tuple[str, ...]]

    def note(self, kind: str, levels: Namespace, *, failed: bool, replaced: bool = False) -> None:
        """Notes what the source has, and whether its import failed or replaced what was here."""
        securable = (self.name, kind, *levels)
        self.seen.add(securable)
        if failed:
            self.failed.add(securable)
        if replaced:
            self.replaced.add(securable)


async def copy_tables(session: Session, work: TableCopy, report: RealmReport, progress: Callable[[], None]) -> None:
    """Registers the tables and views of the source in a catalog, and makes its namespaces; or plans that. Adds the
    results to the report, and notes every object in `work`. If the source can't be read on, adds a failure to the
    report and ends."""
    importer = Importer(lambda: another(session), work.source.properties_of, apply=report.apply, refresh=work.refresh)
    try:
        async for namespace in work.source.namespaces():
            made = await _copy_namespace(session, importer, namespace, work, report)
            work.note("namespace", namespace, failed=not made)
            progress()
        async for imported in importer.run(work.source.tables()):
            _add(imported, work.name, report)
            table, outcome = imported.table, imported.outcome
            replaced = outcome in (Outcome.REGISTERED_AGAIN, Outcome.WOULD_REGISTER_AGAIN)
            levels = (*table.namespace, table.name)
            work.note(table.kind, levels, failed=outcome is Outcome.FAILED, replaced=replaced)
            progress()
    except CliError as error:
        report.add("tables", format_identifier((work.name,)), Result.FAILED, str(error))


async def _copy_namespace(
    session: Session, importer: Importer, namespace: Namespace, work: TableCopy, report: RealmReport
) -> bool:
    """Makes a namespace, or gives one that is here the properties of the source if the work refreshes; or plans that.
    Adds the result to the report. Returns whether the namespace is, or would be, here, which it is also if only the
    properties failed. Raises `CliError` if the source can't be read, and `StoreError`."""
    name, made = format_identifier((work.name, *namespace)), len(importer.namespaces)
    try:
        await importer.import_namespace(namespace)
    except CatalogError as error:
        report.add("namespace", name, Result.FAILED, str(error))
        return False
    if len(importer.namespaces) > made:
        report.add("namespace", name, report.made)
        return True
    try:
        result, reason = await _copy_properties(session, namespace, work, report)
    except CatalogError as error:
        result, reason = Result.FAILED, str(error)
    report.add("namespace", name, result, reason)
    return True


async def _copy_properties(
    session: Session, namespace: Namespace, work: TableCopy, report: RealmReport
) -> tuple[Result, str | None]:
    """Gives a namespace the properties that it has at the source, if the work refreshes; or plans that. Otherwise only
    compares them, and names --refresh in the reason if they differ. Returns the result and the reason."""
    unequal = await _unequal_properties(session, namespace, work.source)
    if not unequal or not work.refresh:
        result, reason = _result_of(unequal)
        return result, f"{reason}; --refresh takes them over" if reason else None
    if report.apply:
        removals = [name for name, value in unequal.items() if value is None]
        updates = {name: value for name, value in unequal.items() if value is not None}
        await update_properties(another(session), namespace, removals, updates)
    return report.replaced, f"properties: {', '.join(unequal)}"


async def _unequal_properties(session: Session, namespace: Namespace, source: RestSource) -> Mapping[str, str | None]:
    """Returns the properties in which a namespace differs from that of the source, of the ones that an import copies,
    sorted by name, with the values at the source; None for one that is only here."""
    there = copied_properties(await source.properties_of(namespace))
    here = copied_properties(await namespace_properties(another(session), namespace))
    return {name: there.get(name) for name in unequal_names(here, there)}


def _result_of(unequal: Mapping[str, str | None]) -> tuple[Result, str | None]:
    """Returns the result and the reason for a namespace in which these properties differ."""
    return result_of([f"property {name}" for name in unequal])


def _add(imported: ImportResult, catalog: str, report: RealmReport) -> None:
    """Adds the outcome of importing a table or view to the report. One that is registered already and has a reason was
    committed to here."""
    result = OUTCOMES[imported.outcome]
    if result is Result.EQUAL and imported.reason is not None:
        result = Result.COMMITTED_HERE
    report.add(imported.table.kind, _name(catalog, imported.table), result, imported.reason)


def _name(catalog: str, table: SourceTable) -> str:
    """Returns the catalog and the name of a table or view in it, joined by dots, with quotes where they are needed."""
    return format_identifier((catalog, *table.namespace, table.name))


async def compare_tables(
    session: Session, name: str, source: RestSource, report: RealmReport, progress: Callable[[], None]
) -> None:
    """Compares the namespaces, tables and views of a catalog with the source, and adds the results to the report, also
    for what is only here. If the source can't be read on, adds a failure to the report and ends."""
    there: set[tuple[str, tuple[str, ...]]] = set()
    try:
        async for namespace in source.namespaces():
            there.add(("namespace", namespace))
            result, reason = await _compare_namespace(session, namespace, source)
            report.add("namespace", format_identifier((name, *namespace)), result, reason)
        async for table in source.tables():
            there.add((table.kind, (*table.namespace, table.name)))
            compared = await compare(another(session), table)
            reason = compared.reason
            if compared.here is not None and compared.standing is not Standing.EQUAL:
                reason = f"{reason}: {table.metadata_location} there, {compared.here} here"
            report.add(table.kind, _name(name, table), STANDINGS[compared.standing], reason)
            progress()
    except CliError as error:
        report.add("tables", format_identifier((name,)), Result.FAILED, str(error))
        return
    async for kind, levels in entries_below(session):
        if kind in COMPARED and (kind, levels) not in there:
            report.add(kind, format_identifier((name, *levels)), Result.ONLY_HERE)


async def _compare_namespace(session: Session, namespace: Namespace, source: RestSource) -> tuple[Result, str | None]:
    """Compares the properties of a namespace of the source with the ones here, and returns the result, and the reason
    or None: `MISSING` if there is no such namespace here."""
    known = another(session)
    head = await known.state.head()
    if await namespace_entry(known.state, head.index, namespace) is None:
        return Result.MISSING, None
    return _result_of(await _unequal_properties(session, namespace, source))
