"""Refuses jobs that delete files on a copy of a catalog (docs/recovery.md#copies)."""

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.restoration import describe_copy


class CatalogIsCopy(BadRequest):
    """The error of a job that deletes files and was started on a copy of a catalog, which an operator must adopt first
    (`arco adopt`)."""


async def require_original(session: Session) -> None:
    """Reads HEAD, and raises `CatalogIsCopy` if the catalog is a copy."""
    copy_of = (await session.state.head()).copy_of
    if copy_of is not None:
        raise CatalogIsCopy(describe_copy(copy_of))
