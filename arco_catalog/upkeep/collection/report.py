"""Makes the report of the collections in a deployment, as a JSON document."""

from collections.abc import Sequence

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.catalogs import DeployedCatalog, Owner
from arco_catalog.upkeep.collection.stats import CollectionStats

CollectedCatalogs = Sequence[tuple[DeployedCatalog, CollectionStats]]


def as_document(results: CollectedCatalogs, *, delete: bool) -> JsonObject:
    """Returns the counts of all collections together as a JSON document; `delete` is whether objects were deleted or
    only counted. In a realm, and with a delegation service, the document also has the counts of each catalog under
    `catalogs`, and those of the realm's registry and of the service under `beside`."""
    total = CollectionStats()
    for _, stats in results:
        total.add(stats)
    document: JsonObject = {"deleted": delete, **total.to_json()}
    if len(results) == 1 and results[0][0].realm is None:
        return document
    catalogs: list[JsonValue] = []
    beside: list[JsonValue] = []
    for each, stats in results:
        if each.owner is Owner.CATALOG:
            catalogs.append({"name": each.name, **stats.to_json()})
        else:
            beside.append({"owner": each.owner.value, "name": each.name, **stats.to_json()})
    return {**document, "catalogs": catalogs, "beside": beside}
