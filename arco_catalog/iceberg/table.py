"""Table metadata: the functions by which other packages make, change and read it, in one place.

    body -> parse_create_table -> new_table_metadata -> document
    body -> parse_commit -> apply_commit(base) -> document, or None if nothing changes
    file -> check_registered -> document

Documents are JSON objects in their stored form. No function does I/O, reads a clock or changes its arguments.
"""

from arco_catalog.iceberg.accessors import (
    added_leading_files,
    allows_deletes,
    current_snapshot_id,
    explicit_locations,
    last_sequence_number,
    last_updated_ms,
    leading_files,
    location,
    manifest_lists,
    refs,
    table_uuid,
    visible_snapshots_only,
    written_locations,
)
from arco_catalog.iceberg.apply import apply_commit
from arco_catalog.iceberg.commit import (
    Commit,
    added_snapshot_ids,
    engine_of,
    parse_commit,
    requests_rebase,
    required_refs,
)
from arco_catalog.iceberg.files import (
    files_that_left_the_log,
    is_metadata_file_name,
    logged_files,
    metadata_codec,
    metadata_directory,
    metadata_file_name,
    next_metadata_version,
    uses_gzip,
)
from arco_catalog.iceberg.registration import check_registered
from arco_catalog.iceberg.table_creation import CreateTable, new_table_metadata, parse_create_table

__all__ = [
    "Commit",
    "CreateTable",
    "added_leading_files",
    "added_snapshot_ids",
    "allows_deletes",
    "apply_commit",
    "check_registered",
    "current_snapshot_id",
    "engine_of",
    "explicit_locations",
    "files_that_left_the_log",
    "is_metadata_file_name",
    "last_sequence_number",
    "last_updated_ms",
    "leading_files",
    "location",
    "logged_files",
    "manifest_lists",
    "metadata_codec",
    "metadata_directory",
    "metadata_file_name",
    "new_table_metadata",
    "next_metadata_version",
    "parse_commit",
    "parse_create_table",
    "refs",
    "requests_rebase",
    "required_refs",
    "table_uuid",
    "uses_gzip",
    "visible_snapshots_only",
    "written_locations",
]
