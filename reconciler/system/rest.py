"""PyIceberg's REST catalog with an `Idempotency-Key` on each commit to a table, and with commits to views. A commit to
a table with a lost response is sent again, and gets the first response. Without a key, the second request would fail on
the requirements that the first has changed."""

import json
import time
from collections.abc import Callable, Mapping

from pyiceberg.catalog.rest import Endpoints, IdentifierKind, RestCatalog
from pyiceberg.catalog.rest.response import _handle_non_200_response
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    NoSuchViewError,
    ServerError,
    ServiceUnavailableError,
)
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyiceberg.view import View
from pyiceberg.view.metadata import ViewVersion
from requests.exceptions import HTTPError, RequestException

from arco_catalog.state.runtime import Runtime
from arco_catalog.upkeep.purge.delegate import idempotency_key
from storage_backends.backoff import growing_pause_s

UNKNOWN = (CommitStateUnknownException, ServerError, ServiceUnavailableError, RequestException)
"""Exceptions after which it is not known whether the commit was made."""
MAX_ATTEMPTS = 4
"""How often a commit is sent while the outcome is unknown."""
PAUSE_S = 2.0
HEADER = "Idempotency-Key"


class KeyedRestCatalog(RestCatalog):
    """PyIceberg's REST catalog, by its `properties`, with an idempotency key on each commit to a table. Keys are made
    from the runtime's time and randomness. `pause` sleeps for a number of seconds."""

    def __init__(
        self, properties: Mapping[str, str], runtime: Runtime, pause: Callable[[float], None] = time.sleep
    ) -> None:
        super().__init__("arco", **properties)
        self._runtime = runtime
        self._pause = pause

    def replace_view(self, view: View, schema: Schema, version: ViewVersion, properties: Mapping[str, str]) -> None:
        """Commits a new version, schema and properties of a view, for which PyIceberg has no method, once and without
        an idempotency key. Raises `NoSuchViewError`, `CommitFailedException` if the view has another uuid by now or the
        commit loses to another one, and PyIceberg's other errors of REST."""
        newest = -1  # of those that this request adds
        number = 1 + max(each.version_id for each in view.versions)
        added = {**version.model_dump(mode="json"), "schema-id": newest, "version-id": number}
        updates: list[Mapping[str, object]] = [
            {"action": "add-schema", "schema": schema.model_dump(mode="json")},
            {"action": "add-view-version", "view-version": added},
            {"action": "set-current-view-version", "view-version-id": newest},
            {"action": "set-properties", "updates": {**properties}},
        ]
        requirements = [{"type": "assert-view-uuid", "uuid": str(view.metadata.view_uuid)}]
        body = json.dumps({"requirements": requirements, "updates": updates})
        where = self._split_identifier_for_path(view.name(), IdentifierKind.VIEW)
        response = self._session.post(self.url(Endpoints.load_view, prefixed=True, **where), data=body)
        try:
            response.raise_for_status()
        except HTTPError as error:
            _handle_non_200_response(error, {404: NoSuchViewError, 409: CommitFailedException})

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Commits to a table, up to `MAX_ATTEMPTS` times with one idempotency key while the outcome is unknown, and
        returns the response. Raises `CommitFailedException` for a conflict, PyIceberg's other errors, and one of
        `UNKNOWN` only after the last attempt."""
        self._session.headers[HEADER] = idempotency_key(self._runtime)
        send: Callable[..., CommitTableResponse] = super().commit_table
        try:
            for attempt in range(1, MAX_ATTEMPTS):
                try:
                    return send(table, requirements, updates)
                except UNKNOWN:
                    self._pause(growing_pause_s(self._runtime.random(), attempt, PAUSE_S))
            return send(table, requirements, updates)
        finally:
            del self._session.headers[HEADER]
