"""Checks whether a bucket of S3 keeps versions of deleted objects, such as those that a purge deletes
(docs/design/purge.md#kept-versions)."""

from arco_catalog.cli.checks import Check, Status
from arco_catalog.cli.command import CatalogOptions
from storage_backends import StoreError
from storage_backends.open import open_versions

NAME = "kept versions"


async def kept_versions(options: CatalogOptions) -> Check:
    """Checks whether the bucket of a store on S3 keeps versions of what is deleted now: not where versioning is
    suspended, even if old versions are there. The check passes in both cases, because versions protect against
    mistakes; if the bucket keeps them, its advice is how to delete them after a purge that must erase data. Skipped if
    the setting can't be read."""
    versions = open_versions(options.store, options.environment)
    try:
        enabled = await versions.enabled()
    except StoreError as error:
        return Check(NAME, Status.SKIPPED, f"the bucket's versioning can't be read: {error}")
    finally:
        await versions.close()
    if not enabled:
        return Check(NAME, Status.OK, "the bucket does not keep versions of deleted objects")
    return Check(
        NAME,
        Status.OK,
        "the bucket keeps versions: what a purge deletes can be read until they expire",
        "to erase sooner, delete noncurrent versions at the store, or let a lifecycle rule do it",
    )
