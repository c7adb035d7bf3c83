"""Distinguishes a registry without a HEAD yet from one whose HEAD was lost. After a loss, the next commit would make
the registry empty.

A commit has a parent only if the parent was HEAD before (docs/design/registry.md#rule-7).
"""

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.state.commit_record import CommitRecord
from arco_catalog.state.first_page import first_entries
from arco_catalog.state.paths import REALM_FOLDER, Paths
from storage_backends import Found, ObjectStore, StoreDenied

MAX_READ_COMMITS = 8
"""How many commits are read. Several may have no parent, if concurrent requests tried to make the first commit."""


class HeadLost(InternalError):
    """HEAD of a registry is missing, but a commit exists that only a registry with a HEAD can have."""

    def __init__(self, paths: Paths) -> None:
        restore = "arco restore --realm-registry" if paths.folder == REALM_FOLDER else "arco restore"
        super().__init__(
            f"HEAD of the registry, {paths.manifest}, is gone, and commits that led to it are there: "
            f"stop all writers, then run `{restore} --dry-run`, which shows what the restore would write"
        )


async def had_head(store: ObjectStore, paths: Paths) -> bool:
    """Whether the registry has had a HEAD: True if one of its commits in the store is not the first one by its sequence
    number. Of the first page of a listing that has any, it reads the `MAX_READ_COMMITS` commits with the highest ids.
    False if there are none, or if the store denies the listing. Raises `InternalError` for a corrupt commit, and
    `StoreError`."""
    try:
        entries = await first_entries(store, paths.registry_commits)
    except StoreDenied:
        # A function that only checks whether there is a realm has no right to list it, and none to create it.
        return False
    for key in sorted((each.key for each in entries), reverse=True)[:MAX_READ_COMMITS]:
        found = await store.get(key)
        if isinstance(found, Found) and CommitRecord.read(found.body, key).sequence > 1:
            return True
    return False
