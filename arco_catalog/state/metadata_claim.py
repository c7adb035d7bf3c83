"""The claim on one metadata file: by a registration, which needs the file, or by the cleaning after a commit or a
collection, which removes it.

A claim is an object that is created once and never changed. The process that creates it decides, and others read the
decision. So a registration can't lose the file to a concurrent cleaning, in any order of their calls, and also if one
of the processes crashes (docs/decisions/0022).
"""

from enum import StrEnum
from functools import partial

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import dumps
from arco_catalog.state.access import State
from arco_catalog.state.compare_and_swap import StoredValue, update_until_applied
from arco_catalog.state.fields import parse_record, text
from arco_catalog.state.locations import Location
from storage_backends import Found


class Claim(StrEnum):
    """The two decisions about a metadata file that a stored claim can record."""

    REGISTERED = "registered"
    """A table or view may have been registered from the file, so no cleaning or collection removes it; a purge may."""
    REMOVED = "removed"
    """The file left the metadata log of its table, or never became current, and is removed, so it can't be registered
    any more."""


async def claim(state: State, file: Location, wanted: Claim, *, entity: str, claim_id: str) -> Claim:
    """Stores the decision `wanted` about a metadata file, unless the file is claimed already. Returns the stored
    decision, which is that of the first claim and never changes. `entity` is the entity that claims the file, and
    `claim_id` a fresh id.

    Raises `StoreError` if the store fails, and `InternalError` for a corrupt claim.
    """
    key = state.paths.metadata_claim(file.uri)
    body = dumps(
        {"version": 1, "id": claim_id, "claim": wanted.value, "entity": entity, "file": file.uri}, sort_keys=True
    )

    def first_come(there: Claim | None) -> Claim | None:
        return wanted if there is None else None

    unclaimed: StoredValue[Claim | None] = StoredValue(None, None)
    claimed = await update_until_applied(state, key, partial(_parsed, key), first_come, lambda _: body, known=unclaimed)
    assert claimed.value is not None
    return claimed.value


def _parsed(key: str, found: Found | None) -> Claim | None:
    """Returns the claim on a metadata file in the object `found`; None if that is None. Raises `InternalError` for a
    corrupt or unknown claim."""
    if found is None:
        return None
    name = text(parse_record(found.body, key), "claim")
    try:
        return Claim(name)
    except ValueError:
        raise InternalError(
            f"The record {key}, which claims a metadata file, is invalid, or a later version of the program wrote it: "
            f"the claim {name!r} is unknown, so the file can't be registered or removed"
        ) from None
