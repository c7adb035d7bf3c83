"""The claim on one metadata file: by a registration, which needs the file, or by the cleaning after a commit, which
removes it.

Each claim is one object, created once and never changed: the process that creates it decides, and others read the
decision. So a registration can't lose its file to a cleaning that runs at the same time, in whatever order their calls
come and wherever one of them dies (docs/decisions/0022).
"""

from enum import StrEnum
from functools import partial

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import dumps
from arco_catalog.state.access import State
from arco_catalog.state.compare_and_swap import Stored, update_until_applied
from arco_catalog.state.fields import parse_record, text
from arco_catalog.state.locations import Location
from storage_backends import Found


class Claim(StrEnum):
    """What a claim says about its file."""

    REGISTERED = "registered"
    """A table or view may have been registered from it: it is never removed."""
    REMOVED = "removed"
    """It left the metadata log of the table that made it, and is removed: it can't be registered any more."""


async def claim(state: State, file: Location, wanted: Claim, *, entity: str, claim_id: str) -> Claim:
    """Claims a metadata file, unless it is claimed already. Returns the claim that stands, which never changes.

    Raises `StoreError` if the store doesn't tell, and `InternalError` for a claim that can't be read.
    """
    key = state.paths.metadata_claim(file.uri)
    body = dumps(
        {"version": 1, "id": claim_id, "claim": wanted.value, "entity": entity, "file": file.uri}, sort_keys=True
    )

    def first_come(there: Claim | None) -> Claim | None:
        return wanted if there is None else None

    unclaimed: Stored[Claim | None] = Stored(None, None)
    claimed = await update_until_applied(state, key, partial(_parsed, key), first_come, lambda _: body, known=unclaimed)
    assert claimed.value is not None
    return claimed.value


def _parsed(key: str, found: Found | None) -> Claim | None:
    if found is None:
        return None
    said = text(parse_record(found.body, key), "claim")
    try:
        return Claim(said)
    except ValueError:
        raise InternalError(f"{key} has an unknown value {said!r}") from None
