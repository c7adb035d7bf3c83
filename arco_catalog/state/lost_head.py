"""Tells a registry that has no HEAD yet from one whose HEAD is lost, which the next commit would make an empty one.

A commit is built on another only once that was HEAD (docs/design/registry.md#rule-7).
"""

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.state.paths import REALM_FOLDER, Paths
from arco_catalog.state.registry import RegistryState
from storage_backends import Found, ObjectStore, StoreDenied

LOOKED_AT = 8
"""How many commits are looked at. Those that are built on none are of the requests that raced to make the first."""


class HeadLost(InternalError):
    """HEAD of a registry is gone, and its commits are there."""

    def __init__(self, paths: Paths) -> None:
        restore = "arco restore --realm-registry" if paths.folder == REALM_FOLDER else "arco restore"
        super().__init__(
            f"HEAD of the registry, {paths.manifest}, is gone, and commits that led to it are there: "
            f"stop all writers, then run `{restore} --dry-run`"
        )


async def had_head(store: ObjectStore, paths: Paths) -> bool:
    """Whether commits show that a registry has had a HEAD. Raises `InternalError` for a commit that can't be read, and
    `StoreError`."""
    try:
        page = await store.list(paths.registry_commits)
    except StoreDenied:
        return False  # a function without rights on a realm, which it asks for: it may not make one either
    for listed in reversed(page.entries[-LOOKED_AT:]):
        found = await store.get(listed.key)
        if isinstance(found, Found) and RegistryState.parse(found.body, None, listed.key).sequence > 1:
            return True
    return False
