"""The API of management, driven from its specification, and governance and checks beside it: never a failure, an
undocumented status, or an answer that is not as described; and everything that is listed can be read. The same requests
each time; `make fuzz` sends others."""

import asyncio
from collections.abc import Callable

import pytest

from arco_catalog.http.management.routes import MANAGEMENT
from arco_catalog.iceberg.errors import NotFound
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.management import grants
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.realm import CatalogEntry
from tests.fuzz.campaign import require_success
from tests.fuzz.management import in_memory, run
from tests.fuzz.realms import InMemoryRealm, audit
from tests.fuzz.specification import management_operations
from tools.openapi.specifications import MANAGEMENT_BASE, nameless

EXAMPLES = 6
DRAWS = (None, 1, 2)
"""Seeds of the requests: the others are for an operation of which the first draw has too few that succeed."""
LEAST_SUCCESS = 0.1
"""The share of right answers that an operation must give at least, so that not all requests fail at the lookup of
names. What is drawn depends on the tests that ran before, and is little."""
ROLE = f"{MANAGEMENT_BASE}/catalogs/{{catalogName}}/catalog-roles/{{catalogRoleName}}"
SELDOM = frozenset(
    (
        f"POST {ROLE}/grants",  # it must be held
        f"PUT {ROLE}",  # at its version
        f"POST {ROLE.removesuffix('/{catalogRoleName}')}",  # under a name that is free, and that it may have
        f"POST {MANAGEMENT_BASE}/catalogs",  # under a name and in a place that are free
        f"DELETE {MANAGEMENT_BASE}/catalogs/{{catalogName}}",  # one that is empty
        f"PUT {MANAGEMENT_BASE}/principals/{{principalName}}/principal-roles",  # one that it has not
        f"POST {MANAGEMENT_BASE}/principals/{{principalName}}/rotate",  # its own
    )
)
"""Operations that few requests can succeed at: one must."""


@pytest.fixture(scope="module")
def fresh() -> Callable[[], InMemoryRealm]:
    """Realms with principals, roles, catalogs and grants in them."""
    return in_memory()


def test_every_route_of_management_is_fuzzed() -> None:
    assert {nameless(label) for label in management_operations()} == {nameless(each.endpoint) for each in MANAGEMENT}


@pytest.mark.parametrize("label", [*management_operations()])
def test_every_answer_is_as_specified(label: str, fresh: Callable[[], InMemoryRealm]) -> None:
    def is_enough(share: float) -> bool:
        return share >= LEAST_SUCCESS or (label in SELDOM and share > 0)

    require_success(label, lambda number: run(label, fresh, EXAMPLES, number=number), DRAWS, is_enough)


def test_an_answer_that_is_not_as_described_is_found(
    fresh: Callable[[], InMemoryRealm], monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(catalog: CatalogEntry) -> JsonObject:
        return {"type": catalog.kind, "name": catalog.name, "entityVersion": "one"}

    monkeypatch.setattr("arco_catalog.http.management.catalogs.shown_catalog", shown)

    with pytest.raises(AssertionError, match="JsonSchemaError"):
        run(f"GET {MANAGEMENT_BASE}/catalogs/{{catalogName}}", fresh, EXAMPLES)


def test_a_listed_object_that_cannot_be_read_is_found(
    fresh: Callable[[], InMemoryRealm], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(session: Session, name: str) -> JsonObject:
        raise NotFound(f"Catalog role does not exist: {name}")

    assert asyncio.run(audit(fresh())) > 30
    monkeypatch.setattr(grants, "list_grants", lost)

    with pytest.raises(AssertionError, match="grants is listed and can't be read"):
        asyncio.run(audit(fresh()))
