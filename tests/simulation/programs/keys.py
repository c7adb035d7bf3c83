"""Servers whose variables disagree on how idempotency keys are read, or whether they are, and changes of the catalog's
setting."""

from collections.abc import Awaitable, Callable

from arco_catalog.iceberg.errors import CatalogChanged
from arco_catalog.planning.answers import Answer
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.key_resolution import resolve_key
from arco_catalog.state.key_settings import Dialect, KeyPolicy

OFF = KeyPolicy(enabled=False)
POLICIES = (KeyPolicy(Dialect.ICEBERG), KeyPolicy(Dialect.POLARIS), OFF)


def variables_of(process: str) -> KeyPolicy:
    """The policy that the variables of a process set: p2 has another dialect than p1, and p3 reads no keys."""
    return next(
        (policy for name, policy in zip(("p2", "p3"), POLICIES[1:], strict=True) if name in process), POLICIES[0]
    )


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
