"""The source of a change, from request headers, as receipts store it (docs/design/reconciliation.md#rule-1).

A client may declare by headers that it acts for a Servo task or for a user of the admin API. The headers prove nothing.
From an anonymous client they are saved as a claim. From an authenticated client they count only if the operator has
listed the principal, and are ignored otherwise (docs/decisions/0030). In a realm a principal needs the right to name
sources; the check of the rights rejects the request of any other (docs/design/access.md#sources).
"""

import re
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase

from arco_catalog.authentication.gateway import CONTROL, MAX_TEXT
from arco_catalog.http.clients import client_info
from arco_catalog.http.principal import Caller
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.runtime import is_ulid
from storage_backends.lazy_dataclass import dataclass

SERVO_RUN, SERVO_TASK, ADMIN_USER = "x-arco-servo-run-id", "x-arco-servo-task-id", "x-arco-admin-user"


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a change, an `UpdateSource`, in the form that receipts store. `ignored`: the request's headers were
    ignored, because its principal is not listed. `named`: the headers count if the principal has the right to name
    sources in the realm."""

    stored: JsonObject
    ignored: bool = False
    named: bool = False


def update_source(headers: Mapping[str, str], caller: Caller, trusted: Collection[str]) -> Source:
    """Returns the source of a request: the client, or what the headers for the source of a change claim. These count
    for a principal of a realm, which needs the right to name sources, and for a principal that a pattern in `trusted`
    matches. Those of an anonymous caller are stored as a claim, and those of any other caller are ignored. Header names
    are in lower case. Raises `BadRequest` for incomplete, contradictory or malformed headers, unless they are ignored.

    The products of the User-Agent are saved, but not its free text, so no User-Agent makes a request fail.
    """
    client: JsonObject = {
        "kind": "IcebergRest",
        "client_info": client_info(headers),
        "principal": caller.shown,
    }
    if SERVO_RUN not in headers and SERVO_TASK not in headers and ADMIN_USER not in headers:
        return Source(client)
    if caller.identity is not None:
        return Source({**_claim(headers), "principal": caller.shown}, named=True)
    if not caller.authenticated:
        return Source({**_claim(headers), "principal": caller.shown, "claimed": True})
    if any(fnmatchcase(caller.shown, pattern) for pattern in trusted):
        return Source({**_claim(headers), "principal": caller.shown})
    return Source(client, ignored=True)


def _claim(headers: Mapping[str, str]) -> JsonObject:
    """Returns the source of a change that the headers state. Raises `BadRequest` for incomplete, contradictory or
    malformed ones."""
    run, task, user = (headers.get(name) for name in (SERVO_RUN, SERVO_TASK, ADMIN_USER))
    if user is None:
        if run is None or task is None:
            raise BadRequest("X-Arco-Servo-Run-Id and X-Arco-Servo-Task-Id must be sent together")
        return {"kind": "Servo", "run_id": _ulid("Run", run), "task_id": _ulid("Task", task)}
    if run is not None or task is not None:
        raise BadRequest(
            "The headers X-Arco-Servo-* and X-Arco-Admin-User must not be sent together: a change has one source"
        )
    return {"kind": "AdminApi", "user_id": _user(user)}


def _ulid(what: str, text: str) -> str:
    """Returns the ULID in a header in upper case. Raises `BadRequest` for any other text."""
    if not (text.isascii() and is_ulid(text.upper())):
        raise BadRequest(f"X-Arco-Servo-{what}-Id must be a ULID, not {text[:64]!r}")
    return text.upper()


def _user(text: str) -> str:
    """Returns the id of an administrator in a header. Raises `BadRequest` for an invalid one."""
    if not 1 <= len(text) <= MAX_TEXT:
        raise BadRequest(f"X-Arco-Admin-User must have 1 to {MAX_TEXT} characters")
    if re.search(CONTROL, text):
        raise BadRequest("X-Arco-Admin-User must not contain control characters")
    return text
