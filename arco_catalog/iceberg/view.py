"""View metadata: the functions by which other packages make, change and read it, in one place. The counterpart of
`table`.

    body -> parse_create_view -> new_view_metadata -> document
    body -> parse_view_commit -> apply_view_commit(base) -> document, or None if nothing changes
    file -> check_registered_view -> document

A view's document has no time of its own; its files are named like a table's (`files`).
"""

from typing import cast

from arco_catalog.iceberg.accessors import distinct, location, locations_in, paths_in, written_locations
from arco_catalog.iceberg.files import (
    metadata_codec,
    metadata_directory,
    metadata_file_name,
    next_metadata_version,
    uses_gzip,
)
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.view_commit import ViewCommit, apply_view_commit, parse_view_commit
from arco_catalog.iceberg.view_creation import CreateView, new_view_metadata, parse_create_view
from arco_catalog.iceberg.view_metadata import check_registered_view

__all__ = [
    "CreateView",
    "ViewCommit",
    "apply_view_commit",
    "check_registered_view",
    "current_version_id",
    "explicit_locations",
    "location",
    "metadata_codec",
    "metadata_directory",
    "metadata_file_name",
    "new_view_metadata",
    "next_metadata_version",
    "parse_create_view",
    "parse_view_commit",
    "uses_gzip",
    "view_uuid",
    "written_locations",
]


def view_uuid(metadata: JsonObject) -> str:
    """Returns the view's uuid."""
    return cast(str, metadata["view-uuid"])


def current_version_id(metadata: JsonObject) -> int:
    """Returns the id of the view's current version."""
    return cast(int, metadata["current-version-id"])


def explicit_locations(request: ViewCommit | CreateView) -> tuple[str, ...]:
    """Returns every location that a request names, each once: the view's own, and those in its properties.

    These are compared with the allowed locations (docs/design/state.md#rule-2).
    """
    if isinstance(request, ViewCommit):
        return locations_in(request.updates)
    return distinct([request.location, *paths_in(request.properties)])
