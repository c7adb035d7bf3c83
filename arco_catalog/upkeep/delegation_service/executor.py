"""Purges a delegated table: deletes the files that the metadata files refer to, inside its own locations. The operator
must allow these, and no catalog of the deployment may have them, except for a table that it hands over
(docs/design/tasks.md#delegation)."""

from contextlib import aclosing
from dataclasses import dataclass

from arco_catalog.iceberg import table
from arco_catalog.iceberg.errors import BadRequest, CatalogError, Forbidden, NotFound
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.outline import outline
from arco_catalog.iceberg.parsing import UnreadableMetadata
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.files import OtherObjects
from arco_catalog.state.locations import Location, outermost
from arco_catalog.state.purge_progress import Phase, Progress
from arco_catalog.state.task import Task
from arco_catalog.tasks.execution import Execution, TaskFailed, TaskResult
from arco_catalog.tasks.lease import LeaseLost
from arco_catalog.upkeep.delegation_service.payload import DelegatedPurge
from arco_catalog.upkeep.delegation_service.places import LocationHeld, Places
from arco_catalog.upkeep.delegation_service.storage import CREDENTIALS_NEEDED, Storage
from arco_catalog.upkeep.purge.deletion import Deletion
from arco_catalog.upkeep.purge.inventory import inventory_of
from arco_catalog.upkeep.purge.leftovers import require_all_addressable
from arco_catalog.upkeep.purge.reach import reached_from
from storage_backends import StoreError, StoreUnavailable


@dataclass(frozen=True, slots=True)
class DelegatedPurgeExecutor:
    """Executes a task of the delegation service: the purge of one table, with the credentials in the request."""

    purge: DelegatedPurge
    storage: Storage
    places: Places

    def takes(self, task: Task) -> bool:
        """Returns true: this executor takes any task."""
        return True

    async def execute(self, execution: Execution) -> TaskResult:
        """Purges the table of a task, and returns the counts as its result. Raises `TaskFailed` if a retry
        can't help, as for a location that is not allowed, `StoreUnavailable` for other errors of a store or catalog,
        and `LeaseLost`. Messages have no credentials in them."""
        try:
            return await self._purge(execution)
        except (LeaseLost, TaskFailed):
            raise
        except (Forbidden, LocationHeld, BadRequest) as error:
            raise TaskFailed(self.storage.redacted(str(error))) from None
        except (StoreError, CatalogError) as error:
            raise StoreUnavailable(self.storage.redacted(f"{type(error).__name__}: {error}")) from None

    async def abandon(self, execution: Execution, reason: str) -> None:
        """Does nothing when a task has failed: the next submission continues it from the checkpoint."""

    async def _purge(self, execution: Execution) -> TaskResult:
        """Deletes the files of a table below its locations, phase after phase, and returns the result. Before, and
        whenever the lease is renewed, checks that no catalog of the deployment has these locations. Raises as
        `_locations`, and `TaskFailed` for files that have no key."""
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
            if progress.phase is Phase.DATA:  # in later phases, missing files were deleted by this purge
                deletion.progress = progress.with_missing([*reached.gone, *missing])
            await deletion.run(inventory)
        left = await _count_left(execution, locations)
        done = deletion.progress
        require_all_addressable(done)
        details: JsonObject = {
            "files_deleted": done.files,
            "bytes_deleted": done.bytes,
            "outside": done.outside,
            "left_behind": left,
        }
        return TaskResult(f"Purged {done.files} files", details)

    async def _locations(self, execution: Execution, progress: Progress) -> list[Location]:
        """Returns the outermost locations of the table, as its metadata file has them. The metadata file is deleted
        last: once this purge has deleted it, returns the location in the request. Raises `TaskFailed` if the file is of
        another table, is missing before that phase or can't be read, or if the table has gc.enabled=false, and
        `Forbidden` for a location that is not allowed."""
        file = self.purge.metadata_location
        files = execution.session().files
        try:
            document = await files.extract(file, outline)
        except NotFound:
            if progress.phase in (Phase.METADATA, Phase.DONE):
                return outermost([self.places.check(self.purge.location)])
            raise TaskFailed(
                f"the purge can't go on: the metadata file {file} does not exist, and the table's other files can't "
                "be found without it. If it was deleted, restore it, and submit the purge once more"
            ) from None
        except UnreadableMetadata as error:
            raise TaskFailed(
                f"the purge can't go on: the metadata file {file} can't be read: {error.message}"
            ) from None
        finally:
            files.forget(file)
        location, uuid = document.get("location"), document.get("table-uuid")
        if not isinstance(location, str) or _normal(location) != _normal(self.purge.location):
            raise TaskFailed(f"the metadata file {file} is another table's: its location is not the one in the task")
        if not isinstance(uuid, str) or uuid.lower() != self.purge.table_uuid.lower():
            raise TaskFailed(
                f"the metadata file {file} is another table's, or has no uuid: its table-uuid is not the one in the "
                "task"
            )
        if not table.allows_deletes(document):
            raise TaskFailed(
                "the table is not purged, since it has gc.enabled=false: its files may belong to other tables"
            )
        return outermost([self.places.check(text) for text in (location, *table.written_locations(document))])

    async def _check(self, session: Session, locations: list[Location]) -> None:
        """Raises `TaskFailed` if one of these locations overlaps one of another table of the deployment, live or
        dropped, or, unless a catalog hands this table over, one of this table itself or the store's. Runs with each
        renewal of the task's lease."""
        try:
            await self.places.refuse_held(locations, self.purge.identity, session.request)
        except LocationHeld as held:
            raise TaskFailed(f"the purge of the table ends, and may have deleted files before: {held}") from held


class WithoutCredentials:
    """The executor of delegated tasks whose credentials were lost with the process that executed them: it lets them
    fail. A new submission continues such a task."""

    def takes(self, task: Task) -> bool:
        """Returns true: this executor takes any task."""
        return True

    async def execute(self, execution: Execution) -> TaskResult:
        """Raises `TaskFailed`, always: the caller must submit the task again, with credentials."""
        raise TaskFailed(
            f"{CREDENTIALS_NEEDED}: the process that had those of this task has ended. Submit the task again"
        )

    async def abandon(self, execution: Execution, reason: str) -> None:
        """Does nothing when a task has failed."""


async def _count_left(execution: Execution, locations: list[Location]) -> int:
    """Returns the number of files and other objects that are left below the locations of a table after a purge."""
    count = 0
    for location in locations:
        others = OtherObjects()
        async with aclosing(execution.session().files.listed(location.uri, others)) as found_there:
            async for _ in found_there:
                count += 1
        count += others.number
    return count


def _normal(location: str) -> str:
    """Returns the normal form of a location."""
    return Location.parse(location).normal
