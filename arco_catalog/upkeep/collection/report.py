"""What collections of all that a deployment has came to, as machines are told."""

from collections.abc import Sequence

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.catalogs import DeployedCatalog, Owner
from arco_catalog.upkeep.collection.stats import CollectionStats

Collected = Sequence[tuple[DeployedCatalog, CollectionStats]]


def as_document(collected: Collected, *, delete: bool) -> JsonObject:
    """The counts of all; in a realm, and beside a delegation service, also those of each catalog, and of what is
    `beside` the catalogs: the realm's registry, the service."""
    total = CollectionStats()
    for _, stats in collected:
        total.add(stats)
    document: JsonObject = {"deleted": delete, **total.to_json()}
    if len(collected) == 1 and collected[0][0].realm is None:
        return document
    catalogs: list[JsonValue] = []
    beside: list[JsonValue] = []
    for each, stats in collected:
        if each.owner is Owner.CATALOG:
            catalogs.append({"name": each.name, **stats.to_json()})
        else:
            beside.append({"owner": each.owner.value, "name": each.name, **stats.to_json()})
    return {**document, "catalogs": catalogs, "beside": beside}
