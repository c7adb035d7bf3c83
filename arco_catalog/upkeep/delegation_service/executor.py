"""The purge of a delegated table: everything that its metadata files lead to, inside its own locations, which must be
allowed and nobody's here (docs/design/tasks.md#delegation)."""

from contextlib import aclosing
from dataclasses import dataclass

from arco_catalog.iceberg import table
from arco_catalog.iceberg.errors import BadRequest, CatalogError, Forbidden, NotFound
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.outline import outline
from arco_catalog.iceberg.parsing import UnreadableMetadata
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.locations import Location, outermost
from arco_catalog.state.purge_progress import Phase, Progress
from arco_catalog.state.task import Task
from arco_catalog.tasks.execution import Execution, Finished, TaskFailed
from arco_catalog.tasks.lease import LeaseLost
from arco_catalog.upkeep.delegation_service.payload import DelegatedPurge
from arco_catalog.upkeep.delegation_service.places import Held, Places
from arco_catalog.upkeep.delegation_service.storage import CREDENTIALS_NEEDED, Storage
from arco_catalog.upkeep.purge.deletion import Deletion
from arco_catalog.upkeep.purge.inventory import inventory_of
from arco_catalog.upkeep.purge.leftovers import require_all_addressable
from arco_catalog.upkeep.purge.reach import reached_from
from storage_backends import StoreError, StoreUnavailable


@dataclass(frozen=True, slots=True)
class DelegatedPurgeExecutor:
    """Purges one table, with the credentials that came with the request."""

    purge: DelegatedPurge
    storage: Storage
    places: Places

    def takes(self, task: Task) -> bool:
        """See `Executor.takes`."""
        return True

    async def execute(self, execution: Execution) -> Finished:
        """See `Executor.execute`. What is raised holds none of the credentials."""
        try:
            return await self._purged(execution)
        except (LeaseLost, TaskFailed):
            raise
        except (Forbidden, Held, BadRequest) as error:
            raise TaskFailed(self.storage.redacted(str(error))) from None
        except (StoreError, CatalogError) as error:
            raise StoreUnavailable(self.storage.redacted(f"{type(error).__name__}: {error}")) from None

    async def abandon(self, execution: Execution, reason: str) -> None:
        """Nothing is to be left: the checkpoint says how far it is."""

    async def _purged(self, execution: Execution) -> Finished:
        progress = Progress.parse(execution.checkpoint)
        locations = await self._locations(execution, progress)
        await self._check(execution.session(), locations)
        await execution.start()

        async def guard(session: Session) -> None:
            await self._check(session, locations)

        execution.guard = guard

        def is_below(file: Location) -> bool:
            return any(file.written_below(location) for location in locations)

        deletion = Deletion(execution, [location.normal for location in locations], progress, is_below)
        if progress.phase is not Phase.DONE:

            def may_read(file: str) -> bool:
                return deletion.own(file) is not None

            reached = await reached_from(execution, self.purge.metadata_location, may_read)
            missing: list[str] = []
            inventory = await inventory_of(execution, reached, missing)
            if progress.phase is Phase.DATA:  # later phases have deleted some themselves
                deletion.progress = progress.without([*reached.gone, *missing])
            await deletion.run(inventory)
        left = await _left(execution, locations)
        done = deletion.progress
        require_all_addressable(done)
        details: JsonObject = {
            "files_deleted": done.files,
            "bytes_deleted": done.bytes,
            "outside": done.outside,
            "left_behind": left,
        }
        return Finished(f"Purged {done.files} files", details)

    async def _locations(self, execution: Execution, progress: Progress) -> list[Location]:
        """The table's own locations, by its metadata file, which must be the table that was asked for; that is deleted
        last. Raises `TaskFailed`, and `Forbidden` if one is not allowed."""
        file = self.purge.metadata_location
        files = execution.session().files
        try:
            document = await files.extract(file, outline)
        except NotFound:
            if progress.phase in (Phase.METADATA, Phase.DONE):
                return outermost([self.places.check(self.purge.location)])
            raise TaskFailed(f"the metadata file {file} is gone: the table's files can't be found") from None
        except UnreadableMetadata as error:
            raise TaskFailed(f"the metadata file {file} can't be read: {error.message}") from None
        finally:
            files.forget(file)
        said, uuid = document.get("location"), document.get("table-uuid")
        if not isinstance(said, str) or _normal(said) != _normal(self.purge.location):
            raise TaskFailed("the metadata file is another table's: its location is not the one that was sent")
        if not isinstance(uuid, str) or uuid.lower() != self.purge.table_uuid.lower():
            raise TaskFailed("the metadata file is another table's: its uuid is not the one that was sent")
        if not table.allows_deletes(document):
            raise TaskFailed("the table has gc.enabled=false: its files may belong to other tables")
        return outermost([self.places.check(text) for text in (said, *table.written_locations(document))])

    async def _check(self, session: Session, locations: list[Location]) -> None:
        """Raises `TaskFailed` if a place of the table is held here. Asked again with each renewal."""
        try:
            await self.places.refuse_held(locations, self.purge.identity, session.request)
        except Held as held:
            raise TaskFailed(f"not purged: {held}") from held


class WithoutCredentials:
    """Ends tasks whose credentials went with the process that was at them: submitted again, they go on."""

    def takes(self, task: Task) -> bool:
        """See `Executor.takes`."""
        return True

    async def execute(self, execution: Execution) -> Finished:
        """See `Executor.execute`."""
        raise TaskFailed(f"{CREDENTIALS_NEEDED}: submit the task again")

    async def abandon(self, execution: Execution, reason: str) -> None:
        """See `Executor.abandon`."""


async def _left(execution: Execution, locations: list[Location]) -> int:
    """How many files are still at the table's locations."""
    count = 0
    for location in locations:
        others: list[str] = []
        async with aclosing(execution.session().files.listed(location.uri, others)) as found_there:
            async for _ in found_there:
                count += 1
        count += len(others)
    return count


def _normal(location: str) -> str:
    return Location.parse(location).normal
