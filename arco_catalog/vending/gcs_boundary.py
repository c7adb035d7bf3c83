"""Computes credential access boundaries of Google Cloud Storage, which limit a token to some folders, to read or also
to write them. Pure functions.

Sources: Google Cloud IAM, "Define a Credential Access Boundary"; STS API reference, `AccessBoundary` (its limits); the
language definition of CEL, "String and Bytes Values" (escapes).
"""

import re
from collections.abc import Sequence

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.locations import Location

MAX_RULES = 10
"""The limit of rules in one boundary."""
MAX_EXPRESSION_CHARACTERS = 2_048
"""The limit of one condition in characters."""
READ_ROLE = "inRole:roles/storage.objectViewer"
WRITE_ROLE = "inRole:roles/storage.objectUser"
"""Reads, writes, deletes and lists objects, and sets no access rights. A boundary only narrows: the account must have
these rights itself."""

_BUCKET = re.compile(r"[a-z0-9._-]{3,222}")


def cel_string(text: str) -> str:
    """Returns a text as a CEL literal, escaped so that no part of it ends the literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def condition(location: Location) -> str:
    """Returns the CEL condition that is true for objects in a folder, and for a LIST of a prefix inside it. The
    resource of a LIST is the bucket, so its prefix is compared; for any other request the prefix is empty."""
    folder = f"{location.path}/"
    objects = cel_string(f"projects/_/buckets/{location.authority}/objects/{folder}")
    listed = "api.getAttribute('storage.googleapis.com/objectListPrefix', '')"
    return f"resource.name.startsWith({objects}) || {listed}.startsWith({cel_string(folder)})"


def grouped(locations: Sequence[Location]) -> list[tuple[Location, ...]]:
    """Returns the folders in groups of which each fits into one boundary. Those whose condition would be too long, or
    whose bucket has an invalid name, are left out."""
    named = [
        location
        for location in locations
        if _BUCKET.fullmatch(location.authority) and len(condition(location)) <= MAX_EXPRESSION_CHARACTERS
    ]
    return [tuple(named[start : start + MAX_RULES]) for start in range(0, len(named), MAX_RULES)]


def access_boundary(locations: Sequence[Location], *, write: bool) -> JsonObject:
    """Returns the JSON of the boundary that gives access to these folders, to read them or also to write them, with one
    rule for each."""
    return {
        "accessBoundary": {
            "accessBoundaryRules": [
                {
                    "availablePermissions": [WRITE_ROLE if write else READ_ROLE],
                    "availableResource": f"//storage.googleapis.com/projects/_/buckets/{location.authority}",
                    "availabilityCondition": {"expression": condition(location)},
                }
                for location in locations
            ]
        }
    }
