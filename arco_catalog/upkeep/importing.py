"""Registers the tables of another catalog, many at a time. A run without `apply` writes nothing: it plans every
registration on the state that the ones before it would leave. A table that is registered from the same file already is
left as it is, so a run may be interrupted and started again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from arco_catalog.iceberg.errors import AlreadyExists, CatalogError, Refusal
from arco_catalog.operations.named_change import NamedChange
from arco_catalog.operations.namespaces import create_namespace, namespace_creation
from arco_catalog.operations.register import register_table, register_view, table_registration, view_registration
from arco_catalog.planning.names import Identifier, dotted
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.lookup import namespace_entry
from arco_catalog.state.index import Namespace
from arco_catalog.state.registry import RegistryState
from arco_catalog.upkeep.comparing import Standing, compare
from arco_catalog.upkeep.rehearsal import Rehearsal
from arco_catalog.upkeep.source_tables import ImportResult, Outcome, SourceTable, copied_properties, file_of
from storage_backends import StoreError

AT_ONCE = 8
"""Tables that are read and registered concurrently. Their commits to the registry are grouped."""

PropertiesOf = Callable[[Namespace], Awaitable[Mapping[str, str]]]
Prepared = ImportResult | tuple[Rehearsal, str | None] | CatalogError | StoreError
"""What a plan has found about a table: its result, if it is here already; else the rehearsal of its registration, and
the reason if that replaces the table that is here; or the error by which it can't be registered."""

_LOSING = "to take the source's, drop the one here without purge, which loses the commits made here; then import again"
_AGAIN = (
    "`arco import realm --refresh` replaces the one here, if both catalogs have a uuid of it; else drop it without "
    "purge, then import again"
)
ADVICE = {Standing.DIVERGED: _LOSING, Standing.MOVED: _AGAIN, Standing.MADE_ANEW: _AGAIN}
"""The advice about a table that is not as at the source."""


