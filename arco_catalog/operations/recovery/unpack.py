"""Puts a backup into a store that has no such catalog (docs/recovery.md#backups)."""

from collections.abc import Mapping

from arco_catalog.iceberg.errors import AlreadyExists, BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.recovery.archive import Archive, Member
from arco_catalog.operations.recovery.backup import beside
from arco_catalog.operations.recovery.reading import read
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.protocol.prepared_commit import PreparedCommit
from arco_catalog.state.access import State
from arco_catalog.state.fields import sequence
from arco_catalog.state.paths import REALM_FOLDER, catalog_root, is_manifest, is_state
from arco_catalog.state.registry import Operation, RegistryState
from arco_catalog.state.tombstone import DROPPED, PURGING, Tombstone, task_key
from storage_backends import Applied

AT_ONCE = 16


async def restore_backup(session: Session, archive: Archive, *, dry: bool) -> JsonObject:
    """Makes the catalog of the session, or the realm whose registry it is with, out of an archive. Returns what was
    made. Raises `BadRequest` for an archive of something else, `AlreadyExists` where such a catalog is, `Occupied`
    where other objects are in the way, and `StoreError`.

    Objects are created, none is overwritten; HEADs come last. So a run that was stopped leaves no catalog, and another
    goes on.
    """
    prefix = session.state.paths.state.removesuffix(session.state.paths.folder)
    if archive.realm is not (session.state.paths.folder == REALM_FOLDER):
        raise BadRequest(
            "the backup is of a realm, and not of one catalog" if archive.realm else "it is of one catalog"
        )
    if archive.realm and archive.first.get("prefix") != prefix:
        raise BadRequest(f"the backup is of a realm in the folder {archive.first.get('prefix')!r}: restore it there")
    manifests = [
        prefix + str(each.get("manifest")) for each in sequence(archive.last, "registries") if isinstance(each, dict)
    ]
    for manifest in manifests:
        if await read(session.state, manifest) is not None:
            raise AlreadyExists(f"{manifest} exists: a backup is restored where no such catalog is")
    made: list[JsonValue] = []
    if not dry:
        heads = await _unpack(session.state, archive, prefix)
        for manifest in reversed(manifests):  # the realm's, which leads to the others, last
            own = manifest == session.state.paths.manifest
            state = session.state if own else beside(session, catalog_root(manifest))
            made.append(await _begin(session, state, heads[manifest]))
    return {"dry_run": dry, "archive": archive.summary, "registries": made}


async def _unpack(state: State, archive: Archive, prefix: str) -> Mapping[str, bytes]:
    """Creates every object below `prefix`, but HEADs, which it returns by their keys."""
    heads: dict[str, bytes] = {}

    async def create(member: Member) -> None:
        if not is_state(member.key):
            raise BadRequest(f"the backup holds {member.key}, which is not part of a catalog's state")
        if is_manifest(member.key):
            heads[prefix + member.key] = member.body
        else:
            await state.create(prefix + member.key, member.body)

    async for members in archive.objects():
        for batch in batches(members, AT_ONCE):
            await gather(*(create(member) for member in batch))
    return heads


async def _begin(session: Session, state: State, head: bytes) -> JsonObject:
    """A commit upon the HEAD in the archive becomes HEAD.

    It takes back what drops asked for later: a purge that had not begun is no business of this catalog, for the one
    that was backed up may have restored the table since, and the files may be the same. One that had begun goes on, but
    empties no place as a whole: it may have ended in the other catalog, and the place have been used again since.
    """
    known = RegistryState.parse(head, None, state.paths.manifest).with_segments(state.loaded_segment)
    edits: dict[str, JsonObject | None] = {}
    taken_back = 0
    async for key, entry in entries_in(state, known.index, "tombstone\n"):
        tombstone = Tombstone(entry)
        if tombstone.task is not None and tombstone.state == DROPPED:
            edits[key] = {name: value for name, value in entry.items() if name not in ("task", "purge_after")}
            edits[task_key(tombstone.task)] = None
            taken_back += 1
        elif tombstone.made is not None and tombstone.state == PURGING:
            edits[key] = {**entry, "shared": True}
    author: JsonObject = {"principal": session.request.principal, "source": session.request.source}
    operation = Operation(session.runtime.ulid(), "restore", {**author, "from_commit": known.id}, None)
    prepared = await PreparedCommit.of(state, known, edits, [operation])
    await prepared.put()
    outcome = await prepared.swap()
    now = await state.head()
    if not isinstance(outcome, Applied) and now.operation(operation.id) is None:
        raise AlreadyExists(f"{state.paths.manifest} was made by somebody else meanwhile")
    return {
        "manifest": state.paths.manifest,
        "from_commit": known.id,
        "head": now.id,
        "purges_taken_back": taken_back,
    }
