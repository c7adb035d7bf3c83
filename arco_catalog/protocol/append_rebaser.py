"""Rebases an append that lost the requirement on its branch: reads its manifests and the lists of the branch, and plans
it on the branch's present snapshot (docs/design/appends.md). Few processes import this module."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from arco_catalog.iceberg.appends import Append, AppendTarget, NotRebasable, append_of
from arco_catalog.iceberg.commit import Commit
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.manifests import AddedFiles, ManifestFile, added_manifests, check_added
from arco_catalog.planning.append_rebase import AppendOnTarget, RebasedAppend, read_target, rebase
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.relation_change import CurrentRelation, RelationCommit
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.manifest_reader import MAX_LISTED_BYTES, ManifestReader
from arco_catalog.state.locations import Location
from arco_catalog.state.memory import Allocation
from arco_catalog.state.worker_threads import off_loop

MAX_ADDED_FILES: Final = 10_000
"""Maximum data files that one append adds."""
ENTRY_BYTES: Final = 2 << 10
"""Bytes of memory of a list's entry, decoded, by which long lists are worked on off the event loop."""
KEPT_BYTES: Final = 4 * MAX_LISTED_BYTES
"""Bytes of memory of an entry that is kept until the commit, which may have four bytes for each of its letters."""


class _AddedManifests(NamedTuple):
    """The manifests that an append adds to the list of its parent, and the counts of the files in them, read once for
    a request. `parent_list` is where that list is; None if the append has no parent."""

    parent_list: str | None
    manifests: Sequence[ManifestFile]
    files: Sequence[AddedFiles]


class AppendRebaser:
    """Rebases the append of one request, as often as it loses. The files of the client, and the list of the snapshot on
    which it built, are read once; of them only what the append adds is kept."""

    def __init__(self, session: Session, wanted: RelationCommit) -> None:
        assert isinstance(wanted.commit, Commit)
        self._session = session
        self._wanted = wanted
        self._commit = wanted.commit
        self._reader = ManifestReader(session)
        self._added: _AddedManifests | None = None
        self._written: Allocation | None = None
        """The memory that was taken for the manifest list of the last try."""

    async def rebase(self, base: CurrentRelation, attempt: Attempt) -> RelationCommit:
        """Rebases an append: returns the client's commit as it is on the present snapshot of its branch in `base`, with
        a new manifest list, which is not written here. Raises `NotRebasable` if it must be refused, and `StoreError` if
        the store does not answer or memory is not free in time."""
        append, target = await self._target(base)
        added = await self._read(base, append, target)
        entity, where = base.pointer.entity, base.pointer.metadata.location
        uuid = attempt.uuid("manifest list", entity, where)
        head_list = await self._reader.read_list(target.head_list)
        async with self._reader.decoding(head_list):
            present = await self._reader.entries(head_list)
            read = AppendOnTarget(append, target, present, added.manifests, added.files)
            plan = partial(rebase, self._commit, read, now_ms=attempt.now_ms, uuid=uuid)
            planned = await off_loop(ENTRY_BYTES * len(present), plan)
            await self._take_for_list(planned)
        self._session.files.forget(target.head_list)
        return replace(self._wanted, commit=planned.commit, manifest_list=planned.manifest_list)

    async def read(self, base: CurrentRelation) -> None:
        """Reads what a rebase needs of the append and of the snapshot on which the client built, unless it was read for
        this request, and checks it. Raises as `rebase` does."""
        await self._read(base, *await self._target(base))

    async def _target(self, base: CurrentRelation) -> tuple[Append, AppendTarget]:
        """Returns the append of the commit, and the present snapshot of the branch, by the metadata of `base`. Raises
        `NotRebasable` as `append_of` and `read_target` do, for example if the table does not allow it, and if a
        manifest list of these or of the client's parent, or the folder for the new one, is not at a place that
        `_check_places` allows."""
        append = append_of(self._commit)
        read = partial(read_target, append, base.body, base.pointer.metadata.location)
        target = await off_loop(len(base.body), read)
        lists = [append.manifest_list, *filter(None, [target.parent_list]), target.head_list]
        self._check_places(base, [*lists, f"{target.folder}/list"])
        return append, target

    async def _read(self, base: CurrentRelation, append: Append, target: AppendTarget) -> _AddedManifests:
        """Returns the manifests that the append adds, with the counts of the files in them, and checks that the table
        may have them. Reads them, and takes memory for them, unless that was done for this request with the same parent
        list. Raises as `rebase` does."""
        added = self._added
        if added is None or added.parent_list != target.parent_list:
            manifests = await self._compare(append, target.parent_list)
            await self._session.hold.take(KEPT_BYTES * len(manifests))
            added = _AddedManifests(target.parent_list, manifests, await self._read_files(base, append, manifests))
            self._added = added
        for manifest, files in zip(added.manifests, added.files, strict=True):
            check_added(manifest, append, target)
            files.check(target)
        return added

    async def _compare(self, append: Append, parent_list: str | None) -> Sequence[ManifestFile]:
        """Reads the client's manifest list, and concurrently that of the snapshot on which it built (None: it has
        none), and returns the entries that only the client's has. Raises as `rebase` does."""
        locations = [append.manifest_list, *filter(None, [parent_list])]
        lists = await gather(*map(self._reader.read_list, locations))
        async with self._reader.decoding(*lists):
            client, parent = [*[await self._reader.entries(each) for each in lists], ()][:2]
            return await off_loop(ENTRY_BYTES * (len(client) + len(parent)), partial(added_manifests, client, parent))

    async def _read_files(
        self, base: CurrentRelation, append: Append, added: Sequence[ManifestFile]
    ) -> Sequence[AddedFiles]:
        """Reads the manifests that an append adds, one after the other, checks the files in each, and returns only the
        counts of them (`AddedFiles`), in order. Before it reads any, checks how many files they state, and that
        the manifests are in the table's locations. Raises as `rebase` does."""
        if sum(each.added_files_count for each in added) > MAX_ADDED_FILES:
            raise NotRebasable(f"the commit adds more than {MAX_ADDED_FILES:,} data files, the limit of a rebase")
        self._check_places(base, [each.manifest_path for each in added])
        return [await self._reader.added_files(each, append.snapshot["snapshot-id"]) for each in added]

    async def _take_for_list(self, planned: RebasedAppend) -> None:
        """Takes memory for the manifest list of a rebased append, and gives back that of the try before."""
        if self._written is not None:
            self._written.shrink(0)
        self._written = await self._session.hold.take(len(planned.manifest_list.body))

    def _check_places(self, base: CurrentRelation, files: Sequence[str]) -> None:
        """Raises `NotRebasable` if one of these files has an invalid location, one outside of the table's own
        locations, or one with `.` or `..` as a level: the catalog copies what it reads into a list that all readers of
        the table may read."""
        held = {*base.entry.locations}
        for file in files:
            try:
                place = Location.parse(file)
            except BadRequest as error:
                raise NotRebasable(
                    f"a manifest or manifest list that the rebase needs has an invalid location: {error.message}"
                ) from error
            if place.has_dots or place.collapsed or not place.inside_any(held):
                raise NotRebasable(
                    f"the file {file[:200]}, which the rebase needs, is outside of the table's locations, or has '.', "
                    "'..' or an empty level ('//') in the path"
                )
