"""Writes the stored state of a catalog to an archive while clients write (docs/recovery.md#backups).

The order of reading makes the backup consistent. Records that prove commits (the event feed, markers, receipts, tasks)
are read before the pointers, so every commit that they prove is in a pointer. HEAD is read after the pointers, so every
name that a pointer needs is in HEAD. Decisions of transactions are read after HEAD. If a transaction has committed by
then, its pointers and HEAD are read again. A transaction that is undecided then is left out of the backup, so that it
reads as aborted."""

from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from arco_catalog.iceberg.errors import InternalError, NotFound, Unavailable
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.catalogs import open_state
from arco_catalog.operations.realms import Realm
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.protocol.past_heads import next_list
from arco_catalog.state.access import State
from arco_catalog.state.commit_record import CommitRecord
from arco_catalog.state.entries import has_pointer, purge_began
from arco_catalog.state.fields import objects, text
from arco_catalog.state.listing import list_objects
from arco_catalog.state.realm import CatalogEntry, catalogs
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.tombstone import PURGED
from arco_catalog.state.transaction import Decision
from arco_catalog.upkeep.recovery.archive import ArchiveWriter, Member
from arco_catalog.upkeep.recovery.reading import AT_ONCE
from storage_backends import Found, Listed, StoreUnavailable

MAX_ROUNDS = 100
"""Reads of HEAD, one more each time a transaction has committed since."""
TICK_MS = 5_000
"""Longer than the coarsest resolution of a store's times, which is a second."""


async def backup(session: Session, realm: Realm | None, archive: ArchiveWriter) -> JsonObject:
    """Writes a backup of the session's catalog to an archive whose first member is written, and completes it. With
    `realm`, whose registry the session has, writes that registry and all catalogs of the realm, but for those that have
    no HEAD that can be read, of which it writes nothing. Returns the summary of the archive. Raises `NotFound` if the
    session's registry has no HEAD, `InternalError` for a corrupt one, `StoreError`, and `Unavailable` if transactions
    commit faster than their pointers are read."""
    strip = session.state.paths.state.removesuffix(session.state.paths.folder)
    parts = [CatalogBackup(session.state, archive, strip, session.late)]
    heads = [await parts[0].write()]
    left_out: list[JsonValue] = []
    if realm is not None:
        async for _, entry in entries_in(session.state, heads[0].index, catalogs()):
            catalog = CatalogEntry(entry)
            part = CatalogBackup(open_state(session, catalog.root), archive, strip, session.late)
            error = await part.find_error()
            if error is not None:
                left_out.append({"name": catalog.name, "owner": "catalog", "error": error})
                continue
            parts.append(part)
            heads.append(await part.write())
    for part in reversed(parts):
        await part.write_head()
    registries: list[JsonValue] = [
        part.summarize(head) | {"place": place_of(session, part.state.paths.root)}
        for part, head in zip(parts, heads, strict=True)
    ]
    summary: JsonObject = {"registries": registries, "left_out": left_out}
    await archive.complete(summary)
    return {**summary, "objects": archive.objects, "bytes": archive.bytes}


def place_of(session: Session, root: str) -> str:
    """Returns the URI of the folder `root` in the session's store, which has the state of a catalog."""
    base = session.catalog.mounts[0].root
    return base.below(root).uri if root else base.uri


