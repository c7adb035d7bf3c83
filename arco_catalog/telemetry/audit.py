"""The audit log: a line of JSON for each credential and each signature that a request got, and for each denial
(docs/observability.md#audit)."""

import os
import stat
from collections.abc import Callable, Iterator
from typing import Self

from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.telemetry.lines import Write, utc_time
from arco_catalog.telemetry.request_log import RequestLog

LOGGER = "arco_catalog.audit"
"""The field `logger` of audit lines, by which a log of several streams is filtered."""
STANDARD_OUTPUT = "-"
"""The value of `--audit-log` and ARCO_AUDIT_LOG for lines on standard output: on functions, in their log."""


class AuditLog:
    """Writes the audit lines of each request before its answer is sent."""

    def __init__(self, write: Write, now_ms: Callable[[], int]) -> None:
        self._write = write
        self._now_ms = now_ms

    def observe(self, log: RequestLog) -> None:
        """Writes lines to the audit log about a request: one for every access to storage that the request got, and one
        for the privilege that it was denied. Writes nothing if there are none. Raises what `write` raises."""
        at_ms = self._now_ms()
        for event in _events(log):
            self._write(dumps({"time": utc_time(at_ms), "logger": LOGGER, **event, **_request(log)}).decode())


def _events(log: RequestLog) -> Iterator[JsonObject]:
    """Yields the audit events of a request: one for every access to storage that it got (a credential or a signature),
    and one for the privilege that it was denied, if there is one."""
    for given in log.stats.given:
        event: JsonObject = {"event": given.event, "entity": given.entity, "location": given.location}
        event["access"] = "write" if given.writes else "read"
        if given.expires_ms is not None:
            event["expires"] = utc_time(given.expires_ms)
        if given.method is not None:
            event["signed_method"] = given.method
        yield event
    if log.stats.denied is not None:
        privilege, securable = log.stats.denied
        yield {"event": "denied", "privilege": privilege, "on": securable}


def _request(log: RequestLog) -> JsonObject:
    """Returns the fields about the request, the same in all of its audit lines: the principal, with the name if that is
    known, the catalog, the operation and the id."""
    named: JsonObject = {} if log.stats.name is None else {"principal_name": log.stats.name}
    return {
        "principal": log.stats.principal,
        **named,
        "warehouse": log.warehouse,
        "operation": log.operation,
        "request_id": log.request_id,
    }


class AuditFile:
    """A file to which each line is appended by one write, so that several processes can share it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def open(cls, path: str) -> Self:
        """Opens the file of the audit log for appending, and makes it, with mode 0600, if there is none. Raises
        `OSError` if that is impossible, as for a directory, and `ValueError` if it opens and is not a regular file,
        but a device, for example."""
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise ValueError(f"{path} is not a regular file: give one, or {STANDARD_OUTPUT} for standard output")
        return cls(descriptor)

    def write(self, line: str) -> None:
        """Appends a line to the file of the audit log. Raises `OSError`, also if only a part of it was written."""
        data = f"{line}\n".encode()
        written = os.write(self._descriptor, data)
        if written != len(data):
            raise OSError(f"only {written} of {len(data)} bytes of an audit line were written")

    def close(self) -> None:
        """Closes the file of the audit log. A later `write` raises `OSError`."""
        os.close(self._descriptor)
        self._descriptor = -1  # the number may become that of another file
