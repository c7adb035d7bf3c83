"""Who should plan the scans of a table, a hint in the answer to a load: a client that may read the files can plan their
scans itself (docs/scan-planning.md)."""

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.properties import ENCRYPTION_KEY_ID, PLANNING_MODES, SCAN_PLANNING_MODE
from arco_catalog.planning.answers import TableState
from arco_catalog.protocol.catalog import Session

REMEMBERED_FILES = 4_096
"""For how many metadata files a process remembers who plans the scans."""
_MARKS = (f'"{SCAN_PLANNING_MODE}"'.encode(), f'"{ENCRYPTION_KEY_ID}"'.encode())
"""Metadata without any of these texts has no such property, and is not parsed."""


async def planning_mode(session: Session, state: TableState) -> str | None:
    """Returns who should plan scans of a table: `client` for one that is encrypted, else what its property has if that
    is a known mode, else the setting of the catalog, None if there is none. The metadata file is parsed at the first
    call, if it may have such a property; later ones use the result, which is kept for the last `REMEMBERED_FILES`.
    Raises `OutOfMemory`."""
    remembered, location = session.catalog.planning_modes, state.metadata_location
    if location not in remembered:
        is_marked = any(mark in state.metadata for mark in _MARKS)
        mode = await session.files.parse(location, state.metadata, _mode_in) if is_marked else None
        while len(remembered) >= REMEMBERED_FILES:
            del remembered[next(iter(remembered))]
        remembered[location] = mode
    return remembered[location] or session.settings.scan_planning


def _mode_in(document: JsonObject) -> str | None:
    """Returns who plans scans of a table by the metadata: `client` for an encrypted table, else the value of the
    property; None if that is not set or unknown. Frees the document."""
    from arco_catalog.iceberg.json_pieces import let_go  # few tables need it

    properties = document.get("properties")
    found = {**properties} if isinstance(properties, dict) else {}
    let_go(document)
    if found.get(ENCRYPTION_KEY_ID):
        return "client"
    mode = str(found.get(SCAN_PLANNING_MODE, "")).lower()
    return mode if mode in PLANNING_MODES else None