class Importer:
    """One run of an import. `session` returns a new session for each step. `properties_of` returns the properties that
    a namespace to create has in the source. Its location is left out, so that tables created in it later lie in this
    catalog's own folder. With `refresh` a table or view to which the source has committed since its import, or which it
    has made anew, and to which this catalog has not committed, is registered again, if both catalogs have a uuid of it,
    from its present metadata file, as a new one."""

    def __init__(
        self, session: Callable[[], Session], properties_of: PropertiesOf, *, apply: bool, refresh: bool = False
    ) -> None:
        self._refresh = refresh
        self._session = session
        self._properties_of = properties_of
        self._apply = apply
        self._planned: RegistryState | None = None
        self._planned_files: dict[Identifier, str] = {}
        self._creating_namespaces = asyncio.Lock()
        self._known_namespaces: set[Namespace] = {()}
        self.namespaces: list[Namespace] = []
        """The namespaces that the run created, or would create."""

    async def run(self, tables: AsyncIterator[SourceTable]) -> AsyncIterator[ImportResult]:
        """Imports the tables, or only plans it without `apply`, and yields the result of each. Raises the last error of
        a batch in which every table fails by a `StoreError`, or by a `CatalogError` that is no `Refusal`, as when the
        store does not answer."""
        batch: list[SourceTable] = []
        async for table in tables:
            batch.append(table)
            if len(batch) == AT_ONCE:
                for imported in await self._import_batch(batch):
                    yield imported
                batch = []
        for imported in await self._import_batch(batch):
            yield imported

    async def _import_batch(self, batch: Sequence[SourceTable]) -> Sequence[ImportResult]:
        """Imports or plans some tables, and returns the results. Raises the last error if all failed, and none by a
        refusal."""
        if not batch:
            return ()
        done: Sequence[tuple[ImportResult, CatalogError | StoreError | None]]
        if self._apply:
            done = await gather(*(self._guarded(table, self._register(table)) for table in batch))
        else:
            prepared = await self._prepare(batch)
            done = [
                await self._guarded(each, self._plan(each, made)) for each, made in zip(batch, prepared, strict=True)
            ]
        failures = [failure for _, failure in done if failure is not None and not isinstance(failure, Refusal)]
        if len(failures) == len(batch):
            raise failures[-1]
        return [imported for imported, _ in done]

    async def _guarded(
        self, table: SourceTable, step: Awaitable[ImportResult]
    ) -> tuple[ImportResult, CatalogError | StoreError | None]:
        """Awaits the import or the plan of one table. Returns the result and None; or, for a `CatalogError` or
        `StoreError`, a failed result and the error."""
        try:
            return await step, None
        except (CatalogError, StoreError) as failure:
            return ImportResult(table, Outcome.FAILED, str(failure)), failure

    async def _register(self, table: SourceTable) -> ImportResult:
        """Registers a table or view of the source under the same name here, after the namespaces that are missing, and
        returns the outcome. One that is here already stays, unless `_find_here` allows to replace it. Before it creates
        a namespace, it plans the registration, so that a table that can't be registered leaves none. Raises the errors
        of both."""
        location = file_of(table)
        known, again = await self._find_here(table)
        if known is not None:
            return known
        try:
            if table.namespace not in self._known_namespaces:
                await self._rehearse(table)
                await self._create_namespaces(table.namespace)
            register = register_view if table.view else register_table
            await register(self._session(), table.namespace, table.name, location, overwrite=again is not None)
        except AlreadyExists:
            known, _ = await self._find_here(table)
            if known is None:
                raise
            return known
        return ImportResult(table, Outcome.REGISTERED if again is None else Outcome.REGISTERED_AGAIN, again)

    async def import_namespace(self, namespace: Namespace) -> None:
        """Creates a namespace and the ones around it, where they are missing, with the properties of the source; or,
        without `apply`, only plans that, as for a table in it. Adds them to `namespaces`. Raises the errors of
        `create_namespace`, except `AlreadyExists`."""
        if self._apply:
            await self._create_namespaces(namespace)
            return
        for depth in range(1, len(namespace) + 1):
            await self._plan_namespace(namespace[:depth])

    async def _rehearse(self, table: SourceTable) -> None:
        """Plans the registration of a table without writing, before a namespace is created for it. Raises the error
        with which the registration would fail."""
        rehearsal = Importer(self._session, self._properties_of, apply=False, refresh=self._refresh)
        [prepared] = await rehearsal._prepare([table])
        await rehearsal._plan(table, prepared)

    async def _create_namespaces(self, namespace: Namespace) -> None:
        """Creates a namespace and the ones around it, where they are missing, the outermost first. Remembers them, so
        that this run does not look them up again; one call at a time."""
        async with self._creating_namespaces:
            for depth in range(1, len(namespace) + 1):
                if namespace[:depth] not in self._known_namespaces:
                    await self._create_namespace(namespace[:depth])
                    self._known_namespaces.add(namespace[:depth])

    async def _create_namespace(self, namespace: Namespace) -> None:
        """Creates a namespace with the properties of the source and adds it to `namespaces`; does nothing if it exists,
        or if another process creates it first."""
        session = self._session()
        head = await session.state.head()
        if await namespace_entry(session.state, head.index, namespace) is None:
            with suppress(AlreadyExists):
                await create_namespace(session, namespace, await self._properties(namespace))
                self.namespaces.append(namespace)

    async def _properties(self, namespace: Namespace) -> Mapping[str, str]:
        """Returns the properties of a namespace of the source that its copy here gets: those that users may set,
        without the location."""
        return copied_properties(await self._properties_of(namespace))

    # The same without `apply`: planned, not written.

    async def _prepare(self, batch: Sequence[SourceTable]) -> Sequence[Prepared]:
        """Prepares the registrations of a batch of tables, and reads the metadata files concurrently. Returns in the
        order of the tables the result if a table is here already, else the rehearsal with the reason if it would
        replace the table here, or the error; raises none of these errors."""
        head = await self._planned_head()

        async def prepare(table: SourceTable) -> Prepared:
            try:
                known, again = await self._find_here(table)
                if known is not None:
                    return known
                rehearsal = Rehearsal(self._registration(table, overwrite=again is not None), head)
                await rehearsal.prepare()
            except (CatalogError, StoreError) as failure:
                return failure
            return rehearsal, again

        return await gather(*map(prepare, batch))

    def _registration(self, table: SourceTable, *, overwrite: bool) -> NamedChange:
        """Returns the change that would register a table, without committing it; with `overwrite` in place of the one
        that has the name."""
        location, place = file_of(table), (self._session(), table.namespace, table.name)
        register = view_registration if table.view else table_registration
        return register(*place, location, overwrite=overwrite)

    async def _plan(self, table: SourceTable, prepared: Prepared) -> ImportResult:
        """Returns the result that the registration of a table would have after the tables before it, and notes the
        registry, the file and the namespaces to create as they would be then. A file that this run has noted under this
        name before is registered already. Raises the error of the preparation, or the one with which the registration
        would fail, and then notes nothing."""
        location, name = file_of(table), (table.namespace, table.name)
        if isinstance(prepared, ImportResult):
            return prepared
        if self._planned_files.get(name) == location:
            return ImportResult(table, Outcome.ALREADY, "the source lists it twice")
        if not isinstance(prepared, tuple):
            raise prepared
        rehearsal, again = prepared
        planned, count = self._planned, len(self.namespaces)
        try:
            for depth in range(1, len(table.namespace) + 1):
                await self._plan_namespace(table.namespace[:depth])
            self._planned = await rehearsal.plan(await self._planned_head())
        except (CatalogError, StoreError):
            self._planned = planned
            del self.namespaces[count:]
            raise
        self._planned_files[name] = location
        return ImportResult(table, Outcome.WOULD_REGISTER if again is None else Outcome.WOULD_REGISTER_AGAIN, again)

    async def _plan_namespace(self, namespace: Namespace) -> None:
        """Plans the creation of a namespace, if it is missing: changes HEAD in the plan, and adds it to `namespaces`.
        This must be done for the ones around it before."""
        session, head = self._session(), await self._planned_head()
        if await namespace_entry(session.state, head.index, namespace) is None:
            creation = namespace_creation(session, namespace, await self._properties(namespace))
            self._planned = await Rehearsal(creation, head).plan(head)
            self.namespaces.append(namespace)

    async def _planned_head(self) -> RegistryState:
        """Returns the registry's HEAD as it would be after everything noted until now. It is read from the store only
        at the first call."""
        if self._planned is None:
            self._planned = await self._session().state.head()
        return self._planned

    async def _find_here(self, table: SourceTable) -> tuple[ImportResult | None, str | None]:
        """Returns the result for a table that is here already, with the same current file or by an import of it; else
        None, and the reason if the registration replaces the table that is here, which needs a run that refreshes and
        known uuids on both sides. Another kind of object with the name makes the registration fail later. Raises
        `AlreadyExists` if the table here is another one, has diverged, or would be replaced by a run that does not
        refresh or without these uuids, and the errors of `compare`."""
        found = await compare(self._session(), table)
        if found.standing is Standing.EQUAL:
            return ImportResult(table, Outcome.ALREADY), None
        if found.standing is Standing.AHEAD_HERE:
            return ImportResult(table, Outcome.ALREADY, "this catalog has committed to it since"), None
        if found.here is None:
            return None, None
        certain = table.uuid is not None and found.uuid_here is not None
        if self._refresh and found.standing in (Standing.MOVED, Standing.MADE_ANEW) and certain:
            return None, found.reason
        advice = ADVICE.get(found.standing, "drop or rename the one here, then import again")
        raise AlreadyExists(
            f"{found.reason}: the {table.kind} {dotted(table.namespace, table.name)} of this catalog has the metadata "
            f"file {found.here}, not that of the source under this name; {advice}"
        )
