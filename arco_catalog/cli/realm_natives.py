"""Copies, or compares, the policies and generic tables of one catalog for `arco import realm`, by Polaris's own API;
a source without that API counts as one that has none."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from arco_catalog.cli.errors import CliError, NotThere
from arco_catalog.cli.management import ApiClient
from arco_catalog.cli.realm_report import RealmReport, Result, result_of
from arco_catalog.cli.realm_tables import TableCopy
from arco_catalog.http.options import UNIT_SEPARATOR
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.names import format_identifier
from arco_catalog.state.fields import mapping
from arco_catalog.state.index import Namespace

BASE = "/polaris/v1"


@dataclass(frozen=True, slots=True)
class _Form:
    """How the API names one kind: its name in grants and reports, the last segment of its paths, the field of answers,
    and the fields that a copy has, as pairs of the names in a request and in an answer. `note` is the reason in the
    report for a new copy."""

    kind: str
    collection: str
    field: str
    copied: Sequence[tuple[str, str]]
    note: str | None = None


FORMS = (
    _Form(
        "policy",
        "policies",
        "policy",
        (("type", "policy-type"), ("description", "description"), ("content", "content")),
        "attach it: Polaris's API does not list to what a policy is attached",
    ),
    _Form(
        "generic table",
        "generic-tables",
        "table",
        (("format", "format"), ("doc", "doc"), ("base-location", "base-location"), ("properties", "properties")),
    ),
)


class NativeCopy:
    """The import of the policies and generic tables of a catalog, the plan of that, or the comparison of both sides.
    `api` is the client of Polaris's API here."""

    def __init__(self, api: ApiClient, work: TableCopy, report: RealmReport) -> None:
        self._api, self._work, self._report = api, work, report

    async def go_over(self, progress: Callable[[], None], *, exists: bool) -> None:
        """Copies the policies and generic tables in the namespaces of the source, or plans that, or compares them.
        `exists` is whether the catalog is here. If the source can't be read on, adds a failure to the report and
        ends."""
        try:
            async for namespace in self._work.source.namespaces():
                for form in FORMS:
                    for name in await self._work.source.native_names(namespace, form.collection):
                        await self._copy_object(form, namespace, name, exists)
                        progress()
        except CliError as error:
            name = format_identifier((self._work.name,))
            self._report.add("policies and generic tables", name, Result.FAILED, str(error))

    async def _copy_object(self, form: _Form, namespace: Namespace, name: str, exists: bool) -> None:
        """Compares one generic table or policy with the one of this name here. If there is none, makes it, or in a dry
        run counts it as planned, or in a comparison reports it as missing. Adds the result to the report, also a
        `CliError`."""
        path = (self._work.name, "namespaces", UNIT_SEPARATOR.join(namespace), form.collection)
        failed, reason = False, None
        try:
            there = await self._work.source.native(namespace, form.collection, name, form.field)
            body: JsonObject = {"name": name}
            body |= {ours: there[theirs] for ours, theirs in form.copied if there.get(theirs) is not None}
            here = await self._here(form, path, name) if exists else None
            if here is not None:
                unequal = [
                    theirs for _, theirs in form.copied if (here.get(theirs) or None) != (there.get(theirs) or None)
                ]
                result, reason = result_of(unequal)
            elif self._report.compared:
                result = Result.MISSING
            else:
                if self._report.apply:
                    await self._api.send("POST", *path, has=form.field, body=body)
                result, reason = self._report.made, form.note
        except CliError as error:
            failed, result, reason = True, Result.FAILED, str(error)
        self._work.note(form.kind.removeprefix("generic "), (*namespace, name), failed=failed)
        self._report.add(form.kind, format_identifier((self._work.name, *namespace, name)), result, reason)

    async def _here(self, form: _Form, path: Sequence[str], name: str) -> JsonObject | None:
        """Returns the object of this name here; None without one."""
        try:
            return mapping(await self._api.send("GET", *path, name, has=form.field), form.field)
        except NotThere:
            return None
