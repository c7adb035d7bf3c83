"""PyIceberg's REST catalog, with an `Idempotency-Key` on every commit: one whose answer was lost is sent again, and
answered as the first time. Without a key the second sending is refused, as if the first had never been made."""

import time
from collections.abc import Callable, Mapping

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitStateUnknownException, ServerError, ServiceUnavailableError
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import TableRequirement, TableUpdate
from requests.exceptions import RequestException

from arco_catalog.operations.purge.delegate import idempotency_key
from arco_catalog.state.runtime import Runtime
from storage_backends.backoff import growing_pause_s

UNKNOWN = (CommitStateUnknownException, ServerError, ServiceUnavailableError, RequestException)
"""After these nobody knows whether the commit was made."""
TRIES = 4
"""How often a commit is sent while nobody knows."""
PAUSE_S = 2.0
HEADER = "Idempotency-Key"


class KeyedRestCatalog(RestCatalog):
    """The catalog that `properties` lead to; keys are made of a runtime's time and randomness. `pause` waits so many
    seconds."""

    def __init__(
        self, properties: Mapping[str, str], runtime: Runtime, pause: Callable[[float], None] = time.sleep
    ) -> None:
        super().__init__("arco", **properties)
        self._runtime = runtime
        self._pause = pause

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Raises as PyIceberg's does; one of `UNKNOWN` only after the last try."""
        self._session.headers[HEADER] = idempotency_key(self._runtime)
        send: Callable[..., CommitTableResponse] = super().commit_table
        try:
            for tried in range(1, TRIES):
                try:
                    return send(table, requirements, updates)
                except UNKNOWN:
                    self._pause(growing_pause_s(self._runtime.random(), tried, PAUSE_S))
            return send(table, requirements, updates)
        finally:
            del self._session.headers[HEADER]
