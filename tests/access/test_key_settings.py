"""How a catalog that is made in a realm reads idempotency keys."""

import json

from storage_backends import Found
from tests.access.test_budgets import CountedCatalog


async def test_a_catalog_records_the_policy_of_the_server_that_makes_it() -> None:
    counted = await CountedCatalog().start()
    [key] = [
        entry.key
        for entry in (await counted.memory.list("")).entries
        if entry.key.endswith("/_catalog/core/manifest.json") and "/catalogs/" in entry.key
    ]
    found = await counted.memory.get(key)
    assert isinstance(found, Found)
    assert json.loads(found.body)["idempotency"] == {
        "dialect": "iceberg",
        "enabled": True,
        "number": 1,
        "replaced": [],
    }
