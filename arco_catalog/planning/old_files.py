"""Finds the metadata files that left a table's log, and that the table has written itself, so that they may be deleted
(`write.metadata.delete-after-commit.enabled`)."""

from collections.abc import Iterator, Sequence

from arco_catalog.iceberg import table
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.state.locations import Location


def own_files(folder: str, gone: Sequence[str]) -> Iterator[Location]:
    """Yields the locations of those files in `gone` whose names are those of this catalog's metadata files, and that
    are directly in `folder`, the table's metadata folder. A text that is no location is skipped: other catalogs log
    paths of many forms. Yields none if the metadata folder is itself no location."""
    try:
        home = Location.parse(folder)
    except BadRequest:
        return
    for text in gone:
        try:
            file = Location.parse(text)
        except BadRequest:
            continue
        ours = not file.reserved and bool(file.segments) and table.is_metadata_file_name(file.segments[-1])
        if ours and file.written_below(home) and len(file.segments) == len(home.segments) + 1:
            yield file
