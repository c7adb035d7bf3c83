"""A copy of a catalog sends nothing, since its original does (docs/design/delivery.md#rule-8)."""

from arco_catalog.iceberg.json import JsonObject, dumps, loads
from storage_backends import ANY, Found
from tests.upkeep.delivery.test_killed_deliverers import Feeds


async def test_a_copy_of_a_catalog_sends_nothing_before_it_is_adopted() -> None:
    feeds = await Feeds().start()
    manifest = feeds.service.session().state.paths.manifest
    found = await feeds.service.store.get(manifest)
    assert isinstance(found, Found)
    head = loads(found.body)
    assert isinstance(head, dict)
    restored: JsonObject = {"at_ms": 1, "copy_of": "elsewhere"}
    await feeds.service.store.put(manifest, dumps({**head, "restored": restored}, sort_keys=True), ANY)

    await feeds.work()
    assert feeds.receiver.ids == []

    await feeds.service.store.put(manifest, dumps(head, sort_keys=True), ANY)
    feeds.service.clock.ms += 2 * 60 * 60_000
    await feeds.work_until_done()
    assert feeds.receiver.ids == await feeds.expected()
