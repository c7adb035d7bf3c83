"""`arco import realm`: copies the catalogs, principals, roles, grants and tables of a server of Polaris's management
API, or without --apply only plans that; or compares both sides."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.finders import find_realm
from arco_catalog.cli.foreign_server import ForeignServer, open_foreign_server
from arco_catalog.cli.management import ApiClient, in_process
from arco_catalog.cli.realm_copy import Destination, RealmCopy
from arco_catalog.cli.realm_natives import BASE, NativeCopy
from arco_catalog.cli.realm_objects import Kind, RealmObject, read_catalogs, read_realm
from arco_catalog.cli.realm_report import NewSecret, RealmReport, as_document, as_text
from arco_catalog.cli.realm_tables import TableCopy, compare_tables, copy_tables
from arco_catalog.cli.rest_source import RestSource
from arco_catalog.cli.secrets_file import SecretsFile, principals_in
from arco_catalog.cli.session import DAY_MS, carry_out, open_session
from arco_catalog.upkeep.pace import Pace

IN_CATALOGS = (Kind.CATALOG_ROLE, Kind.USE, Kind.GRANT)
FOREIGN = "the answer is none of Polaris's management API: does --from name the server's root?"


@dataclass(frozen=True, slots=True)
class RealmOptions:
    """The options of `arco import realm`: the `url` of the source, a file with its token, the `catalogs` to import (all
    if empty), a file for secrets; whether to `apply` the plan, only to `compare`, and to `refresh` tables, views and
    properties of namespaces that the source has changed since; the `limit` of printed lines of one result. Without
    `apply` the file for secrets is only read."""

    url: str
    token_file: str | None
    catalogs: Sequence[str]
    secrets: str | None
    apply: bool
    compare: bool
    refresh: bool
    limit: int | None
    as_json: bool


def run(catalog: CatalogOptions, options: RealmOptions) -> int:
    """Imports a realm, or reports what an import would do, or compares, and writes the report to stdout. Returns 1 if
    something failed or is different, in a comparison also if something is missing; else 0. Raises `CliError`, after
    having printed the secrets of principals that were made, unless they are in the file for secrets."""
    report = RealmReport(options.apply, options.compare, secrets_file=options.secrets if options.apply else None)
    file = SecretsFile(options.secrets) if options.apply and options.secrets is not None else None

    def keep(secret: NewSecret) -> None:
        if file is None:
            report.secrets.append(secret)
        else:
            file.add(secret)

    try:
        carry_out(lambda: _work(catalog, options, report, keep))
    except BaseException:
        for item in report.secrets:
            print(json_text(item.to_json()))
        raise
    finally:
        if file is not None:
            file.close()
    print(json_text(as_document(report)) if options.as_json else as_text(report, options.limit))
    return report.code


async def _work(
    catalog: CatalogOptions, options: RealmOptions, report: RealmReport, keep: Callable[[NewSecret], None]
) -> None:
    """Compares or imports the realm: principals, principal roles and catalogs, then catalog roles and who has them,
    then what the catalogs have, and at the end the grants. `keep` stores each new secret. A comparison also adds to the
    report the principals and roles that only this realm has, and of the catalogs to import the grants, namespaces,
    tables and views. Writes the progress to stderr."""
    async with (
        open_session(catalog, "import", find_realm, DAY_MS, writes=options.apply) as (realm, session),
        open_foreign_server(options.url, options.token_file, catalog.environment) as server,
    ):
        source, api = ApiClient(server.exchange, foreign=FOREIGN), ApiClient(in_process(realm))
        catalogs = await read_catalogs(source, options.catalogs)
        there = await read_realm(source, catalogs)
        here = await _read_here(api, catalogs)
        place = Destination(realm, session, api, catalog.environment)
        kept = None if options.secrets is None else principals_in(options.secrets)
        copy = RealmCopy(place, report, keep, kept)
        await copy.go_over([item for item in there if item.kind not in IN_CATALOGS], here)
        # A new catalog has a role already, with grants.
        here = await _read_here(api, catalogs) if options.apply else [*here, *copy.planned]
        await copy.go_over([item for item in there if item.kind in (Kind.CATALOG_ROLE, Kind.USE)], here)
        pace = Pace(session.runtime.now_ms)

        def progress() -> None:
            if pace.is_due():
                print(
                    f"arco: the import, or the comparison, has gone over {len(report.lines):,} objects of the realm so "
                    f"far, by {server.requests:,} requests to the source",
                    file=sys.stderr,
                    flush=True,
                )

        for item in catalogs:
            await _tables(place, server, item, copy, options, report, progress)
        # What was registered again is another table, and has lost its grants.
        here = await _read_here(api, catalogs) if options.apply else copy.without_replaced(here)
        await copy.go_over([item for item in there if item.kind is Kind.GRANT], here)
        if options.compare:
            copy.add_only_here(there, here)


async def _read_here(api: ApiClient, catalogs: Sequence[RealmObject]) -> Sequence[RealmObject]:
    """Returns the principals, principal roles and assignments of this realm, and of its catalogs only those that have
    the names of `catalogs`, with their roles and grants."""
    names = {item.names for item in catalogs}
    return await read_realm(api, [item for item in await read_catalogs(api, ()) if item.names in names])


async def _tables(
    place: Destination,
    server: ForeignServer,
    source: RealmObject,
    copy: RealmCopy,
    options: RealmOptions,
    report: RealmReport,
    progress: Callable[[], None],
) -> None:
    """Imports or compares the namespaces, tables, views, policies and generic tables of one catalog, and adds the
    results to the report; nothing if the catalog is not here and none is planned. For an external catalog it imports
    and compares nothing, and adds one line to the report."""
    session = await copy.session_of(source)
    if session is None:
        return
    tables = RestSource(server.exchange, source.names[0])
    work = TableCopy(source.names[0], tables, options.refresh, copy.seen, copy.failed, copy.replaced)
    if options.compare:
        await compare_tables(session, source.names[0], tables, report, progress)
    else:
        await copy_tables(session, work, report, progress)
    natives = ApiClient(in_process(place.realm), BASE)
    await NativeCopy(natives, work, report).go_over(progress, exists=session.catalog.entry is not None)
