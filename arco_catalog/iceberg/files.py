"""The places and names of a table's metadata files (docs/design/commit.md#steps; table spec, "File System Tables")."""

import re
from typing import cast

from arco_catalog.iceberg import properties as props
from arco_catalog.iceberg.json import JsonObject, JsonValue

_VERSION = re.compile(r"([0-9]{1,9})-")
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_ATTEMPT_AND_TRY = "[0-7][0-9A-HJKMNP-TV-Z]{25}-[0-9]{1,9}"
"""Pattern of the text that older versions wrote in place of the UUID."""
_OURS = re.compile(rf"[0-9]{{5,10}}-(?:{_UUID}|{_ATTEMPT_AND_TRY})(?:\.gz)?\.metadata\.json")


def metadata_file_name(version_number: int, file_id: str, codec: str) -> str:
    """Returns the name of a metadata file: the version number in five digits or more, the `file_id`, and the ending for
    the codec, as `00012-<uuid>.metadata.json`, or `00012-<uuid>.gz.metadata.json` if `codec` is `gzip`. Iceberg's own
    libraries name their files like this (`BaseMetastoreTableOperations.newTableMetadataFilePath`): tools search a UUID
    there.

    `file_id` is a UUID in canonical spelling, fresh for each table and attempt, because tables may share a folder.
    """
    extension = ".gz.metadata.json" if codec == "gzip" else ".metadata.json"
    return f"{version_number:05d}-{file_id}{extension}"


def is_metadata_file_name(name: str) -> bool:
    """Whether a file name, without its folder, is one of a metadata file that this catalog writes, or that an older
    version of it wrote (`00012-<attempt>-<try>.metadata.json`)."""
    return _OURS.fullmatch(name) is not None


def next_metadata_version(previous_location: str | None) -> int:
    """Returns one more than the number in the previous file's name, as `metadata_version` finds it; 0 if there is no
    file or no such number."""
    previous = None if previous_location is None else metadata_version(previous_location)
    return 0 if previous is None else previous + 1


def metadata_version(location: str) -> int | None:
    """Returns the number of up to 9 digits with which a metadata file's name starts, before a hyphen; None if it starts
    otherwise, as `v3.metadata.json`."""
    found = _VERSION.match(location.rpartition("/")[2])
    return int(found[1]) if found else None


def metadata_directory(metadata: JsonObject, location: str) -> str:
    """Returns the folder of metadata files, without a slash at its end: the property `write.metadata.path`, else
    `<location>/metadata`, where `location` is the base location of the table or view."""
    chosen = _properties(metadata).get(props.METADATA_PATH)
    return props.strip_trailing_slash(chosen or f"{props.strip_trailing_slash(location)}/metadata")


def metadata_codec(metadata: JsonObject) -> str:
    """Returns the compression of the table's metadata files: `gzip` or `none`."""
    return "gzip" if uses_gzip(metadata) else "none"


def uses_gzip(metadata: JsonObject) -> bool:
    """Whether the table's metadata files are to be compressed with gzip."""
    return _properties(metadata).get(props.METADATA_COMPRESSION, "").lower() == "gzip"


def files_that_left_the_log(
    old: JsonObject | None, new: JsonObject, *, old_file: str | None = None, registered_from: str | None = None
) -> list[str]:
    """Returns the metadata files that may be deleted once `new` is committed: those that only `old`, the metadata
    before, lists, and that the table has written itself. The file that it was `registered_from`, and every file before
    that in its log, belongs to another catalog; so do all that `old` lists if it was read from that file (`old_file`).

    Empty without `old`, and unless the property `write.metadata.delete-after-commit.enabled` of `new` is `true`.
    """
    if old is None or not props.is_true(_properties(new), props.DELETE_AFTER_COMMIT):
        return []
    if registered_from is not None and old_file == registered_from:
        return []
    logged, kept = logged_files(old), set(logged_files(new))
    last_foreign = max((place for place, file in enumerate(logged) if file == registered_from), default=-1)
    return [file for file in logged[last_foreign + 1 :] if file not in kept]


def logged_files(metadata: JsonObject) -> list[str]:
    """Returns the earlier metadata files that a document lists, oldest first."""
    log = cast("list[dict[str, str]]", metadata.get("metadata-log") or [])
    return [entry["metadata-file"] for entry in log]


def _properties(metadata: JsonObject) -> dict[str, str]:
    """Returns the properties in metadata; empty without any."""
    found: JsonValue = metadata.get("properties") or {}
    return cast("dict[str, str]", found)
