"""Servers whose variables disagree on how idempotency keys are read, and changes of the catalog's setting."""

from collections.abc import Awaitable, Callable

from arco_catalog.iceberg.errors import CatalogChanged
from arco_catalog.planning.answers import Answer
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.key_resolution import resolve_key
from arco_catalog.state.key_settings import Dialect, KeyPolicy

POLICIES = (KeyPolicy(Dialect.ICEBERG), KeyPolicy(Dialect.POLARIS))


def variables_of(process: str) -> KeyPolicy:
    """The policy that the variables of a process set: of p1 and p3 another one than of p2."""
    return POLICIES["p2" in process]


async def served(make: Callable[[set[str]], Session], perform: Callable[[Session], Awaitable[Answer]]) -> Answer:
    """Serves a request as the HTTP layer does: its key is resolved first, and again where the catalog has changed.
    `make` makes a session with the attempts of the request so far."""
    attempts: set[str] = set()
    session = make(attempts)
    await resolve_key(session)
    try:
        return await perform(session)
    except CatalogChanged:
        session = make(attempts)
        await resolve_key(session)
        return await perform(session)