@dataclass
class CatalogBackup:
    """Writes the backup of one catalog, or of the registry of a realm. `strip` is the prefix of keys that is left out
    in the archive. `read_again` counts the pointers that were read once more."""

    state: State
    archive: ArchiveWriter
    strip: str
    late: Callable[[], bool]
    entities: set[str] = field(default_factory=set)
    """Entities whose pointers are in the archive: some 100 bytes each."""
    covered: set[str] = field(default_factory=set)
    """Transactions that committed during the backup, and whose pointers were read afterwards."""
    read_again: int = 0
    missing: list[str] = field(default_factory=list)
    """Entities in HEAD whose pointers do not exist."""

    async def find_error(self) -> str | None:
        """Returns why HEAD can't be read: it is missing or corrupt. None if it can be. Raises `StoreError`."""
        try:
            await self._read_head()
        except (InternalError, NotFound) as error:
            return error.message
        return None

    async def write(self) -> RegistryState:
        """Writes the objects that a restore needs, except HEAD, to the archive: without undecided transactions,
        proposals, and records that the catalog makes again. Returns HEAD as it was read, for `write_head` to write.
        Raises `NotFound` without a HEAD, `InternalError` for a corrupt one, `StoreError`, and `Unavailable` if
        transactions commit faster than their pointers are read."""
        paths = self.state.paths
        self._since_ms = (await self.state.store.list(paths.manifest)).now_ms - TICK_MS
        for prefix in (paths.all_feed_cursors, paths.feed_segments):  # each is true of what is read after it
            await self._add_listed(prefix)
        await self._add_keys([paths.feed_floor])
        for prefix in (paths.markers, paths.events, paths.reports, paths.tasks):
            await self._add_listed(prefix)
        await self._add_listed(paths.pointers, self._note_entity)
        head = await self._consistent_head()
        await self._add_listed(paths.index_segments)
        await self._add_listed(paths.entity_values)
        await self._add_keys([paths.page_key])
        await self._add_listed(paths.metadata_claims)
        await self._add_decisions()
        await self._add_listed(paths.events, include=self._is_new_pending_receipt)
        await self._add_history(head)
        await self._add_listed(paths.collector)  # last, so that the floors cover everything that was collected since
        return head

    def summarize(self, head: RegistryState) -> JsonObject:
        """Returns the description of this catalog's part of the archive: the key, id, sequence number and time of HEAD,
        how many pointers it has and how often one of them was read again, and the entities with a missing pointer."""
        return {
            "manifest": self.state.paths.manifest.removeprefix(self.strip),
            "head": head.id,
            "sequence": head.sequence,
            "head_ms": head.at_ms,
            "pointers": len(self.entities),
            "pointers_read_again": self.read_again,
            "pointers_missing": [*self.missing],
        }

    async def write_head(self) -> None:
        """Writes HEAD to the archive, as the last object of the catalog: a restore that ends before it leaves no
        catalog."""
        await self._add([(self.state.paths.manifest, self._head, 0)])

    # Consistency

    async def _consistent_head(self) -> RegistryState:
        """Reads HEAD, and adds pointers that the archive lacks, until the archive has the pointers of every entity in
        HEAD and of every transaction that had committed by then. Returns that HEAD. Entities of which no pointer exists
        do not prevent that, if HEAD is still the same at the next read: they are in `missing`. Raises `Unavailable` if
        that takes more than `MAX_ROUNDS` rounds, and as `_read_head` does."""
        before: str | None = None
        for _ in range(MAX_ROUNDS):
            head = await self._read_head()
            if head.id != before:
                self.missing = await self._add_missing_pointers(head)
            found_missing = bool(self.missing) and head.id != before
            before = head.id
            members = await self._members_of_new_transactions()
            if members is None and not found_missing:  # the next HEAD lacks entities that were purged since
                return head
            await self._add_pointers(members or ())
        raise Unavailable(
            f"The backup was not completed, and no archive was written: in each of {MAX_ROUNDS} rounds, a transaction "
            "over more than one table had committed, or HEAD had changed and named entities without a pointer. Run the "
            "backup once more, with fewer writers"
        )

    async def _read_head(self) -> RegistryState:
        """Reads HEAD, and keeps the bytes for `write_head`. Raises `NotFound` if it is missing, and `InternalError` if
        it is corrupt."""
        key = self.state.paths.manifest
        found = await self.state.read(key)
        if found is None:
            raise NotFound(
                f"{key} is missing, the HEAD of a registry, so the backup can't have that registry, and ends, or, "
                "for a catalog of a realm, goes on without it: restore it by `arco restore`, that of a realm by "
                "`arco restore --realm-registry`"
            )
        self._head = found.body
        return RegistryState.parse(found.body, found.version, key).with_segments(self.state.loaded_segment)

    async def _add_missing_pointers(self, head: RegistryState) -> list[str]:
        """Adds the pointers of entities in HEAD that the archive does not have, since they are newer than the listing
        of pointers. Leaves out tables whose purge has begun or is over. Returns the entities of which there is no
        pointer."""
        missing: list[str] = []
        for prefix in ("relation\n", "tombstone\n"):
            async for _, entry in entries_in(self.state, head.index, prefix):
                entity = text(entry, "entity")
                known = entity in self.entities or not has_pointer(entry)
                if not known and entry.get("state") != PURGED and not purge_began(entry):
                    missing.append(entity)
        return await self._add_pointers(missing)

    async def _add_pointers(self, entities: Sequence[str]) -> list[str]:
        """Reads the pointers of these entities, and adds them to the archive. Returns the entities of which there is no
        pointer."""
        gone: list[str] = []
        for batch in batches(entities, AT_ONCE):
            found = await gather(*(self.state.read(self.state.paths.pointer(each)) for each in batch))
            for entity, each in zip(batch, found, strict=True):
                if each is None:
                    gone.append(entity)
                    continue
                again = entity in self.entities
                self.read_again += again
                self.entities.add(entity)
                await self._add([(self.state.paths.pointer(entity), each.body, each.written_ms)], again=again)
        return gone

    async def _members_of_new_transactions(self) -> Sequence[str] | None:
        """Returns the entities of the transactions that were written since the backup began, have committed, and are
        not in `covered`, to which it adds them; None if there is no such transaction."""
        found: dict[str, None] = {}
        new = False
        async for key, each in self._read(list_objects(self.state, self.state.paths.transactions), self._is_recent):
            decision = Decision.parse(each, key)
            transaction = text(decision.document, "transaction")
            if decision.status == "committed" and transaction not in self.covered:
                self.covered.add(transaction)
                new = True
                members = objects(decision.document, "tables")
                found |= dict.fromkeys(text(member, "entity") for member in members)
        return [*found] if new else None

    async def _add_decisions(self) -> None:
        """Adds the decisions of transactions to the archive. Leaves out undecided ones, and commits of the time
        of the backup that are in no pointer of the archive: a transaction without a decision reads as aborted."""
        async for key, each in self._read(list_objects(self.state, self.state.paths.transactions)):
            decision = Decision.parse(each, key)
            is_late = each.written_ms >= self._since_ms and text(decision.document, "transaction") not in self.covered
            if decision.status == "aborted" or (decision.status == "committed" and not is_late):
                await self._add([(key, each.body, each.written_ms)])

    async def _add_history(self, head: RegistryState) -> None:
        """Adds the registry commits that were HEAD, as far back as they are stored, also beyond lost ones."""
        listing: CommitRecord | None = head
        end = head.sequence
        while listing is not None:
            commits = listing.listed_from(end)
            await self._add_keys(map(self.state.paths.registry_commit, commits))
            end -= len(commits)
            listing = await next_list(self.state, listing, end)

    # Reading and adding

    def _is_recent(self, each: Listed) -> bool:
        """Whether an object was written since the backup began, or in the `TICK_MS` before."""
        return each.written_ms >= self._since_ms

    def _is_new_pending_receipt(self, each: Listed) -> bool:
        """Whether an object in a listing is a pending receipt that was written since the backup began, or in the
        `TICK_MS` before: a pointer in the archive may have its commit."""
        return self._is_recent(each) and "/pending/" in each.key

    def _note_entity(self, key: str) -> None:
        """Adds the entity of the pointer with this key to `entities`."""
        self.entities.add(key.rpartition("/")[2].removesuffix(".json"))

    async def _add_listed(
        self,
        prefix: str,
        note: Callable[[str], None] | None = None,
        include: Callable[[Listed], bool] | None = None,
    ) -> None:
        """Adds the objects under a prefix that `include` selects (None: all) to the archive, and calls `note` with the
        key of each."""
        batch: list[tuple[str, bytes, int]] = []
        async for key, each in self._read(list_objects(self.state, prefix), include):
            if note is not None:
                note(key)
            batch.append((key, each.body, each.written_ms))
            if len(batch) == AT_ONCE:
                await self._add(batch)
                batch = []
        await self._add(batch)

    async def _add_keys(self, keys: Iterable[str]) -> None:
        """Reads the objects under these keys, and adds the ones that exist."""
        for batch in batches(keys, AT_ONCE):
            found = await gather(*map(self.state.read, batch))
            there = [(key, each) for key, each in zip(batch, found, strict=True) if each is not None]
            await self._add([(key, each.body, each.written_ms) for key, each in there])

    async def _read(
        self, entries: AsyncIterable[Listed], include: Callable[[Listed], bool] | None = None
    ) -> AsyncIterable[tuple[str, Found]]:
        """Reads the objects of a listing that `include` selects (None: all), and yields each with its key. Leaves out
        objects that were deleted since the listing."""
        batch: list[str] = []
        async for each in entries:
            if include is None or include(each):
                batch.append(each.key)
            if len(batch) == AT_ONCE:
                for pair in await self._read_batch(batch):
                    yield pair
                batch = []
        for pair in await self._read_batch(batch):
            yield pair

    async def _read_batch(self, keys: Sequence[str]) -> Sequence[tuple[str, Found]]:
        """Reads objects, and returns those that exist. Raises `StoreUnavailable` if the backup takes more than a
        day."""
        if self.late():
            raise StoreUnavailable(
                "the backup did not finish within a day, the fixed limit, and no archive was written: run it "
                "once more, on a machine near the store"
            )
        found = await gather(*map(self.state.read, keys))
        return [(key, each) for key, each in zip(keys, found, strict=True) if each is not None]

    async def _add(self, objects: Sequence[tuple[str, bytes, int]], *, again: bool = False) -> None:
        """Adds objects, as keys, bytes and times, to the archive, under keys that begin at the root. `again` is whether
        the archive has an earlier copy of them."""
        members = [Member(key.removeprefix(self.strip), body, written_ms) for key, body, written_ms in objects]
        if members:
            await self.archive.add(members, again=again)
