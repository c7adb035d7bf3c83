"""Where a change came from, as request headers say it and receipts keep it (seed 004, section 8.2)."""

import re
from collections.abc import Mapping

from arco_catalog.http.principal import CONTROL, MAX_TEXT
from arco_catalog.http.telemetry.clients import products
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject

SERVO_RUN, SERVO_TASK, ADMIN_USER = "x-arco-servo-run-id", "x-arco-servo-task-id", "x-arco-admin-user"

_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", re.IGNORECASE)


def update_source(headers: Mapping[str, str], principal: str) -> JsonObject:
    """The `UpdateSource` of a request; header names are lower case. Raises `BadRequest` for one that is half told, told
    twice or malformed.

    No request fails for its client's name. Of a User-Agent the products are kept, and never the free text around them.
    """
    run, task, user = (headers.get(name) for name in (SERVO_RUN, SERVO_TASK, ADMIN_USER))
    if (run is not None or task is not None) and user is not None:
        raise BadRequest("A request comes from a Servo task or from an administrator, not from both")
    if run is not None or task is not None:
        if run is None or task is None:
            raise BadRequest("X-Arco-Servo-Run-Id and X-Arco-Servo-Task-Id go together")
        return {"kind": "Servo", "run_id": _ulid("Run", run), "task_id": _ulid("Task", task)}
    if user is not None:
        return {"kind": "AdminApi", "user_id": _user(user)}
    return {"kind": "IcebergRest", "client_info": products(headers.get("user-agent")), "principal": principal}


def _ulid(what: str, text: str) -> str:
    if not _ULID.fullmatch(text):
        raise BadRequest(f"X-Arco-Servo-{what}-Id must be a ULID, not {text[:64]!r}")
    return text.upper()


def _user(text: str) -> str:
    if not 1 <= len(text) <= MAX_TEXT:
        raise BadRequest(f"X-Arco-Admin-User must have 1 to {MAX_TEXT} characters")
    if CONTROL.search(text):
        raise BadRequest("X-Arco-Admin-User must hold no control characters")
    return text
