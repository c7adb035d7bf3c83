"""Restores a backup into a store that has no such catalog (docs/recovery.md#backups)."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial

from arco_catalog.iceberg.errors import AlreadyExists, BadRequest, InternalError
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.catalogs import open_state
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.protocol.lookup import carry_out, entries_in, load
from arco_catalog.protocol.prepared_commit import PreparedCommit
from arco_catalog.state.access import State
from arco_catalog.state.commit_record import is_object_of_same_commit
from arco_catalog.state.fields import objects, optional_text, text
from arco_catalog.state.needs import Needs
from arco_catalog.state.paths import REALM_FOLDER, catalog_root, is_manifest, is_state, record_kind
from arco_catalog.state.purge_progress import Progress
from arco_catalog.state.realm import catalog_key, find_catalog
from arco_catalog.state.registry import Operation, RegistryState
from arco_catalog.state.restoration import Restoration
from arco_catalog.state.task_log import read_task
from arco_catalog.state.tombstone import DROPPED, PURGED, Tombstone
from arco_catalog.state.version_floors import raised_floor
from arco_catalog.upkeep.recovery.archive import Archive, Member
from arco_catalog.upkeep.recovery.backup import TICK_MS, place_of
from storage_backends import Applied

AT_ONCE = 16
RESTORE = "restore"
"""The kind of the operation that makes the HEAD of a restored registry."""
UNKNOWN_PLACE = "an unknown place"
"""The original of a copy whose backup does not record where it was made."""


async def restore_backup(session: Session, archive: Archive, *, dry: bool) -> JsonObject:
    """Restores an archive as the catalog of the session, or as the realm whose registry the session has; with `dry`
    only checks kind and folder, and that no such catalog exists, not the objects. Returns a report. Raises `BadRequest`
    for an archive of another kind, of a realm in another folder, or with an object of no catalog's state,
    `AlreadyExists` if there is such a catalog, `InternalError`, as `KeyConflict` if another object has one of the keys,
    and `StoreError`.

    Objects are created, none is overwritten, and HEADs are created last, a realm's after those of its catalogs. So a
    run that is interrupted before that leaves no catalog that can be used, and the next run continues: it leaves the
    HEADs of catalogs that an earlier run has made of the same backup.
    """
    prefix = session.state.paths.state.removesuffix(session.state.paths.folder)
    if archive.realm is not (session.state.paths.folder == REALM_FOLDER):
        raise BadRequest(
            "the backup is of a realm, and not of one catalog"
            if archive.realm
            else "the backup is of one catalog, and not of a realm"
        )
    if archive.realm and archive.first.get("prefix") != prefix:
        raise BadRequest(f"the backup is of a realm in the folder {archive.first.get('prefix')!r}: restore it there")
    places = {
        prefix + str(each.get("manifest")): optional_text(each, "place") for each in objects(archive.last, "registries")
    }
    made_before: dict[str, JsonObject] = {}
    for each in objects(archive.last, "registries"):
        manifest = prefix + str(each.get("manifest"))
        found = await session.state.read(manifest)
        if found is not None:
            report = _made_before(found.body, manifest, optional_text(each, "head"))
            if manifest == session.state.paths.manifest or report is None:
                raise AlreadyExists(f"{manifest} exists: restore a backup into a store {_missing(archive)}")
            made_before[manifest] = report
    made: list[JsonValue] = []
    if not dry:
        heads = await _unpack(session.state, archive, prefix)
        for manifest in reversed([*places]):  # the realm's, which leads to the others, last
            if manifest in made_before:
                made.append(made_before[manifest])
                continue
            own = manifest == session.state.paths.manifest
            state = session.state if own else open_state(session, catalog_root(manifest))
            left_out = [text(each, "name") for each in objects(archive.last, "left_out")] if own else []
            made.append(await _begin(session, state, heads[manifest], places[manifest], left_out))
    return {"dry_run": dry, "archive": archive.summary, "registries": made}


def _made_before(body: bytes, manifest: str, backed_up: str | None) -> JsonObject | None:
    """Returns the fields of the report for an existing HEAD of a catalog if an earlier run has made it of the commit
    `backed_up` in the archive, and no commit followed; this run cancels none of its purges. None for any other HEAD.
    Raises `InternalError` for a corrupt one."""
    head = RegistryState.parse(body, None, manifest)
    is_restored = any(each.get("kind") == RESTORE for each in objects(head.document, "operations"))
    if backed_up is None or not is_restored or optional_text(head.document, "parent") != backed_up:
        return None
    return _report(manifest, backed_up, head, cancelled=0)


def _report(manifest: str, backed_up: str | None, head: RegistryState, *, cancelled: int) -> JsonObject:
    """Returns the fields of the report for a restored registry."""
    return {
        "manifest": manifest,
        "from_commit": backed_up,
        "head": head.id,
        "copy_of": head.copy_of,
        "purges_taken_back": cancelled,
    }


def _missing(archive: Archive) -> str:
    """Returns the words for a store to which a backup can be restored, as the end of an error message."""
    if archive.realm:
        return "that has neither the realm nor one of its catalogs: they come back together (docs/recovery.md)"
    return "without this catalog"


async def _unpack(state: State, archive: Archive, prefix: str) -> Mapping[str, bytes]:
    """Creates every object of an archive below `prefix`, except HEADs; one that exists with the same bytes, or as
    the other form of the same registry commit, is left.
    Returns the bodies of the HEADs by their keys. Raises `BadRequest` for a key that is no part of a catalog's state,
    and `KeyConflict` for an existing object with other bytes."""
    heads: dict[str, bytes] = {}

    async def create(member: Member) -> None:
        if not is_state(member.key):
            raise BadRequest(
                f"the backup has the object {member.key}, which is not part of a catalog's state. The restore ends, "
                "perhaps after it has created objects, and no catalog has them: give another backup"
            )
        if is_manifest(member.key):
            heads[prefix + member.key] = member.body
        else:
            key = prefix + member.key
            await state.create(key, member.body, made_from_ours=partial(_is_same_commit, key, member.body))

    async with aclosing(archive.objects()) as groups:
        async for members in groups:
            for batch in batches(members, AT_ONCE):
                await gather(*(create(member) for member in batch))
    return heads


def _is_same_commit(key: str, body: bytes, there: bytes) -> bool:
    """Whether the object of a registry commit in the store is the other form of the one in the archive: a repair may
    have written it with the whole index (docs/fsck.md#repair). Raises `InternalError` for a corrupt one."""
    return record_kind(key) == "registry-commit" and is_object_of_same_commit(key, body, there)


async def _begin(
    session: Session, state: State, head: bytes, backed_up_at: str | None, left_out: Sequence[str]
) -> JsonObject:
    """Makes the HEAD of a restored catalog by a commit on `head`, the HEAD in the archive. `backed_up_at` is the URI of
    the registry that was backed up; None for a backup that does not record it, which counts as another place. The
    catalogs `left_out` of a realm, of which the archive has nothing, are no longer in it: each would be an empty one.
    Returns the fields of the report. Raises `AlreadyExists` if another process makes a HEAD first.

    The commit records the restore, and for a copy the URI of the original, also of a copy that was backed up before it
    was adopted. It cancels each purge that has deleted
    nothing: the drop may have been undone in the original catalog since, and both catalogs may have the same files.
    """
    known = RegistryState.parse(head, None, state.paths.manifest).with_segments(state.loaded_segment)
    is_copy = state.paths.folder != REALM_FOLDER and backed_up_at != place_of(session, state.paths.root)
    copy_of = (backed_up_at or UNKNOWN_PLACE) if is_copy else None
    if known.copy_of is not None:  # the backup is of a copy that was not adopted, so the original may still need files
        copy_of = known.copy_of if copy_of is None else f"{copy_of}, itself a copy of the one at {known.copy_of}"
    restoration = Restoration((await state.store.list(state.paths.manifest)).now_ms + TICK_MS, copy_of)
    changes, cancelled = await _cancel_purges(state, known)
    changes |= await _without_catalogs(state, known, left_out)
    author: JsonObject = {"principal": session.request.principal, "source": session.request.source}
    detail: JsonObject = {**author, "from_commit": known.id, "copy_of": restoration.copy_of}
    operation = Operation(session.runtime.ulid(), RESTORE, detail, None)
    first = replace(known.with_restoration(restoration), next_is_whole=True)  # commits may be missing in the archive
    prepared = await PreparedCommit.of(state, first, changes, [operation])
    await prepared.put()
    outcome = await prepared.swap()
    now = await state.head()
    if not isinstance(outcome, Applied) and now.commit_of(operation.id) is None:
        raise AlreadyExists(
            f"{state.paths.manifest} was created by another process during this restore: restore the backup into "
            "another store"
        )
    return _report(state.paths.manifest, known.id, now, cancelled=cancelled)


async def _without_catalogs(state: State, known: RegistryState, names: Sequence[str]) -> dict[str, JsonObject | None]:
    """Returns the changes of the index of a realm's restored HEAD that remove the catalogs with these names, and that
    raise the floors of their versions."""
    changes: dict[str, JsonObject | None] = {}
    index = known.index
    for name in names:
        key = catalog_key(name)
        await load(state, index, Needs(keys=[key]))
        found = find_catalog(index, name)
        if found is not None:
            changes |= {key: None, **(await carry_out(state, index, raised_floor(index, key, found.version)))}
    return changes


async def _cancel_purges(state: State, known: RegistryState) -> tuple[dict[str, JsonObject | None], int]:
    """Returns the changes of the index of a restored HEAD that cancel the purges that have deleted nothing, and the
    number of them. A purge that may have deleted files continues, but no longer empties a whole location: the purge may
    be complete in the other catalog, and the location may have been used again."""
    changes: dict[str, JsonObject | None] = {}
    cancelled = 0
    async for key, entry in entries_in(state, known.index, "tombstone\n"):
        tombstone = Tombstone(entry)
        if tombstone.task is None or tombstone.state == PURGED:
            continue
        if tombstone.state == DROPPED or not await _may_have_deleted(state, tombstone.task):
            changes |= tombstone.without_purge()
            cancelled += 1
        elif tombstone.made is not None:
            changes[key] = {**entry, "shared": True}
    return changes, cancelled


async def _may_have_deleted(state: State, task: str) -> bool:
    """Whether the checkpoint of a purge in the backup has the mark that files may have been deleted; it is written
    before the first delete (docs/design/purge.md#rule-7). True for a task that can't be read, and false for one that
    does not exist."""
    try:
        stored = await read_task(state, task)
        return stored is not None and Progress.parse(stored.task.checkpoint).deleting
    except InternalError:
        return True
