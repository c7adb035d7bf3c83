"""`arco export`: writes a plan by which another catalog can register the tables and views of this one, or registers
them there, by Iceberg's REST API."""

import sys
from dataclasses import dataclass

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.errors import CliError, NotThere
from arco_catalog.cli.export_plan import Entry, entries_to_export
from arco_catalog.cli.finders import find_catalog
from arco_catalog.cli.identifiers import parse_namespace
from arco_catalog.cli.management import ApiClient
from arco_catalog.cli.realm_report import RealmReport, Result, as_document, as_text
from arco_catalog.cli.rest_source import RestSource
from arco_catalog.cli.session import DAY_MS, carry_out, open_session
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.upkeep.pace import Pace

BASE = "/v1"
REGISTER_VIEW = "POST /v1/{prefix}/namespaces/{namespace}/register-view"

_REPLACED = {
    "table": "--replace registers again",
    "view": "Iceberg's API can't replace: drop it there, then export again",
}
"""How a table or view that is in another state at the target gets the state here."""


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """The options of `arco export`: the namespace `only` to export; the URL of Iceberg's API `to` which tables are
    registered, None for a plan on stdout, with the `warehouse` there and a file with the token; whether to `apply` the
    plan, and to `replace` tables there that are other states of tables here, and properties of namespaces that differ;
    the `limit` of lines of one result; whether to print the report as JSON."""

    only: str | None
    to: str | None
    warehouse: str
    token_file: str | None
    apply: bool
    replace: bool
    limit: int | None
    as_json: bool


def run(catalog: CatalogOptions, options: ExportOptions) -> int:
    """Writes the plan to stdout; with --to registers there what the plan has, or without --apply only reports what
    would be registered. Returns 1 if something failed or is different there, and was not replaced, else 0. Raises
    `CliError`."""
    only = () if options.only is None else parse_namespace(options.only)
    if options.to is None:
        return carry_out(lambda: _print_plan(catalog, only))
    report = carry_out(lambda: _register(catalog, options, only, options.to or ""))
    print(json_text(as_document(report)) if options.as_json else as_text(report, options.limit))
    return report.code


async def _print_plan(catalog: CatalogOptions, only: tuple[str, ...]) -> int:
    """Writes each entry to export as a line of JSON, and contacts no server. Returns 0."""
    async with open_session(catalog, "export", find_catalog, DAY_MS) as session:
        async for entry in entries_to_export(session, only):
            sys.stdout.write(dumps(entry.to_json()).decode() + "\n")
    return 0


async def _register(catalog: CatalogOptions, options: ExportOptions, only: tuple[str, ...], url: str) -> RealmReport:
    """Makes the namespaces, tables and views of this catalog in another server's, and returns the report. With no
    `apply` it only reads. Writes its progress to stderr now and then."""
    from arco_catalog.cli.foreign_server import open_foreign_server  # needs httptools, which a plan on stdout does not

    report = RealmReport(options.apply, compared=False)
    async with (
        open_session(catalog, "export", find_catalog, DAY_MS) as session,
        open_foreign_server(url, options.token_file, catalog.environment) as server,
    ):
        target = RestSource(server.exchange, options.warehouse, base=BASE)
        runner = _Runner(await target.client(), target, report, options)
        pace = Pace(session.runtime.now_ms)
        async for entry in entries_to_export(session, only):
            await runner.take(entry)
            if pace.is_due():
                print(
                    f"arco: the export has gone over {len(report.lines):,} objects of the catalog so far",
                    file=sys.stderr,
                    flush=True,
                )
    return report


class _Runner:
    """Registers entries of a plan at another catalog, whose API `api` reaches, or without `apply` only reports the
    result that this would have."""

    def __init__(self, api: ApiClient, target: RestSource, report: RealmReport, options: ExportOptions) -> None:
        self._api, self._target, self._report, self._options = api, target, report, options
        self._has_views = REGISTER_VIEW in target.endpoints

    async def take(self, entry: Entry) -> None:
        """Makes a namespace, or registers a table or view, if it is not there, or with `replace` sets the
        properties of a namespace that differ, and registers the same table with the metadata file here, not another
        table of the name; or plans that. Adds the result to the report, a failure too, and for what the other
        catalog can't take over the reason."""
        result, reason = Result.NO_COUNTERPART, entry.reason
        try:
            if entry.kind == "view" and not self._has_views:
                reason = "the other server does not list an endpoint that registers views"
            elif reason is None:
                result, reason = await (self._namespace(entry) if entry.kind == "namespace" else self._table(entry))
        except CliError as error:
            result, reason = Result.FAILED, str(error)
        self._report.add(entry.kind, entry.label, result, reason)

    async def _namespace(self, entry: Entry) -> tuple[Result, str | None]:
        """Makes a namespace in the target if it is not there, or with `replace` sets the properties that differ from
        the ones here; without `apply` it only plans that. Others there may be the target's own, and remain. Returns the
        result, and the reason or None."""
        path = ("namespaces", self._target.joined(entry.namespace))
        try:
            there = await self._target.properties_of(entry.namespace)
        except NotThere:
            body: JsonObject = {"namespace": [*entry.namespace], "properties": {**entry.properties}}
            await self._send("namespaces", has="namespace", body=body)
            return self._report.made, None
        unequal = {name: value for name, value in entry.properties.items() if there.get(name) != value}
        if not unequal:
            return Result.EQUAL, None
        names = ", ".join(f"property {name}" for name in sorted(unequal))
        if not self._options.replace:
            return Result.DIFFERENT, f"there differ, until --replace sets them: {names}"
        await self._send(*path, "properties", has="updated", body={"removals": [], "updates": {**unequal}})
        return self._report.replaced, names

    async def _table(self, entry: Entry) -> tuple[Result, str | None]:
        """Registers a table or view in the target if it is not there, or with `replace` if the same table, not a view,
        is there with another metadata file; without `apply` it only plans that. Returns the result, such as equal or
        different, and the reason or None."""
        namespace = ("namespaces", self._target.joined(entry.namespace))
        register = (*namespace, "register" if entry.kind == "table" else "register-view")
        body: JsonObject = {"name": entry.name, "metadata-location": entry.metadata_location}
        try:
            there = await self._target.load(entry.namespace, entry.name, view=entry.kind == "view")
        except NotThere:
            await self._send(*register, has="metadata", body=body)
            return self._report.made, None
        location = there.metadata_location
        if location == entry.metadata_location:
            return Result.EQUAL, None
        same = there.uuid == entry.uuid is not None
        if not same or not self._options.replace or entry.kind == "view":
            more = f"the same {entry.kind}, which {_REPLACED[entry.kind]}" if same else f"another {entry.kind}"
            return Result.DIFFERENT, f"{more}: there with the metadata file {location}, here {entry.metadata_location}"
        await self._send(*register, has="metadata", body={**body, "overwrite": True})
        return self._report.replaced, None

    async def _send(self, *path: str, has: str, body: JsonObject) -> None:
        """Sends the request that makes or changes an object; without `apply` sends nothing."""
        if self._report.apply:
            await self._api.send("POST", *path, has=has, body=body)
